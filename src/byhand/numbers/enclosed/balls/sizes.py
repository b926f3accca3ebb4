"""Enclosures and sizes of Arb balls, and their distances from floats.

A ball of an extreme size, such as e^-1000000000000000000, would need billions of digits for the
ends of an `Enclosure`.  Its enclosure is that of a larger set, and its decimals are taken from the
ball itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, isfinite, ldexp, log2
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from byhand.numbers.base import ABSENT, Array
from byhand.numbers.enclosed.distance import Apart
from byhand.numbers.enclosed.enclosure import (
    LOG2_OF_10,
    LOG10_OF_2,
    WIDEST,
    Enclosure,
    Logs,
    absurd,
    binary_size,
    bits_missing,
)

HALF = fmpq(1, 2)
TINY, HUGE = arb(2) ** -1000, arb(2) ** 1000
SMALLEST = -1000  # the binary exponent to which the sizes of tiny numbers are raised
FARTHEST = 2**62  # the largest binary exponent in an array; larger ones are replaced by it


def apart_from(balls: Array, floats: Logs) -> Apart:
    """Lower bounds of the distances of floats from an array of balls."""
    pairs = zip(balls.ravel(), floats.ravel().tolist(), strict=True)
    found = [(0.0, 0, 0.0, 0) if x is ABSENT else _apart(x, number) for x, number in pairs]
    least, exponents, sizes, tops = zip(*found, strict=True)
    return Apart(
        np.array(least, np.float64).reshape(floats.shape),
        np.array(exponents, np.int64).reshape(floats.shape),
        np.array(sizes, np.float64).reshape(floats.shape),
        np.array(tops, np.int64).reshape(floats.shape),
    )


def _apart(x: arb, number: float) -> tuple[float, int, float, int]:
    """(mantissa and exponent of the least distance, mantissa and exponent of the largest |x|)."""
    if not x.is_finite():
        return 0.0, 0, np.inf, 0
    size, top = map(int, x.abs_upper().man_exp())
    largest, top = _upward(size, -size.bit_length()), top + size.bit_length()
    if top > FARTHEST:
        largest, top = np.inf, 0
    top = max(top, -FARTHEST)
    if not isfinite(number):
        return np.inf, 0, largest, top
    least, exponent = map(int, (x - arb(number)).abs_lower().man_exp())
    more = max(least.bit_length() - 53, 0)  # bits that a float64 has no room for
    if exponent < -FARTHEST:
        return 0.0, 0, largest, top
    return float(least >> more), min(exponent + more, FARTHEST), largest, top


def _upward(man: int, exp: int) -> float:
    """man · 2^exp as a float64, rounded up; man is not negative."""
    more = max(man.bit_length() - 53, 0)
    return ldexp(float(-(-man >> more)), exp + more)


def float_near(x: arb) -> tuple[float, float]:
    """A float64 near the ball, and a bound of its distance from every number of the ball."""
    if not x.is_finite() or not (abs(x.mid()) < HUGE and x.rad() < HUGE):
        return 0.0, inf
    near = float(x.mid())
    size, exponent = map(int, (x - arb(near)).abs_upper().man_exp())
    return near, 0.0 if size == 0 else _upward(size, max(exponent, SMALLEST - size.bit_length()))


def magnitudes(x: arb) -> tuple[float, float]:
    """log2 of |midpoint| and of the radius of the ball's enclosure."""
    if not x.is_finite():
        return -np.inf, np.inf
    man, exp = map(int, x.mid().man_exp())
    rad_man, rad_exp = map(int, x.rad().man_exp())
    if max(exp, rad_exp) > WIDEST // 2 or min(exp, rad_exp) < -WIDEST:  # an absurd size
        enclosure = Enclosure.of(x)
        return binary_size(abs(enclosure.mid)), binary_size(enclosure.rad)
    middle = log2(abs(man)) + exp if man else -np.inf
    return middle, log2(rad_man) + rad_exp if rad_man else -np.inf


def missing(x: arb, digits: int) -> float:
    """How many bits narrower a ball must be to prove so many digits; at most 0 if it proves them.

    Of an ordinary number, the radius below the middle tells at once: 10^-digits/2 of it is at most
    half a unit of the last place.
    """
    if x.rel_accuracy_bits() >= digits * LOG2_OF_10 + 2 and (TINY < abs(x) < HUGE or x == 0):
        return -np.inf
    if absurd(x) and enclosure_of_ball(x).proves(digits):
        return -np.inf
    middle, radius = magnitudes(x)
    return float(bits_missing(np.array(middle), np.array(radius), digits))


# ----------------------------------------------------------------------- enclosures


@dataclass(frozen=True, slots=True)
class ExtremeEnclosure(Enclosure):
    """An enclosure with its ball, `own`, which is far narrower than `mid` and `rad` say."""

    own: Any  # the ball

    def proves(self, digits: int) -> bool:
        return self._rounded(digits) is not None

    @property
    def _negative(self) -> bool:
        return bool(self.own < 0)

    def _most(self, digits: int) -> int:
        known = floor(int(self.own.rel_accuracy_bits()) * LOG10_OF_2) + 1
        return min(digits, max(known, 0))

    def _rounded(self, digits: int) -> tuple[int, int] | None:
        """(n, exponent), by logarithms: every |x| is less than 1 unit from n, proven."""
        if self.own.contains(0):
            return None
        size = self.own.abs_upper().man_exp()[1].bit_length()
        with ctx.workprec(4 * digits + 2 * size + 64):
            log, ten = abs(self.own).log(), arb(10).log()
            exponent = (log / ten).lower().floor().unique_fmpz()
            while exponent is not None:
                units = (log + ten * (digits - 1 - exponent)).exp()
                n = (units.mid() + arb(HALF)).mid().floor().unique_fmpz()
                if n is None or not abs(units - arb(n)) < 1:
                    return None
                if n < 10**digits:
                    return int(n), int(exponent)
                exponent += 1
        return None


def enclosure_of_ball(ball: arb) -> Enclosure:
    """Returns an enclosure of a ball, with its digits, whatever the size."""
    known = Enclosure.of(ball)
    if not absurd(ball):
        return known
    return ExtremeEnclosure(known.mid, known.rad, ball)
