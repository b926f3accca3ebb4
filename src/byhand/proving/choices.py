"""Choices of experts that enclosures leave open, settled: by equal weights, or by exact numbers.

Scores that are not apart at some precision may be at a higher one.  Equal scores never are.
Experts with the same weights in the router have equal scores, whatever the stream is.  For others
exact arithmetic tells it, where the model is small enough.  Of equal scores the first ones count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from byhand.evaluate import Revise
from byhand.missing_bits import open_rows
from byhand.numbers.base import Note, Printed, Unknown, Within
from byhand.plan import WEIGHT, Plan, Step
from byhand.tracing import Trace
from byhand.weights import Tensor
from byhand.worked import Worked

TIED = "tied-experts"
Row = list[int]  # 1 for an expert that is chosen, else 0


class Exact(Protocol):
    """The same job in exact numbers."""

    @property
    def trace(self) -> Trace:
        """The exact trace, worked out when first needed."""


def settling(
    plan: Plan,
    weights: Mapping[str, Tensor],
    exactly: Exact | None,
    settled: dict[str, None],
) -> Revise | None:
    """What settles the open choices of a pass, step by step; None where nobody is chosen.

    `exactly` has the trace in exact numbers, where these may be asked.  The addresses of rows that
    were settled are added to `settled`.
    """
    if not any(step.op == "choose" for step in plan):
        return None
    return _Settling(plan, weights, exactly, settled).revise


@dataclass
class _Settling:
    plan: Plan
    weights: Mapping[str, Tensor]
    exactly: Exact | None
    settled: dict[str, None]

    def revise(self, worked: Worked) -> Worked:
        """The step as it is, or with its open rows settled."""
        if worked.step.op != "choose" or worked.missing is not None:
            return worked
        rows, notes = dict[int, Row](), list(worked.notes)
        for position, candidates in open_rows(worked).items():
            row = self._by_weights(worked, position, candidates)
            if row is not None:
                notes.append(Note(TIED, (position,)))
            else:
                row = self._by_exact_numbers(worked.step, position, notes)
            if row is not None:
                rows[position] = row
                self.settled[f"{worked.address}[{position}]"] = None
        if not rows:
            return worked
        notes.sort(key=lambda note: note.index)
        return replace(worked, value=_with_rows(worked, rows), notes=tuple(notes))

    def _by_weights(self, worked: Worked, position: int, candidates: Sequence[int]) -> Row | None:
        """The first of candidates that are tied, since their scores are made alike."""
        step = worked.step
        if "groups" in step.attributes or not made_alike(
            self.plan, self.weights, step.inputs["x"], candidates
        ):
            return None
        row = [int(worked.at((position, expert)).mid == 1) for expert in range(step.shape[-1])]
        for expert in candidates:
            row[expert] = 0
        for expert in candidates[: step.attributes["count"] - sum(row)]:
            row[expert] = 1
        return row

    def _by_exact_numbers(self, step: Step, position: int, notes: list[Note]) -> Row | None:
        """The choice of exact numbers, with what they say of it."""
        if self.exactly is None:
            return None
        worked = self.exactly.trace.steps[step.address]
        if worked.missing is not None:
            return None
        notes += [note for note in worked.notes if note.index == (position,)]
        return [int(worked.at((position, expert))) for expert in range(step.shape[-1])]


def made_alike(
    plan: Plan, weights: Mapping[str, Tensor], address: str, outputs: Sequence[int]
) -> bool:
    """Whether columns of a step are equal whatever it reads: they are made alike of equal weights.

    True is a proof; columns of which it is not true may be equal for another reason.
    """
    step = plan[address]
    match step.op:
        case "linear":
            return same_rows(step, weights, outputs)
        case "affine":
            names = (step.inputs[role] for role in ("gain", "bias") if role in step.inputs)
            every = (weights[name.removeprefix(WEIGHT)].data for name in names)
            if not all(_equal([data[output] for output in outputs]) for data in every):
                return False
            return made_alike(plan, weights, step.inputs["x"], outputs)
        case "activate" | "softmax":
            return made_alike(plan, weights, step.inputs["x"], outputs)
    return False


def same_rows(step: Step, weights: Mapping[str, Tensor], outputs: Sequence[int]) -> bool:
    """Whether a matrix gives these outputs the same numbers, whatever it reads."""
    for role in ("weight", "bias"):
        if role in step.inputs:
            data = weights[step.inputs[role].removeprefix(WEIGHT)].data
            rows = data.T if step.attributes["layout"] == "in_out" else data
            if not _equal([rows[output] for output in outputs]):
                return False
    return True


def _equal(entries: Sequence[Any]) -> bool:
    """Whether rows or numbers are equal; equal rounded decimals need not be equal numbers."""
    first = np.ravel(entries[0])
    if first.dtype == object and any(isinstance(x, Printed | Unknown | Within) for x in first):
        return False
    return all(np.array_equal(np.ravel(entry), first) for entry in entries[1:])


def _with_rows(worked: Worked, rows: Mapping[int, Row]) -> Any:
    """The marks of the step, with these rows in place of open ones."""
    numbers, kept, marks = worked.numbers, np.ones(worked.step.shape), np.zeros(worked.step.shape)
    for position, row in rows.items():
        kept[position], marks[position] = 0.0, row
    if len(rows) < len(open_rows(worked)):
        left = numbers.multiply(worked.value, numbers.admit(kept))
        return numbers.add(left, numbers.admit(marks))
    for place in map(tuple, np.argwhere(kept)):
        marks[place] = float(worked.at(place).mid)
    return numbers.admit(marks)
