"""The search through a gap: edited plans in plain float64, screened by their distance to the claim.

The distance is the root mean square of claim − prediction, in usual rounding errors.  A correct
run is 0.4 to 1.1 from the model in its worst row, after a gap (benchmarks/planted, float32 and
bfloat16, seeds 0 to 9).  The nearest edits are worked out again in ranges, which tell how far
rounding usually takes *them*.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np

from byhand.checking.claims import Floats, Truths
from byhand.checking.gaps.values import Values
from byhand.checking.suspects.scenes import Edit
from byhand.numbers.allowed import Judged
from byhand.plan import Plan

CLEARLY = 4.0  # × the usual rounding error: an entry that differs
SAME = 1e-6  # usual rounding errors: predictions that differ by less are one


@dataclass(frozen=True)
class Candidate:
    """An edit with what it predicts for the claimed part."""

    edit: Edit
    predicted: Floats
    distance: float


@dataclass
class Search:
    """The candidates for one line, the nearest first."""

    values: Values
    judged: Judged
    work: float  # what may be spent, in about nanoseconds
    found: list[Candidate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.claimed = np.asarray(self.values.line.values, dtype=np.float64)
        usual = self.judged.usual
        assert usual is not None
        self.usual = np.broadcast_to(np.asarray(usual, dtype=np.float64), self.claimed.shape)
        self.known: Truths = np.isfinite(self.claimed) & np.isfinite(self.usual) & (self.usual > 0)
        if self.judged.claimed is not None:
            self.known &= self.judged.claimed
        self.expected = np.asarray(self.judged.expected, dtype=np.float64)
        self.model = self.distance(self.expected)

    @cached_property
    def wrong(self) -> int:
        """The entries that clearly differ from what the model gives."""
        return int((np.abs(self.off(self.expected)) > CLEARLY).sum())

    @property
    def best(self) -> float:
        """The distance of the nearest candidate."""
        return self.found[0].distance if self.found else inf

    def off(self, predicted: Floats) -> Floats:
        """claim − prediction in usual rounding errors, entry by entry; 0 where nothing is known."""
        with np.errstate(all="ignore"):
            return np.where(self.known, (self.claimed - predicted) / self.usual, 0.0)

    def distance(self, predicted: Floats) -> float:
        """How far a prediction is from the claim; ∞ where it holds what is not a number."""
        count = max(1, int(self.known.sum()))
        size = float(np.sqrt(np.square(self.off(predicted)).sum() / count))
        return size if np.isfinite(size) else inf

    def predicted(self, plan: Plan) -> Floats | None:
        """What an edited plan gives; None where it gives nothing, or nothing may be spent."""
        if self.work <= 0:
            return None
        before = self.values.worked
        predicted = self.values.predicted(plan)
        self.work -= self.values.worked - before
        return predicted

    def try_all(self, edits: Iterable[Edit], share: float = 1.0) -> None:
        """Tries the edits, up to a share of what may be spent."""
        kept = (1 - share) * self.work
        for edit in edits:
            if self.work <= kept:
                return
            predicted = self.predicted(edit.plan)
            if predicted is not None:
                self.note(edit, predicted)

    def note(self, edit: Edit, predicted: Floats) -> None:
        """Enters a candidate that is nearer than the model, unless one like it is there already."""
        distance = self.distance(predicted)
        if not distance < self.model:
            return
        for place, other in enumerate(self.found):
            if abs(other.distance - distance) <= SAME and self._same(other.predicted, predicted):
                if edit.price < other.edit.price:
                    self.found[place] = Candidate(edit, predicted, distance)
                return
        self.found.append(Candidate(edit, predicted, distance))
        self.found.sort(key=lambda each: each.distance)

    def _same(self, one: Floats, other: Floats) -> bool:
        apart = np.abs(np.where(self.known, one - other, 0.0))
        return bool((apart <= SAME * np.where(self.known, self.usual, 1.0)).all())

    def as_judged(self, candidate: Candidate) -> Judged:
        """The candidate as a judgement, with the bounds and usual errors of the model."""
        judged = self.judged
        off = np.abs(self.off(candidate.predicted))
        rows = np.square(off.reshape(-1, off.shape[-1] if off.ndim else 1)).mean(axis=-1)
        with np.errstate(all="ignore"):
            shares = np.abs(self.claimed - candidate.predicted) / judged.allowed
        return replace(
            judged,
            shares=np.where(self.known & np.isfinite(shares), shares, 0.0).astype(np.float32),
            times=float(np.sqrt(rows.max(initial=0.0))),
            expected=candidate.predicted,
        )
