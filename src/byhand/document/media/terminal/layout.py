"""Tables of numbers, fitted to a width, and the signs that stand in them.

A cell is shown in the richest manner that fits: all forms on one line, the forms below each other,
or proven decimals alone.  A table that is still too wide continues below.  Proven decimals have
aligned points; if not even two fit side by side, each has its own line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from byhand.document import words
from byhand.document.compose.forms import wide
from byhand.document.media.terminal.ink import Ink, padded, width_of
from byhand.document.parts import Cell, NumberRow, NumberTable, Title
from byhand.document.words import SIGNS
from byhand.expression import Name, leaves, write
from byhand.language import _

GAP, NARROW = "   ", "  "
MASK = "·"
NUMBER = set("0123456789.-/± e" + MASK)
GUTTER = {register: SIGNS[register] for register in ("named", "enclosed")}


@dataclass(frozen=True, slots=True)
class Manner:
    """Which forms of a named number a table shows, and whether below each other."""

    worked: bool
    form: bool
    stacked: bool


MANNERS = (
    Manner(worked=True, form=True, stacked=False),
    Manner(worked=True, form=True, stacked=True),
    Manner(worked=False, form=True, stacked=False),
    Manner(worked=False, form=True, stacked=True),
    Manner(worked=False, form=False, stacked=False),
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The lines of a table; `brief` if forms were left out for lack of room."""

    lines: tuple[str, ...]
    brief: bool


def fit(table: NumberTable, width: int, ink: Ink, signs: bool = True) -> Fitted:
    """The table in the richest manner that fits the width."""
    for manner in MANNERS:
        if manner.worked and manner.stacked and not _tells(table):
            continue
        block = _Block(table, manner, signs)
        if block.width <= width:
            return Fitted(tuple(block.lines(ink)), _has_forms(table) and not _shows(table, manner))
    if not proven_digits(table):
        return Fitted(tuple(_continued(table, width, ink, signs)), _has_forms(table))
    block = _Block(table, MANNERS[-1], signs, NARROW)
    if block.width <= width:
        return Fitted(tuple(block.lines(ink)), False)
    starts = _starts(table, width, signs)
    if len(starts) < len(table.columns) and all(
        _piece(table, start, stop, signs).width <= width for start, stop in _spans(table, starts)
    ):
        return Fitted(tuple(_continued(table, width, ink, signs)), False)
    return Fitted(tuple(_listed(table, width, ink, signs)), False)


def as_printed(table: NumberTable) -> NumberTable:
    """A weight without the radii of its printed numbers."""
    rows = tuple(
        replace(
            row,
            numbers=tuple(replace(n, cell=replace(n.cell, radius=None)) for n in row.numbers),
        )
        for row in table.rows
    )
    return replace(table, rows=rows)


def proven_digits(table: NumberTable) -> bool:
    """Whether the numbers are proven decimals without other forms."""
    return any(
        cell.register in ("exact", "enclosed")
        and cell.form is None
        and cell.radius is None
        and not cell.cut
        for row in table.rows
        for cell in row.cells
    )


def aligned(table: NumberTable) -> list[list[str]]:
    """The texts of a table of proven digits by row, padded so that the points align."""
    block = _Block(table, MANNERS[-1], signs=False)
    return [
        [column.text(*cell[0]) for column, cell in zip(block.columns, row, strict=True)]
        for row in block.texts
    ]


def _has_forms(table: NumberTable) -> bool:
    return not proven_digits(table) and any(
        not cell.masked and cell.radius is None and cell.register != "rounded" and not cell.plain
        for row in table.rows
        for cell in row.cells
    )


def _shows(table: NumberTable, manner: Manner) -> bool:
    """Whether every number is shown exactly."""
    cells = [cell for row in table.rows for cell in row.cells if not cell.masked]
    return manner.form and all(
        cell.radius or (cell.form is not None and not wide(cell.form)) for cell in cells
    )


def _tells(table: NumberTable) -> bool:
    return any(_telling(cell) for row in table.rows for cell in row.cells)


def _telling(cell: Cell) -> bool:
    """Whether the working contains names, and so deserves its own lines."""
    tree = cell.worked
    return tree is not None and any(isinstance(leaf, Name) for leaf in leaves(tree))


def _continued(table: NumberTable, width: int, ink: Ink, signs: bool) -> Iterator[str]:
    """The table in pieces below each other, each with as many columns as fit."""
    for start, stop in _spans(table, _starts(table, width, signs)):
        if start:
            yield ""
        yield from _piece(table, start, stop, signs).lines(ink)


