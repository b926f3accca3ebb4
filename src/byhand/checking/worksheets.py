"""Marking worksheets as a teacher would: marks a line, a total, and what a class got wrong.

    MarkedText (verdicts) → `grade` → Graded → `gradebook` → Gradebook → `write_csv`

| verdict | marks |
|---|---|
| right, or carried forward: it follows from the student's own lines above | all |
| right, but not from the lines above | half, or what `Rules.unsupported` says |
| error here | none (with `Rules.by_entry`, those of the entries that are within what is allowed) |
| left blank | none |
| cannot be judged | the line is set aside: nothing to win, nothing to lose |

A line that is filled in part is worth the part that is filled in.  No verdict is made here, and
nothing is shown: `render` does that.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from byhand.checking.verdicts import Marked, MarkedText, Suspect, Verdict
from byhand.errors import OutputError, UsageError
from byhand.language import _

BLANK = "blank"
SET_ASIDE = "set aside"
UNEXPLAINED = "unexplained"  # the kind of a mistake that no suspect explains


@dataclass(frozen=True, slots=True)
class Rules:
    """How verdicts become marks."""

    each: Fraction = Fraction(1)  # what a line is worth of which the sheet says nothing
    unsupported: Fraction = Fraction(1, 2)  # the share for a right value out of nowhere
    by_entry: bool = False  # whether the right entries of a wrong line count

    def __post_init__(self) -> None:
        for name, value, most in (("each", self.each, None), ("unsupported", self.unsupported, 1)):
            if value < 0 or (most is not None and value > most):
                raise UsageError(
                    _("marks cannot be {found}").format(found=value),
                    where=name,
                    expected=_("from 0 to 1") if most else _("0 or more"),
                    found=str(value),
                )


USUAL = Rules()


@dataclass(frozen=True, slots=True)
class GradedLine:
    """One line of a sheet with its marks."""

    address: str  # with its index
    mark: Fraction
    out_of: Fraction
    outcome: str  # the value of a Verdict, BLANK or SET_ASIDE
    marked: Marked | None = None  # None where the sheet does not have the line at all
    filled: Fraction = Fraction(1)  # the part of it that is not blank

    @property
    def name(self) -> str:
        """What the sheet calls the line: a step may have several names."""
        return self.marked.claim.name if self.marked else self.address

    @property
    def mistake(self) -> Suspect | None:
        """The likeliest mistake of a line that does not follow."""
        if self.marked is None or self.outcome != Verdict.ERROR.value or not self.marked.suspects:
            return None
        return self.marked.suspects[0]

    @property
    def comment(self) -> str:
        """What a teacher writes beside the line; nothing beside a line that is right."""
        if self.outcome == BLANK:
            return _("left blank")
        if self.outcome == SET_ASIDE:
            assert self.marked is not None
            return _("cannot be judged: {reason}").format(reason=self.marked.reason)
        said = []
        if self.outcome == Verdict.CARRIED.value:
            said.append(_("follows from your line above"))
        elif self.outcome == Verdict.UNSUPPORTED.value:
            said.append(_("the right value, but not from your line above"))
        elif self.outcome == Verdict.ERROR.value:
            mistake = self.mistake
            said.append(mistake.sentence if mistake else _("does not follow"))
        if self.filled < 1:
            said.append(_("not all of it is filled in"))
        return "; ".join(said)


@dataclass(frozen=True)
class Graded:
    """One student's sheet: the lines with their marks, in spine order."""

    student: str
    lines: tuple[GradedLine, ...]
    unplaced: tuple[str, ...] = ()  # names on the sheet that stand for nothing: not marked

    @property
    def total(self) -> Fraction:
        return sum((line.mark for line in self.lines), Fraction(0))

    @property
    def out_of(self) -> Fraction:
        return sum((line.out_of for line in self.lines), Fraction(0))

    @property
    def percent(self) -> Fraction | None:
        """Of what there was to win; None where there was nothing."""
        return 100 * self.total / self.out_of if self.out_of else None

    @property
    def first_error(self) -> GradedLine | None:
        return next((line for line in self.lines if line.outcome == Verdict.ERROR.value), None)

    def __getitem__(self, address: str) -> GradedLine:
        return next(line for line in self.lines if line.address == address)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake, and who made it."""

    kind: str  # of its suspect, or UNEXPLAINED
    sentence: str  # as it was said most often
    students: tuple[str, ...]  # each once
    lines: tuple[str, ...]  # the addresses where it was made, each once, in spine order
    of: int  # sheets in all

    @property
    def summary(self) -> str:
        """`7 of 20: forgot the 1/√d scale`"""
        return _("{count} of {of}: {what}").format(
            count=len(self.students), of=self.of, what=self.sentence
        )


@dataclass(frozen=True)
class Gradebook:
    """A class: every sheet over the same lines, and the commonest mistakes first."""

    lines: tuple[str, ...]  # the addresses that everybody's sheet should have, in spine order
    sheets: tuple[Graded, ...]  # in the order they came; each with at least these lines
    mistakes: tuple[Mistake, ...] = ()
    names: tuple[str, ...] = ()  # of the lines, as most sheets call them

    @property
    def mean_percent(self) -> Fraction | None:
        """The mean over the sheets that had something to win."""
        known = [sheet.percent for sheet in self.sheets if sheet.percent is not None]
        return sum(known, Fraction(0)) / len(known) if known else None


# ------------------------------------------------------------------------ one sheet


def grade(
    text: MarkedText, *, marks: Mapping[str, Fraction] | None = None, rules: Rules = USUAL
) -> Graded:
    """The marks of one sheet.

    `marks` says what lines are worth, under the names the sheet has for them or under their
    addresses; without it, what the sheet itself says.
    """
    worth = text.marks if marks is None else marks
    return Graded(
        student=_student(text),
        lines=tuple(_graded(line, _worth(line, worth, rules), rules) for line in text.lines),
        unplaced=tuple(dict.fromkeys(each.name for each in text.unmatched)),
    )


def _student(text: MarkedText) -> str:
    if text.label:
        return text.label
    source = next((line.claim.source for line in text.lines), "")
    return Path(source.partition(":")[0]).stem


def _worth(line: Marked, marks: Mapping[str, Fraction], rules: Rules) -> Fraction:
    for name in (line.claim.name, line.address, line.claim.address):
        if name in marks:
            return marks[name]
    return rules.each


def _graded(line: Marked, worth: Fraction, rules: Rules) -> GradedLine:
    filled = _filled(line)
    if filled == 0:
        return GradedLine(line.address, Fraction(0), worth, BLANK, line, filled)
    if line.verdict is Verdict.UNJUDGED:
        return GradedLine(line.address, Fraction(0), Fraction(0), SET_ASIDE, line, filled)
    mark = worth * filled * _share(line, rules)
    return GradedLine(line.address, mark, worth, line.verdict.value, line, filled)


def _filled(line: Marked) -> Fraction:
    claimed = line.claim.claimed
    if claimed is None or claimed.size == 0:
        return Fraction(1)
    return Fraction(int(np.count_nonzero(claimed)), claimed.size)


def _share(line: Marked, rules: Rules) -> Fraction:
    if line.verdict.follows:
        return Fraction(1)
    if line.verdict is Verdict.UNSUPPORTED:
        return rules.unsupported
    if rules.by_entry and line.entries:
        return Fraction(line.entries - line.outside, line.entries)
    return Fraction(0)


# ------------------------------------------------------------------------ a class


def gradebook(
    texts: Iterable[MarkedText],
    *,
    lines: Sequence[str] | None = None,
    marks: Mapping[str, Fraction] | None = None,
    rules: Rules = USUAL,
) -> Gradebook:
    """Many sheets over the same lines.

    `lines` are the addresses that the worksheet asks for.  Without them, a line belongs to the
    worksheet if at least half of the sheets have it: who lacks it has left it blank, and a line
    that one student adds costs the others nothing.  Lines beyond the worksheet are set aside.
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
    """The addresses of all sheets in one order that is, as far as possible, each sheet's own."""
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
    """What a line is worth to somebody who does not have it: what it is worth to most others."""
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
    """The sheets, with a number behind a name that several of them have."""
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
    """The sheet with a blank for every line it lacks, and lines beyond the worksheet set aside."""
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
    """Who made which mistake: by the kind of the likeliest suspect, or else by the line."""
    made: dict[tuple[str, str], list[tuple[str, GradedLine]]] = {}
    for sheet in sheets:
        for line in sheet.lines:
            if line.outcome != Verdict.ERROR.value:
                continue
            mistake = line.mistake
            key = (mistake.kind, "") if mistake else (UNEXPLAINED, line.address)
            made.setdefault(key, []).append((sheet.student, line))
    order = _in_order(map(_addresses, sheets))
    found = [
        Mistake(
            kind=kind,
            sentence=_said(cases),
            students=tuple(dict.fromkeys(student for student, _line in cases)),
            lines=tuple(sorted({line.address for _s, line in cases}, key=order.index)),
            of=len(sheets),
        )
        for (kind, _address), cases in made.items()
    ]
    found.sort(key=lambda each: (-len(each.students), each.kind == UNEXPLAINED,
                                 order.index(each.lines[0]), each.kind))  # fmt: skip
    return tuple(found)


