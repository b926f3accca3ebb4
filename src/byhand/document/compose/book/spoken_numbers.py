"""Numbers for sentences: 3/2, e/(1 + e), ≈ 0.4711, (1, −1)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from byhand.document.numerals import localised
from byhand.document.parts import Cell
from byhand.document.short_forms import short_form
from byhand.expression import Expression as Tree
from byhand.expression import Negative, write
from byhand.expression import Number as Rational
from byhand.language import _

NEAR = "≈ "


def together(texts: Sequence[str]) -> str:
    """Numbers in brackets; if all are approximate, one ≈ stands before them."""
    if all(text.startswith(NEAR) or text == "…" for text in texts):
        return NEAR + in_brackets([text.removeprefix(NEAR) for text in texts])
    return in_brackets(texts)


def sum_said(which: str, x: str, y: str, total: str) -> str:
    """An addition for a sentence; if a row is approximate, ≈ replaces =."""
    if any(row.startswith(NEAR) for row in (x, y, total)):
        text = _("For position {which} this is {x} + {y} ≈ {sum}.")
        x, y, total = (row.removeprefix(NEAR) for row in (x, y, total))
    else:
        text = _("For position {which} this is {x} + {y} = {sum}.")
    return text.format(which=which, x=x, y=y, sum=total)


def in_brackets(texts: Sequence[str]) -> str:
    """(1, −1); with decimal commas, (0,5; 1,5)."""
    return "(" + ("; " if any("," in text for text in texts) else ", ").join(texts) + ")"


def said(cell: Cell) -> str:
    """A cell for a sentence."""
    if cell.masked:
        return "–"
    if cell.form is not None and (cell.plain or _fits(cell)):
        return localised(write(cell.form))
    if cell.decimal is None:
        return localised(write(cell.form)) if cell.form is not None else "–"
    decimal = localised(cell.decimal)
    if cell.radius is not None:
        return f"{decimal} ± {localised(cell.radius)}"
    near = cell.register == "named" or cell.cut
    return NEAR + decimal if near else decimal


def rational_of(form: Tree | None) -> Fraction | None:
    """The value of a form that is a plain rational number."""
    match form:
        case Rational(value=value):
            return value
        case Negative(of=Rational(value=value)):
            return -value
        case _:
            return None


def _fits(cell: Cell) -> bool:
    """Whether a named form is short enough to read."""
    return cell.register != "exact" and cell.form is not None and short_form(cell.form)
