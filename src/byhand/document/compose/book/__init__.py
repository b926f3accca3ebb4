"""The pages of a book, one small module each, and the book of these pages.

    whole       the whole pass, and the stream from its start to its end
    encoder     the encoder's own stream            tokens      from text to vectors
    attention   which positions attend to which
    block       the additions, the norms, the MLP   prediction  the next token and its loss
    losses      how wrong the model was             gradients   backward, to every weight
    new_weights one training step                   training_run  how the model was made
    explained   what the numbers say                exact       exact and named numbers
    parameters  every parameter counted

`passages` holds what they share.  `whole` alone covers every step of the plan exactly once, and so
do the four pages after it together.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from byhand.document import words
from byhand.document.book import Book, Page, Passage
from byhand.document.compose.book import (
    attention,
    block,
    encoder,
    exact,
    explained,
    gradients,
    losses,
    new_weights,
    parameters,
    prediction,
    tokens,
    training_run,
    whole,
)
from byhand.document.compose.book.edition import LARGE, PENCIL, TOY, Edition
from byhand.document.compose.book.spine import spine
from byhand.document.compose.book.told_once import told_once
from byhand.document.compose.book.topics import Topic
from byhand.explaining.beyond import unexplained
from byhand.language import _
from byhand.numbers.base import REGISTERS

STEP_PAGES = ("encoder", "tokens", "attention", "block", "next")  # they cover every step once


def pages(edition: Edition, *, explaining: bool = True) -> tuple[Page, ...]:
    """The pages in reading order; with `explaining`, the page on what the numbers say too."""
    reads = [encoder] if edition.model.spec.encoder is not None else []
    forward = [whole, *reads, tokens, attention, block, prediction]
    explaining = explaining and not any(unexplained(edition.model.spec))
    looking_back = [explained, exact, parameters] if explaining else [exact, parameters]
    if edition.trace.numbers.uniform is not None and not edition.checked:
        looking_back.remove(exact)  # all numbers are of one kind, and the foot of a page says it
    return told_once(
        (
            *(module.page(edition) for module in forward),
            *_learning(edition),
            *(module.page(edition) for module in looking_back),
        )
    )


def _learning(edition: Edition) -> Iterator[Page]:
    """The pages on one training step, where the edition has one."""
    if edition.one_step is not None:
        for module in (losses, gradients, new_weights):
            yield module.page(edition, edition.one_step)
        if edition.record is not None:
            yield training_run.page(edition, edition.record)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic, as on its page."""
    passage: Passage = _told_on(edition, topic).tell(edition, topic)
    return passage


def slug_of(edition: Edition, topic: Topic) -> str:
    """The page of a topic."""
    slug: str = _told_on(edition, topic).SLUG
    return slug


def _told_on(edition: Edition, topic: Topic) -> ModuleType:
    if topic.encoder:
        return encoder
    if topic.layer is not None:
        return attention if attention.belongs(edition, topic) else block
    return tokens if topic.kind in tokens.KINDS else prediction


# ------------------------------------------------------------------ the book


def bind(edition: Edition, language: str, *, explaining: bool = True) -> Book:
    """The book of an edition; with `explaining`, the page on what the numbers say too."""
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
        decimals=edition.showing.by_decimals,
        scale=edition.scale,
        tokens=edition.showing.labels,
        facts=tuple(_facts(edition)),
        notes=tuple(words.told(note) for note in trace.model.notes),
        registers=tuple((r, words.register_about(r)) for r in REGISTERS if r in found),
        claims_checked=edition.claims_from,
        claims=edition.checked,
        command=edition.whole_command,
    )


def _facts(edition: Edition) -> Iterator[tuple[str, str]]:
    yield from whole.text_facts(edition)
    shown = {
        PENCIL: _("every number, each with its working"),
        TOY: _("every tensor as colours, and some of its numbers"),
        LARGE: _("shapes, statistics and selected numbers; each page says what is left out"),
    }
    yield _("this book shows"), shown[edition.scale]
    if edition.claims_from:
        yield _("checked"), edition.claims_from
