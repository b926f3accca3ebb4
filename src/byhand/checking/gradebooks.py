"""Gradebooks of a class: many students' copies of one worksheet, and the commonest mistakes.

    Graded … → `gradebook` → Gradebook → `write_csv`

`grading` marks a single sheet; `document` shows the results.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from byhand.checking.grading import BLANK, SET_ASIDE, USUAL, Graded, GradedLine, Rules, grade
from byhand.checking.verdicts import MarkedText, Verdict
from byhand.drafts import write_whole
from byhand.language import _

UNEXPLAINED = "unexplained"  # the kind of a mistake that no suspect explains


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake, and the students who made it."""

    kind: str  # of its suspect, or UNEXPLAINED
    sentence: str  # its most frequent wording
    students: tuple[str, ...]  # each student once
    lines: tuple[str, ...]  # the addresses where it was made, each once, in spine order
    of: int  # number of sheets

    @property
    def summary(self) -> str:
        """`7 of 20: forgot the 1/√d scale`"""
        return _("{count} of {of}: {what}").format(
            count=len(self.students), of=self.of, what=self.sentence
        )


@dataclass(frozen=True)
class Gradebook:
    """A class: every sheet over the same lines, and the commonest mistakes first."""

    lines: tuple[str, ...]  # the addresses that every sheet should have, in spine order
    sheets: tuple[Graded, ...]  # in the given order; each has at least these lines
    mistakes: tuple[Mistake, ...] = ()
    names: tuple[str, ...] = ()  # the most frequent name of each line

    @property
    def mean_percent(self) -> Fraction | None:
        """The mean over the sheets on which marks could be won; None without any."""
        known = [sheet.percent for sheet in self.sheets if sheet.percent is not None]
        return sum(known, Fraction(0)) / len(known) if known else None


def gradebook(
    texts: Iterable[MarkedText],
    *,
    lines: Sequence[str] | None = None,
    marks: Mapping[str, Fraction] | None = None,
    rules: Rules = USUAL,
) -> Gradebook:
    """The gradebook of many sheets over the same lines.

    `lines` are the addresses that the worksheet asks for.  Without them, a line belongs to the
    worksheet if at least half of the sheets have it: a sheet without it counts as blank there, and
    a line that one student adds costs the others nothing.  Lines beyond the worksheet are set
    aside.
    """
    every = list(texts)
    graded = [grade(text, marks=marks, rules=rules) for text in every]
    expected = tuple(lines) if lines is not None else _shared(graded)
    worth = _usual_worth(graded, expected, rules)
    sheets = tuple(_completed(sheet, expected, worth) for sheet in _told_apart(graded))
    return Gradebook(expected, sheets, _mistakes(sheets), _names(graded, expected))


def _shared(sheets: Sequence[Graded]) -> tuple[str, ...]:
    counted = Counter(address for sheet in sheets for address in _addresses(sheet))
    usual = {address for address, count in counted.items() if 2 * count >= len(sheets)}
    return tuple(address for address in _in_order(map(_addresses, sheets)) if address in usual)


def _addresses(sheet: Graded) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.address for line in sheet.lines))


def _in_order(sequences: Iterable[Sequence[str]]) -> list[str]:
    """The addresses of all sheets in one order, as far as possible each sheet's own."""
    order: list[str] = []
    for sequence in sequences:
        place = 0
        for address in sequence:
            if address in order:
                place = order.index(address) + 1
            else:
                order.insert(place, address)
                place += 1
    return order


def _names(sheets: Sequence[Graded], expected: Iterable[str]) -> tuple[str, ...]:
    called: dict[str, Counter[str]] = {address: Counter() for address in expected}
    for sheet in sheets:
        for line in sheet.lines:
            if line.address in called:
                called[line.address][line.name] += 1
    return tuple(
        names.most_common(1)[0][0] if names else address for address, names in called.items()
    )


def _usual_worth(
    sheets: Sequence[Graded], expected: Iterable[str], rules: Rules
) -> dict[str, Fraction]:
    """The marks for each line on sheets that lack it: its usual worth on the other sheets."""
    found: dict[str, Counter[Fraction]] = {address: Counter() for address in expected}
    for sheet in sheets:
        for line in sheet.lines:
            if line.address in found and line.outcome != SET_ASIDE:
                found[line.address][line.out_of] += 1
    aside = {line.address for sheet in sheets for line in sheet.lines if line.outcome == SET_ASIDE}
    return {
        address: worths.most_common(1)[0][0]
        if worths
        else (Fraction(0) if address in aside else rules.each)
        for address, worths in found.items()
    }


