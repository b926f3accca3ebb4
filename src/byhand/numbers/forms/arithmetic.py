"""The two arithmetics that forms are made of: float64 with bounds of its rounding, and Arb balls.

What is linear in letters is written once (`products`), over arrays of either kind.  In Arb the
terms and errors are balls, which hold their own rounding; in float64 it is added to errors[0].
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from byhand.numbers.base import nearest_float
from byhand.numbers.exact.value import Value
from byhand.numbers.forms import rounding
from byhand.numbers.forms.rounding import Data, Times, Truths

SPARE = 512  # bits in which the ends of balls are taken
BITS = 160  # of the balls from which floats and their errors are taken

Number = Fraction | Value | float


class Float64:
    """Floats: each operation adds its rounding to the errors without a letter."""

    multiply: Times = staticmethod(np.multiply)
    matmul: Times = staticmethod(np.matmul)
    bounded = staticmethod(rounding.bounded)

    def zeros(self, shape: tuple[int, ...]) -> Data:
        """An array of zeros."""
        return np.zeros(shape)

    def nonzero(self, x: Data) -> Truths:
        """True where a number is not known to be exactly 0."""
        found: Truths = x != 0
        return found

    def exact(self, x: Data) -> bool:
        """Whether every entry is one number: all floats are."""
        return True

    def rounded(self, count: int) -> float:
        """The relative error of a sum of so many products; 0: nothing is rounded."""
        return rounding.gamma(count)

    def covered(self, errors: Data, roundings: int, floor: Any = 0.0) -> Data:
        """The errors, in place, with what their own computation may have lost."""
        errors[0] += floor
        errors *= rounding.slack(roundings)
        return errors

    def settled(self, terms: Data, errors: Data) -> None:
        """In place: where a term overflowed, nothing is claimed."""
        if not rounding.finite(terms, errors):
            lost = ~np.isfinite(terms).all(axis=0)
            np.copyto(terms, 0.0, where=lost)
            np.copyto(errors[0], inf, where=lost)
            np.copyto(errors, inf, where=np.isnan(errors))

    def spread(self, x: Data, far: Data) -> tuple[Data, Data]:
        """Floats (low, high) that no number within `far` of x is beyond."""
        low, high = rounding.below(x - far), rounding.above(x + far)
        if not far.all():  # what is exactly known stays so
            for end in (low, high):
                np.copyto(end, x, where=far == 0)
        return low, high

    def nearly(self, x: Data) -> Data:
        """The numbers as floats, for measures."""
        return x

    def array(self, numbers: Sequence[Any]) -> Data:
        """An array of one axis."""
        return np.array(numbers, dtype=np.float64)

    def of_floats(self, values: Data) -> Data:
        """An array of floats, as they are."""
        return values

    def of_number(self, number: Number) -> tuple[float, float]:
        """A float64 and a bound of its distance from the number; infinite beyond the range."""
        if isinstance(number, float):
            return number, 0.0
        if isinstance(number, Fraction):
            found = nearest_float(number)
            if not isfinite(found):
                return 0.0, inf
            apart = abs(number - Fraction(found))
            return found, nextafter(nearest_float(apart), inf) if apart else 0.0
        return self.of_ball(number.ball(BITS))

    def of_ball(self, ball: arb) -> tuple[float, float]:
        """A float64 and a bound of its distance from every number of the ball."""
        if not ball.is_finite() or not ball.abs_upper() < 2.0**1000:
            return 0.0, inf
        found = float(ball.mid())
        with ctx.workprec(BITS):
            apart = (ball - found).abs_upper()
            return found, 0.0 if apart == 0 else nextafter(nextafter(float(apart), inf), inf)


class Precise:
    """Arb balls: terms and errors hold their own rounding."""

    multiply: Times = staticmethod(np.multiply)

    @staticmethod
    def matmul(x: Data, y: Data) -> Data:
        """The matrix products over the last two axes, by FLINT's matrices."""
        if y.size == y.shape[-2] * y.shape[-1] and x.ndim == y.ndim:  # one matrix for all rows
            found = _times(x.reshape(-1, x.shape[-1]), y.reshape(y.shape[-2:]))
            return found.reshape(*x.shape[:-1], y.shape[-1])
        lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        left, right = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (x, y))
        result = np.empty((*lead, x.shape[-2], y.shape[-1]), dtype=object)
        for place in np.ndindex(lead):
            result[place] = _times(left[place], right[place])
        return result

    def bounded(self, times: Times, x: Data, y: Data) -> Data:
        """The product of bounds; where one is infinite, so is the product."""
        product: Data = times(x, y)
        return product

    def zeros(self, shape: tuple[int, ...]) -> Data:
        """An array of zeros."""
        return np.full(shape, arb(0), dtype=object)

    def nonzero(self, x: Data) -> Truths:
        """True where a number is not known to be exactly 0."""
        return np.array([entry != arb(0) or not entry.is_exact() for entry in x.ravel()],
                        dtype=bool).reshape(x.shape)  # fmt: skip

    def exact(self, x: Data) -> bool:
        """Whether every entry is one number, a ball of radius 0."""
        return all(entry.is_exact() for entry in x.ravel())

    def rounded(self, count: int) -> float:
        """Nothing is rounded beside the balls."""
        return 0.0

    def covered(self, errors: Data, roundings: int, floor: Any = 0.0) -> Data:
        """The errors as they are."""
        return errors

    def settled(self, terms: Data, errors: Data) -> None:
        """In place: where a term is not finite, nothing is claimed."""
        if all(map(arb.is_finite, terms.ravel())):
            return
        for place in np.ndindex(terms.shape[1:]):
            if not all(term.is_finite() for term in terms[:, *place]):
                terms[:, *place] = arb(0)
                errors[0, *place] = arb("inf")

    def spread(self, x: Data, far: Data) -> tuple[Data, Data]:
        """Floats (low, high) that no number within `far` of x is beyond."""
        low, high = np.empty(x.shape), np.empty(x.shape)
        with ctx.workprec(SPARE):
            for place in np.ndindex(x.shape):
                middle: Any = x[place]
                radius: Any = far[place]
                low[place] = float_below(middle - radius)
                high[place] = -float_below(-middle - radius)
        return low, high

    def nearly(self, x: Data) -> Data:
        """The numbers as floats, for measures."""
        flat = [float(entry.mid()) if entry.is_finite() else inf for entry in x.ravel()]
        return np.array(flat, dtype=np.float64).reshape(x.shape)

    def array(self, numbers: Sequence[Any]) -> Data:
        """An array of one axis."""
        result = np.empty(len(numbers), dtype=object)
        result[:] = [number if isinstance(number, arb) else arb(number) for number in numbers]
        return result

    def of_floats(self, values: Data) -> Data:
        """An array of floats, exactly."""
        return self.array(values.ravel().tolist()).reshape(values.shape)

    def of_number(self, number: Number) -> tuple[arb, arb]:
        """A ball of the working precision, without an error beside it."""
        if isinstance(number, float):
            return arb(number), arb(0)
        if isinstance(number, Fraction):
            return arb(fmpq(number.numerator, number.denominator)), arb(0)
        return number.ball(ctx.prec), arb(0)

    def of_ball(self, ball: arb) -> tuple[arb, arb]:
        """The ball itself."""
        return ball, arb(0)


Arithmetic = Float64 | Precise
FLOAT64, PRECISE = Float64(), Precise()


def arithmetic_of(x: Data) -> Arithmetic:
    """The arithmetic that an array belongs to."""
    return PRECISE if x.dtype == object else FLOAT64


def float_below(ball: arb) -> float:
    """The largest float that is not above any number of the ball, or one below that."""
    if not ball.is_finite():
        return -inf
    number = float(ball.lower())
    if number == inf:
        return float(np.finfo(np.float64).max)
    return number if ball >= number else float(np.nextafter(number, -inf))


def _times(x: Data, y: Data) -> Data:
    """The product of two matrices of balls, by FLINT."""
    (rows, inner), columns = x.shape, y.shape[1]
    product = arb_mat(rows, inner, list(x.ravel())) * arb_mat(inner, columns, list(y.ravel()))
    result = np.empty(rows * columns, dtype=object)
    result[:] = product.entries()
    return result.reshape(rows, columns)
