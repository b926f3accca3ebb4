"""Numbers in the book's language: 0.2689 in English, 0,2689 in Spanish."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from math import floor, log10
from typing import TYPE_CHECKING

from byhand.expression import write
from byhand.language import _
from byhand.numbers.written import point

if TYPE_CHECKING:
    from byhand.document.parts import Cell

_DECIMAL_POINT = re.compile(r"(?<=[0-9])\.(?=[0-9])")
_SCIENTIFIC = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)e([+-]?[0-9]+)")
_MINUS = re.compile(r"(?<![\w.\]-])-(?=\d)")
_ENDING = re.compile(r"(?<=\u00a0)[+-]?\d[\d./e+-]*(?=\u00a0±|, | …|$)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LONGEST_EXACT = 24  # characters of an exact number in a sentence; longer ones become decimals
MOST_PLACES = 6  # of a decimal that stands for a fraction


def localised(number: str) -> str:
    """A number with a decimal point, localised; 5e-9 becomes 5·10⁻⁹.  Data keep both.

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
    """A sentence with its plain numbers localised, also their minus signs.

    >>> written("the MLP takes most away (-2.4926)")
    'the MLP takes most away (−2.4926)'
    """
    return with_decimal_sign(_MINUS.sub("−", sentence))


def short_number(value: float) -> str:
    """Three digits, localised."""
    return localised(f"{value:.3g}")


def decimal(number: float, unit: float) -> str:
    """A number at an axis: with as many decimals as its unit has, and a minus sign."""
    text = f"{number:.{max(0, -floor(log10(unit) + 1e-9))}f}"
    return localised(text if float(text) else "0")


def written_cell(text: str) -> str:
    """Words of a table with the numbers that end their groups as the language writes them; tokens,
    which may look like numbers, stay as they are.  Hard spaces hold a group together.

    >>> written_cell("-0\u00a0-0.25, 2\u00a0-1\u00a00.5")
    '-0\xa0−0.25, 2\xa0-1\xa00.5'
    """
    found, count = _ENDING.subn(lambda number: localised(number[0]), text)
    return found.replace(", ", "; ") if count and _(".") == "," else found


def in_full(value: Fraction) -> str | None:
    """The exact decimal of a fraction, if it is short: 0.3 for 3/10; else None.

    >>> in_full(Fraction(3, 10)), in_full(Fraction(-1, 8)), in_full(Fraction(1, 3))
    ('0.3', '-0.125', None)
    """
    for places in range(MOST_PLACES + 1):
        if 10**places % value.denominator == 0:
            return point(value * 10**places, places)
    return None


# ------------------------------------------------------------------ the forms of a number


def forms_of(cell: Cell, worked: bool = True) -> Iterator[tuple[str, str]]:
    """(sign, text) of each form of a number."""
    if cell.masked:
        yield "", _("masked: absent, not a number")
    elif cell.radius is not None:
        yield "=", f"{cell.decimal} ± {cell.radius}"
    elif cell.register == "rounded":
        yield "≈", cell.decimal or ""
    else:
        if worked and cell.worked is not None:
            yield "=", write(cell.worked)
        if cell.form is not None:
            yield "=", write(cell.form)
        if cell.decimal is not None and not cell.plain:
            yield "=" if decimal_alone(cell) else "≈", cell.decimal


def decimal_alone(cell: Cell) -> bool:
    """Whether the decimal of an exact number is exact."""
    return cell.register == "exact" and cell.form is None and not cell.cut


def one_line(cell: Cell) -> str:
    """The shortest complete text of a number: an exact one itself, else its decimals."""
    if cell.radius is not None:
        return f"{cell.decimal} ± {cell.radius}"
    if cell.register == "rounded" or decimal_alone(cell):
        return cell.decimal or ""
    exact = None if cell.form is None or cell.register != "exact" else write(cell.form)
    if exact is not None and (len(exact) <= LONGEST_EXACT or cell.decimal is None):
        return exact
    return f"≈ {cell.decimal}"