def _told_apart(sheets: Sequence[Graded]) -> Iterable[Graded]:
    """The sheets, with a number appended to names that several sheets share."""
    names = Counter(sheet.student for sheet in sheets)
    seen: Counter[str] = Counter()
    for sheet in sheets:
        seen[sheet.student] += 1
        if names[sheet.student] == 1:
            yield sheet
        else:
            name = f"{sheet.student} ({seen[sheet.student]})"
            yield Graded(name, sheet.lines, sheet.unplaced)


def _completed(sheet: Graded, expected: Sequence[str], worth: Mapping[str, Fraction]) -> Graded:
    """The sheet with a blank for every line it lacks, and extra lines set aside."""
    own: dict[str, list[GradedLine]] = {}
    for line in sheet.lines:
        own.setdefault(line.address, []).append(line)
    lines = []
    for address in expected:
        missing = GradedLine(address, Fraction(0), worth[address], BLANK, None, Fraction(0))
        lines.extend(own.pop(address, [missing]))
    extra = [
        GradedLine(line.address, Fraction(0), Fraction(0), line.outcome, line.marked, line.filled)
        for rest in own.values()
        for line in rest
    ]
    return Graded(sheet.student, (*lines, *extra), sheet.unplaced)


def _mistakes(sheets: Sequence[Graded]) -> tuple[Mistake, ...]:
    """The mistakes and their students: those of whom the same sentence is true stand together."""
    made: dict[tuple[str, str], list[tuple[str, GradedLine]]] = {}
    for sheet in sheets:
        for line in sheet.lines:
            if line.outcome != Verdict.ERROR.value:
                continue
            kind = line.mistake.kind if line.mistake else UNEXPLAINED
            made.setdefault((kind, _sentence(line)), []).append((sheet.student, line))
    order = _in_order(map(_addresses, sheets))
    found = [
        Mistake(
            kind=kind,
            sentence=sentence,
            students=tuple(dict.fromkeys(student for student, _line in cases)),
            lines=tuple(sorted({line.address for _s, line in cases}, key=order.index)),
            of=len(sheets),
        )
        for (kind, sentence), cases in made.items()
    ]
    found.sort(key=lambda each: (-len(each.students), each.kind == UNEXPLAINED,
                                 order.index(each.lines[0]), each.kind))  # fmt: skip
    return tuple(found)


def _sentence(line: GradedLine) -> str:
    if line.mistake:
        return line.mistake.sentence
    if line.given:
        return _("{address} is printed on the sheet with other numbers").format(
            address=line.address
        )
    if line.marked is not None and line.marked.claim.unread:
        return _("{address} cannot be read").format(address=line.address)
    if line.marked is not None and line.marked.described:
        return line.marked.described[0]
    return _("{address} does not follow, and no cause was found").format(address=line.address)


# ------------------------------------------------------------------------ as a table


def write_csv(book: Gradebook, path: str | Path) -> None:
    """Writes the gradebook as CSV, whole or not at all."""
    write_whole(Path(path), as_csv(book).encode())


def as_csv(book: Gradebook) -> str:
    """One row for each student: name, total, out of, percent, and the mark of every line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "total", "out of", "percent", *(book.names or book.lines)])
    for sheet in book.sheets:
        percent = "" if sheet.percent is None else decimal(sheet.percent, 1)
        marks = [_sum_at(sheet, address) for address in book.lines]
        row = [sheet.student, decimal(sheet.total), decimal(sheet.out_of), percent, *marks]
        writer.writerow(map(_harmless, row))
    return text.getvalue()


def _sum_at(sheet: Graded, address: str) -> str:
    """The marks at an address; empty where the line was set aside."""
    there = [line for line in sheet.lines if line.address == address]
    if all(line.outcome == SET_ASIDE for line in there):
        return ""
    return decimal(sum((line.mark for line in there), Fraction(0)))


def decimal(mark: Fraction, places: int = 2) -> str:
    """Marks as people write them: 1, 0.5, 0.33."""
    rounded = round(mark, places)
    return str(rounded) if rounded.denominator == 1 else f"{float(rounded):.{places}f}".rstrip("0")


def _harmless(cell: str) -> str:
    """A cell that a spreadsheet will not run as a formula, whatever text it holds."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
