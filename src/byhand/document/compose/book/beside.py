"""What stands beside the stations of the figure: the numbers of each position, where there is room.

Where the positions do not fit side by side, the last one stands there alone.  How wide a sign is,
and where the columns begin, each medium says itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from byhand.document.book import Node
from byhand.document.compose.book.spoken_numbers import NEAR, rational_of, together
from byhand.document.numerals import in_full, localised
from byhand.document.parts import Cell, NumberRow
from byhand.document.words import SIGNS
from byhand.expression import write

SHORTEST_FORM = 5  # signs of a form that is no plain number


@dataclass(frozen=True)
class Room:
    """Signs that fit: of one position among several, of all together, of one alone.

    `marked`: behind a row stands the sign of its register, which a colour alone does not say;
    else the medium draws it.
    """

    each: int
    together: int
    alone: int
    marked: bool = True


@dataclass(frozen=True)
class Beside:
    """The positions that have a column, how many signs it is wide, and what a row may have."""

    places: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    longest: int = 0
    finite: bool = False  # fractions as decimals, where these say them in full
    marked: bool = True

    def text(self, node: Node, place: int) -> tuple[str, str]:
        """What a station has at a position, with its register; empty where there is no room."""
        for row in node.rows:
            if row.place == place:
                full = self._marked(row_text(row, self.finite), row.register)
                brief = self._marked(node.said.get(place, ""), row.register)
                text = full if 0 < len(full) <= self.longest else brief
                return (text if len(text) <= self.longest else ""), row.register or "exact"
        return "", "exact"

    def _marked(self, text: str, register: str | None) -> str:
        sign = SIGNS[register] if self.marked and register in ("named", "enclosed") else ""
        return f"{text} {sign}" if text and sign else text


def beside(nodes: Iterable[Node], finite: bool, room: Room) -> Beside:
    """The columns that there is room for."""
    known = [node for node in nodes if node.rows]
    places = sorted({row.place for node in known for row in node.rows})
    if not places:
        return Beside()
    wanted = Beside(finite=finite, marked=room.marked)
    several = _columns(known, replace(wanted, places=tuple(places), longest=room.each))
    if sum(several.widths) <= room.together:
        return several
    return _columns(known, replace(wanted, places=(places[-1],), longest=room.alone))


def _columns(nodes: list[Node], wanted: Beside) -> Beside:
    widths = tuple(max(len(wanted.text(node, k)[0]) for node in nodes) for k in wanted.places)
    return replace(wanted, widths=widths) if all(widths) else Beside()


def row_text(row: NumberRow, finite: bool) -> str:
    """(1, −1); nothing where everything is masked."""
    texts = [_short(number.cell, finite) for number in row.numbers if not number.cell.masked]
    if not texts:
        return ""
    if row.register == "named":  # which says that not all is shown
        texts = [text.removeprefix(NEAR) for text in texts]
    return texts[0] if len(texts) == 1 else together(texts)


def _short(cell: Cell, finite: bool) -> str:
    form = cell.form
    value = rational_of(form) if finite else None
    if value is not None and (text := in_full(value)):
        return localised(text)
    if form is not None and (cell.plain or len(write(form)) <= SHORTEST_FORM):
        return localised(write(form))
    sign = NEAR if cell.register == "exact" and cell.cut else ""
    return sign + localised(cell.decimal or "")
