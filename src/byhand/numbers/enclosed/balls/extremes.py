"""Balls that are too small or too large for fractions: e^-1000000000000000000 has digits too.

An `Enclosure` of such a ball would need billions of digits for its ends.  It is that of a larger
set instead, and its decimals are taken from the ball itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Any

from flint import arb, ctx, fmpq

from byhand.numbers.enclosed.enclosure import LOG10_OF_2, Enclosure, absurd

HALF = fmpq(1, 2)


@dataclass(frozen=True, slots=True)
class Beyond(Enclosure):
    """The numbers of a ball of its `own`, which `mid` and `rad` enclose far more widely."""

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
    """Returns an enclosure of a ball; one that has its digits, whatever the size."""
    known = Enclosure.of(ball)
    if not absurd(ball):
        return known
    return Beyond(known.mid, known.rad, ball)
