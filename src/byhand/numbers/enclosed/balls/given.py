"""Given numbers, such as weights, as balls of any working precision.

A float or a dyadic fraction is the same ball at every precision; 1/3 and √2/2 are enclosed anew,
more narrowly, when the precision is raised.  A rounded decimal stays the same interval.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from numbers import Rational
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Array, Printed, Within
from byhand.numbers.enclosed.balls.arrays import matrix
from byhand.numbers.exact.read import evaluate
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import Value

SHORT = 4096  # bits up to which a fraction may be held exactly


class Given:
    """Some given numbers.  The balls of one precision are kept for its next use."""

    def __init__(self, data: Any, space: Space) -> None:
        entries = np.asarray(data)
        self.shape: tuple[int, ...] = entries.shape
        self.ndim = entries.ndim
        self._enclosed: list[tuple[int, Fraction | Value]] = []  # what depends on the precision
        self._bits = 0
        self._matrices: dict[str, arb_mat] = {}
        if entries.dtype != object:
            if not np.isfinite(entries).all():
                raise InputError(_("not a finite number"), found=str(_first_not_finite(entries)))
            flat: list[arb | None] = list(map(arb, entries.astype(np.float64).ravel().tolist()))
        else:
            flat = []
            for place, entry in enumerate(entries.ravel()):
                found = _known(entry, space)
                if isinstance(found, Fraction | Value):
                    self._enclosed.append((place, found))
                    flat.append(ABSENT)  # filled in for each precision
                else:
                    flat.append(found)
        self._flat = flat
        self._array: Array = None

    def at(self, bits: int) -> Array:
        """The array of balls, as narrow as this working precision makes them."""
        if self._array is None or (self._enclosed and self._bits != bits):
            flat = np.empty(len(self._flat), dtype=object)
            flat[:] = self._flat
            for place, source in self._enclosed:
                flat[place] = narrow_ball(source, bits)
            self._array, self._bits = flat.reshape(self.shape), bits
            self._matrices.clear()
        return self._array

    def matrix(self, bits: int, layout: str) -> arb_mat:
        """The two axes as a matrix, input by input."""
        balls = self.at(bits)
        if layout not in self._matrices:
            plain = balls if layout == "in_out" else balls.T
            self._matrices[layout] = matrix(plain)
        return self._matrices[layout]


def _known(entry: Any, space: Space) -> arb | Fraction | Value | None:
    """A ball that holds at every precision; else the number to make balls from."""
    if isinstance(entry, arb) or entry is ABSENT:
        return entry
    if isinstance(entry, Printed | Within):
        return interval(entry.value, entry.radius)
    if isinstance(entry, Expression):
        value = evaluate(entry, space)
        return value if value.fraction is None else _known(value.fraction, space)
    if isinstance(entry, Rational):
        return _fraction(Fraction(entry))
    if isinstance(entry, str) or not hasattr(entry, "__float__"):
        raise InputError(_("not a number"), found=repr(entry)[:60])
    number = float(entry)
    if not isfinite(number):
        raise InputError(_("not a finite number"), found=str(number))
    return arb(number)


def _fraction(value: Fraction) -> arb | Fraction:
    """An exact ball if there is one; else the fraction."""
    below = value.denominator
    if below & (below - 1) or max(below.bit_length(), value.numerator.bit_length()) > SHORT:
        return value
    return ball_of_fraction(value, value.numerator.bit_length() + 64)


def interval(middle: Fraction, radius: Fraction) -> arb:
    """Returns a ball that contains every number within the radius of the middle."""
    with ctx.workprec(SHORT):
        center = ball_of_fraction(middle, SHORT)
        return arb(center.mid(), (ball_of_fraction(radius, 64) + center.rad()).upper())


def ball_of_fraction(value: Fraction, bits: int) -> arb:
    """Returns a ball that contains the fraction, computed with so many bits."""
    with ctx.workprec(bits):
        return arb(fmpq(value.numerator, value.denominator))


def narrow_ball(number: Fraction | Value, bits: int) -> arb:
    """Returns a ball that contains the number, computed with so many bits."""
    return ball_of_fraction(number, bits) if isinstance(number, Fraction) else number.ball(bits)


def _first_not_finite(entries: Array) -> float:
    return float(entries[~np.isfinite(entries)].ravel()[0])
