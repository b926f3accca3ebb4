"""A number of a pass in few characters, as the page shows it beside a passage."""

from __future__ import annotations

from byhand.document.compose.book.spoken_numbers import rational_of
from byhand.document.numerals import in_full, localised
from byhand.document.parts import Number
from byhand.expression import write


def number_text(number: Number, *, decimals: bool = False) -> str:
    """A number in few characters: a fraction by its form, any other by its decimals.

    With `decimals`, a fraction that ends as a decimal is one: 0.2, not 1/5.
    """
    cell = number.cell
    value = rational_of(cell.form) if decimals else None
    ending = None if value is None else in_full(value)
    if ending is not None:
        return localised(ending)
    if cell.form is not None and (cell.decimal is None or cell.plain):
        return localised(write(cell.form))
    text = localised(cell.decimal or "")
    return text if cell.radius is None else f"{text} ± {localised(cell.radius)}"
