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
KINDS = ("tokens", "embed", "segment", "position", "stream", "embed_norm", "distances")
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
        if topic.kind in KINDS and not topic.encoder:
            yield tell(edition, topic)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic."""
    writers = {
        "tokens": _source if topic.encoder else _tokens,
        "embed": _embed,
        "segment": _segment,
        "position": _position,
        "stream": _stream,
        "embed_norm": _norm,
        "distances": _distances,
    }
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


def _source(edition: Edition, topic: Topic) -> Passage:
    source = edition.trace.source
    assert source is not None
    ids = words.some_of([str(id) for id in source.tokens], MOST_WORDS)
    told = _("The encoder reads the source `{text}`; the ids of its tokens are {ids}.")
    return passage(edition, topic, SLUG, [told.format(text=words.printable(source.text), ids=ids)])


def _embed(edition: Edition, topic: Topic) -> Passage:
    trace, showing, spec = edition.trace, edition.showing, edition.model.spec
    step = topic.steps[0]
    worked = trace.steps[step.address]
    last = edition.last_of(step)
    width = words.whole(step.shape[-1])
    sentences = [
        _("Every token of the vocabulary has a row of {d} numbers in the table E.").format(d=width)
    ]
    if worked.missing is None and trace.source is not None and topic.encoder:
        id, token = trace.source.tokens[last], showing.source_labels[last].split(" ", 1)[1]
    else:
        id = trace.tokens[last]
        token = showing.token(id)
    if worked.missing is None:
        sentences.append(
            _("The id picks the row: `{token}` is row {id}, which is {row}.").format(
                token=token, id=id, row=showing.row_said(worked, (last,))
            )
        )
    if step.attributes.get("scale") is not None:
        sentences.append(_("Here the row is also multiplied by a fixed scale."))
    if spec.embed_width is not None:
        text = _("A matrix then brings the row to the {d} numbers of the residual stream.")
        sentences.append(text.format(d=words.whole(spec.d_model)))
    if spec.position == "none" and not topic.encoder:
        sentences += [] if spec.segments is not None else [_starts_stream()]
        sentences.append(_no_table_of_positions(edition))
    return passage(edition, topic, SLUG, sentences)


def _segment(edition: Edition, topic: Topic) -> Passage:
    told = _(
        "Each token is of a kind, such as the first or the second text; each kind has a row too."
    )
    return passage(edition, topic, SLUG, [told])


def _norm(edition: Edition, topic: Topic) -> Passage:
    why = _("The rows are made comparable before the first block reads them.")
    return norm_passage(edition, topic, SLUG, why)


def _distances(edition: Edition, topic: Topic) -> Passage:
    told = [
        _(
            "Where a token stands counts only inside attention. Each head has a score for every "
            "distance between query and key, and adds it to its own scores."
        ),
        _("Small distances have a score each; larger distances share one, in ever wider groups."),
    ]
    return passage(edition, topic, SLUG, told)


def _starts_stream() -> str:
    return _(
        "These rows, one for each position, start the residual stream: all that follows "
        "reads it and adds to it."
    )


def _no_table_of_positions(edition: Edition) -> str:
    blocks = edition.model.spec.blocks
    rotary = any(block.attention and block.attention.rotary for block in blocks)
    alibi = any(block.attention and block.attention.alibi for block in blocks)
    if edition.model.spec.relative is not None:
        return _(
            "Nothing in them says yet where a token stands. That comes inside attention, "
            "where a score is added for the distance of two positions."
        )
    if rotary:
        return _(
            "Nothing in them says yet where a token stands. That comes inside attention, "
            "where queries and keys are rotated by an angle that grows with the position."
        )
    if alibi:
        return _(
            "Nothing in them says yet where a token stands. That comes inside attention, "
            "where a score loses more the further apart two positions are."
        )
    return _("Nothing in them says where a token stands: this model sees no order but the mask.")


def _position(edition: Edition, topic: Topic) -> Passage:
    trace, showing = edition.trace, edition.showing
    worked = trace.steps[topic.steps[0].address]
    if topic.steps[0].op == "sinusoid":
        sentences = [
            _(
                "So that order counts, each position has a pattern of its own: sines and "
                "cosines of the position, slower and slower along the row. None of it is "
                "learned."
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
        last = edition.last_of(worked.step)
        sentences.append(
            _("Position {place} has {row}.").format(
                place=last, row=showing.row_said(worked, (last,))
            )
        )
    return passage(edition, topic, SLUG, sentences)


def _stream(edition: Edition, topic: Topic) -> Passage:
    sentences = [
        _("The two rows are added, number by number.")
        if len(topic.steps) == 1
        else _("The rows are added, number by number."),
        *addition(edition, topic.steps[-1]),
        _starts_stream(),
    ]
    return passage(edition, topic, SLUG, sentences)
