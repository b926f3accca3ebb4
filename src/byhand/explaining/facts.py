"""Facts: how each prediction comes about, checked by taking each step away.

A fact is data.  For each step it has two predictions without that step.  The *said* one is the
largest of the logits less what the step adds directly.  The *found* one is that of the text worked
out without the step (`ablation`).  They can differ, because later steps read what this one writes;
then the fact says so.  The sentences are written in `document`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from byhand.evaluate import Admitted, Progress
from byhand.explaining.ablation import Part, part_at, usual_parts
from byhand.explaining.joint_ablation import predictions_without
from byhand.explaining.lens import Lens
from byhand.explaining.turning import Turning, Turns
from byhand.numbers.base import Prediction
from byhand.tracing import Trace
from byhand.worked import Missing

MOST_PARTS = 64  # parts that are taken away one by one, heads included


@dataclass(frozen=True, slots=True)
class Check:
    """One step taken away at one position: the prediction said and the prediction found."""

    part: Part
    contribution: Any  # of the step to the lead over the rival, in the trace's numbers
    said: Prediction  # the largest of the logits less what the step adds directly
    found: Prediction  # of the text worked out without the step

    @property
    def as_said(self) -> bool | None:
        """Whether the two predictions agree; None where one is undecided."""
        if self.said.id is None or self.found.id is None:
            return None
        return self.said.id == self.found.id


@dataclass(frozen=True)
class Fact:
    """How one position's prediction comes about."""

    turning: Turning
    checks: tuple[Check, ...]  # one for each part, in spine order

    @property
    def position(self) -> int:
        """The position that the fact is about."""
        return self.turning.position

    @property
    def prediction(self) -> Prediction:
        """The token that is predicted there."""
        return self.turning.prediction

    @cached_property
    def needed(self) -> tuple[Check, ...]:
        """The steps without which the prediction changes."""
        told = self.prediction.id
        return tuple(
            check for check in self.checks if None not in (told, check.found.id)
            and check.found.id != told
        )  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """The facts of a text, or why there are none."""

    trace: Trace
    facts: tuple[Fact, ...]
    missing: Missing | None = None  # why the prediction could not be worked out


def facts(
    trace: Trace,
    positions: Sequence[int] | None = None,
    parts: Sequence[Part | str] | None = None,
    *,
    lens: Lens | None = None,
    weights: Admitted | None = None,
    progress: Progress | None = None,
) -> Facts:
    """How each prediction of a trace comes about, checked by taking each part away.

    It takes all positions, unless some are named.  `parts` are by default the position table, the
    side-trips and, where there are several and not too many, the heads.  The trace must have all
    its steps.  The lens over these positions and the model's weights may be given, if they exist
    already.
    """
    missing = trace["next"].missing
    if missing is not None:
        return Facts(trace, (), missing)
    spec = trace.model.spec
    chosen = [
        one if isinstance(one, Part) else part_at(spec, one)
        for one in (_usual(trace) if parts is None else parts)
    ]
    if weights is None:
        weights = Admitted(trace.model.weights, trace.numbers)
    turns = Turns(
        trace,
        positions,
        neurons=any(one.kind == "neuron" for one in chosen),
        heads=any(one.kind == "head" for one in chosen),
        weights=weights,
        lens=lens,
        progress=progress,
    )
    said = turns.without_each(chosen)
    found = predictions_without(trace, chosen, turns.positions, weights, progress)
    told = []
    for place, turning in enumerate(turns.found):
        at = turning.position
        checks = tuple(
            Check(one, turns.added(one, at), said[i][place], found[i][place])
            for i, one in enumerate(chosen)
        )
        told.append(Fact(turning, checks))
    return Facts(trace, tuple(told))


def _usual(trace: Trace) -> tuple[Part, ...]:
    """The usual parts; without single heads where a model has many."""
    parts = usual_parts(trace.model.spec)
    return parts if len(parts) <= MOST_PARTS else tuple(p for p in parts if p.kind != "head")
