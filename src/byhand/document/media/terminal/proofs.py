"""Proofs as lines of a given width: the answer, the domain in cells, the cases; without colour too.

Each way in which a case was decided has a sign; colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from byhand.document.media.terminal.ink import padded, width_of
from byhand.document.media.terminal.tables import INDENT, quiet_lines
from byhand.document.media.wording import ANSWERS, left_out_words
from byhand.document.parts import (
    Answer,
    CaseBox,
    CaseSquare,
    CaseTable,
    CaseTree,
    Decision,
    DomainPicture,
    PlaceCell,
    TextShape,
)
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.media.terminal.parts import Terminal

INKS = {
    "proven": "exact",
    "refuted": "wrong",
    "open": "named",
    "letters": "exact",
    "each": "enclosed",
}
SIGNS = {"letters": "▪", "each": "·", "none": "–", "open": "?", "refuted": "✗"}  # in a square
FILLS = {"letters": "█", "each": "▒", "several": "▓", "none": " ", "open": "?", "refuted": "✗"}
EXAMPLE = 2  # the line of a cell with the token of the example
WIDEST_TREE = 100  # columns
Column = tuple[str, str]  # the sign in a column, and the kind of its box


def lines(terminal: Terminal, part: Answer | DomainPicture | CaseTable | CaseTree) -> Iterator[str]:
    """One part of a proof."""
    match part:
        case Answer():
            return answer(terminal, part)
        case DomainPicture():
            return domain(terminal, part)
        case CaseTable():
            return table(terminal, part)
        case CaseTree():
            return tree(terminal, part)


def answer(terminal: Terminal, part: Answer) -> Iterator[str]:
    """The answer after its sign, and its figures below."""
    yield ""
    sign, word = ANSWERS[part.kind], f"{part.word}."
    first, *rest = terminal.paragraph(f"{sign} {word} {part.sentence}", INDENT * 2, INDENT)
    yield first.replace(f"{sign} {word}", terminal.ink(f"{sign} {word}", INKS[part.kind]), 1)
    yield from rest
    figures = " · ".join(f"{name} {fact}".replace(" ", "\u00a0") for name, fact in part.facts)
    for line in terminal.paragraph(figures, INDENT * 2):
        yield terminal.ink(line, "quiet")


# ------------------------------------------------------------------ the domain


def domain(terminal: Terminal, part: DomainPicture) -> Iterator[str]:
    """A row of cells for each shape, broken where it is too wide, and what is known of it below."""
    for place, shape in enumerate(part.shapes):
        if place:
            yield ""
        yield from _cells(terminal, shape)
        told = [shape.about, *shape.conditions]
        if part.example and any(cell.example for cell in shape.cells):
            told.append(_("last line: {what}").format(what=part.example))
        yield from quiet_lines("; ".join(told), terminal.width, terminal.ink)
    if part.left_out:
        yield from quiet_lines(f"… {left_out_words(part.left_out)}", terminal.width, terminal.ink)


def _cells(terminal: Terminal, shape: TextShape) -> Iterator[str]:
    """The cells side by side: what stands in each, the tokens it may be, and the example's."""
    stacks = [_stack(cell) for cell in shape.cells]
    examples = any(cell.example for cell in shape.cells)
    high = [0] + [1] * any(cell.values for cell in shape.cells) + [EXAMPLE] * examples
    rooms = [max(width_of(stack[line]) for line in high) + 2 for stack in stacks]
    for first, last in _broken(rooms, terminal.width - len(INDENT)):
        own = rooms[first:last]
        yield terminal.ink(INDENT + "┌" + "┬".join("─" * room for room in own) + "┐", "quiet")
        for line in high:
            if line == EXAMPLE:
                rule = "┼".join("┄" * room for room in own)
                yield terminal.ink(f"{INDENT}├{rule}┤", "quiet")
            cells = (_centred(stacks[at][line], rooms[at]) for at in range(first, last))
            bar = terminal.ink("│", "quiet")
            yield INDENT + bar + bar.join(cells) + bar
        yield terminal.ink(INDENT + "└" + "┴".join("─" * room for room in own) + "┘", "quiet")


def _stack(cell: PlaceCell) -> tuple[str, str, str]:
    """The lines of a cell; a fixed token is its own example."""
    return cell.text, cell.values, cell.text if cell.kind == "fixed" else cell.example


def _centred(text: str, room: int) -> str:
    left = (room - width_of(text)) // 2
    return padded(" " * left + text, room)


