"""Numbers as the language of the book writes them: 0.2689 in English, 0,2689 in Spanish."""

from __future__ import annotations

from fractions import Fraction

from byhand.language import _
from byhand.numbers.written import point

MOST_PLACES = 6  # of a decimal that stands for a fraction


def localised(number: str) -> str:
    """A number with a decimal point, as the language writes it.  Data keep the point."""
    # Translators: the decimal sign of the language
    return number.replace("-", "−").replace(".", _("."))


def in_full(value: Fraction) -> str | None:
    """The decimals that say a fraction in full, where they are few: 0.3 for 3/10.

    >>> in_full(Fraction(3, 10)), in_full(Fraction(-1, 8)), in_full(Fraction(1, 3))
    ('0.3', '-0.125', None)
    """
    for places in range(MOST_PLACES + 1):
        if 10**places % value.denominator == 0:
            return point(value * 10**places, places)
    return None
