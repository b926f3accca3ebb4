"""Scaled RoPE: the angle per position of each pair, where it is no plain power of the base.

linear     the usual angles divided by a factor
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from byhand.expression import Expression, Number, Power, Quotient

KINDS = ("linear",)


@dataclass(frozen=True, slots=True)
class Scaling:
    """A rule that makes the angles of RoPE's pairs, of the base and the length of the text."""

    kind: str
    factor: Fraction = Fraction(1)

    def frequencies(self, base: Fraction, width: int, length: int) -> tuple[Expression, ...]:
        """The angle per position of each pair; `length` counts positions from 0 to the last."""
        return tuple(self._over(_usual(base, place, width)) for place in range(width // 2))

    def _over(self, frequency: Expression) -> Expression:
        if isinstance(frequency, Number):
            return Number(frequency.value / self.factor)
        return frequency if self.factor == 1 else Quotient(frequency, Number(self.factor))


def _usual(base: Fraction, place: int, width: int) -> Expression:
    """base^(-2i/width), for pair i."""
    if place == 0 or base == 1:
        return Number(Fraction(1))
    return Power(Number(base), Number(Fraction(-2 * place, width)))
