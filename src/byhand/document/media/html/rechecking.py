"""The workings of a page's numbers as data, with which the page works them out again.

Each number is written in postfix: `1 2 / @7 *` is ½ of the number in place 7.  A number with
decimals only is `~0.2689`, which the script takes as within one unit of its last place.  A number
with a form or a working is a reference instead, so the script starts from the weights without
loss.  Nothing is computed here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from byhand.document.book import Book, Page
from byhand.document.media.html.markup import Markup, element
from byhand.document.parts import Cell, Drawing, Number, WorkingLine
from byhand.expression import Call, Entry, Expression, Name, Negative, Power, Product, Quotient, Sum
from byhand.expression import Number as Rational
from byhand.expression.trees import parts_of

FUNCTIONS = ("sqrt", "exp", "ln", "sin", "cos", "tanh", "erf", "relu", "step")
MOST_WORKINGS = 20_000  # of a page
LONGEST = 2_000  # characters of a working in postfix
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Known:
    """What a book knows of one number."""

    cell: Cell
    working: WorkingLine | None


class Workings:
    """All numbers of a book with an address, and the data that a page needs of them."""

    def __init__(self, book: Book) -> None:
        self.known: dict[str, Known] = {}
        self.written: dict[str, str] = {}
        for number in numbers_in(book):
            if number.cell.masked:
                continue
            before = self.known.get(number.address)
            if before is None or (before.working is None and number.working is not None):
                self.known[number.address] = Known(number.cell, number.working)

    def of(self, page: Page) -> list[tuple[str, str]]:
        """(address, postfix) of the numbers on the page, and of the numbers they come from.

        A number with only its own decimals is left out, since it cannot be checked.
        """
        found: dict[str, str] = {}
        places: dict[str, int] = {}
        todo = [number.address for number in numbers_in(page) if number.address in self.known]
        for address in todo:  # grows as workings refer to further numbers
            if address in places or len(places) >= MOST_WORKINGS:
                continue
            if text := self.postfix(address):
                places[address] = len(places)
                found[address] = text
                todo.extend(re.findall(r"@(\S+)", text))
        return [
            (address, re.sub(r"@(\S+)", lambda match: f"@{places.get(match[1], -1)}", text))
            for address, text in found.items()
        ]

    def postfix(self, address: str) -> str:
        """The working of a number, else its form; empty if only its decimals are known."""
        if address not in self.written:
            known, text = self.known[address], ""
            if known.working is not None:
                text = self._working(known.working)
            if not text and known.cell.form is not None:
                text = _written(known.cell.form)
            self.written[address] = text
        return self.written[address]

    def _working(self, line: WorkingLine) -> str:
        if line.symbols is None or line.values is None or line.missing:
            return ""
        sources = dict(line.sources)
        try:
            text = " ".join(self._both(line.symbols, line.values, sources))
        except _NotWritten:
            return ""
        return text if len(text) <= LONGEST else ""

    def _both(
        self, symbols: Expression, values: Expression, sources: Mapping[str, str]
    ) -> Iterator[str]:
        """The working in postfix: for each entry its value, or a reference."""
        if isinstance(symbols, Entry):
            yield from self._leaf(symbols, values, sources)
            return
        inner, with_values = parts_of(symbols), parts_of(values)
        if type(symbols) is not type(values) or len(inner) != len(with_values):
            raise _NotWritten
        pieces = [list(self._both(a, b, sources)) for a, b in zip(inner, with_values, strict=True)]
        yield from _joined(symbols, pieces)

    def _leaf(self, entry: Entry, value: Expression, sources: Mapping[str, str]) -> Iterator[str]:
        if text := _written(value):
            yield text
            return
        address = f"{sources.get(entry.address, entry.address)}[{','.join(map(str, entry.index))}]"
        if address in self.known and self.postfix(address):
            yield f"@{address}"
        else:
            yield _written(value, decimals=True)


def data_script(lines: Iterable[tuple[str, str]], slack: float) -> Markup:
    """The data as an element of the page; `slack` is the rounding of one operation."""
    data = json.dumps({"slack": slack, "lines": list(lines)}, separators=(",", ":"))
    safe = data.replace("<", "\\u003c")
    return element("script", Markup(safe), type="application/json", id="workings")


def slack_of(numbers: str) -> float:
    """The rounding of one operation in a book's numbers; for exact numbers, only the script's."""
    for name, slack in (("bfloat16", 1e-2), ("float16", 2e-3), ("float32", 1e-6)):
        if name in numbers:
            return slack
    return 1e-12


def numbers_in(part: Any) -> Iterator[Number]:
    """Every number with an address in a book, page or part."""
    if isinstance(part, Number):
        if part.address:
            yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from numbers_in(inner)
    elif is_dataclass(part) and not isinstance(part, type | Cell | WorkingLine | Drawing):
        for field in fields(part):
            yield from numbers_in(getattr(part, field.name))


# ------------------------------------------------------------------ trees in postfix


class _NotWritten(Exception):
    """A tree without a value of its own: it has omitted terms, or letters."""


def _written(tree: Expression, decimals: bool = False) -> str:
    """The tree in postfix; empty if it contains a letter or (unless `decimals`) a decimal."""
    try:
        return " ".join(_postfix(tree, decimals))
    except _NotWritten:
        return ""


def _postfix(tree: Expression, decimals: bool) -> Iterator[str]:
    match tree:
        case Rational(value=value):
            yield str(value.numerator)
            if value.denominator != 1:
                yield from (str(value.denominator), "/")
        case Name(text="e" | "pi" as text):
            yield text
        case Name(text=text) if decimals and _DECIMAL.fullmatch(text):
            yield f"~{text}"
        case Name() | Entry():
            raise _NotWritten
        case _:
            yield from _joined(tree, [list(_postfix(part, decimals)) for part in parts_of(tree)])


def _joined(tree: Expression, pieces: list[list[str]]) -> Iterator[str]:
    """The parts of a tree in postfix, then its operation."""
    match tree:
        case Rational() | Name():
            yield from _postfix(tree, True)
        case Negative():
            yield from (*pieces[0], "neg")
        case Call(function=function):
            if function not in FUNCTIONS:
                raise _NotWritten
            yield from (*pieces[0], function)
        case Quotient():
            yield from (*pieces[0], *pieces[1], "/")
        case Power():
            yield from (*pieces[0], *pieces[1], "^")
        case Sum() | Product():
            sign = "+" if isinstance(tree, Sum) else "*"
            if not pieces:
                yield "0" if sign == "+" else "1"
            for place, piece in enumerate(pieces):
                yield from piece
                if place:
                    yield sign
        case Entry():
            raise _NotWritten
