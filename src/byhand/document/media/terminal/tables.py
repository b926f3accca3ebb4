"""Tables to read, as lines of a given width: panels side by side, words wrapped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from byhand.document.media.terminal.ink import Ink, padded, width_of
from byhand.document.media.terminal.wrapping import broken
from byhand.document.parts import Grid
from byhand.document.words import HARD_SPACE
from byhand.language import _

INDENT = "  "
STRONG = "*"  # beside the most important cell
EIGHTHS, LONGEST_BAR = " ▏▎▍▌▋▊▉", 10  # columns
LEAST_WORDS = (24, 12, 6)  # least widths of a column of words, tried in turn


def grid_lines(grid: Grid, width: int, ink: Ink) -> Iterator[str]:
    """The lines of a table; columns that do not fit side by side follow in a panel below, and where
    addresses stand under headings, each row has its numbers below its address.  Formulas are not
    squeezed: where a row does not fit, each of its cells has a line."""
    yield from quiet_lines(grid.title, width, ink)
    columns = grid.columns[: len(grid.columns) - grid.barred]
    heads, right = [column.head for column in columns], [column.right for column in columns]
    rows = [_cells(grid, at, row) for at, row in enumerate((*grid.rows, *grid.totals))]
    rooms = _rooms(heads, [row for row in rows if len(row) > 1])
    listed = grid.grouped and columns[0].kind == "address"
    if listed and _below(rooms) <= width < _used(rooms):
        yield from _broken(grid, heads, rows, rooms, right, ink)
    elif any(column.kind == "formula" for column in columns) and width < _used(rooms):
        yield from _listed(grid, heads, rows, width, ink)
    else:
        yield from _beside(grid, heads, rows, right, width, ink)
    note = f"{STRONG} {grid.note}" if grid.note and grid.strong else grid.note
    yield from quiet_lines(note, width, ink)
    if grid.left_out:
        text = "… " + _("left out: {what}").format(what=grid.left_out)
        yield from quiet_lines(text, width, ink)


def _beside(
    grid: Grid,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    width: int,
    ink: Ink,
) -> Iterator[str]:
    """The columns side by side, in as many panels as they need."""
    for shown in _panels(heads, [row for row in rows if len(row) > 1], right, width):
        rights = [right[at] for at in shown]
        names = [heads[at] for at in shown]
        cells = [[row[at] for at in shown] for row in rows if len(row) > 1]
        rooms = _narrowed(_rooms(names, cells), rights, width)
        if any(names):
            yield from (ink(line, "quiet") for line in _row(names, rooms, rights))
        bars = min(LONGEST_BAR, width - _used(rooms) - len(INDENT)) if grid.barred else 0
        left = iter(cells)
        for at, row in enumerate(rows):
            if len(row) == 1:
                yield ink(INDENT + row[0], "stage")
                continue
            if at == len(grid.rows) and grid.columns[0].kind != "address":  # the total has a word
                yield ink(INDENT + "─" * (_used(rooms) - len(INDENT)), "quiet")
            for line in _row(next(left), rooms, rights):
                yield line if bars < 1 else _with_bar(line, _used(rooms), grid.rows[at][-1], bars)


def _broken(
    grid: Grid,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    rooms: Sequence[int],
    right: Sequence[bool],
    ink: Ink,
) -> Iterator[str]:
    """Each row on two lines: its address, and below it the numbers."""
    for at, row in enumerate((heads, *rows)):
        if len(row) == 1:
            yield ink(INDENT + row[0], "stage")
            continue
        for line in (INDENT + row[0], *_row(row[1:], rooms[1:], right[1:], INDENT * 3)):
            yield line if at else ink(line, "quiet")


def _listed(
    grid: Grid, heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, ink: Ink
) -> Iterator[str]:
    """Each row by its name, and below it every cell that says something, behind its heading."""
    room = max(map(width_of, heads[1:]))
    for at, (name, *cells) in enumerate(rows):
        if at == len(grid.rows):
            yield ink(INDENT + "─" * (width - 2 * len(INDENT)), "quiet")
        yield from broken(name, width, INDENT, INDENT * 2)
        for head, text in zip(heads[1:], cells, strict=False):
            lead = INDENT * 2 + (padded(head, room) + INDENT) * bool(room)
            yield from broken(text, width, lead, " " * width_of(lead))


def _with_bar(line: str, room: int, share: str, longest: int) -> str:
    """A row with a bar at its end, in proportion to the longest."""
    full, part = divmod(round(8 * longest * float(share or 0)), 8)
    return (padded(line, room + len(INDENT)) + "█" * full + EIGHTHS[part]).rstrip()


def quiet_lines(text: str, width: int, ink: Ink) -> Iterator[str]:
    """Secondary words beside a table."""
    return (ink(line, "quiet") for line in broken(text, width, INDENT, INDENT))


def _cells(grid: Grid, at: int, row: Sequence[str]) -> list[str]:
    """A row as texts: shares in per cent, the strong cell marked, groups indented."""
    if len(row) == 1:
        return list(row)
    cells = []
    for place, (column, text) in enumerate(zip(grid.columns, row, strict=True)):
        if column.kind == "share" and text:
            text = f"{100 * float(text):.0f}%"
        cells.append(text + STRONG * ((at, place) in grid.strong))
    cells[0] = INDENT * grid.grouped + cells[0]
    return cells[: len(cells) - grid.barred]


def _rooms(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column."""
    return [max(map(width_of, texts)) for texts in zip(heads, *rows, strict=True)]


def _panels(
    heads: Sequence[str],
    cells: Sequence[Sequence[str]],
    right: Sequence[bool],
    width: int,
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
    """The widths with the widest word columns narrowed until the row fits, the first one last."""
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


def _below(rooms: Sequence[int]) -> int:
    """The width of a table whose rows have their numbers below their addresses."""
    return max(len(INDENT) + rooms[0], 2 * len(INDENT) + _used(rooms[1:]))


def _row(
    texts: Sequence[str], rooms: Sequence[int], right: Sequence[bool], indent: str = INDENT
) -> Iterator[str]:
    """A row of cells; texts wider than their column continue below."""
    stacks = [
        [text] if to_right or width_of(text) <= room else list(broken(text, room, apart=True))
        for text, room, to_right in zip(texts, rooms, right, strict=True)
    ]
    for line in zip_longest(*stacks, fillvalue=""):
        cells = (
            " " * (room - width_of(text)) + text if to_right else padded(text, room)
            for text, room, to_right in zip(line, rooms, right, strict=True)
        )
        yield (indent + INDENT.join(cells)).replace(HARD_SPACE, " ").rstrip()
