"""From text to vectors: ids, embedding rows, positions, the start of the stream."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document import words
from byhand.document.book import Page, Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import addition, norm_passage, passage
from byhand.document.compose.book.topics import Topic
from byhand.language import _

SLUG = "tokens"
KINDS = ("tokens", "embed", "segment", "position", "stream", "embed_norm", "relative")
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


def tell(edition: Edition, topic: Topic, slug: str = SLUG) -> Passage:
    """The passage about one topic."""
    if topic.kind == "embed_norm":
        why = _("Before the first block reads the rows, they are made comparable.")
        return norm_passage(edition, topic, slug, why)
    writers = {
        "tokens": _tokens, "embed": _embed, "segment": _segment, "position": _position,
        "stream": _stream, "relative": _relative,
    }  # fmt: skip
    return passage(edition, topic, slug, writers[topic.kind](edition, topic))


def _tokens(edition: Edition, topic: Topic) -> list[str]:
    vocabulary = edition.vocabulary.tokens
    some = [words.token_label(token) for token in vocabulary[:MOST_WORDS]]
    ids = words.some_of([str(id) for id in edition.ids], MOST_WORDS)
    if len(vocabulary) <= MOST_WORDS:
        known = _("The model knows {count} words: {words}.").format(
            count=len(vocabulary), words=words.joined(some)
        )
    else:
        known = _("The model knows {count} tokens: {words} and so on.").format(
            count=words.whole(len(vocabulary)), words=", ".join(some)
        )
    return [
        _("A model cannot read. It counts."),
        known,
        _("Of the text `{text}` it sees where each token stands in that list: {ids}.").format(
            text=words.printable(edition.text), ids=ids
        ),
    ]


def _embed(edition: Edition, topic: Topic) -> list[str]:
    trace, showing = edition.trace, edition.showing
    step = topic.steps[0]
    worked = trace.steps[step.address]
    id = edition.ids[-1]
    sentences = [
        _("Every token of the vocabulary has a row of {d} numbers in the table E.").format(
            d=words.whole(trace.model.spec.d_model)
        )
    ]
    if worked.missing is None:
        sentences.append(
            _("The id picks the row: `{token}` is row {id}, which is {row}.").format(
                token=edition.token(id), id=id, row=showing.row_said(worked, (edition.last,))
            )
        )
    if step.attributes.get("scale") is not None:
        sentences.append(_("Here the row is also multiplied by a fixed scale."))
    if edition.side.position == "none":
        sentences.append(_starts_stream())
        sentences.append(_no_table_of_positions(edition))
    return sentences


def _segment(edition: Edition, topic: Topic) -> list[str]:
    kinds = topic.steps[0].attributes["ids"]
    return [
        _(
            "Tokens are of several kinds, such as those of a first and of a second sentence. Each "
            "kind has a row in the table S, which is added."
        ),
        _("Here the kinds are {kinds}.").format(
            kinds=words.some_of([str(kind) for kind in kinds], MOST_WORDS)
        ),
    ]


def _relative(edition: Edition, topic: Topic) -> list[str]:
    relative = edition.side.relative
    assert relative is not None
    return [
        _(
            "Where a token stands is told by distances. Each head has a score for every distance "
            "of query and key, which attention adds in every block."
        ),
        _(
            "Near distances have a score each; further ones share one, in {buckets} buckets. From "
            "{distance} on all are alike."
        ).format(buckets=words.whole(relative.buckets), distance=words.whole(relative.distance)),
    ]


def _starts_stream() -> str:
    return _(
        "These rows, one for each position, start the residual stream: all that follows reads it "
        "and adds to it."
    )


def _no_table_of_positions(edition: Edition) -> str:
    blocks = edition.side.blocks
    rotary = any(block.attention and block.attention.rotary for block in blocks)
    alibi = any(block.attention and block.attention.alibi for block in blocks)
    if rotary:
        return _(
            "Nothing in them says yet where a token stands; that comes inside attention, where "
            "questions and keys are turned by an angle that grows with the position."
        )
    if edition.side.relative is not None:
        return _(
            "Nothing in them says yet where a token stands; that comes inside attention, where a "
            "score counts the distance of two positions."
        )
    if alibi:
        return _(
            "Nothing in them says yet where a token stands; that comes inside attention, where "
            "a score loses the more, the further apart two positions are."
        )
    return _("Nothing in them says where a token stands: this model sees no order but the mask.")


def _position(edition: Edition, topic: Topic) -> list[str]:
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
    return sentences


def _stream(edition: Edition, topic: Topic) -> list[str]:
    return [
        _("The two rows are added, number by number.")
        if len(topic.steps) == 1
        else _("The rows are added, number by number."),
        *addition(edition, topic.steps[-1]),
        _starts_stream(),
    ]
