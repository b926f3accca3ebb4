"""Evidence: how much better than the model an edited plan explains a claim, and at what price.

A cause must make the claim follow.  That alone is weak evidence where bounds are wide, so it must
also leave no more than rounding usually does, and clearly less than the model as it stands.  Every
number that was read off the claim must be borne out by several entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from byhand.checking.openness import almost_anything
from byhand.checking.replay import Line
from byhand.checking.suspects import Edit
from byhand.checking.verdicts import Evidence, Suspect
from byhand.numbers.allowed import Judged

EXPLAINED = 32.0  # × the usual rounding error: a suspect that leaves more explains nothing
CLEARLY_BETTER = 4.0  # factor by which a suspect must leave less than the model does
BORNE_OUT = 6  # wrong entries for each number that was read off the claim
USUAL = 3.0  # × the usual rounding error: fits below it are equally good


@dataclass(frozen=True)
class Trial:
    """One edit, worked out and compared with the claim."""

    edit: Edit
    judged: Judged
    left: float | None  # root mean square of what is left, in usual rounding errors; None: unknown
    explained: int  # wrong entries that follow with the edit
    spoiled: int  # right entries that no longer follow

    @classmethod
    def of(cls, edit: Edit, judged: Judged, before: Judged, line: Line) -> Trial:
        """The trial of an edit, judged before and with it."""
        was, now = before.shares > 1, judged.shares > 1
        return cls(
            edit,
            judged,
            what_is_left(judged, line),
            explained=int((was & ~now).sum()),
            spoiled=int((now & ~was).sum()),
        )

    @property
    def rank(self) -> tuple[float, int, int]:
        """How badly it fits and how much it assumes; the smallest comes first."""
        times = self.judged.times
        fit = inf if times is None else times
        return (0.0 if fit <= USUAL else fit), self.edit.fitted, self.edit.unlikely

    def suspect(self) -> Suspect:
        """The trial as a cause."""
        edit, judged = self.edit, self.judged
        evidence = Evidence(self.explained, fitted=edit.fitted, left=self.left)
        return Suspect(edit.kind, edit.sentence, edit.change, judged.share, judged.times, evidence)


def what_is_left(judged: Judged, line: Line) -> float | None:
    """The root mean square of the claims' errors, in usual rounding errors; None: unknown."""
    if judged.usual is None:
        return None
    with np.errstate(all="ignore"):
        times = np.abs(line.values - judged.expected) / judged.usual
    known = np.isfinite(times) if judged.claimed is None else np.isfinite(times) & judged.claimed
    return float(np.sqrt(np.mean(np.square(times[known])))) if known.any() else None


def explains(trial: Trial, before: Judged, line: Line, *, unusual: bool) -> bool:
    """Whether the edit is a cause of the claim, rather than a guess.

    `unusual` marks a line that the model itself explains, but hardly.
    """
    judged = trial.judged
    if _hides(judged, before, line):
        return False
    if not judged.follows or almost_anything(judged, line.slack) is not None:
        return False
    if judged.times is not None and judged.times > EXPLAINED:
        return False
    if trial.edit.fitted and trial.explained < BORNE_OUT * trial.edit.fitted:
        return False
    return not unusual or _better(judged.times, before.times)


def _hides(judged: Judged, before: Judged, line: Line) -> bool:
    """Whether a wrong number is only masked now, unless the claim says that it is masked."""
    if judged.claimed is None:
        return False
    wrong = (before.shares > 1) & np.isfinite(line.values)
    return bool((wrong & ~judged.claimed).any())


def _better(times: float | None, than: float | None) -> bool:
    return times is not None and than is not None and times * CLEARLY_BETTER < than
