"""What a book needs, worked out once: the trace, the counts, the marked claims; then its pages.

    model, text → Edition → pages → Book

The trace is in the model's usual numbers (exact up to 2,000 parameters, floats above) unless
others are asked for.  How much a book shows follows from the sizes alone:

    pencil   up to 2,000 parameters and 6,000 entries     every number, each with its working
    toy      up to 200,000 parameters                     every tensor as colours, some entries
    large    above                                        shapes, statistics, selected entries
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from shlex import quote
from typing import Any

from byhand import evaluate, models
from byhand.address import read_address, within
from byhand.counting import Inventory, count
from byhand.document import words
from byhand.document.book import Book
from byhand.document.compose.book.claims import Claims, document_of, mark_claims
from byhand.document.compose.book.numbers import Showing, weight_shape
from byhand.document.compose.book.topics import Topic, topics
from byhand.document.compose.window import Window
from byhand.document.verdict_parts import VerdictLine
from byhand.language import _, speaking
from byhand.model import Model
from byhand.models import is_builtin, open_model
from byhand.numbers.base import REGISTERS, Numbers
from byhand.plan import WEIGHT
from byhand.tracing import Trace

PENCIL, TOY, LARGE = "pencil", "toy", "large"
PENCIL_ENTRIES = 6_000
TOY_PARAMETERS, TOY_ENTRIES = 200_000, 400_000
MOST_LAYERS = 4  # of a large model, before those between the first and the last are put together

WINDOWS = {
    PENCIL: Window(PENCIL_ENTRIES, PENCIL_ENTRIES, PENCIL_ENTRIES, weights=evaluate.PENCIL_SIZED),
    TOY: Window(rows=8, columns=8, heads=4),
    LARGE: Window(rows=8, columns=8, heads=2, weights=0),
}


@dataclass(frozen=True)
class Edition:
    """Everything that the pages of one book are written from."""

    trace: Trace
    inventory: Inventory
    scale: str
    showing: Showing
    command: str  # how the reader calls byhand on the same: tiny, or tiny 'b a'
    called: str = ""  # what the reader calls the model: a name, or where it lies
    target: str | None = None  # where it was said and is not the model's own
    checked: tuple[VerdictLine, ...] = ()
    claims_from: str = ""  # in words, as the subject of a sentence
    claims: Claims | None = None
    asked: tuple[str, ...] = ()  # addresses whose numbers are shown in any case

    @property
    def model(self) -> Model:
        return self.trace.model

    @property
    def whole_command(self) -> str:
        """The command with the target, for the steps that need one."""
        return self.command + ("" if self.target is None else f" --target {quote(self.target)}")

    @property
    def everything(self) -> bool:
        """Whether the book holds every number."""
        return self.scale == PENCIL

    @property
    def last(self) -> int:
        """The position that the worked entries follow: the last one, unless another is asked."""
        return self.showing.followed

    @cached_property
    def topics(self) -> tuple[Topic, ...]:
        return topics(self.trace.plan)

    @cached_property
    def layers_shown(self) -> tuple[int, ...]:
        """The layers that have passages of their own; the others are told together."""
        layers = range(len(self.model.spec.blocks))
        if self.scale != LARGE or len(layers) <= MOST_LAYERS:
            return tuple(layers)
        asked = {topic.layer for topic in self.topics if self.asked_of(topic.addresses)}
        wanted = {0, layers[-1], *asked}
        return tuple(layer for layer in layers if layer in wanted)

    def asked_of(self, steps: Sequence[str]) -> tuple[str, ...]:
        """The addresses asked for that lie in some steps or weights."""
        return tuple(address for address in self.asked if self._place(address) in steps)

    def _place(self, address: str) -> str:
        """The step or weight that an address is in, under its own name."""
        name = read_address(address).name
        return name if name.startswith(WEIGHT) else self.trace.plan[name].address

    @cached_property
    def first_reader(self) -> dict[str, str]:
        """The step that reads each weight first: there the weight is shown."""
        found: dict[str, str] = {}
        for step in self.trace.plan:
            for read in step.reads:
                if read.startswith(WEIGHT):
                    found.setdefault(read.removeprefix(WEIGHT), step.address)
        return found

    def checked_of(self, steps: Sequence[str]) -> tuple[VerdictLine, ...]:
        """What a document prints of some steps (or weights, or counts), marked."""
        known = self.trace.plan.known
        found = []
        for line in self.checked:
            name = line.address.partition("[")[0]
            if known.get(name, name) in steps:
                found.append(line)
        return tuple(found)


def make_book(
    model: str | Path | Model,
    text: str | None = None,
    *,
    target: str | None = None,
    claims: Sequence[Any] | None = None,
    at: Iterable[str] = (),
    numbers: Numbers | None = None,
    digits: int | None = None,
    language: str | None = None,
    progress: evaluate.Progress | None = None,
) -> Book:
    """The book of a model and a text, in a language or the one spoken.

    `claims` are files of claims to be marked; without any, those of the document that a built-in
    model comes from, as long as the text is its own; an empty sequence marks none.  `at` are
    addresses whose numbers are shown however large the model is.  `numbers` are the model's usual
    ones unless given; with `digits`, so many significant digits are proven.
    """
    with speaking(language) as spoken:
        edition = make_edition(
            model,
            text,
            target=target,
            claims=claims,
            at=at,
            numbers=numbers,
            digits=digits,
            progress=progress,
        )
        return bind(edition, spoken)


def make_edition(
    model: str | Path | Model,
    text: str | None = None,
    *,
    called: str | None = None,
    target: str | None = None,
    claims: Sequence[Any] | None = None,
    at: Iterable[str] = (),
    numbers: Numbers | None = None,
    digits: int | None = None,
    progress: evaluate.Progress | None = None,
) -> Edition:
    """Works out what the book needs.  `called` is what the reader calls an opened model."""
    opened = model if isinstance(model, Model) else open_model(model)
    name = called or models.called(model)
    trace = _trace(opened, text, target, numbers, digits, progress)
    asked = tuple(at)
    for address in asked:
        _known(trace, address)
    sources = _claims(opened, trace, claims)
    marked = None
    if sources:
        marked = Claims(mark_claims(opened, sources, trace.text, target), trace)
    inventory = count(opened.spec, opened.weights)
    scale = scale_of(inventory, trace)
    return Edition(
        trace=trace,
        inventory=inventory,
        scale=scale,
        showing=_showing(trace, scale, marked),
        command=command_on(name, text),
        called=name,
        target=target,
        checked=() if marked is None else marked.checked,
        claims_from=_source_words(sources, claims is None),
        claims=marked,
        asked=asked,
    )


def command_on(called: str, text: str | None) -> str:
    """What stands behind `byhand trace` to get the same: the model, and the text if not its own."""
    return quote(called) if text is None else f"{quote(called)} {quote(text)}"


def edition_of(
    trace: Trace,
    command: str = "",
    *,
    asked: Sequence[str] = (),
    window: Window | None = None,
    workings: bool = True,
) -> Edition:
    """The edition of a finished trace, with nobody's claims.

    `window` is used where the model is too large for everything; without `workings` no number
    has one.
    """
    inventory = count(trace.model.spec, trace.model.weights)
    scale = scale_of(inventory, trace)
    pencil = scale == PENCIL
    showing = Showing(
        trace,
        everything=pencil,
        claims={},
        window=WINDOWS[scale] if pencil or window is None else window,
        workings=workings,
    )
    return Edition(trace, inventory, scale, showing, command, asked=tuple(asked))


def bind(edition: Edition, language: str, *, explaining: bool = True) -> Book:
    """The pages of an edition, as a book, with or without what the numbers say."""
    from byhand.document.compose.book import pages
    from byhand.document.compose.book.spine import spine

    trace = edition.trace
    found = {r for worked in trace.values() if not worked.whole for r in worked.row_registers}
    return Book(
        model=words.printable(trace.model.name),
        text=words.printable(trace.text),
        title=_("{model}, by hand").format(model=words.printable(trace.model.name)),
        about=words.told(trace.model.about),
        pages=pages(edition, explaining=explaining),
        spine=spine(edition.showing),
        language=language,
        numbers=words.numbers_name(trace.numbers, trace.proof),
        scale=edition.scale,
        tokens=edition.showing.labels,
        facts=tuple(_facts(edition)),
        notes=tuple(words.told(note) for note in trace.model.notes),
        registers=tuple((r, words.register_about(r)) for r in REGISTERS if r in found),
        claims_checked=edition.claims_from,
        claims=edition.checked,
        command=edition.whole_command,
    )


def scale_of(inventory: Inventory, trace: Trace) -> str:
    """How much a book can show."""
    entries = sum(prod(step.shape) for step in trace.plan)
    if inventory.total <= evaluate.PENCIL_SIZED and entries <= PENCIL_ENTRIES:
        return PENCIL
    return TOY if inventory.total <= TOY_PARAMETERS and entries <= TOY_ENTRIES else LARGE


def _trace(
    model: Model,
    text: str | None,
    target: str | None,
    numbers: Numbers | None,
    digits: int | None,
    progress: evaluate.Progress | None,
) -> Trace:
    job = evaluate.prepare(model, text, numbers or _usual(model), target=target)
    if digits is None:
        return job.work(progress=progress)
    from byhand.proving import prove

    return prove(job, digits, progress=progress)


def _usual(model: Model) -> Numbers:
    if evaluate.pencil_sized(model):
        from byhand.numbers.exact import Exact

        return Exact()
    from byhand.numbers.floats import Floats

    return Floats(evaluate.usual_format(model))


def _known(trace: Trace, address: str) -> None:
    """Refuses an address that stands for nothing, before a book is made."""
    wanted = read_address(address)
    if wanted.name.startswith(WEIGHT):
        shape = weight_shape(trace, wanted.name)
    else:
        shape = trace.worked(wanted).step.shape
    within(wanted, shape)


def _claims(model: Model, trace: Trace, claims: Sequence[Any] | None) -> tuple[Any, ...]:
    """The claims given; of a built-in model on its own text, the document it comes from."""
    if claims is not None:
        return tuple(claims)
    own = trace.text == model.text
    if not own or not is_builtin(model):
        return ()
    document = document_of(model.name)
    return () if document is None else (document,)


def _source_words(sources: Sequence[Any], own_document: bool) -> str:
    """Whose numbers they are, as the subject of a sentence."""
    if not sources:
        return ""
    if own_document:
        return _("The document behind this model")
    return words.joined([Path(str(s)).name for s in sources if isinstance(s, str | Path)])


def _showing(trace: Trace, scale: str, marked: Claims | None) -> Showing:
    return Showing(
        trace,
        everything=scale == PENCIL,
        claims={} if marked is None else marked.at_numbers,
        window=WINDOWS[scale],
    )


def _facts(edition: Edition) -> Iterable[tuple[str, str]]:
    trace = edition.trace
    yield _("text"), words.printable(trace.text)
    if trace.target is not None:
        yield _("target"), words.token_label(trace.token(trace.target))
    yield _("numbers"), words.numbers_name(trace.numbers, trace.proof)
    yield _("parameters"), words.whole(edition.inventory.total)
    yield _("this book shows"), _scale_about(edition.scale)
    if edition.claims_from:
        yield _("checked"), edition.claims_from


def _scale_about(scale: str) -> str:
    match scale:
        case "pencil":
            return _("every number, each with its working")
        case "toy":
            return _("every tensor as colours, and some of its numbers")
        case _:
            return _("shapes, statistics and selected numbers; each page says what is left out")
