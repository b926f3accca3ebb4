"""A class's marks as parts: a row for each student, and the commonest mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from byhand.checking.gradebooks import Gradebook, decimal
from byhand.checking.grading import BLANK, SET_ASIDE, Graded
from byhand.checking.verdicts import Verdict
from byhand.document import words
from byhand.document.compose.marked import SIGNS, verdict_word
from byhand.document.parts.verdicts import ClassRow, ClassTable
from byhand.document.step_names import step_name
from byhand.language import _

MOST_MISTAKES = 10
MOST_STUDENTS = 6  # students named for a mistake
LONGEST_NAME = 28
OUTCOMES = {verdict.value: sign for verdict, sign in SIGNS.items()} | {BLANK: "·", SET_ASIDE: "?"}


def class_table(book: Gradebook) -> ClassTable:
    """The class's results: every sheet with its marks, then the commonest mistakes."""
    rows = tuple(_row(sheet, book) for sheet in book.sheets)
    present = {sign for row in rows for sign in row.signs}
    legend = [(SIGNS[verdict], verdict_word(verdict)) for verdict in Verdict]
    legend.insert(-1, (OUTCOMES[BLANK], _("left blank")))
    more = len(book.mistakes) - MOST_MISTAKES
    return ClassTable(
        title=_title(book),
        rows=rows,
        legend=tuple(f"{sign} {word}" for sign, word in legend if sign in present),
        lines=book.names or book.lines,
        mistakes=tuple(_mistakes(book)),
        called=tuple(map(line_name, book.lines)),
        right=tuple(_right(book, at) for at in range(len(book.lines))),
        left_out=_("and {count} more").format(count=words.whole(more)) if more > 0 else "",
    )


def line_name(address: str) -> str:
    """What a line is, in words: Queries, Parameters, or where it stands."""
    if address.startswith("count."):
        return _("Counts")
    return _capital(step_name(address)) or words.stage_title(words.place_of(address))


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _right(book: Gradebook, at: int) -> int:
    """How many sheets have full marks for a line, by its place."""
    address = book.lines[at]
    return sum(
        any(line.address == address and line.mark == line.out_of > 0 for line in sheet.lines)
        for sheet in book.sheets
    )


def _title(book: Gradebook) -> str:
    """The number of sheets, and their overall result."""
    mean, count = book.mean_percent, words.whole(len(book.sheets))
    if mean is None:
        return _("{count} sheets, nothing to mark").format(count=count)
    if len(book.sheets) > 1:
        text = _("{count} sheets, {percent}% on average")
        return text.format(count=count, percent=decimal(mean, 0))
    row = _row(book.sheets[0], book)
    text = _("{student}: {marks} ({percent}%)")
    return text.format(student=row.student, marks=row.marks, percent=row.percent)


def _row(sheet: Graded, book: Gradebook) -> ClassRow:
    outcome: dict[str, str] = {}
    for line in sheet.lines:
        outcome.setdefault(line.address, line.outcome)
    percent = "" if sheet.percent is None else decimal(sheet.percent, 0)
    return ClassRow(
        student=_name(sheet.student),
        marks=marks_text(sheet.total, sheet.out_of),
        percent=percent,
        share=percent_text(percent),
        signs=tuple(OUTCOMES.get(outcome.get(each, BLANK), "?") for each in book.lines),
    )


def _mistakes(book: Gradebook) -> Iterator[tuple[str, str]]:
    """The commonest mistakes, with their students and lines."""
    for mistake in book.mistakes[:MOST_MISTAKES]:
        who = words.some_of([_name(student) for student in mistake.students], MOST_STUDENTS)
        where = words.some_of(list(mistake.lines), 2)
        yield mistake.summary, _("{who}, at {where}").format(who=who, where=where)


def _name(student: str) -> str:
    name = words.printable(student) if student else "?"
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def percent_text(percent: str) -> str:
    """93%, as the language writes it; empty without a number."""
    return _("{percent}%").format(percent=percent) if percent else ""


def marks_text(total: Fraction, out_of: Fraction) -> str:
    """5.5 of 6."""
    return _("{mark} of {most}").format(mark=decimal(total), most=decimal(out_of))


def empty_text(count: int) -> str:
    """That nothing is filled in."""
    if count == 1:
        return _("the sheet is empty: its one line is left blank")
    return _("the sheet is empty: all {count} lines are left blank").format(
        count=words.whole(count)
    )


def blank_text(count: int) -> str:
    """How many lines were left blank."""
    text = _("{count} line is left blank") if count == 1 else _("{count} lines are left blank")
    return text.format(count=words.whole(count))
