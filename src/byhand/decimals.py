"""Decimals of any number that a trace holds: so many places, or so many significant digits.

A number of the exact system and an enclosure have `places` and `significant` themselves, and say no
digit that is not proven.  The rationals of a pencil and the floats of a format are Python's own, or
NumPy's; they are rounded from the number that they are, half away from zero.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any


def places(number: Any, count: int) -> str:
    """The number with so many digits behind the point.

    >>> places(Fraction(2, 3), 4), places(0.1, 20)
    ('0.6667', '0.10000000000000000555')
    """
    return _told(number, "places", count)


def significant(number: Any, count: int) -> str:
    """The number with so many significant digits.

    >>> significant(Fraction(2, 300), 4), significant(1234.5, 2)
    ('0.006667', '1200')
    """
    return _told(number, "significant", count)


def _told(number: Any, how: str, count: int) -> str:
    if not hasattr(number, how):
        from byhand.numbers.exact import Exact

        rational = number if isinstance(number, Fraction | int) else float(number)
        if not isfinite(rational):
            return str(rational)
        number = Exact().value(Fraction(rational))
    text: str = getattr(number, how)(count)
    return text