def _starts(table: NumberTable, width: int, signs: bool) -> list[int]:
    """The first columns of the pieces; for proven decimals, pieces of equal width if they fit."""
    total = len(table.columns)

    def fits(start: int, stop: int) -> bool:
        return _piece(table, start, stop, signs).width <= width

    starts, stop = [0], 1
    while stop < total:
        if not fits(starts[-1], stop + 1):
            starts.append(stop)
        stop += 1
    even = -(-total // len(starts))
    if proven_digits(table) and all(
        fits(start, min(start + even, total)) for start in range(0, total, even)
    ):
        return list(range(0, total, even))
    return starts


def _spans(table: NumberTable, starts: list[int]) -> Iterator[tuple[int, int]]:
    return zip(starts, [*starts[1:], len(table.columns)], strict=True)


def _piece(table: NumberTable, start: int, stop: int, signs: bool) -> _Block:
    rows = tuple(replace(row, numbers=row.numbers[start:stop]) for row in table.rows)
    heads = table.heads or tuple(map(str, table.columns))
    columns, heads = table.columns[start:stop], heads[start:stop]
    return _Block(replace(table, columns=columns, heads=heads, rows=rows), MANNERS[-1], signs)


def _listed(table: NumberTable, width: int, ink: Ink, signs: bool) -> Iterator[str]:
    """One number on each line, after its column's word; long numbers are broken."""
    heads = table.heads or (tuple(map(str, table.columns)) if len(table.columns) > 1 else ("",))
    labels = max((width_of(row.label) for row in table.rows), default=0)
    beside = max(map(width_of, heads))
    lead = 2 * signs + labels + len(GAP) + bool(beside) * (beside + len(GAP))
    room = max(width - lead, 1)
    before = max((before_point(_only(cell)) for row in table.rows for cell in row.cells), default=0)
    before = before if 2 * before <= room else 0  # without aligned points: each line is full
    in_order = table.columns == tuple(sorted(table.columns))
    last: int | None = None
    for row in table.rows:
        if last is not None and row.place not in (last, last + 1):
            yield "  …"
        last = row.place
        for place, (cell, head) in enumerate(zip(row.cells, heads, strict=True)):
            if in_order and place and table.columns[place] > table.columns[place - 1] + 1:
                yield " " * (2 * signs + labels + len(GAP)) + "…"
            label = " " * 2 * signs + padded("" if place else row.label, labels) + GAP
            if beside:
                label += padded(head, beside) + GAP
            for part in _broken(_only(cell), before, room):
                yield ink(label, "quiet") + part
                label = " " * lead


def _broken(text: str, before: int, room: int) -> Iterator[str]:
    """A number broken into lines of `room`, with its point after `before` characters."""
    lead = " " * max(before - before_point(text), 0)
    yield lead + text[: room - len(lead)]
    rest = text[room - len(lead) :]
    for start in range(0, len(rest), room - before):
        yield " " * before + rest[start : start + room - before]


def _only(cell: Cell) -> str:
    """The text of a cell that has one line."""
    return cell_lines(cell, MANNERS[-1])[0][1]


def before_point(text: str) -> int:
    """The number of characters before a number's point, or before its end."""
    return len(re.split("[.e ]", text, maxsplit=1)[0])


def cell_lines(cell: Cell, manner: Manner) -> list[tuple[str, str]]:
    """A cell's lines as (sign, text)."""
    if cell.masked:
        return [("", MASK)]
    if cell.radius is not None:
        return [("", f"{cell.decimal} ± {cell.radius}")]
    if cell.form is None:
        near = cell.register == "named" or (cell.register == "exact" and cell.cut)
        return [("≈" if near else "", cell.decimal or "")]
    by_decimals = not manner.form or wide(cell.form)
    if by_decimals and not cell.plain and cell.decimal is not None:
        return [("≈", cell.decimal)]
    lines = [("", write(cell.form))]
    if cell.worked is not None and manner.worked and (not manner.stacked or _telling(cell)):
        lines = [("", write(cell.worked)), ("=", lines[0][1])]
    if not cell.plain and cell.decimal is not None:
        lines.append(("≈", cell.decimal))
    return lines


class _Block:
    """A table laid out in one manner."""

    def __init__(self, table: NumberTable, manner: Manner, signs: bool, gap: str = GAP) -> None:
        self.table = table
        self.manner = manner
        self.signs = signs
        self.gap = gap
        self.pointed = proven_digits(table)
        self.label_width = max((width_of(row.label) for row in table.rows), default=0)
        self.texts = [[self._text(cell) for cell in row.cells] for row in table.rows]
        self.columns = [
            _column([line for cell in rows for line in cell], self.pointed) for rows in self._down()
        ]
        for place, head in enumerate(table.heads):
            self.columns[place].widen(width_of(head))

    def _text(self, cell: Cell) -> list[tuple[str, str]]:
        lines = cell_lines(cell, self.manner)
        if self.manner.stacked or len(lines) == 1:
            return lines
        first, rest = lines[0], lines[1:]
        return [(first[0], " ".join([first[1], *(f"{sign} {text}" for sign, text in rest)]))]

    def _down(self) -> Sequence[Sequence[list[tuple[str, str]]]]:
        return list(zip(*self.texts, strict=True)) if self.texts else []

    @property
    def width(self) -> int:
        lead = 2 * self.signs + self.label_width
        gaps = sum(len(self._gap(place)) for place in range(len(self.columns)))
        return lead + gaps + sum(column.width for column in self.columns)

    def _gap(self, place: int) -> str:
        """The gap before a column; an ellipsis if columns are left out."""
        shown = self.table.columns
        if not place and not self.signs and not self.label_width:
            return ""
        if not place or shown != tuple(sorted(shown)):  # not in their own order: no gaps
            return self.gap
        return self.gap if shown[place] == shown[place - 1] + 1 else self.gap + "…" + self.gap

    def lines(self, ink: Ink) -> Iterator[str]:
        lead = " " * (2 * self.signs + self.label_width)
        if any(self.table.heads):
            heads = (
                self._gap(place).replace("…", " ") + self.columns[place].head(head)
                for place, head in enumerate(self.table.heads)
            )
            yield ink((lead + "".join(heads)).rstrip(), "quiet")
        before: int | None = None
        for row, texts in zip(self.table.rows, self.texts, strict=True):
            if before is not None and row.place not in (before, before + 1):
                yield "  …"
            before = row.place
            for line in range(max(map(len, texts), default=1)):
                yield self._line(row, texts, line, ink)

    def _line(self, row: NumberRow, texts: list[list[tuple[str, str]]], line: int, ink: Ink) -> str:
        label, gutter = ("", "") if line else (row.label, GUTTER.get(row.register or "", ""))
        gutter = "" if self.pointed else gutter  # all are enclosed: the step says it once
        text = (ink(gutter, row.register) if gutter else " ") + " " if self.signs else ""
        text += ink(padded(label, self.label_width), "quiet")
        for place, (column, cell) in enumerate(zip(self.columns, texts, strict=True)):
            gap = self._gap(place) if not line else self._gap(place).replace("…", " ")
            text += gap + (column.text(*cell[line]) if line < len(cell) else " " * column.width)
        return text.rstrip()


@dataclass
class _Column:
    """The places of signs and texts in a column; numbers are right-aligned, or by their points."""

    lead: int  # room for the sign
    inner: int
    right: bool
    after: int | None = None  # room for the point and the decimals, if points are aligned

    @property
    def width(self) -> int:
        return self.lead + self.inner

    def widen(self, width: int) -> None:
        self.inner = max(self.inner, width - self.lead)

    def text(self, sign: str, text: str) -> str:
        if self.after is not None:
            behind = len(text) - before_point(text)
            return sign.ljust(self.lead) + (text + " " * (self.after - behind)).rjust(self.inner)
        room = " " * (self.inner - width_of(text))
        return sign.ljust(self.lead) + (room + text if self.right else text + room)

    def head(self, text: str) -> str:
        room = " " * (self.width - width_of(text))
        return room + text if self.right else (" " * self.lead + text).ljust(self.width)


def _column(lines: list[tuple[str, str]], pointed: bool = False) -> _Column:
    texts = [text for _sign, text in lines]
    if pointed:
        before = max(map(before_point, texts), default=0)
        after = max((len(text) - before_point(text) for text in texts), default=0)
        return _Column(lead=0, inner=before + after, right=True, after=after)
    right = all(set(text) <= NUMBER for text in texts)
    signed = any(sign for sign, _text in lines)
    below_zero = right and any(text.startswith("-") for text in texts)
    return _Column(
        lead=0 if not signed else 1 if below_zero else 2,
        inner=max(map(width_of, texts), default=0),
        right=right,
    )


# ------------------------------------------------------------------ the signs beside rows


def legend(title: Title) -> Iterator[tuple[str, str | None, str]]:
    """(sign, register, meaning) of the signs in this document."""
    for register in title.registers:
        about = words.register_about(register)
        if register == "enclosed" and title.digits is not None:
            about = words.digits_about(title.digits)
        yield SIGNS[register], register, about
    if "named" in title.registers:
        yield "≈", None, _("decimals: within one unit of the last place, proven")
    if title.masked:
        yield MASK, None, words.masked(title.only_later)


def register_sign(register: str | None) -> str:
    """The register in a word, with its sign."""
    if register is None:
        return ""
    return f"{SIGNS[register]} {words.register_word(register)}".strip()
