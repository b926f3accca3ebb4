"""Numbers of an explanation as short text: signed, with the decimals that are proven or rounded."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import Any

from byhand.document.compose.forms import Forms
from byhand.document.parts import Cell, Number
from byhand.expression import write
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.tracing import Trace

LONGEST = 10  # characters of an exact number in a column; longer ones become decimals
FLOAT_DIGITS = 5  # significant digits of a float in a column
MEASURE_DIGITS = 3  # of a rounded measure


class Numerals:
    """Writes the entries of one number system."""

    def __init__(self, forms: Forms) -> None:
        self.forms = forms

    @classmethod
    def of(cls, trace: Trace) -> Numerals:
        """The numerals for a trace's numbers, with its digits."""
        return cls(Forms(trace.numbers, digits=trace.digits))

    def text(self, entry: Any) -> str:
        """A short exact entry itself, else its decimals; a float to a few digits."""
        return self._text(entry, self.forms.cell(entry))

    def signed(self, entry: Any) -> str:
        """The entry with its sign, + if it is not negative; 0 has none."""
        return with_sign(self.text(entry))

    def number(self, entry: Any, address: str = "", *, form: bool = True) -> Number:
        """An entry with its forms, and with its short text."""
        cell = self.forms.cell(entry, form=form)
        return Number(address, cell, short=self._text(entry, cell))

    def column(self, entries: Iterable[Any]) -> list[Number]:
        """The entries of a column with signed short texts: all exact, or all decimals."""
        found = [(entry, self.forms.cell(entry)) for entry in entries]
        exact = all(exact_text(cell) is not None for _entry, cell in found)
        return [
            Number("", cell, short=with_sign(self._text(entry, cell, exact)))
            for entry, cell in found
        ]

    def _text(self, entry: Any, cell: Cell, exact: bool = True) -> str:
        """The entry's text; unless `exact`, an exact number is shown by its decimals, except 0."""
        if cell.radius is not None:
            return f"{cell.decimal} ± {cell.radius}"
        if cell.register == "rounded" and not isinstance(entry, Enclosure):
            return _rounded(entry, cell)
        as_it_is = exact_text(cell)
        if as_it_is is not None and (exact or as_it_is == "0" or cell.decimal is None):
            return as_it_is
        return cell.decimal or ""


def with_sign(text: str) -> str:
    """A number with its sign; 0 has none."""
    return text if text.startswith("-") or text == "0" else f"+{text}"


def _rounded(entry: Any, cell: Cell) -> str:
    """The text of a float to a few digits; other decimals unchanged."""
    try:
        return short_float(float(entry)) if hasattr(entry, "dtype") else cell.decimal or ""
    except (TypeError, ValueError):
        return cell.decimal or ""


def exact_text(cell: Cell) -> str | None:
    """A rational number short enough for a column; else None."""
    if cell.register != "exact" or (cell.form is None and cell.cut):
        return None
    text = cell.decimal if cell.form is None else write(cell.form)
    return text if text is not None and len(text) <= LONGEST else None


def short_float(value: float, digits: int = FLOAT_DIGITS) -> str:
    """A float to some significant digits: 0.012346, 14.203, 1.2e-7."""
    if not isfinite(value):
        return str(value)
    if not value:
        return "0"
    size = floor(log10(abs(value)))
    if -4 <= size < 7:
        return f"{value:.{max(digits - 1 - max(size, 0), 0)}f}"
    return f"{value:.{min(digits - 1, 2)}e}".replace("e-0", "e-").replace("e+0", "e")


def measure(value: float | None) -> str:
    """A rounded measure; a dash if it is undefined."""
    return "–" if value is None else short_float(value, MEASURE_DIGITS)


def slight(value: float) -> str:
    """A rounded number of any size with its sign, to two significant digits: +0.17, -1.1e-5."""
    text = f"{value:+.2g}" if value else "0"
    return text.replace("e-0", "e-").replace("e+0", "e")


def share(value: float) -> str:
    """A share in per cent."""
    if not isfinite(value):
        return str(value)
    return f"{100 * value:.0f}%" if value == 0 or abs(value) >= 0.01 else "<1%"
