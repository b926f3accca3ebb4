"""Closeness: whether a prediction is as near to a claim as rounding usually leaves it.

Lines may have millions of entries, and most predictions are wrong: so some entries are looked at
first, and all of them only where those agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import wraps
from math import inf

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import Difference, Floats, Reader, Reading, Truths
from byhand.checking.suspects.casts import bits_of

Places = npt.NDArray[np.intp]
ROOT_MEAN_SQUARE = 3.0  # × the usual rounding error, of all entries together
WORST = 14.0  # × the usual rounding error, of one entry
BETTER = 4.0  # factor by which a prediction must leave less than the model does
LEAST = 2.0**-40  # of the largest number: below it nothing counts as a difference
SURE = 4.0  # standard deviations
TYPICAL = 0.4  # the standard deviation of one rounding, in unit roundoffs of the number
SOME = 4096  # entries that are looked at first
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Fitted:
    """A number that was read off a claim, and one standard deviation of it."""

    value: float
    off: float

    @property
    def differs(self) -> bool:
        """Whether a factor of this size changes anything."""
        return abs(self.value - 1) > SURE * self.off + LEAST


@dataclass(frozen=True)
class Entries:
    """Some entries of a difference, in a row."""

    own: Floats  # what follows
    claimed: Floats
    room: Floats  # the usual rounding error of what follows
    again: Floats  # that of storing the claimed number once more

    @classmethod
    def of(cls, difference: Difference, at: Truths, most: int | None = None) -> Entries:
        """The entries at some places that are numbers; evenly chosen ones where there are more."""
        where = np.flatnonzero(difference.finite & at)
        if most is not None and len(where) > most:
            where = where[np.linspace(0, len(where) - 1, most).astype(np.intp)]
        return cls.at(difference, where)

    @classmethod
    def at(cls, difference: Difference, where: Places, room: Floats | None = None) -> Entries:
        """The entries at flat indices; `room` is the usual error of what is predicted there."""
        parts = (difference.expected, difference.claimed, difference.room if room is None else room)
        own, claimed, usual = (part.reshape(-1)[where] for part in parts)
        return cls(own, claimed, usual, stored_again(difference, claimed))

    def __len__(self) -> int:
        return len(self.own)

    def near(self, predicted: Floats, factor: Floats | float = 1.0) -> bool:
        """Whether a prediction, of which a factor is known, is clearly nearer than the model's."""
        if not len(self):
            return False
        with np.errstate(all="ignore"):
            room = np.hypot(np.abs(factor) * self.room, self.again)
            now = np.abs(predicted - self.claimed) / room
            if not float(now.max()) <= WORST:  # also where it is NaN
                return False
            before = rms(np.abs(self.own - self.claimed) / self.room)
        rest = rms(now)
        return rest <= ROOT_MEAN_SQUARE and before > BETTER * max(rest, 0.5)


def near(
    difference: Difference,
    predicted: Floats,
    at: Truths | None = None,
    room: Floats | None = None,
) -> bool:
    """Whether a prediction is near to the claim, and clearly nearer than what follows.

    What is predicted is stored as the claim is; `room` is its usual error, if it has another.
    """
    where = np.flatnonzero(difference.finite if at is None else difference.finite & at)
    flat = predicted.reshape(-1)
    some = where[np.linspace(0, len(where) - 1, min(len(where), SOME)).astype(np.intp)]
    if not Entries.at(difference, some, room).near(flat[some]):
        return False
    return len(some) == len(where) or Entries.at(difference, where, room).near(flat[where])


def stored_again(difference: Difference, claimed: Floats) -> Floats:
    """The usual error of storing claimed numbers once more; above 0."""
    with np.errstate(all="ignore"):
        size = np.abs(np.where(np.isfinite(claimed), claimed, 0.0))
        again = size * (TYPICAL * 2.0 ** -bits_of(difference.scene.context.precision))
    return np.asarray(np.maximum(again, LEAST * float(size.max(initial=0.0)) + TINY))


def quietly(reader: Reader) -> Reader:
    """The reader, without NumPy's warnings: numbers that nobody thought of are expected here."""

    @wraps(reader)
    def read(difference: Difference) -> Iterator[Reading]:
        with np.errstate(all="ignore"):
            found = list(reader(difference))
        return iter(found)

    return read


def rms(values: Floats) -> float:
    """The root mean square; ∞ where it is too large to tell."""
    with np.errstate(all="ignore"):
        mean = float(np.mean(np.square(values))) if values.size else 0.0
    return float(np.sqrt(mean)) if np.isfinite(mean) else inf
