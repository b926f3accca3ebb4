"""Decimals of any number that a trace holds: so many places, or so many significant digits.

A number of the exact system and an enclosure have `places` and `significant` themselves, and say no
digit that is not proven.  The rationals of a pencil and the floats of a format are Python's own, or
NumPy's; they are rounded from the number that they are, half away from zero.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any

from byhand.numbers.written import LONGEST, point, with_digits


def places(number: Any, count: int) -> str:
    """The number with so many digits behind the point.

    >>> places(Fraction(2, 3), 4), places(0.1, 20)
    ('0.6667', '0.10000000000000000555')
    """
    if hasattr(number, "places"):
        return str(number.places(count))
    rational = _rational(number)
    if rational is None:
        return str(number)
    if abs(rational) >= 10**LONGEST:
        return significant(rational, count + 1)
    return point(_nearest(rational * 10**count), count)


def significant(number: Any, count: int) -> str:
    """The number with so many significant digits.

    >>> significant(Fraction(2, 300), 4), significant(1234.5, 2), significant(99.96, 3)
    ('0.006667', '1.2e3', '100')
    """
    if hasattr(number, "significant"):
        return str(number.significant(count))
    rational = _rational(number)
    if not rational:
        return str(number) if rational is None else "0"
    exponent = _exponent(abs(rational))
    digits = _nearest(rational * Fraction(10) ** (count - 1 - exponent))
    if abs(digits) >= 10**count:  # rounded up to the next power of ten
        exponent += 1
        digits = _nearest(rational * Fraction(10) ** (count - 1 - exponent))
    return with_digits(digits, count, exponent)


def _rational(number: Any) -> Fraction | None:
    """The number as a fraction; None where it is infinite or not a number."""
    if isinstance(number, Fraction | int):
        return Fraction(number)
    return Fraction(float(number)) if isfinite(float(number)) else None


def _nearest(number: Fraction) -> int:
    """The nearest whole number, half away from zero."""
    size = int(abs(number) + Fraction(1, 2))
    return -size if number < 0 else size


def _exponent(size: Fraction) -> int:
    """k with 10^k ≤ size < 10^(k+1)."""
    found = len(str(size.numerator)) - len(str(size.denominator))
    return found if size >= Fraction(10) ** found else found - 1
