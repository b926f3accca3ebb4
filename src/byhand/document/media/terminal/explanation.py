"""The parts of an explanation as lines for a terminal of a given width; readable without colour.

Bars grow from an axis, to the left for what is negative: the sign of the number says it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from math import ceil

from byhand.document.compose.explanation.parts import (
    HARD_SPACE,
    STRONG,
    Bar,
    Bars,
    Block,
    Drawing,
    Grid,
    Head,
    Section,
    Told,
)
from byhand.document.media.terminal.ink import Ink, padded, width_of
from byhand.document.media.terminal.wrapping import broken
from byhand.language import _

INDENT = "  "
AXIS, FULL, LEFT_HALF, RIGHT_HALF = "│", "█", "▌", "▐"
LARGEST = "◂"  # behind the bar of the largest term
LEAST_BARS, MOST_BARS = 8, 24  # characters: of all bars, of the longest one
LEAST_WORDS = (24, 12, 6)  # characters of a column of words that is made narrower, in turn
LEADS = {"lead": "", "fact": "• ", "open": "? ", "remark": "", "closing": "= "}
INKS = {"lead": "strong", "open": "named", "closing": "strong", "remark": "quiet"}


def lines(head: Head, sections: Iterable[Section], width: int, ink: Ink) -> Iterator[str]:
    """The whole explanation as text."""
    return _Lines(width, ink).all(head, sections)


class _Lines:
    def __init__(self, width: int, ink: Ink) -> None:
        self.width = width
        self.ink = ink

    def all(self, head: Head, sections: Iterable[Section]) -> Iterator[str]:
        yield self.ink(head.name, "strong")
        yield from self.words(head.summary)
        if head.facts:
            yield ""
        room = max((width_of(name) for name, _fact in head.facts), default=0)
        for name, fact in head.facts:
            lead = f"{INDENT}{padded(name, room)}  "
            yield from self.words(fact, " " * width_of(lead), lead)
        for section in sections:
            yield from self.section(section)

    def words(self, text: str, indent: str = "", first: str | None = None) -> Iterator[str]:
        return broken(text, self.width, indent if first is None else first, indent)

    def section(self, section: Section) -> Iterator[str]:
        yield ""
        yield ""
        rule = "─" * max(self.width - width_of(section.title) - 4, 0)
        title = self.ink(section.title, "stage")
        yield f"{self.ink('──', 'quiet')} {title} {self.ink(rule, 'quiet')}".rstrip()
        for line in self.words(section.about, INDENT):
            yield self.ink(line, "quiet")
        before: Block | None = None
        for block in section.blocks:
            told = isinstance(block, Told) and isinstance(before, Told)
            if not told or (isinstance(block, Told) and block.kind == "lead"):
                yield ""
            yield from self.block(block)
            before = block

    def block(self, block: Block) -> Iterator[str]:
        match block:
            case Told():
                yield from self.told(block)
            case Bars():
                yield from self.bars(block)
            case Grid():
                yield from self.grid(block)
            case Drawing():
                yield from self.drawing(block)

    def told(self, told: Told) -> Iterator[str]:
        lead = LEADS.get(told.kind, "")
        for line in self.words(told.text, INDENT + " " * len(lead), INDENT + lead):
            yield self.ink(line, INKS.get(told.kind))

    # ------------------------------------------------------------------ bars

    def bars(self, found: Bars) -> Iterator[str]:
        if found.title:
            yield from (self.ink(line, "quiet") for line in self.words(found.title, INDENT))
        labels = max((width_of(_label(bar)) for bar in found.bars), default=0)
        values = max((width_of(bar.value) for bar in found.bars), default=0)
        if 2 * len(INDENT) + labels + values > self.width:
            yield from self.below(found, values)
            return
        room = self.width - len(INDENT) - labels - values - 7  # two gaps, the axis and the mark
        left, right, scale = _sides(found.bars, room)
        for bar in found.bars:
            label = padded(_label(bar), labels)
            value = " " * (values - width_of(bar.value)) + bar.value
            if bar.kind == "sum":
                yield self.ink(f"{INDENT}{' ' * labels}  {'─' * values}", "quiet")
            text = f"{INDENT}{label}  {value}".replace(HARD_SPACE, " ")
            if left + right:
                text += INDENT + self.drawn(bar, left, scale)
            yield text.rstrip()
        for told in found.closing:
            yield from self.told(told)

    def below(self, found: Bars, values: int) -> Iterator[str]:
        """Where a name and its number do not fit side by side, each number stands below."""
        for bar in found.bars:
            if bar.kind == "sum":
                yield self.ink(f"{INDENT * 2}{'─' * values}", "quiet")
            yield from self.words(_label(bar), INDENT * 2, INDENT)
            yield f"{INDENT * 2}{' ' * (values - width_of(bar.value))}{bar.value}"
        for told in found.closing:
            yield from self.told(told)

    def drawn(self, bar: Bar, left: int, scale: float) -> str:
        """The bar with its axis; one that is too short for half a sign is not there."""
        halves = round(abs(bar.size) * 2 * scale)
        if bar.kind == "sum" or not halves:
            return " " * left + self.ink(AXIS, "quiet")
        whole, half = divmod(halves, 2)
        if bar.size < 0:
            drawn = RIGHT_HALF * half + FULL * whole
            text = " " * (left - len(drawn)) + self.ink(drawn, "named") + self.ink(AXIS, "quiet")
        else:
            drawn = FULL * whole + LEFT_HALF * half
            text = " " * left + self.ink(AXIS, "quiet") + self.ink(drawn, "exact")
        return text + (f" {LARGEST}" if bar.largest else "")

    # ------------------------------------------------------------------ grids

    def grid(self, grid: Grid) -> Iterator[str]:
        if grid.title:
            yield from (self.ink(line, "quiet") for line in self.words(grid.title, INDENT))
        cells = [
            tuple(
                text + (STRONG if (row, column) in grid.strong else "")
                for column, text in enumerate(texts)
            )
            for row, texts in enumerate(grid.rows)
        ]
        for columns in self.panels(grid, cells):
            heads = tuple(grid.heads[at] for at in columns)
            rows = [tuple(row[at] for at in columns) for row in cells]
            rights = tuple(grid.right[at] for at in columns)
            rooms = [max(map(width_of, texts)) for texts in zip(heads, *rows, strict=True)]
            rooms = self.narrowed(rooms, rights)
            if any(heads):
                yield from (self.ink(line, "quiet") for line in _row(heads, rooms, rights))
            for row in rows:
                yield from _row(row, rooms, rights)
        for line in self.words(grid.note, INDENT):
            yield self.ink(line, "quiet")
        if grid.left_out:
            text = "… " + _("left out: {what}").format(what=grid.left_out)
            yield from (self.ink(line, "quiet") for line in self.words(text, INDENT))

    def panels(self, grid: Grid, cells: Sequence[tuple[str, ...]]) -> Iterator[list[int]]:
        """The columns in groups that fit side by side, the first one in each; words are broken
        rather than put below."""
        rooms = [
            max(map(width_of, (head, *(row[at] for row in cells))), default=0)
            for at, head in enumerate(grid.heads)
        ]
        if not any(grid.right):
            rooms = self.narrowed(rooms, grid.right)
        panel = [0]
        for at in range(1, len(rooms)):
            if self.used([rooms[column] for column in (*panel, at)]) > self.width and panel[1:]:
                yield panel
                panel = [0]
            panel.append(at)
        yield panel

    def narrowed(self, rooms: Sequence[int], right: Sequence[bool]) -> list[int]:
        """The widest columns of words made narrower until the row fits, the first one last."""
        found = list(rooms)
        words = [at for at in range(1, len(found)) if not right[at]]
        for least, columns in (*((least, words) for least in LEAST_WORDS), (LEAST_WORDS[-1], [0])):
            while (over := self.used(found) - self.width) > 0:
                widest = max(columns, key=lambda at: found[at], default=None)
                if widest is None or found[widest] <= least:
                    break
                found[widest] = max(found[widest] - over, least)
        return found

    def used(self, rooms: Sequence[int]) -> int:
        return sum(len(INDENT) + room for room in rooms)

    def drawing(self, drawing: Drawing) -> Iterator[str]:
        yield from (f"{INDENT}{line}".rstrip() for line in drawing.characters)
        for line in self.words(drawing.about, INDENT):
            yield self.ink(line, "quiet")


def _label(bar: Bar) -> str:
    return f"{bar.label}  {bar.about}" if bar.about else bar.label


def _sides(bars: Sequence[Bar], room: int) -> tuple[int, int, float]:
    """How many characters the bars take to the left and to the right of the axis, and how many a
    bar of size 1 takes; no room, no bars."""
    sizes = [bar.size for bar in bars if bar.kind != "sum"]
    low, high = max(0.0, -min(sizes, default=0.0)), max(0.0, max(sizes, default=0.0))
    if room < LEAST_BARS or not low + high:
        return 0, 0, 0.0
    scale = min((room - 2) / (low + high), MOST_BARS)  # each side may be rounded up
    return ceil(low * scale), ceil(high * scale), scale


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
