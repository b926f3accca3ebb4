"""Constants, such as scales, eps and expressions, as digits with a proven error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from byhand.expression import Call, Expression, Negative, Number, Power, Product, Quotient, Sum
from byhand.numbers.enclosed.limbs.arithmetic import Digits, from_integers
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of
from byhand.numbers.enclosed.limbs.integers import value_of


@dataclass(frozen=True)
class Constant:
    """|value - integer·2^low| <= error."""

    integer: int
    low: int
    error: float

    @classmethod
    def of(cls, value: Expression | Fraction, bits: int) -> Constant:
        """The value on the grid 2^-bits; exactly where it is a dyadic rational."""
        return _of(value, bits)

    @property
    def power(self) -> int | None:
        """k, where the value is exactly 2^k."""
        size = self.integer
        if self.error or size <= 0 or size & (size - 1):
            return None
        return self.low + size.bit_length() - 1

    @property
    def size(self) -> float:
        """An upper bound of |value|."""
        return _upward(abs(self.integer), self.low) + 2 * self.error

    def digits(self, like: Array) -> Digits:
        """The integer as digits of shape (1,), on the device of `like`."""
        if engine_of(like) is NUMPY:
            return from_integers([self.integer], self.low, like)
        key = self.integer, self.low, engine_of(like).device_of(like)
        if key not in _elsewhere:
            _elsewhere[key] = from_integers([self.integer], self.low, like)
        return _elsewhere[key]


_elsewhere: dict[tuple[int, int, Any], Digits] = {}  # copies on devices


@lru_cache(256)
def _of(value: Expression | Fraction, bits: int) -> Constant:
    rational = value if isinstance(value, Fraction) else exact_value(value)
    if rational is not None:
        below = rational.denominator
        if below & (below - 1) == 0:
            return Constant(rational.numerator, 1 - below.bit_length(), 0.0)
        return Constant((rational.numerator << bits) // below, -bits, math.ldexp(1.0, -bits))
    assert isinstance(value, Expression)
    integer, error = value_of(value, bits)
    return Constant(integer, -bits, math.ldexp(float(error), -bits))


def exact_value(tree: Expression) -> Fraction | None:
    """The value if it is rational and this is easily seen, as in 1/√64; else None."""
    match tree:
        case Number(value=value):
            return value
        case Negative(of=x):
            inner = exact_value(x)
            return None if inner is None else -inner
        case Quotient(top=top, bottom=bottom):
            above, below = exact_value(top), exact_value(bottom)
            return None if above is None or not below else above / below
        case Product(factors=factors):
            return _combined(factors, lambda x, y: x * y, Fraction(1))
        case Sum(terms=terms):
            return _combined(terms, lambda x, y: x + y, Fraction(0))
        case Power(base=base, exponent=Number(value=value)) if value.denominator == 1:
            inner = exact_value(base)
            return None if inner is None or (inner == 0 and value <= 0) else inner**value.numerator
        case Call(function="sqrt", argument=argument):
            inner = exact_value(argument)
            return None if inner is None or inner < 0 else _exact_root(inner)
    return None


def _combined(
    parts: Iterable[Expression], join: Callable[[Fraction, Fraction], Fraction], start: Fraction
) -> Fraction | None:
    for part in parts:
        value = exact_value(part)
        if value is None:
            return None
        start = join(start, value)
    return start


def _exact_root(value: Fraction) -> Fraction | None:
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top != value.numerator or bottom * bottom != value.denominator:
        return None
    return Fraction(top, bottom)


def _upward(integer: int, low: int) -> float:
    """A float not below integer·2^low."""
    extra = max(0, integer.bit_length() - 50)
    whole = integer >> extra
    return math.ldexp(float(whole if whole << extra == integer else whole + 1), low + extra)
