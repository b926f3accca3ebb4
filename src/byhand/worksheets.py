"""The making of a worksheet: the pass in pencil numbers, the sheet, its key, their files.

A pencil rounds every line to a few decimals.  Where a pass is too large for a pencil, the sheet
asks only for shapes and counts.  A training step is asked for where a book shows every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from random import Random

from byhand.counting import Inventory, count
from byhand.document.book import Book
from byhand.document.compose.book import bind
from byhand.document.compose.book.edition import PENCIL, Edition
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.worksheet import (
    MISTAKE,
    VALUES,
    Questioning,
    Worksheet,
    claims_text,
    correction_sheet,
    file_stem,
    lines_in,
    planted,
    slips,
    worksheet,
)
from byhand.editions import TOY_ENTRIES, TOY_PARAMETERS, command_on, edition_of, scale_of
from byhand.errors import InputError, UsageError
from byhand.evaluate import PENCIL_SIZED, Job, Revise, pencil_sized
from byhand.language import _, spoken, whole
from byhand.numbers.base import Numbers
from byhand.numbers.exact import Exact
from byhand.numbers.pencil import Pencil
from byhand.tracing import Trace

LEARNED = ("losses", "backward", "step")  # pages on a training step
USUAL_DECIMALS, MOST_DECIMALS = 3, 12


def make_worksheet(
    trace: Trace, asking: Questioning, called: str, book: Book | None = None
) -> Worksheet:
    """The worksheet of a trace, in the language spoken; the same `asking` gives the same sheet.

    `called` is the model's name for those who check the sheet.  `book` is the book of the trace, if
    it exists already.
    """
    places = rule = step = None
    inventory = count(trace.model.spec, trace.model.weights)
    learning = asking.learning and scale_of(inventory, trace) == PENCIL
    if asking.exact:
        edition = _in_exact_numbers(trace, called, learning)
        trace, book = edition.trace, bind(edition, spoken(), explaining=False)
        step = edition.one_step
    elif (VALUES in asking.which or learning) and _by_hand(trace, inventory):
        edition, places = _with_a_pencil(trace, asking.decimals, called, learning)
        trace, book = edition.trace, bind(edition, spoken(), explaining=False)
        step = edition.one_step
    elif book is None:
        edition = edition_of(trace, command_on(called, trace.text), called=called)
        book = bind(edition, spoken(), explaining=False)
    else:
        book = replace(book, pages=tuple(p for p in book.pages if p.slug not in LEARNED))
    if step is not None and step.measured:
        trace, rule = _both(trace, step), step.rule
    if asking.level == MISTAKE:
        if places is None or book is None:
            raise InputError(
                _("a mistake is planted where a model is small enough for a pencil"),
                hint=_("ask for another level"),
            )
        return _with_a_mistake(trace, book, asking, places, called)
    return worksheet(trace, book, asking, decimals=places, called=called, rule=rule)


def _with_a_mistake(
    trace: Trace, book: Book, asking: Questioning, decimals: int, called: str
) -> Worksheet:
    """The sheet with the working of one block, in which one line is wrong."""
    lines = lines_in(book, trace, asking)
    for wrong in slips(trace, lines, decimals, Random(asking.seed)):
        try:
            other = _again(trace, Pencil(decimals), planted(wrong))
        except InputError:  # with the mistake, a divisor is rounded to 0
            continue
        edition = edition_of(other, command_on(called, trace.text), called=called)
        printed = bind(edition, spoken(), explaining=False)
        right = next(line for line in lines if line.address == wrong.address)
        sheet = correction_sheet(
            other, printed, asking, right, decimals=decimals, called=called, workings=book
        )
        if sheet is not None:
            return sheet
    raise InputError(_("no line of this pass can be planted with a mistake"))


def _in_exact_numbers(trace: Trace, called: str, learning: bool) -> Edition:
    """The edition of the same pass in exact and named numbers."""
    if not pencil_sized(trace.model):
        raise InputError(
            _("an exact worksheet needs a small model"),
            expected=_("at most {count} parameters").format(count=whole(PENCIL_SIZED)),
            hint=_("leave out --exact: decimals are asked for then"),
        )
    return _in_full(
        edition_of(
            _again(trace, Exact()), command_on(called, trace.text), called=called, learning=learning
        )
    )


def _again(trace: Trace, numbers: Numbers, revise: Revise | None = None) -> Trace:
    """The pass of a trace in other numbers; `revise` may replace values on the way."""
    return Job(
        trace.model, trace.plan, numbers, trace.text, trace.tokens, trace.target,
        source=trace.source, segments=trace.segments,
    ).work(revise=revise)  # fmt: skip


def _by_hand(trace: Trace, inventory: Inventory) -> bool:
    """Whether the pass is small enough to be worked out with a pencil."""
    entries = sum(prod(step.shape) for step in trace.plan)
    return entries <= TOY_ENTRIES and inventory.total <= TOY_PARAMETERS


def _with_a_pencil(
    trace: Trace, decimals: int | None, called: str, learning: bool
) -> tuple[Edition, int]:
    """The edition of the same pass in pencil numbers, and their decimals.

    Unless given, there are enough decimals that no divisor and no probability is rounded to 0.
    """
    command = command_on(called, trace.text)
    for places in [decimals] if decimals is not None else range(USUAL_DECIMALS, MOST_DECIMALS + 1):
        pencil = Pencil(places)
        try:
            worked = _again(trace, pencil)
            edition = edition_of(worked, command, called=called, learning=learning)
            if edition.one_step is not None and edition.one_step.error is not None:
                raise edition.one_step.error
            return _in_full(edition), places
        except InputError:
            if places in (decimals, MOST_DECIMALS):
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _in_full(edition: Edition) -> Edition:
    """The edition with every line of the training step as numbers: a student needs them."""
    step = edition.one_step
    return edition if step is None else replace(edition, one_step=replace(step, in_full=True))


def _both(trace: Trace, one_step: OneStep) -> Trace:
    """The pass and the training step as one trace: every line that a sheet may ask for."""
    learned = one_step.trace
    own = tuple(step for step in trace.plan if step.address not in learned.steps)
    plan = replace(learned.plan, steps=(*own, *learned.plan))
    return replace(learned, plan=plan, steps={**trace.steps, **learned.steps}, target=trace.target)


def worksheet_files(
    sheet: Worksheet, *, pdf: bool = False, students: Sequence[str] = ()
) -> dict[str, bytes]:
    """File name → contents, in the language spoken.

    The sheet and its key are pages for a browser, with `pdf` also typeset.  Beside them lie the
    claims file to fill in, and the same file filled in as the key.  Each of the `students` has a
    copy, with the name on it and in the names of its files.
    """
    copies = [replace(sheet, student=name) for name in students] or [sheet]
    _refuse_same_names(copies)
    files: dict[str, bytes] = {}
    for copy in copies:
        files |= _copy_files(copy, pdf=pdf)
    return files | _copy_files(replace(sheet, student=""), pdf=pdf, key=True)


def _copy_files(sheet: Worksheet, *, pdf: bool, key: bool = False) -> dict[str, bytes]:
    """The files of one copy, or of the key."""
    from byhand.document.media.html.worksheet import worksheet_page

    stem = f"{file_stem(sheet.student)}{'-key' if key else ''}"
    files = {
        f"{stem}.html": worksheet_page(sheet, key=key).encode(),
        f"{stem}.yaml": claims_text(sheet, filled=key).encode(),
    }
    if pdf:
        from byhand.document.media.typst import typeset
        from byhand.document.media.typst.worksheet import worksheet_source

        files[f"{stem}.pdf"] = typeset(worksheet_source(sheet, key=key))
    return files


def _refuse_same_names(copies: Sequence[Worksheet]) -> None:
    """Raises a UsageError if two students' files would have one name."""
    seen: dict[str, str] = {}
    for copy in copies:
        if copy.file in seen or copy.file == "worksheet-key.yaml":
            raise UsageError(
                _("two students' files would have the same name"),
                expected=_("names that differ in a letter or a digit"),
                found=f"{seen.get(copy.file, '')}, {copy.student}",
            )
        seen[copy.file] = copy.student
