"""The sections of an explanation as lines of a given width; readable without colour.

Bars start at an axis and go left for negative numbers, as their signs say too.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from byhand.document.media.terminal import plane
from byhand.document.media.terminal.ink import padded, width_of
from byhand.document.media.terminal.tables import INDENT, quiet_lines
from byhand.document.parts import (
    Column,
    Drawing,
    Finding,
    Grid,
    LeftOut,
    LensLine,
    LensTable,
    NumberTable,
    Remark,
    Section,
    TermLine,
    Terms,
)
from byhand.document.words import HARD_SPACE
from byhand.language import _

if TYPE_CHECKING:
    from byhand.document.media.terminal.parts import Terminal

AXIS, FULL, LEFT_HALF, RIGHT_HALF = "│", "█", "▌", "▐"
LARGEST = "◂"  # behind the bar of the largest term
LEAST_BARS, MOST_BARS = 8, 24  # characters: of all bars, of the longest one


def lines(
    terminal: Terminal, part: Section | Terms | LensTable | NumberTable | Drawing
) -> Iterator[str]:
    """One part of an explanation."""
    match part:
        case Section():
            return section(terminal, part)
        case Terms():
            return terms(terminal, part)
        case LensTable():
            return terminal.grid(lens_grid(part))
        case NumberTable():
            return terminal.grid(number_grid(part))
        case Drawing():
            return drawing(terminal, part)


def section(terminal: Terminal, part: Section) -> Iterator[str]:
    """A section under its heading; consecutive sentences have no blank line between them."""
    yield ""
    yield ""
    rule = "─" * max(terminal.width - width_of(part.title) - 4, 0)
    title = terminal.ink(part.title, "stage")
    yield f"{terminal.ink('──', 'quiet')} {title} {terminal.ink(rule, 'quiet')}".rstrip()
    yield from quiet_lines(part.about, terminal.width, terminal.ink)
    told = False
    for inside in part.parts:
        if isinstance(inside, Finding):
            shown = list(terminal.finding(inside, leads=True))
        else:
            shown = list(terminal.part(inside))
        words = isinstance(inside, Finding | Remark | LeftOut)
        if shown and (not (told and words) or (isinstance(inside, Finding) and inside.lead)):
            yield ""
        yield from shown
        told = words


def drawing(terminal: Terminal, part: Drawing) -> Iterator[str]:
    """A plane in characters, or its description in words."""
    if lines := plane.drawn(part, terminal.width):
        yield from (f"{INDENT}{line}".rstrip() for line in lines)
        yield from quiet_lines(plane.signs(), terminal.width, terminal.ink)
    yield from terminal.remark(Remark("more", part.instead))


# ------------------------------------------------------------------ sums with bars


def terms(terminal: Terminal, found: Terms) -> Iterator[str]:
    """A row for each term: its number, and a bar on the side of its sign."""
    yield from quiet_lines(found.title, terminal.width, terminal.ink)
    labels = max((width_of(_label(line)) for line in found.lines), default=0)
    values = max((width_of(line.added.short) for line in found.lines), default=0)
    if 2 * len(INDENT) + labels + values > terminal.width:
        yield from _below(terminal, found, values)
    else:
        yield from _beside(terminal, found, labels, values)
    yield from terminal.remark(Remark("open", found.unknown))
    yield from terminal.remark(Remark("closing", found.closing))


def _beside(terminal: Terminal, found: Terms, labels: int, values: int) -> Iterator[str]:
    """Each number after its name, with a bar after it."""
    room = terminal.width - len(INDENT) - labels - values - 7  # two gaps, the axis and the mark
    left, right, scale = _sides(found, room)
    for line in found.lines:
        if line.kind == "sum":
            yield terminal.ink(f"{INDENT}{' ' * labels}  {'─' * values}", "quiet")
        label, value = padded(_label(line), labels), line.added.short
        text = f"{INDENT}{label}  {' ' * (values - width_of(value))}{value}"
        text = text.replace(HARD_SPACE, " ")
        if left + right:
            text += INDENT + _drawn(terminal, line, left, scale)
        yield text.rstrip()


def _below(terminal: Terminal, found: Terms, values: int) -> Iterator[str]:
    """Each number below its name, where they do not fit side by side."""
    for line in found.lines:
        if line.kind == "sum":
            yield terminal.ink(f"{INDENT * 2}{'─' * values}", "quiet")
        yield from terminal.paragraph(_label(line), INDENT * 2, INDENT)
        value = line.added.short
        yield f"{INDENT * 2}{' ' * (values - width_of(value))}{value}"


def _drawn(terminal: Terminal, line: TermLine, left: int, scale: float) -> str:
    """The bar with its axis; empty below half a character."""
    halves = round(abs(line.size) * 2 * scale)
    if line.kind == "sum" or not halves:
        return " " * left + terminal.ink(AXIS, "quiet")
    whole, half = divmod(halves, 2)
    if line.size < 0:
        drawn = RIGHT_HALF * half + FULL * whole
        room = " " * (left - len(drawn))
        text = room + terminal.ink(drawn, "named") + terminal.ink(AXIS, "quiet")
    else:
        drawn = FULL * whole + LEFT_HALF * half
        text = " " * left + terminal.ink(AXIS, "quiet") + terminal.ink(drawn, "exact")
    return text + (f" {LARGEST}" if line.largest else "")


def _label(line: TermLine) -> str:
    return f"{line.name}  {line.token}" if line.token else line.name


def _sides(found: Terms, room: int) -> tuple[int, int, float]:
    """The columns of the bars left and right of the axis, and those of a bar of size 1."""
    low, high = found.reach
    if room < LEAST_BARS or not low + high:
        return 0, 0, 0.0
    scale = min((room - 2) / (low + high), MOST_BARS)  # each side may be rounded up
    return ceil(low * scale), ceil(high * scale), scale


# ------------------------------------------------------------------ numbers in tables to be read


def lens_grid(part: LensTable) -> Grid:
    """The leader after each step, as a table of short texts."""
    numbers = [_("probability"), *part.tokens, *[_("place")] * part.placed]
    columns = (Column(_("after"), "address"), Column(_("leads")))
    return Grid(
        part.title,
        (*columns, *(Column(head, "number") for head in numbers)),
        tuple(_lens_row(line, part.placed, len(numbers)) for line in part.lines),
        strong=frozenset((at, 1) for at, line in enumerate(part.lines) if line.settled),
        note=part.note,
    )


def _lens_row(line: LensLine, placed: bool, numbers: int) -> tuple[str, ...]:
    if not line.logits and line.probability is None:
        return (line.step, line.leader, *[""] * numbers)
    share = "" if line.probability is None else line.probability.short
    logits = (number.short for number in line.logits)
    return (line.step, line.leader, share, *logits, *[line.place] * placed)


def number_grid(table: NumberTable) -> Grid:
    """Numbers under the words of their columns, as short texts."""
    name = table.title.partition(":")[0]
    return Grid(
        f"{name} {table.address}",
        (Column(""), *(Column(head, "number") for head in table.heads)),
        tuple((row.label, *(n.short for n in row.numbers)) for row in table.rows),
        left_out=table.left_out,
    )
