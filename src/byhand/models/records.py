"""Recorded training runs: those of built-in models, and the comparison of places of the norm.

`tools/recorded.py` writes the runs.  Each was made again for the record; `apart` says how far its
weights are from the model's, since the last bits of a training depend on the processor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from byhand.model import Model
from byhand.models import is_builtin

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Sample:
    """What a model said after a step, token by token, and the probability of its target."""

    step: int
    said: tuple[str, ...]
    share: float


@dataclass(frozen=True)
class TrainingRecord:
    """A training run: its settings, and a number for each step, from the first."""

    settings: Mapping[str, Any]
    tokens: int  # predicted in all steps together
    losses: tuple[float, ...]  # on the texts of each step
    rates: tuple[float, ...]
    norms: tuple[float, ...]  # of the gradients, before clipping
    held_out: tuple[tuple[int, float], ...]  # (step, loss on texts that were not learned from)
    levels: Mapping[str, float]  # losses to compare with
    best: int  # the step whose weights were kept
    samples: tuple[Sample, ...]
    apart: float

    @cached_property
    def clipped(self) -> tuple[int, ...]:
        """The steps whose gradients were clipped, counted from 1."""
        limit = self.settings["clip"]
        return tuple(step for step, norm in enumerate(self.norms, 1) if limit and norm > limit)


def record_of(model: Model) -> TrainingRecord | None:
    """The record of a built-in model's training; None where there is none.

    >>> from byhand.models import open_model
    >>> record = record_of(open_model("abc"))
    >>> len(record.losses), record.losses[0], record.samples[-1].said
    (500, 1.142, ('B', 'C', 'A'))
    """
    path = _FOLDER / f"{model.name}.run.json"
    if not is_builtin(model) or not path.exists():
        return None
    told = json.loads(path.read_text("utf-8"))
    samples = (Sample(one["step"], tuple(one["said"]), one["share"]) for one in told["samples"])
    return TrainingRecord(
        told["run"],
        told["tokens"],
        tuple(told["loss"]),
        tuple(told["rate"]),
        tuple(told["norm"]),
        tuple((step, loss) for step, loss in told["held_out"]),
        told["levels"],
        told["best"],
        tuple(samples),
        told["apart"],
    )


# ------------------------------------------------------------------ norms before and after


@dataclass(frozen=True)
class NormsCurve:
    """A stack of blocks: the place of its norms, its depth, its gradients and its losses."""

    place: str  # "pre", "post"
    depth: int
    gradients: tuple[float, ...]  # of each block at the start, as root mean squares
    losses: tuple[float, ...]  # after each step


@dataclass(frozen=True)
class NormsRecord:
    """What `byhand train --compare-norms` measured, with its settings."""

    steps: int
    batch: int
    rate: float
    curves: tuple[NormsCurve, ...]

    def curve(self, place: str, depth: int) -> NormsCurve:
        """The stack with its norms at a place, of a depth."""
        return next(c for c in self.curves if (c.place, c.depth) == (place, depth))


def norms_record() -> NormsRecord:
    """The recorded comparison of norms before and after the branches.

    >>> record = norms_record()
    >>> record.steps, record.curve("post", 12).losses[-1] > record.curve("pre", 12).losses[-1]
    (100, True)
    """
    told = json.loads((_FOLDER / "norms.json").read_text("utf-8"))
    curves = (
        NormsCurve(c["place"], c["depth"], tuple(c["gradients"]), tuple(c["losses"]))
        for c in told["curves"]
    )
    return NormsRecord(told["steps"], told["batch"], told["rate"], tuple(curves))
