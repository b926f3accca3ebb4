"""From text to vectors: ids, embedding rows, positions, the start of the stream."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import addition, passage
from byhand.document.compose.book.topics import Topic
from byhand.language import _

SLUG = "tokens"
KINDS = ("tokens", "embed", "position", "stream")
MOST_WORDS = 12  # of a vocabulary, in a sentence


def page(edition: Edition) -> Page:
    """The page on tokens and embeddings."""
    return Page(
        SLUG,
        _("Tokens to vectors"),
        _("How a text becomes rows of numbers that can be added and multiplied."),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    for topic in edition.topics:
        if topic.kind in KINDS:
            yield tell(edition, topic)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic."""
    writers = {"tokens": _tokens, "embed": _embed, "position": _position, "stream": _stream}
    return writers[topic.kind](edition, topic)


def _tokens(edition: Edition, topic: Topic) -> Passage:
    trace = edition.trace
    vocabulary = trace.model.vocabulary.tokens
    some = [words.token_label(token) for token in vocabulary[:MOST_WORDS]]
    ids = words.some_of([str(id) for id in trace.tokens], MOST_WORDS)
    if len(vocabulary) <= MOST_WORDS:
        known = _("The model knows {count} words: {words}.").format(
            count=len(vocabulary), words=words.joined(some)
        )
    else:
        known = _("The model knows {count} tokens: {words} and so on.").format(
            count=words.whole(len(vocabulary)), words=", ".join(some)
        )
    return passage(
        edition,
        topic,
        SLUG,
        (
            _("A model cannot read. It counts."),
            known,
            _("Of the text `{text}` it sees where each token stands in that list: {ids}.").format(
                text=words.printable(trace.text), ids=ids
            ),
        ),
    )


def _embed(edition: Edition, topic: Topic) -> Passage:
    trace, showing = edition.trace, edition.showing
    step = topic.steps[0]
    worked = trace.steps[step.address]
    id = trace.tokens[-1]
    sentences = [
        _("Every token of the vocabulary has a row of {d} numbers in the table E.").format(
            d=words.whole(trace.model.spec.d_model)
        )
    ]
    if worked.missing is None:
        sentences.append(
            _("The id picks the row: `{token}` is row {id}, which is {row}.").format(
                token=showing.token(id), id=id, row=showing.row_said(worked, (edition.last,))
            )
        )
    if step.attributes.get("scale") is not None:
        sentences.append(_("Here the row is also multiplied by a fixed scale."))
    if trace.model.spec.position == "none":
        sentences.append(_starts_stream())
        sentences.append(_no_table_of_positions(edition))
    return passage(edition, topic, SLUG, sentences)


def _starts_stream() -> str:
    return _(
        "These rows, one for each position, start the residual stream: all that follows reads it "
        "and adds to it."
    )


def _no_table_of_positions(edition: Edition) -> str:
    blocks = edition.model.spec.blocks
    rotary = any(block.attention and block.attention.rotary for block in blocks)
    alibi = any(block.attention and block.attention.alibi for block in blocks)
    if rotary:
        return _(
            "Nothing in them says yet where a token stands; that comes inside attention, where "
            "questions and keys are turned by an angle that grows with the position."
        )
    if alibi:
        return _(
            "Nothing in them says yet where a token stands; that comes inside attention, where "
            "a score loses the more, the further apart two positions are."
        )
    return _("Nothing in them says where a token stands: this model sees no order but the mask.")


def _position(edition: Edition, topic: Topic) -> Passage:
    trace, showing = edition.trace, edition.showing
    worked = trace.steps[topic.steps[0].address]
    if topic.steps[0].op == "sinusoid":
        sentences = [
            _(
                "So that order counts, each position has a pattern of its own: sines and cosines "
                "of the position, slower and slower along the row. Nothing of it is learned."
            )
        ]
    else:
        sentences = [
            _(
                "The same word at another place should not be the same vector, or the order of "
                "the words would be lost. So each position has a row too, in the table P."
            )
        ]
    if worked.missing is None:
        sentences.append(
            _("Position {place} has {row}.").format(
                place=edition.last, row=showing.row_said(worked, (edition.last,))
            )
        )
    return passage(edition, topic, SLUG, sentences)


def _stream(edition: Edition, topic: Topic) -> Passage:
    sentences = [
        _("The two rows are added, number by number."),
        *addition(edition, topic.steps[0]),
        _starts_stream(),
    ]
    return passage(edition, topic, SLUG, sentences)
