"""The making of a worksheet: the pass in pencil numbers, the sheet, its key, their files.

A pencil rounds every line to a few decimals.  Where a pass is too large for a pencil, the sheet
asks only for shapes and counts.  A training step is asked for where a book shows every number.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from byhand.counting import Inventory, count
from byhand.document.book import Book
from byhand.document.compose.book import bind
from byhand.document.compose.book.edition import PENCIL, Edition
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.worksheet import VALUES, Questioning, Worksheet, claims_text, worksheet
from byhand.editions import TOY_ENTRIES, TOY_PARAMETERS, command_on, edition_of, scale_of
from byhand.errors import InputError
from byhand.evaluate import Job
from byhand.language import spoken
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
    places = rule = None
    inventory = count(trace.model.spec, trace.model.weights)
    learning = asking.learning and scale_of(inventory, trace) == PENCIL
    if (VALUES in asking.which or learning) and _by_hand(trace, inventory):
        edition, places = _with_a_pencil(trace, asking.decimals, called, learning)
        trace, book = edition.trace, bind(edition, spoken(), explaining=False)
        if edition.one_step is not None and edition.one_step.measured:
            trace, rule = _both(trace, edition.one_step), edition.one_step.rule
    elif book is None:
        edition = edition_of(trace, command_on(called, trace.text), called=called)
        book = bind(edition, spoken(), explaining=False)
    else:
        book = replace(book, pages=tuple(p for p in book.pages if p.slug not in LEARNED))
    return worksheet(trace, book, asking, decimals=places, called=called, rule=rule)


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
            job = Job(trace.model, trace.plan, pencil, trace.text, trace.tokens, trace.target,
                      source=trace.source, segments=trace.segments)  # fmt: skip
            edition = edition_of(job.work(), command, called=called, learning=learning)
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


def worksheet_files(sheet: Worksheet, *, pdf: bool = False) -> dict[str, bytes]:
    """File name → contents, in the language spoken.

    The sheet and its key are pages for a browser, with `pdf` also typeset.  Beside them lie the
    claims file to fill in, and the same file filled in as the key.
    """
    from byhand.document.media.html.worksheet import worksheet_page

    texts = {
        "worksheet.html": worksheet_page(sheet),
        "worksheet-key.html": worksheet_page(sheet, key=True),
        "worksheet.yaml": claims_text(sheet),
        "worksheet-key.yaml": claims_text(sheet, filled=True),
    }
    files = {name: text.encode() for name, text in texts.items()}
    if pdf:
        from byhand.document.media.typst import typeset
        from byhand.document.media.typst.worksheet import worksheet_source

        for name, key in (("worksheet.pdf", False), ("worksheet-key.pdf", True)):
            files[name] = typeset(worksheet_source(sheet, key=key))
    return files
