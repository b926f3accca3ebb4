"""The drawing of a token: temperature, then the top k, then the top p, then a random number.

Order and edge cases are those of `transformers`, which the tests compare with.  Probabilities are
float64s here, whatever the numbers of the model are.  Exact ones are worked out exactly,
temperature included, and rounded once.  A tie at the edge of the top p is decided for the lowest
id.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.errors import InputError, UsageError
from byhand.language import _
from byhand.numbers.base import Numbers, nearest_float
from byhand.worked import Worked

Floats = npt.NDArray[np.float64]
Rational = Fraction | int | float
LARGEST_SEED = 2**32  # of a seed chosen here: short enough to be typed again
UNIT = 2.0**-53
COLDEST, HOTTEST = 5e-324, 1.7e308  # temperatures of float64; beyond, the result is the same


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.  The same seed draws the same tokens from the same probabilities."""

    temperature: Fraction = Fraction(1)
    top_k: int | None = None
    top_p: Fraction | None = None
    seed: int = field(default_factory=lambda: secrets.randbelow(LARGEST_SEED))

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UsageError(
                _("the temperature has a value that does not fit"),
                expected=_("a number above 0"),
                found=f"{float(self.temperature):g}",
                hint=_("without a temperature, the most probable token is taken")
                if self.temperature == 0
                else None,
            )
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(
                _("top-k has a value that does not fit"),
                expected=_("a whole number of at least {low}").format(low=1),
                found=str(self.top_k),
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(
                _("top-p has a value that does not fit"),
                expected=_("a number above 0 and at most 1"),
                found=f"{float(self.top_p):g}",
            )
        if self.seed < 0:
            raise UsageError(
                _("the seed has a value that does not fit"),
                expected=_("a whole number of at least {low}").format(low=0),
                found=str(self.seed),
            )

    def dice(self) -> Dice:
        """The dice of this seed, not yet thrown."""
        return Dice(self.seed)

    def chances(self, logits: Worked, probs: Worked) -> Floats:
        """The probability of each token to be drawn after the last position."""
        order, shares = self._shares(logits, probs)
        allowed = np.ones(len(shares), dtype=bool)
        if self.top_k is not None:
            allowed = order >= np.sort(order)[-min(self.top_k, len(order))]
            shares = _of_one(np.where(allowed, shares, 0.0))
        if self.top_p is not None and self.top_p < 1:
            shares = _of_one(np.where(nucleus(shares, float(self.top_p)), shares, 0.0))
        return shares

    def _shares(self, logits: Worked, probs: Worked) -> tuple[Floats, Floats]:
        """Softmax of logits/temperature, and keys that order the tokens as the logits do."""
        numbers = logits.numbers
        if numbers.uniform != "rounded":
            row = probs.value[-1:]
            if self.temperature != 1:
                row = numbers.softmax(_divided(numbers, logits.value[-1:], self.temperature))
            shares = as_floats(row[0])
            return shares, shares
        scores = as_floats(logits.array[-1])
        largest = scores.max()
        if not np.isfinite(largest):
            raise InputError(
                _("the logits are not finite numbers, so no token can be drawn"),
                where=logits.address,
                found=str(largest),
            )
        divisor = min(
            max(as_floats(np.array([self.temperature], dtype=object))[0], COLDEST), HOTTEST
        )
        with np.errstate(over="ignore"):  # far below the largest: a share of 0
            return scores, _of_one(np.exp((scores - largest) / divisor))


def nucleus(shares: Floats, least: float) -> npt.NDArray[np.bool_]:
    """Marks the smallest set of the largest shares whose sum reaches `least`."""
    falling = np.argsort(-shares, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(shares[falling])[:-1]])
    marked = np.zeros(len(shares), dtype=bool)
    marked[falling[before < least]] = True
    return marked


def as_floats(row: Any) -> Floats:
    """The float64s nearest to some entries, exact ones included."""
    if row.dtype != np.dtype(object):
        return np.asarray(row).astype(np.float64)
    return np.array([nearest_float(entry) for entry in row], dtype=np.float64)


def _divided(numbers: Numbers, row: Any, divisor: Fraction) -> Any:
    factor = np.empty((1, 1), dtype=object)
    factor[0, 0] = 1 / divisor
    return numbers.multiply(row, numbers.admit(factor))


def _of_one(shares: Floats) -> Floats:
    """The shares divided by their sum."""
    total: np.float64 = np.cumsum(shares)[-1]
    return shares / total


class Dice:
    """Throws that follow from a seed alone.

    NumPy promises that the bits of PCG64 never change; what a Generator makes of them may change.
    So the bits are used directly, as Generator.random uses them today.
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def throw(self) -> float:
        """A random number of at least 0 and below 1."""
        return (int(self._bits.random_raw()) >> 11) * UNIT

    def draw(self, chances: Floats) -> int:
        """An id, drawn with these chances; an id with chance 0 is never drawn."""
        reached = np.cumsum(chances)
        return int(np.searchsorted(reached, self.throw() * reached[-1], side="right"))


def as_rational(value: Rational) -> Fraction:
    """The number as it was written: 0.7 is 7/10."""
    if isinstance(value, float):
        if not np.isfinite(value):
            raise UsageError(
                _("an option has a value that does not fit"),
                expected=_("a finite number"),
                found=str(value),
            )
        return Fraction(repr(value))
    return Fraction(value)
