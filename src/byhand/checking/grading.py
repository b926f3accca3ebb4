"""Marking a worksheet as a teacher would: marks for every line, and their total.

    MarkedText (verdicts) → `grade` → Graded, and of a class → `gradebooks.gradebook`

| verdict | marks |
|---|---|
| right, or carried forward: it follows from the student's own lines above | all |
| right, but not from the lines above | all, or what `Rules.unsupported` says |
| error here | none (with `Rules.by_entry`, those of the entries that are within what is allowed) |
| left blank | none |
| cannot be judged | the line is set aside: nothing to win, nothing to lose |

A partly filled line can win only its filled share.  `judging` makes the verdicts, and `document`
shows the marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from byhand.checking.readers.class_folder import student_of
from byhand.checking.verdicts import Marked, MarkedText, Suspect, Verdict
from byhand.errors import UsageError
from byhand.language import _

BLANK = "blank"
SET_ASIDE = "set aside"


@dataclass(frozen=True, slots=True)
class Rules:
    """How verdicts become marks."""

    each: Fraction = Fraction(1)  # marks for a line without marks of its own on the sheet
    unsupported: Fraction = Fraction(1)  # the share for a right value that does not follow
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
    marked: Marked | None = None  # None where the sheet lacks the line
    filled: Fraction = Fraction(1)  # the part of it that is not blank

    @property
    def name(self) -> str:
        """The name of the line on the sheet; a step may have several names."""
        return self.marked.claim.name if self.marked else self.address

    @property
    def given(self) -> bool:
        """Whether the line is printed on the sheet, so that no marks can be won."""
        return self.marked is not None and self.marked.claim.given

    @property
    def mistake(self) -> Suspect | None:
        """The likeliest mistake of a line that does not follow."""
        if self.marked is None or self.outcome != Verdict.ERROR.value or not self.marked.suspects:
            return None
        return self.marked.suspects[0]

    @property
    def comment(self) -> str:
        """A teacher's comment on the line; empty for a right line."""
        if self.outcome == BLANK:
            return _("left blank")
        if self.outcome == SET_ASIDE:
            assert self.marked is not None
            return _("cannot be judged: {reason}").format(reason=self.marked.reason)
        said = []
        if self.given:
            said.append(_("the sheet prints other numbers here"))
        elif self.outcome == Verdict.CARRIED.value:
            said.append(_("follows from your line above"))
        elif self.outcome == Verdict.UNSUPPORTED.value:
            said.append(_("the right value, but not from your line above"))
        elif self.outcome == Verdict.ERROR.value:
            said.append(self.mistake.sentence if self.mistake else self._without_a_cause)
        if self.filled < 1 and not self.given:
            said.append(_("not all of it is filled in"))
        return "; ".join(said)

    @property
    def _without_a_cause(self) -> str:
        """What is known of a wrong line whose mistake is not."""
        marked = self.marked
        if marked is None or marked.described:
            return marked.described[0] if marked else _("does not follow")
        if 0 < marked.outside < marked.entries:
            return _("does not follow; {right} of its {count} numbers are right").format(
                right=marked.entries - marked.outside, count=marked.entries
            )
        return _("does not follow")


@dataclass(frozen=True)
class Graded:
    """One student's sheet: the lines with their marks, in spine order."""

    student: str
    lines: tuple[GradedLine, ...]
    unplaced: tuple[str, ...] = ()  # unknown names on the sheet, which are not marked

    @property
    def total(self) -> Fraction:
        """The marks of all lines."""
        return sum((line.mark for line in self.lines), Fraction(0))

    @property
    def out_of(self) -> Fraction:
        """The marks that could be won."""
        return sum((line.out_of for line in self.lines), Fraction(0))

    @property
    def percent(self) -> Fraction | None:
        """The percentage of the marks that could be won; None where none could."""
        return 100 * self.total / self.out_of if self.out_of else None

    @property
    def empty(self) -> bool:
        """Whether nothing is filled in."""
        own = [line for line in self.lines if not line.given]
        return bool(own) and all(line.outcome == BLANK for line in own)

    @property
    def first_error(self) -> GradedLine | None:
        """The first line with an error of its own, or None."""
        return next((line for line in self.lines if line.outcome == Verdict.ERROR.value), None)

    def __getitem__(self, address: str) -> GradedLine:
        return next(line for line in self.lines if line.address == address)


def grade(
    text: MarkedText, *, marks: Mapping[str, Fraction] | None = None, rules: Rules = USUAL
) -> Graded:
    """The marks of one sheet.

    `marks` gives the worth of lines by their names on the sheet or by their addresses.  By default
    the sheet's own marks are used.
    """
    worth = text.marks if marks is None else marks
    return Graded(
        student=_student(text),
        lines=(
            *(_graded(line, _worth(line, worth, rules), rules) for line in text.lines),
            *_missing(text),
        ),
        unplaced=tuple(dict.fromkeys(each.name for each in text.unmatched)),
    )


def _missing(text: MarkedText) -> Iterator[GradedLine]:
    """The lines that a worksheet asks for and that are no longer in the file: they are blank."""
    there = {
        name for line in text.lines for name in (line.claim.name, line.address, line.claim.address)
    } | {each.name for each in text.unmatched}
    for name, worth in text.marks.items():
        if name not in there:
            yield GradedLine(name, Fraction(0), worth, BLANK, None, Fraction(0))


def _student(text: MarkedText) -> str:
    if text.label:
        return text.label
    source = next((line.claim.source for line in text.lines), "")
    return student_of(Path(source.partition(":")[0]).stem)


def _worth(line: Marked, marks: Mapping[str, Fraction], rules: Rules) -> Fraction:
    if line.claim.given:
        return Fraction(0)
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
    if claimed is None or line.claim.unread or claimed.size == 0:
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
