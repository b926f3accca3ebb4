"""The recorded training runs of built-in models: what every step did, and samples along the way.

`tools/recorded.py` writes them.  The run was made again for the record; `apart` says how far its
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