def _said(cases: Sequence[tuple[str, GradedLine]]) -> str:
    sentences = Counter(
        line.mistake.sentence
        if line.mistake
        else _("{address} does not follow, and no suspect explains it").format(address=line.address)
        for _student, line in cases
    )
    return sentences.most_common(1)[0][0]


# ------------------------------------------------------------------------ as a table


def write_csv(book: Gradebook, path: str | Path) -> None:
    """Writes the gradebook as CSV: all of it or nothing of it.

    A link stays one, and a pipe or a device is written into, not replaced.
    """
    target = Path(path)
    if target.is_symlink() and target.is_file():
        target = target.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8", newline="") as file:
                file.write(as_csv(book))
            return
        with draft.open("w", encoding="utf-8", newline="") as file:
            file.write(as_csv(book))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise OutputError(
            _("cannot be written"),
            where=str(target),
            found=error.strerror or str(error),
            hint=_("nothing was left there"),
        ) from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def as_csv(book: Gradebook) -> str:
    """A row a student: name, total, out of, percent, and the mark of every line."""
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
    """The marks at an address; nothing where the line was set aside."""
    there = [line for line in sheet.lines if line.address == address]
    if all(line.outcome == SET_ASIDE for line in there):
        return ""
    return decimal(sum((line.mark for line in there), Fraction(0)))


def decimal(mark: Fraction, places: int = 2) -> str:
    """Marks as people write them: 1, 0.5, 0.33."""
    rounded = round(mark, places)
    return str(rounded) if rounded.denominator == 1 else f"{float(rounded):.{places}f}".rstrip("0")


def _harmless(cell: str) -> str:
    """A cell that a spreadsheet will not run as a formula, whatever a student calls the sheet."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
