"""The composer of a worksheet: a trace and its book → blanks and given lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from byhand.checking.counts import known_counts
from byhand.counting import count
from byhand.document.book import Book
from byhand.document.compose.book.edition import PENCIL
from byhand.document.compose.worksheet.blanks import Lines, lines_to_ask
from byhand.document.compose.worksheet.draft import Draft
from byhand.document.compose.worksheet.given import given_lines, printed_texts
from byhand.document.compose.worksheet.questions import (
    blanks_of,
    counts_of,
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
    worked = decimals is not None or asking.exact
    lines = _values(book, trace, tokens, asking) if worked else {}
    known = known_counts(trace.model)
    counts = counts_of(count(trace.model.spec, trace.model.weights), known)
    beside = bool(lines) and asking.worked
    shapes = shapes_of(forward_of(trace.plan), known, random, beside_values=beside)
    supply = {COUNTS: blanks_of(counts, COUNTS), SHAPES: blanks_of(shapes, SHAPES)}
    draft = Draft(trace, book, asking, decimals, tokens, counts, shapes)
    values, further, pages, questions = draft.settled(lines, supply)
    if not values and not further:
        raise InputError(_("there is nothing to ask for"), hint=_nothing(asking))
    nodes = tuple(replace(node, rows=()) for node in book.spine.nodes)
    return Worksheet(
        book=replace(book, pages=pages, spine=replace(book.spine, nodes=nodes)),
        workings=book,
        blanks=(*values, *further),
        questions=questions,
        text=trace.text,
        target=None if trace.target is None else trace.answer(trace.target),
        decimals=decimals if values else None,
        seed=asking.seed,
        given=given_lines(
            trace,
            values,
            printed_texts(pages, values, exact=asking.exact),
            everything=book.scale == PENCIL,
        ),
        tokens=tokens,
        sizes=sizes_asked(shapes, further),
        called=called,
        rule=rule if any(blank.kind in LEARNING for blank in values) else None,
        level=asking.level,
        exact=asking.exact,
    )


def _nothing(asking: Questioning) -> str:
    """What may be asked for where nothing is found."""
    if asking.exact:
        return _("no line has a short exact form here: leave out --exact")
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


def _values(book: Book, trace: Trace, tokens: dict[str, str], asking: Questioning) -> Lines:
    """The lines of numbers that may be asked for; with every number shown, also the words."""
    everything = book.scale == PENCIL
    lines = dict(lines_to_ask(book, trace.plan, everything=everything, exact=asking.exact))
    words = tuple(
        Blank(address, VALUES, (address,), (word,), row=False)
        for address, word in tokens.items()
        if word.isalpha()
    )
    where = next((p.id for p in book.passages if p.id.endswith("-next")), None)
    if words and where is not None and everything:
        lines[where] = (*lines.get(where, ()), *words)
    return lines
