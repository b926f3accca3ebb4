"""Tables to be read as lines of a given width: panels side by side, words broken into lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from byhand.document.media.terminal.ink import Ink, padded, width_of
from byhand.document.media.terminal.wrapping import broken
from byhand.document.parts import Grid
from byhand.document.words import HARD_SPACE
from byhand.language import _

INDENT = "  "
STRONG = "*"  # beside a cell that matters most
LEAST_WORDS = (24, 12, 6)  # characters of a column of words that is made narrower, in turn


def grid_lines(grid: Grid, width: int, ink: Ink) -> Iterator[str]:
    """The lines of a table; columns that do not fit side by side follow in a panel below."""
    yield from quiet_lines(grid.title, width, ink)
    cells = [
        tuple(_cell(grid, row, column, text) for column, text in enumerate(texts))
        for row, texts in enumerate((*grid.rows, *grid.totals))
    ]
    right = [column.right for column in grid.columns]
    for shown in _panels(grid.heads, cells, right, width):
        heads = [grid.heads[at] for at in shown]
        rows = [[row[at] for at in shown] for row in cells]
        rights = [right[at] for at in shown]
        rooms = _narrowed(_rooms(heads, rows), rights, width)
        if any(heads):
            yield from (ink(line, "quiet") for line in _row(heads, rooms, rights))
        for row in rows:
            yield from _row(row, rooms, rights)
    note = f"{STRONG} {grid.note}" if grid.note and grid.strong else grid.note
    yield from quiet_lines(note, width, ink)
    if grid.left_out:
        text = "… " + _("left out: {what}").format(what=grid.left_out)
        yield from quiet_lines(text, width, ink)


def quiet_lines(text: str, width: int, ink: Ink) -> Iterator[str]:
    """Words beside a table, which are not its main thing."""
    return (ink(line, "quiet") for line in broken(text, width, INDENT, INDENT))


def _cell(grid: Grid, row: int, column: int, text: str) -> str:
    if grid.columns[column].kind == "share" and text:
        text = f"{100 * float(text):.0f}%"
    return text + STRONG * ((row, column) in grid.strong)


def _rooms(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column."""
    return [max(map(width_of, texts)) for texts in zip(heads, *rows, strict=True)]


def _panels(
    heads: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], width: int
) -> Iterator[list[int]]:
    """The columns in groups that fit side by side, the first one in each; words are broken rather
    than put below."""
    rooms = _rooms(heads, cells)
    if not any(right):
        rooms = _narrowed(rooms, right, width)
    panel = [0]
    for at in range(1, len(rooms)):
        if _used([rooms[column] for column in (*panel, at)]) > width and panel[1:]:
            yield panel
            panel = [0]
        panel.append(at)
    yield panel


def _narrowed(rooms: Sequence[int], right: Sequence[bool], width: int) -> list[int]:
    """The widest columns of words made narrower until the row fits, the first one last."""
    found = list(rooms)
    words = [at for at in range(1, len(found)) if not right[at]]
    for least, columns in (*((least, words) for least in LEAST_WORDS), (LEAST_WORDS[-1], [0])):
        while (over := _used(found) - width) > 0:
            widest = max(columns, key=lambda at: found[at], default=None)
            if widest is None or found[widest] <= least:
                break
            found[widest] = max(found[widest] - over, least)
    return found


def _used(rooms: Sequence[int]) -> int:
    return sum(len(INDENT) + room for room in rooms)


def _row(texts: Sequence[str], rooms: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    """A row of cells; what is wider than its column goes on below."""
    stacks = [
        [text] if to_right or width_of(text) <= room else list(broken(text, room))
        for text, room, to_right in zip(texts, rooms, right, strict=True)
    ]
    for line in zip_longest(*stacks, fillvalue=""):
        cells = (
            " " * (room - width_of(text)) + text if to_right else padded(text, room)
            for text, room, to_right in zip(line, rooms, right, strict=True)
        )
        yield (INDENT + INDENT.join(cells)).replace(HARD_SPACE, " ").rstrip()
