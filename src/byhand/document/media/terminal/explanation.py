"""The sections of an explanation as lines of a given width; readable without colour.

Bars grow from an axis, to the left for what is negative: the sign of the number says it as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from byhand.document.media.terminal import plane
from byhand.document.media.terminal.ink import Ink, padded, width_of
from byhand.document.media.terminal.tables import INDENT, grid_lines, quiet_lines
from byhand.document.media.terminal.wrapping import broken
from byhand.document.parts import (
    Column,
    Drawing,
    Finding,
    Grid,
    LeftOut,
    LensLine,
    LensTable,
    NumberTable,
    Part,
    Remark,
    Section,
    TermLine,
    Terms,
)
from byhand.document.words import HARD_SPACE
from byhand.language import _

AXIS, FULL, LEFT_HALF, RIGHT_HALF = "│", "█", "▌", "▐"
LARGEST = "◂"  # behind the bar of the largest term
LEAST_BARS, MOST_BARS = 8, 24  # characters: of all bars, of the longest one
LEADS = {"fact": "• ", "open": "? ", "closing": "= "}
INKS = {"lead": "strong", "fact": None, "open": "named", "closing": "strong"}


def section_lines(section: Section, width: int, ink: Ink) -> Iterator[str]:
    """A section under its heading."""
    return _Lines(width, ink).section(section)


class _Lines:
    def __init__(self, width: int, ink: Ink) -> None:
        self.width = width
        self.ink = ink

    def words(self, text: str, indent: str = "", first: str | None = None) -> Iterator[str]:
        return broken(text, self.width, indent if first is None else first, indent)

    def section(self, section: Section) -> Iterator[str]:
        yield ""
        yield ""
        rule = "─" * max(self.width - width_of(section.title) - 4, 0)
        title = self.ink(section.title, "stage")
        yield f"{self.ink('──', 'quiet')} {title} {self.ink(rule, 'quiet')}".rstrip()
        yield from quiet_lines(section.about, self.width, self.ink)
        told = False  # sentences below sentences need no line between them
        for part in section.parts:
            shown = list(self.part(part))
            words = isinstance(part, Finding | Remark | LeftOut)
            if shown and (not (told and words) or (isinstance(part, Finding) and part.lead)):
                yield ""
            yield from shown
            told = words

    def part(self, part: Part) -> Iterator[str]:
        match part:
            case Finding():
                yield from self.told("lead", part.lead)
                for text in part.told:
                    yield from self.told("fact", text)
            case Remark():
                yield from self.told(part.kind, part.text)
            case LeftOut():
                yield from self.told("more", f"{part.text} {part.command}".rstrip())
            case Terms():
                yield from self.terms(part)
            case Grid():
                yield from grid_lines(part, self.width, self.ink)
            case LensTable():
                yield from grid_lines(lens_grid(part), self.width, self.ink)
            case NumberTable():
                yield from grid_lines(number_grid(part), self.width, self.ink)
            case Drawing():
                if drawing := plane.drawn(part, self.width):
                    yield from (f"{INDENT}{line}".rstrip() for line in drawing)
                    yield from quiet_lines(plane.signs(), self.width, self.ink)
                yield from self.told("more", part.instead)
            case _:
                raise TypeError(f"an explanation has no {type(part).__name__}")

    def told(self, kind: str, text: str) -> Iterator[str]:
        lead = LEADS.get(kind, "")
        for line in self.words(text, INDENT + " " * len(lead), INDENT + lead):
            yield self.ink(line, INKS.get(kind, "quiet"))

    # ------------------------------------------------------------------ sums with bars

    def terms(self, found: Terms) -> Iterator[str]:
        yield from quiet_lines(found.title, self.width, self.ink)
        labels = max((width_of(_label(line)) for line in found.lines), default=0)
        values = max((width_of(line.added.short) for line in found.lines), default=0)
        if 2 * len(INDENT) + labels + values > self.width:
            yield from self.below(found, values)
        else:
            yield from self.beside(found, labels, values)
        yield from self.told("open", found.unknown)
        yield from self.told("closing", found.closing)

    def beside(self, found: Terms, labels: int, values: int) -> Iterator[str]:
        """Each number behind its name, and a bar behind it."""
        room = self.width - len(INDENT) - labels - values - 7  # two gaps, the axis and the mark
        left, right, scale = _sides(found, room)
        for line in found.lines:
            if line.kind == "sum":
                yield self.ink(f"{INDENT}{' ' * labels}  {'─' * values}", "quiet")
            label, value = padded(_label(line), labels), line.added.short
            text = f"{INDENT}{label}  {' ' * (values - width_of(value))}{value}"
            text = text.replace(HARD_SPACE, " ")
            if left + right:
                text += INDENT + self.drawn(line, left, scale)
            yield text.rstrip()

    def below(self, found: Terms, values: int) -> Iterator[str]:
        """Where a name and its number do not fit side by side, each number stands below."""
        for line in found.lines:
            if line.kind == "sum":
                yield self.ink(f"{INDENT * 2}{'─' * values}", "quiet")
            yield from self.words(_label(line), INDENT * 2, INDENT)
            value = line.added.short
            yield f"{INDENT * 2}{' ' * (values - width_of(value))}{value}"

    def drawn(self, line: TermLine, left: int, scale: float) -> str:
        """The bar with its axis; one that is too short for half a sign is not there."""
        halves = round(abs(line.size) * 2 * scale)
        if line.kind == "sum" or not halves:
            return " " * left + self.ink(AXIS, "quiet")
        whole, half = divmod(halves, 2)
        if line.size < 0:
            drawn = RIGHT_HALF * half + FULL * whole
            text = " " * (left - len(drawn)) + self.ink(drawn, "named") + self.ink(AXIS, "quiet")
        else:
            drawn = FULL * whole + LEFT_HALF * half
            text = " " * left + self.ink(AXIS, "quiet") + self.ink(drawn, "exact")
        return text + (f" {LARGEST}" if line.largest else "")


def _label(line: TermLine) -> str:
    return f"{line.name}  {line.token}" if line.token else line.name


def _sides(found: Terms, room: int) -> tuple[int, int, float]:
    """How many characters the bars take to the left and to the right of the axis, and how many a
    bar of size 1 takes; no room, no bars."""
    low, high = found.reach
    if room < LEAST_BARS or not low + high:
        return 0, 0, 0.0
    scale = min((room - 2) / (low + high), MOST_BARS)  # each side may be rounded up
    return ceil(low * scale), ceil(high * scale), scale


# ------------------------------------------------------------------ numbers in tables to be read


def lens_grid(part: LensTable) -> Grid:
    """Who leads after each step, as a table of short texts."""
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
