"""Decimals of any number of a trace, with a given count of places or significant digits.

Exact numbers and enclosures have their own `places` and `significant`, which give proven digits
only.  The rationals of a pencil and the floats of a format are Python's or NumPy's.  Their exact
value is rounded half away from zero.  A trace hands them out as `Rational` and `Float`, which have
`places` and `significant` too.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.base import Numbers
from byhand.numbers.written import LONGEST, MOST, asked, point, with_digits


def places(number: Any, count: int) -> str:
    """The number with `count` digits behind the point.

    >>> places(Fraction(2, 3), 4), places(0.1, 20)
    ('0.6667', '0.10000000000000000555')
    """
    count = asked(count, 0)
    if hasattr(number, "places"):
        return str(number.places(count))
    rational = _rational(number)
    if rational is None:
        return str(number)
    if abs(rational) >= 10**LONGEST:
        return significant(rational, min(count + 1, MOST))
    return point(_nearest(rational * 10**count), count)


def significant(number: Any, count: int) -> str:
    """The number with `count` significant digits.

    >>> significant(Fraction(2, 300), 4), significant(1234.5, 2), significant(99.96, 3)
    ('0.006667', '1.2e3', '100')
    """
    count = asked(count, 1)
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


class Rational(Fraction):
    """A rational number of a trace.

    >>> Rational(2, 3), Rational(2, 3).places(4), Rational(2, 300).significant(2)
    (2/3, '0.6667', '0.0067')
    """

    def places(self, count: int) -> str:
        """The number with so many digits behind the point, rounded half away from zero."""
        return places(Fraction(self), count)

    def significant(self, count: int) -> str:
        """The number with so many significant digits, rounded half away from zero."""
        return significant(Fraction(self), count)

    __repr__ = Fraction.__str__


class Float(float):
    """A float of a trace, of any format; it prints itself as that format does.

    >>> tenth = Float.of(np.float32(0.1))
    >>> tenth, tenth.places(12), tenth.significant(3), float(tenth)
    (0.1, '0.100000001490', '0.100', 0.10000000149011612)
    """

    shortest = ""  # the shortest decimal that reads back to this float of the format

    @classmethod
    def of(cls, number: Any) -> Float:
        """A float of any format as a Python float, which holds it exactly."""
        found = cls(float(number))
        found.shortest = str(number)
        return found

    def places(self, count: int) -> str:
        """The number with so many digits behind the point, rounded half away from zero."""
        return places(float(self), count)

    def significant(self, count: int) -> str:
        """The number with so many significant digits, rounded half away from zero."""
        return significant(float(self), count)

    def __repr__(self) -> str:
        return self.shortest or float.__repr__(self)


def sayable(number: Any, numbers: Numbers) -> Any:
    """The number itself; Undecided where a system of one's own encloses it and has no `places`.

    Digits of its float would be those of some number in the enclosure, and proven by nobody.
    """
    own = not hasattr(number, "places") and not isinstance(number, int)
    if own and numbers.register(number) == "enclosed":
        message = _("the value is not known narrowly enough for these decimals")
        raise Undecided(message, found=str(number))
    return number


def handed_out(entry: Any) -> Any:
    """An entry as a trace hands it out: every kind of number has `places` and `significant`."""
    if isinstance(entry, Fraction):
        return Rational(entry)
    if isinstance(entry, float | np.generic) and not isinstance(entry, np.integer):
        return Float.of(entry)
    return entry


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
