"""The composer of a worksheet: a trace and its book → blanks and given lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from random import Random

from byhand.checking.counts import known_counts
from byhand.counting import count
from byhand.document.book import Book, Page
from byhand.document.compose.book.edition import PENCIL
from byhand.document.compose.worksheet.blanks import Lines, choose, lines_to_ask
from byhand.document.compose.worksheet.given import given_lines
from byhand.document.compose.worksheet.hidden import (
    Secrets,
    given_away_by,
    rows_shown,
    without_answers,
)
from byhand.document.compose.worksheet.questions import (
    blanks_of,
    counts_of,
    questions_of,
    shapes_of,
    sizes_asked,
)
from byhand.document.compose.worksheet.sheet import (
    COUNTS,
    LEARNING,
    SHAPES,
    VALUES,
    Blank,
    Questioning,
    Worksheet,
)
from byhand.errors import InputError
from byhand.language import _
from byhand.optimizer import Rule
from byhand.plan import Plan
from byhand.tracing import Trace


def worksheet(
    trace: Trace,
    book: Book,
    asking: Questioning,
    *,
    decimals: int | None,
    called: str,
    rule: Rule | None = None,
) -> Worksheet:
    """The worksheet of a book; `decimals` are those of its pencil numbers, else None.

    `called` is the model's name for those who check the sheet.  `rule` is that of the training
    step, where the trace has one.
    """
    random = Random(asking.seed)
    tokens = dict(_next_tokens(trace))
    lines = _values(book, trace, tokens) if decimals is not None else {}
    known = known_counts(trace.model)
    counts = counts_of(count(trace.model.spec, trace.model.weights), known)
    beside = bool(lines) and asking.worked
    shapes = shapes_of(forward_of(trace.plan), known, random, beside_values=beside)
    supply = {COUNTS: blanks_of(counts, COUNTS), SHAPES: blanks_of(shapes, SHAPES)}
    shown = rows_shown(book, trace.plan)
    asked = choose(
        lines, supply, asking, random, lambda blank: given_away_by(blank, shown, trace.plan)
    )
    values = [b for blanks in lines.values() for b in blanks if b in asked]
    further = [b for blanks in supply.values() for b in blanks if b in asked]
    if not values and not further:
        raise InputError(_("there is nothing to ask for"), hint=_nothing(asking))
    sizes = sizes_asked(shapes, further)
    nodes = tuple(replace(node, rows=()) for node in book.spine.nodes)
    pages = _pages(book, trace, values, Secrets(decimals, _words(values, tokens), sizes))
    return Worksheet(
        book=replace(
            book, pages=tuple(pages) if values else (), spine=replace(book.spine, nodes=nodes)
        ),
        workings=book,
        blanks=(*values, *further),
        questions=tuple(questions_of(counts, shapes, further)),
        text=trace.text,
        target=None if trace.target is None else trace.answer(trace.target),
        decimals=decimals if values else None,
        seed=asking.seed,
        given=given_lines(trace, values, everything=book.scale == PENCIL),
        tokens=tokens,
        sizes=sizes,
        called=called,
        rule=rule if any(blank.kind in LEARNING for blank in values) else None,
    )


def _nothing(asking: Questioning) -> str:
    """What may be asked for where nothing is found."""
    if asking.learning:
        return _("gradients are asked for where a model is small enough for a pencil")
    return _("ask for values, shapes or counts")


def forward_of(plan: Plan) -> Plan:
    """The forward pass of a plan."""
    return replace(plan, steps=tuple(step for step in plan if step.stage == "forward"))


def _next_tokens(trace: Trace) -> Iterator[tuple[str, str]]:
    """The address of each prediction without a tie, and its word."""
    for position, prediction in enumerate(trace.next or []):
        if prediction.id is not None and not prediction.tied:
            yield f"next[{position}]", trace.answer(prediction.id)


def _values(book: Book, trace: Trace, tokens: dict[str, str]) -> Lines:
    """The lines of numbers that may be asked for; with every number shown, also the words."""
    everything = book.scale == PENCIL
    lines = dict(lines_to_ask(book, trace.plan, everything=everything))
    words = tuple(
        Blank(address, VALUES, (address,), (word,), row=False)
        for address, word in tokens.items()
        if word.isalpha()
    )
    where = next((p.id for p in book.passages if p.id.endswith("-next")), None)
    if words and where is not None and everything:
        lines[where] = (*lines.get(where, ()), *words)
    return lines


def _words(blanks: Sequence[Blank], tokens: Collection[str]) -> set[str]:
    """The words that are asked for."""
    return {blank.answers[0] for blank in blanks if blank.address in tokens}


def _pages(book: Book, trace: Trace, blanks: Sequence[Blank], secrets: Secrets) -> Iterator[Page]:
    """The pages with the steps asked for and their inputs; for a small model, all."""
    plan = trace.plan
    steps = {plan[blank.places[0].partition("[")[0]].address for blank in blanks}
    needed = steps | {read for step in steps for read in plan[step].reads}
    if book.scale == PENCIL:
        needed |= {step.address for step in plan}
    return without_answers(book, plan, needed, secrets)