def _broken(rooms: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """The cells from which to which stand on one line."""
    first, used = 0, 1
    for at, room in enumerate(rooms):
        if used + room + 1 > width and at > first:
            yield first, at
            first, used = at, 1
        used += room + 1
    yield first, len(rooms)


# ------------------------------------------------------------------ squares


def table(terminal: Terminal, part: CaseTable) -> Iterator[str]:
    """A square for each text: what comes next, with the sign of how that was decided.

    Where the squares do not fit side by side, only their signs are shown; where those do not fit
    either, the rows go on below.
    """
    yield from quiet_lines(part.title, terminal.width, terminal.ink)
    side = max(width_of(part.down), *map(width_of, part.sides))
    room = terminal.width - 2 * len(INDENT) - side
    texts = max((width_of(s.text) for row in part.rows for s in row), default=0)
    wide = max(texts + 1, *map(width_of, part.heads))
    if (wide + 1) * len(part.heads) > room:
        texts, wide = 0, max(map(width_of, part.heads))
    fit = max(1, room // (wide + 1))
    for first in range(0, len(part.heads), fit):
        yield from _squares(terminal, part, slice(first, first + fit), side, wide, bool(texts))
    yield from _decisions(terminal, part.decisions, SIGNS)


def _squares(
    terminal: Terminal, part: CaseTable, shown: slice, side: int, wide: int, told: bool
) -> Iterator[str]:
    ink, lead = terminal.ink, INDENT + " " * side + INDENT
    if part.across:
        yield ink(f"{lead}{' ' * (wide > 1)}{part.across}", "quiet")
    heads = " ".join(_right(head, wide) + " " * told for head in part.heads[shown])
    name = INDENT + padded(part.down, side) + INDENT
    yield ink(f"{name}{heads}".rstrip(), "quiet")
    for label, row in zip(part.sides, part.rows, strict=True):
        cells = " ".join(_square(terminal, square, wide, told) for square in row[shown])
        yield (INDENT + ink(padded(label, side), "quiet") + INDENT + cells).rstrip()


def _square(terminal: Terminal, square: CaseSquare, wide: int, told: bool) -> str:
    sign = SIGNS[square.kind]
    text = _right(square.text, wide) + sign if told else _right(sign, wide)
    return terminal.ink(text, INKS.get(square.kind))


def _right(text: str, room: int) -> str:
    return " " * (room - width_of(text)) + text


# ------------------------------------------------------------------ boxes


def tree(terminal: Terminal, part: CaseTree) -> Iterator[str]:
    """A line for each level: boxes as wide as their shares, filled by how they were decided."""
    columns = min(terminal.width - len(INDENT), WIDEST_TREE)
    line = [(" ", "")] * columns
    for level in part.levels:
        line = _level(level, line)
        end = len("".join(sign for sign, _kind in line).rstrip())
        pieces = (
            terminal.ink("".join(sign for sign, _kind in group), INKS.get(kind, "quiet"))
            for kind, group in groupby(line[:end], lambda one: one[1])
        )
        yield INDENT + "".join(pieces)
    if part.left_out:
        yield from quiet_lines(f"… {left_out_words(part.left_out)}", terminal.width, terminal.ink)
    yield from _decisions(terminal, part.decisions, FILLS)


def _level(level: Sequence[CaseBox], above: Sequence[Column]) -> list[Column]:
    """A column below a case belongs to it; what is open or refuted hides what is proven."""
    columns = len(above)
    line = [(FILLS.get(kind, " "), kind if kind in FILLS else "") for _sign, kind in above]
    for worst in (False, True):
        for box in level:
            if (box.kind in ("open", "refuted")) != worst:
                continue
            start, end = round(box.start * columns), round((box.start + box.width) * columns)
            if worst:
                start = min(start, columns - 1)
                end = max(end, start + 1)
            text = _drawn(box, end - start)
            line[start:end] = [(sign, box.kind) for sign in text]
    return line


def _drawn(box: CaseBox, room: int) -> str:
    """A box of so many columns with its label, where that fits."""
    named = f" {box.name}: {box.label} " if box.name else f" {box.label} "
    fitting = (text for text in (named, f" {box.label} ") if width_of(text) <= room - 2)
    label = next(fitting, "") if box.label else ""
    if box.kind == "cut":
        if room < 2:
            return "│" * room
        return "├" + (label + "─" * (room - 2 - width_of(label))) + "┤"
    fill = FILLS[box.kind]
    gap = " " * (room > len(" 0…9 "))
    left = (room - len(gap) - width_of(label)) // 2
    return fill * left + label + fill * (room - len(gap) - width_of(label) - left) + gap


def _decisions(
    terminal: Terminal, decisions: Sequence[Decision], signs: dict[str, str]
) -> Iterator[str]:
    """What the signs mean, and how many cases there are of each."""
    if decisions:
        yield ""
    for one in decisions:
        sign = signs[one.kind]
        lead = f"{INDENT}{sign} "
        told = f"{one.words}: {one.count}" if one.count else one.words
        first, *rest = terminal.paragraph(told, INDENT * 2, lead)
        yield first.replace(lead, INDENT + terminal.ink(sign, INKS.get(one.kind)) + " ", 1)
        yield from rest
