"""Numbers as the language of the book writes them: 0.2689 in English, 0,2689 in Spanish."""

from __future__ import annotations

import re
from fractions import Fraction

from byhand.language import _
from byhand.numbers.written import point

_DECIMAL_POINT = re.compile(r"(?<=[0-9])\.(?=[0-9])")
_SCIENTIFIC = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)e([+-]?[0-9]+)")
_MINUS = re.compile(r"(?<![\w.\]-])-(?=\d)")
_ENDING = re.compile(r"(?<=\u00a0)[+-]?\d[\d./e+-]*(?=\u00a0±|, | …|$)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_PLACES = 6  # of a decimal that stands for a fraction


def localised(number: str) -> str:
    """A number with a decimal point, as the language writes it; 5e-9 is 5·10⁻⁹.  Data keep both.

    >>> localised("-0.25"), localised("5e-9")
    ('−0.25', '5·10⁻⁹')
    """
    if match := _SCIENTIFIC.fullmatch(number):
        return f"{localised(match[1])}·10{str(int(match[2])).translate(_RAISED)}"
    # Translators: the decimal sign of the language
    return number.replace("-", "−").replace(".", _("."))


def with_decimal_sign(sentence: str) -> str:
    """A sentence whose numbers have a decimal point, as the language writes them; addresses, in
    which a point never stands between two digits, stay as they are."""
    return _DECIMAL_POINT.sub(_("."), sentence)


def written(sentence: str) -> str:
    """A sentence of plain numbers with these as the language writes them, minus signs too.

    >>> written("most is taken by the MLP (-2.4926)")
    'most is taken by the MLP (−2.4926)'
    """
    return with_decimal_sign(_MINUS.sub("−", sentence))


def written_cell(text: str) -> str:
    """Words of a table with the numbers that end their groups as the language writes them; tokens,
    which may look like numbers, stay as they are.  Hard spaces hold a group together.

    >>> written_cell("-0\u00a0-0.25, 2\u00a0-1\u00a00.5")
    '-0\xa0−0.25, 2\xa0-1\xa00.5'
    """
    found, count = _ENDING.subn(lambda number: localised(number[0]), text)
    return found.replace(", ", "; ") if count and _(".") == "," else found


def in_full(value: Fraction) -> str | None:
    """The decimals that say a fraction in full, where they are few: 0.3 for 3/10.

    >>> in_full(Fraction(3, 10)), in_full(Fraction(-1, 8)), in_full(Fraction(1, 3))
    ('0.3', '-0.125', None)
    """
    for places in range(MOST_PLACES + 1):
        if 10**places % value.denominator == 0:
            return point(value * 10**places, places)
    return None
