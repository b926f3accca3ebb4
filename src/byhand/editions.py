"""The making of a book: what it needs is worked out, and its pages are composed.

    model, text → Edition → Book

The trace is in the model's usual numbers (exact up to 2,000 parameters, floats above) unless
others are asked for.  How much a book shows follows from the sizes alone:

    pencil   up to 2,000 parameters and 6,000 entries     every number, each with its working
    toy      up to 200,000 parameters                     every tensor as colours, some entries
    large    above                                        shapes, statistics, selected entries

One training step on the text is worked out too (`one_step_of`): exactly where the pass is exact and
small, else in floats, up to LEARNING_PARAMETERS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import prod
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from byhand import evaluate, models
from byhand.address import read_address
from byhand.backward import adjoint
from byhand.batch import Batch, following_ids
from byhand.counting import Inventory, count
from byhand.document import words
from byhand.document.book import Book
from byhand.document.compose.book import bind
from byhand.document.compose.book.claims import Claims
from byhand.document.compose.book.edition import LARGE, PENCIL, TOY, Edition, PrintedEnd
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.book.spine import spine
from byhand.document.compose.tables import Window
from byhand.document.compose.working import shape_at
from byhand.errors import ByhandError
from byhand.explaining.chapter import Chapter
from byhand.forward import plan
from byhand.language import _, speaking
from byhand.learning import Lesson
from byhand.model import Model
from byhand.models.records import record_of
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Numbers
from byhand.optimizer import Rule
from byhand.reading import beside
from byhand.tracing import Trace

PENCIL_ENTRIES = 6_000
TOY_PARAMETERS, TOY_ENTRIES = 200_000, 400_000
LEARNING_PARAMETERS = 200_000_000  # of the largest model whose gradients are worked out
WINDOWS = {
    PENCIL: Window(PENCIL_ENTRIES, PENCIL_ENTRIES, PENCIL_ENTRIES, weights=evaluate.PENCIL_SIZED),
    TOY: Window(rows=8, columns=8, heads=4),
    LARGE: Window(rows=8, columns=8, heads=2, weights=0),
}
NOTEBOOK = Window(rows=8, columns=8, heads=2)  # shown of values too large to be shown whole


# ------------------------------------------------------------------ what a book is made from


def make_edition(
    model: str | Path | Model,
    text: str | None = None,
    *,
    called: str | None = None,
    source: str | None = None,
    segments: Sequence[int] | None = None,
    target: str | None = None,
    claims: Sequence[Any] | None = None,
    at: Iterable[str] = (),
    numbers: Numbers | None = None,
    digits: int | None = None,
    progress: evaluate.Progress | None = None,
) -> Edition:
    """The edition of a model and a text: everything that its book needs, worked out.

    `called` is the reader's name for an opened model.  `claims` are files of claims to be marked;
    an empty sequence marks none.  Without `claims`, a built-in model with its own text marks the
    document it comes from.  `at` are addresses whose numbers are shown however large the model is.
    `numbers` are the model's usual ones unless given; with `digits`, that many significant digits
    are proven.
    """
    opened = model if isinstance(model, Model) else models.open_model(model)
    name = called or models.called(model)
    job = evaluate.prepare(
        opened, text, numbers or _usual(opened), source=source, segments=segments, target=target
    )
    if digits is None:
        trace = job.work(progress=progress)
    else:
        from byhand.proving.digits import prove

        trace = prove(job, digits, progress=progress)
    asked = tuple(at)
    for address in asked:  # raises an AddressError before the long work
        shape_at(read_address(address), trace.plan, opened.weights)
    command = command_on(name, text, source, trace.segments)
    sources = _own_document(opened, trace) if claims is None else tuple(claims)
    if not sources:
        return edition_of(trace, command, called=name, target=target, asked=asked, learning=True)
    from byhand.checking.marking import mark

    return edition_of(
        trace,
        command,
        called=name,
        target=target,
        asked=asked,
        learning=True,
        claims=Claims(
            mark(opened, sources, trace.text, source=source, segments=segments, target=target),
            trace,
        ),
        claims_from=_("The document behind this model")
        if claims is None
        else words.joined([Path(str(s)).name for s in sources if isinstance(s, str | Path)]),
    )


def edition_of(
    trace: Trace,
    command: str = "",
    *,
    called: str = "",
    target: str | None = None,
    asked: Sequence[str] = (),
    claims: Claims | None = None,
    claims_from: str = "",
    window: Window | None = None,
    workings: bool = True,
    learning: bool = False,
) -> Edition:
    """The edition of a finished trace; with `learning`, a training step is worked out too.

    `window` limits what is shown of a large model; without `workings` no number has a working.
    """
    inventory = count(trace.model.spec, trace.model.weights)
    scale = scale_of(inventory, trace)
    seen = WINDOWS[scale] if scale == PENCIL or window is None else window
    showing = Showing(
        trace,
        everything=scale == PENCIL,
        window=seen,
        claims=None if claims is None else claims.at_numbers,
        workings=workings,
    )
    return Edition(
        trace,
        inventory,
        scale,
        showing,
        Chapter(trace, scale == LARGE),
        command,
        called,
        target,
        checked=() if claims is None else claims.checked,
        claims_from=claims_from,
        printed_end=None if claims is None or scale != PENCIL else printed_end(claims),
        asked=tuple(asked),
        one_step=one_step_of(trace, inventory.total, scale, seen) if learning else None,
        record=record_of(trace.model) if learning else None,
    )


def one_step_of(trace: Trace, parameters: int, scale: str, window: Window) -> OneStep:
    """One step of gradient descent on the text of a trace, in the numbers of the trace."""
    rule = Rule()
    if parameters > LEARNING_PARAMETERS:
        text = _("The gradients of more than {count} parameters are not worked out for a book.")
        return OneStep(rule, why_not=text.format(count=words.whole(LEARNING_PARAMETERS)))
    targets = following_ids(trace.model, trace.tokens, trace.target)
    if set(targets) == {UNCOUNTED}:
        text = _("There is no token to predict: the text is one token, and there is no target.")
        if trace.model.output_words is not None:
            text = _("There is nothing to predict: this text has no target.")
        return OneStep(rule, why_not=text)
    length = (len(trace.tokens),)
    batch = Batch(
        trace.text, trace.tokens, targets, length, source=trace.source, segments=trace.segments
    )
    lesson = Lesson(trace.model, batch)
    numbers = trace.numbers if trace.numbers.learns else _usual(trace.model)
    why_not, after, failed = "", None, None
    try:
        learned = lesson.learn([rule], numbers)
        worked, after = learned.steps[0].trace, learned.after
    except ByhandError as error:
        worked, why_not, failed = _without_a_step(lesson, numbers), str(error), error
        why_not = _why_not(worked) or why_not
    showing = Showing(worked, everything=scale == PENCIL, window=window)
    return OneStep(rule, showing, after, why_not, failed)


def _why_not(trace: Trace) -> str:
    """Why some gradient is not known; empty where the trace does not say."""
    missing = next((one.missing for one in trace.values() if one.missing is not None), None)
    if missing is None:
        return ""
    flat = any(note.kind == "zero-variance" for one in trace.values() for note in one.notes)
    if flat and missing.kind == "undecided":
        return _(
            "There is no gradient through a norm whose row has equal numbers, since its "
            "eps is 0. The smallest change of the row flips the result."
        )
    return words.why_missing(missing)


def _without_a_step(lesson: Lesson, numbers: Numbers) -> Trace:
    """The losses with as many gradients as there are, where no step can be worked out."""
    try:
        return lesson.job(adjoint(lesson.passes), numbers, {}).work()
    except ByhandError:
        return lesson.job(lesson.passes, numbers, {}).work()


def scale_of(inventory: Inventory, trace: Trace) -> str:
    """The scale of a book, which says how much it shows: pencil, toy or large."""
    entries = sum(prod(step.shape) for step in trace.plan)
    if inventory.total <= evaluate.PENCIL_SIZED and entries <= PENCIL_ENTRIES:
        return PENCIL
    return TOY if inventory.total <= TOY_PARAMETERS and entries <= TOY_ENTRIES else LARGE


def command_on(
    called: str,
    text: str | None,
    source: str | None = None,
    segments: Sequence[int] | None = None,
) -> str:
    """The arguments of `byhand trace` for the same trace: the model, and any text but its own."""
    said = [called] if text is None else [called, text]
    if source is not None:
        said += ["--source", source]
    if segments is not None:
        said += ["--segments", ",".join(map(str, segments))]
    return " ".join(map(quote, said))


def _usual(model: Model) -> Numbers:
    if evaluate.pencil_sized(model):
        from byhand.numbers.exact import Exact

        return Exact()
    from byhand.numbers.floats import Floats

    return Floats(evaluate.usual_format(model))


def _own_document(model: Model, trace: Trace) -> tuple[Any, ...]:
    """The claims of the document that a built-in model comes from, about its own text."""
    if trace.text != model.text or not models.is_builtin(model):
        return ()
    from byhand.checking.documents import of

    document = of(model.name)
    return () if document is None else (document,)


def printed_end(claims: Claims) -> PrintedEnd | None:
    """What follows exactly from the printed end of the stream: its address, p(target), the loss.

    None where the last row that the logits are made of is not printed, or is the true one, or
    where a weight is unknown.
    """
    trace, found = claims.trace, claims.printed_row()
    if found is None or trace.target is None:
        return None
    from byhand.numbers.exact import Exact

    address, stream, row = found
    data = np.array([[Fraction(0)] * len(row)] * len(trace.tokens), object)
    data[-1] = row
    steps = evaluate.work_out(
        trace.plan.only(["loss"], given=[stream]),
        trace.model.weights,
        trace.tokens,
        Exact(),
        target=trace.target,
        given={stream: data},
    )
    if steps["loss"].missing is not None:
        return None
    share = steps["probs"].at((len(trace.tokens) - 1, trace.target))
    return address, _as_known(share), _as_known(steps["loss"].at((0,)))


def _as_known(value: Any) -> str:
    """A value with four decimals; where only a range is known, the range."""
    if value.register == "enclosed":
        return " ± ".join(value.interval(4))
    return str(value.decimal(4))


def notebook_passage(trace: Trace) -> str:
    """A trace as one piece of HTML below the cell of a notebook, in the language spoken."""
    from byhand.document.compose import notebook
    from byhand.document.media.html.notebook import cell

    edition = edition_of(trace, window=NOTEBOOK, workings=False)
    whole = trace.plan
    if trace.asked:
        apart = any(name.endswith(".head_out") for name in trace.steps)
        whole = plan(
            trace.model.spec,
            len(trace.tokens),
            **beside(trace.source, trace.segments),
            target=trace.target is not None,
            losses=trace.targets is not None,
            logprobs="logprobs" in trace.steps,
            head_outputs=apart,
        )
        whole = adjoint(whole) if len(trace.grad) else whole
    parts, calls = notebook.parts(edition, whole), notebook.calls(trace)
    showing = edition.showing
    figure = spine(showing, whole.forward)
    return cell(parts, calls, figure, showing.labels, trace.asked, decimals=showing.by_decimals)


# ------------------------------------------------------------------ the book


def make_book(
    model: str | Path | Model,
    text: str | None = None,
    *,
    language: str | None = None,
    **options: Any,
) -> Book:
    """The book of a model and a text, in a language or the one spoken; with the options of
    `make_edition`."""
    with speaking(language) as named:
        return bind(make_edition(model, text, **options), named)
