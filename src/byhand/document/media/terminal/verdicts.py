"""Marked lines on the terminal: the result, the tally, and a table with a row for each line.

Readable without colour: every verdict has a sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.terminal.ink import Ink, padded, width_of
from byhand.document.media.terminal.wrapping import broken
from byhand.document.parts.verdicts import (
    ClassTable,
    Signed,
    VerdictLine,
    VerdictReport,
    VerdictRun,
    VerdictSheet,
    VerdictTable,
)
from byhand.document.words import HARD_SPACE
from byhand.language import _

INDENT, GAP = "  ", "   "
DETAIL = INDENT * 3
INKS = {
    "RIGHT": "exact",
    "CARRIED": "enclosed",
    "UNSUPPORTED": "named",
    "ERROR": "wrong",
    "UNJUDGED": "rounded",
}
TOLD = {"source": "quiet", "reason": "quiet", "suspect": "strong", "usual": "named",
        "sure": "quiet"}  # fmt: skip
LEADS = {"suspect": "» ", "change": INDENT, "sure": INDENT, "described": "≠ ", "tied": "= ",
         "ask": "+ "}  # fmt: skip
SIGN, LINE, VERDICT, SHARE, USUAL, WORST = range(6)  # the columns of the table


def lines(part: VerdictReport | ClassTable, width: int, ink: Ink) -> Iterator[str]:
    """A marking or a class as text."""
    if isinstance(part, VerdictReport):
        return report_lines(part, width, ink)
    return class_lines(part, width, ink)


def report_lines(report: VerdictReport, width: int, ink: Ink) -> Iterator[str]:
    """The whole marking as text."""
    yield from (ink(line, "strong") for line in broken(report.result.text, width))
    yield ""
    room = max(width_of(name) for name, _fact in report.facts.facts)
    for name, fact in report.facts.facts:
        lead = INDENT + padded(name, room) + INDENT
        yield from broken(fact, width, lead, " " * width_of(lead))
    for sheet in report.sheets:
        yield ""
        if sheet.name:
            yield from _heading(sheet.heading, width, ink)
        yield from _tally(sheet.tally, width, ink)
        yield ""
        yield from table_lines(sheet.table, width, ink)
        yield from _readings(sheet, width, ink)


def _readings(sheet: VerdictSheet, width: int, ink: Ink) -> Iterator[str]:
    """How the arrays of a dump were read, a line for each kind."""
    if sheet.readings:
        yield ""
        yield INDENT + ink(_("how the dump was read"), "quiet")
    for name, how in sheet.readings:
        yield from broken(f"{name}: {how}", width, INDENT * 2, INDENT * 4)


def _heading(title: str, width: int, ink: Ink) -> Iterator[str]:
    if (room := width - width_of(title) - 4) > 0:
        yield ink(f"── {title} {'─' * room}", "stage")
    else:
        yield from (ink(line, "stage") for line in broken(title, width, "── ", INDENT))


def _tally(counts: Sequence[Signed], width: int, ink: Ink) -> Iterator[str]:
    """The number of lines with each verdict, as many on a line as fit."""
    pieces = [f"{count.sign} {count.text}".replace(" ", HARD_SPACE) for count in counts]
    for line in broken(GAP.join(pieces), width, INDENT, INDENT):
        for count in counts:
            line = line.replace(f"{count.sign} ", ink(count.sign, INKS[count.verdict]) + " ", 1)
        yield line


def table_lines(table: VerdictTable, width: int, ink: Ink) -> Iterator[str]:
    """The lines with their verdicts, and their explanations below."""
    rows = _Rows(table, width)
    if any(isinstance(row, VerdictLine) for row in table.rows):
        yield from (ink(text, "quiet") for text in rows.fitted(rows.head))
    before = ""
    for line in table.rows:
        if isinstance(line, VerdictRun):
            yield from _run(line, width, ink)
            before = ""
            continue
        for text in rows.fitted(_cells(line)):
            yield text.replace(line.sign, ink(line.sign, INKS[line.verdict]), 1)
        for kind, sentence in line.told:
            if kind == "share" or (kind == "reason" and sentence == before):
                continue  # a repeated reason is told once
            lead = DETAIL + LEADS.get(kind, "")
            rest = DETAIL + INDENT * (kind in LEADS)
            yield from (ink(t, TOLD.get(kind)) for t in broken(sentence, width, lead, rest))
        before = dict(line.told).get("reason", "")


def _cells(line: VerdictLine) -> list[str]:
    return [line.signs, line.address, line.word, line.used, line.times, line.worst]


def _run(run: VerdictRun, width: int, ink: Ink) -> Iterator[str]:
    sign = run.result.sign
    lead = f"{INDENT}{sign}  "
    first, *rest = broken(f"… {run.result.text}", width, lead, " " * (len(lead) + 2))
    mark = ink(sign, INKS[run.result.verdict])
    yield f"{INDENT}{mark}  " + ink(first[len(lead) :], "quiet")
    yield from (ink(text, "quiet") for text in rest)


class _Rows:
    """The columns of a table, fitted to a width: a narrow one has two lines for a row."""

    def __init__(self, table: VerdictTable, width: int) -> None:
        self.head = ["", _("line"), _("verdict"), _("of allowed"), _("× usual"), _("worst entry")]
        alone = [row for row in table.rows if isinstance(row, VerdictLine)]
        rows = [self.head, *map(_cells, alone)]
        self.rooms = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
        self.rooms[SIGN] = 2  # the sign, and the mark beside it
        self.kept = [VERDICT, SHARE, WORST]  # the columns after the line's name
        if any(line.times for line in table.lines):
            self.kept.insert(2, USUAL)
        self.broken = False
        if self.used(LINE, *self.kept) > width:  # the sign gives the verdict too
            briefer = [column for column in self.kept if column != VERDICT]
            self.broken = self.used(LINE, *briefer) > width
            if not self.broken or self.used(*self.kept) > width:
                self.kept = briefer
            if self.broken and self.used(*self.kept) > width:
                self.kept = [SHARE, WORST]

    def used(self, *columns: int) -> int:
        """The width of these columns after the sign."""
        return len(INDENT) + self.rooms[SIGN] - 1 + sum(2 + self.rooms[at] for at in columns)

    def fitted(self, row: Sequence[str]) -> Iterator[str]:
        """A row in one line, or in two."""
        padding = {at: " " * (self.rooms[at] - width_of(row[at])) for at in range(len(row))}
        numbers = INDENT.join(
            padding[at] + row[at] if at in (SHARE, USUAL) else row[at] + padding[at]
            for at in self.kept
        ).rstrip()
        lead = INDENT + row[SIGN] + padding[SIGN] + " "
        if self.broken:
            yield (lead + row[LINE]).rstrip()
            yield " " * width_of(lead) + numbers
        else:
            yield (lead + row[LINE] + padding[LINE] + INDENT + numbers).rstrip()


# ------------------------------------------------------------------ a class


def class_lines(part: ClassTable, width: int, ink: Ink) -> Iterator[str]:
    """The class: its table, the legend, and the commonest mistakes."""
    yield ink(part.title, "strong")
    yield ""
    yield from _students(part, width, ink)
    yield ""
    numbered = [f"{place}{HARD_SPACE}{name}" for place, name in enumerate(part.lines, 1)]
    for pieces in (part.legend, numbered):
        for line in broken(GAP.join(pieces), width, INDENT, INDENT):
            yield ink(line, "quiet")
    if part.mistakes:
        yield ""
        yield ink(_("The commonest mistakes"), "stage")
    for mistake, who in part.mistakes:
        yield from broken(mistake, width, INDENT, INDENT * 2)
        yield from (ink(line, "quiet") for line in broken(who, width, INDENT * 2, INDENT * 2))
    if part.left_out:
        yield INDENT + part.left_out


def _students(part: ClassTable, width: int, ink: Ink) -> Iterator[str]:
    """Name, marks, per cent, and a sign for every line if there is room."""
    rows = [(row.student, row.marks, row.percent) for row in part.rows]
    head = (_("student"), _("marks"), "%")
    rooms = [max(map(width_of, column)) for column in zip(head, *rows, strict=True)]
    used = 4 * len(INDENT) + sum(rooms)
    numbers = tuple(str(place + 1) for place in range(len(part.lines)))
    room = max(map(len, numbers), default=1) + 1
    if used + room * len(numbers) > width:  # side by side, or not at all
        numbers, room = (), int(used + len(part.lines) <= width)
    signs = [row.signs if room else () for row in part.rows]
    for cells, places in zip([head, *rows], [numbers, *signs], strict=True):
        name, marks, percent = cells
        shown = (
            padded(name, rooms[0]),
            marks.rjust(rooms[1]),
            percent.rjust(rooms[2]),
            "".join(sign.rjust(room) for sign in places),
        )
        line = INDENT + INDENT.join(shown).rstrip()
        yield ink(line, "quiet" if cells is head else None)
