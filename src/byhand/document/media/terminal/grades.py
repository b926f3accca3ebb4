"""A class's marks: a row a student with a sign for every line, then the commonest mistakes.

`check.worksheets` gives the marks; here they are laid out for the terminal and as data.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from byhand.checking.gradebooks import Gradebook, decimal
from byhand.checking.grading import BLANK, SET_ASIDE, Graded
from byhand.checking.verdicts import Verdict
from byhand.document import words
from byhand.document.compose.listing import INDENT
from byhand.document.compose.marked import SIGNS
from byhand.document.media.terminal.ink import Ink, padded, width_of, wrap
from byhand.language import _

MOST_MISTAKES = 10
MOST_STUDENTS = 6  # named behind a mistake
LONGEST_NAME = 28
JOINED = "\N{NO-BREAK SPACE}"  # between a number and its line, where no line is broken
OUTCOMES = {verdict.value: sign for verdict, sign in SIGNS.items()} | {BLANK: "·", SET_ASIDE: "?"}


def gradebook_lines(book: Gradebook, width: int, ink: Ink) -> Iterator[str]:
    """The class on the terminal."""
    yield ink(class_text(book), "strong")
    yield ""
    yield from _students(book, width, ink)
    yield ""
    yield from _legend(book, width, ink)
    if book.mistakes:
        yield ""
        yield ink(_("The commonest mistakes"), "stage")
        for mistake in book.mistakes[:MOST_MISTAKES]:
            yield from _wrapped(mistake.summary, width, INDENT * 2, INDENT)
            who = words.some_of([_name(student) for student in mistake.students], MOST_STUDENTS)
            where = words.some_of(list(mistake.lines), 2)
            text = _("{who}, at {where}").format(who=who, where=where)
            yield from (ink(line, "quiet") for line in _wrapped(text, width, INDENT * 2))
        if (more := len(book.mistakes) - MOST_MISTAKES) > 0:
            yield INDENT + _("and {count} more").format(count=words.whole(more))


def class_text(book: Gradebook) -> str:
    """How many sheets, and how they did on the whole."""
    mean = book.mean_percent
    if len(book.sheets) == 1 and mean is not None:
        sheet = book.sheets[0]
        text = _("{student}: {marks} ({percent}%)")
        return text.format(
            student=_name(sheet.student), marks=_marks(sheet), percent=decimal(mean, 0)
        )
    if mean is None:
        return _("{count} sheets, nothing to mark").format(count=words.whole(len(book.sheets)))
    return _("{count} sheets, {percent}% on average").format(
        count=words.whole(len(book.sheets)), percent=decimal(mean, 0)
    )


def _students(book: Gradebook, width: int, ink: Ink) -> Iterator[str]:
    """Name, marks, per cent, and a sign for every line where there is room."""
    rows = [(_name(sheet.student), _marks(sheet), _percent(sheet)) for sheet in book.sheets]
    head = (_("student"), _("marks"), "%")
    name, marks, percent = (
        max(width_of(row[place]) for row in [head, *rows]) for place in range(3)
    )
    used = 4 * len(INDENT) + name + marks + percent
    numbers = [str(place + 1) for place in range(len(book.lines))]
    room = max(map(len, numbers), default=1) + 1
    wide = used + room * len(numbers) <= width
    signs = used + len(numbers) <= width

    def row(cells: tuple[str, str, str]) -> str:
        return INDENT + INDENT.join(
            (padded(cells[0], name), cells[1].rjust(marks), cells[2].rjust(percent))
        )

    places = INDENT + "".join(number.rjust(room) for number in numbers) if wide else ""
    yield ink((row(head) + places).rstrip(), "quiet")
    for sheet, cells in zip(book.sheets, rows, strict=True):
        found = _outcomes(sheet, book)
        if wide:
            shown = "".join(sign.rjust(room) for sign in found)
        else:
            shown = "".join(found) if signs else ""
        yield (row(cells) + INDENT + shown).rstrip()


def _outcomes(sheet: Graded, book: Gradebook) -> list[str]:
    outcome: dict[str, str] = {}
    for line in sheet.lines:
        outcome.setdefault(line.address, line.outcome)
    return [OUTCOMES.get(outcome.get(address, BLANK), "?") for address in book.lines]


def _legend(book: Gradebook, width: int, ink: Ink) -> Iterator[str]:
    said = [
        (SIGNS[Verdict.RIGHT], _("right")),
        (SIGNS[Verdict.CARRIED], _("carried forward")),
        (SIGNS[Verdict.UNSUPPORTED], _("not from above")),
        (SIGNS[Verdict.ERROR], _("error here")),
        (OUTCOMES[BLANK], _("left blank")),
        (SIGNS[Verdict.UNJUDGED], _("not judged")),
    ]
    present = {sign for sheet in book.sheets for sign in _outcomes(sheet, book)}
    text = "   ".join(f"{sign} {word}" for sign, word in said if sign in present)
    yield from (ink(line, "quiet") for line in _wrapped(text, width, INDENT))
    lines = "   ".join(
        f"{place + 1}{JOINED}{name}" for place, name in enumerate(book.names or book.lines)
    )
    for line in _wrapped(lines, width, INDENT):
        yield ink(line.replace(JOINED, " "), "quiet")


def gradebook_data(book: Gradebook) -> dict[str, Any]:
    """The class as JSON has it; marks are decimals as text, as in the CSV."""
    return {
        "lines": list(book.lines),
        "names": list(book.names or book.lines),
        "sheets": [
            {
                "student": sheet.student,
                "total": decimal(sheet.total),
                "out_of": decimal(sheet.out_of),
                "percent": None if sheet.percent is None else decimal(sheet.percent, 1),
                "marks": [
                    {
                        "address": line.address,
                        "mark": decimal(line.mark),
                        "out_of": decimal(line.out_of),
                        "outcome": line.outcome,
                        "comment": line.comment,
                    }
                    for line in sheet.lines
                ],
            }
            for sheet in book.sheets
        ],
        "mistakes": [
            {
                "kind": mistake.kind,
                "sentence": mistake.sentence,
                "students": list(mistake.students),
                "lines": list(mistake.lines),
            }
            for mistake in book.mistakes
        ],
    }


def _name(student: str) -> str:
    name = words.printable(student) if student else "?"
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _marks(sheet: Graded) -> str:
    return marks_text(sheet.total, sheet.out_of)


def marks_text(total: Fraction, out_of: Fraction) -> str:
    """5.5 of 6."""
    return _("{mark} of {most}").format(mark=decimal(total), most=decimal(out_of))


def _percent(sheet: Graded) -> str:
    return "" if sheet.percent is None else decimal(sheet.percent, 0)


def _wrapped(text: str, width: int, indent: str, first: str | None = None) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
