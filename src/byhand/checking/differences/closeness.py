"""Closeness: whether a prediction is as near to a claim as rounding usually leaves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byhand.checking.differences.difference import Difference, Floats, Truths
from byhand.checking.suspects.casts import bits_of

ROOT_MEAN_SQUARE = 3.0  # × the usual rounding error, of all entries together
WORST = 14.0  # × the usual rounding error, of one entry
BETTER = 4.0  # factor by which a prediction must leave less than the model does
LEAST = 2.0**-40  # of the largest number: below it nothing counts as a difference
SURE = 4.0  # standard deviations
TYPICAL = 0.4  # the standard deviation of one rounding, in unit roundoffs of the number


@dataclass(frozen=True)
class Fitted:
    """A number that was read off a claim, and one standard deviation of it."""

    value: float
    off: float

    @property
    def differs(self) -> bool:
        """Whether a factor of this size changes anything."""
        return abs(self.value - 1) > SURE * self.off + LEAST


def left(difference: Difference, predicted: Floats, room: Floats, at: Truths) -> Floats:
    """What a prediction leaves at some entries, in usual rounding errors."""
    with np.errstate(all="ignore"):
        off = np.abs(predicted - difference.claimed)[at] / room[at]
    return np.asarray(np.where(np.isnan(off), np.inf, off))


def near(difference: Difference, predicted: Floats, room: Floats | None = None,
         at: Truths | None = None) -> bool:  # fmt: skip
    """Whether a prediction is near to the claim, and clearly nearer than what follows."""
    where = difference.finite if at is None else difference.finite & at
    if not where.any():
        return False
    own = difference.room if room is None else room
    now = left(difference, predicted, own, where)
    if not now.size or not float(now.max()) <= WORST:
        return False
    rest = rms(now)
    if rest > ROOT_MEAN_SQUARE:
        return False
    before = rms(left(difference, difference.expected, difference.room, where))
    return before > BETTER * max(rest, 0.5)


def rms(values: Floats) -> float:
    """The root mean square; ∞ where it is too large to tell."""
    with np.errstate(all="ignore"):
        mean = float(np.mean(np.square(values))) if values.size else 0.0
    return float(np.sqrt(mean)) if np.isfinite(mean) else float("inf")


def room_of(difference: Difference, factor: Floats | float = 1.0) -> Floats:
    """The usual rounding error of a factor times what follows, stored once more as claimed."""
    with np.errstate(all="ignore"):
        size = np.abs(np.where(difference.finite, difference.claimed, 0.0))
        again = size * (TYPICAL * 2.0 ** -bits_of(difference.scene.context.precision))
        room = np.hypot(np.abs(factor) * difference.room, again)
    floor = LEAST * float(size.max(initial=0.0)) + np.finfo(np.float64).tiny
    return np.asarray(np.maximum(room, floor))
