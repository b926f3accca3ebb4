"""The encoder: the source, its own stream through blocks that look both ways, and its end."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.book import Page, Passage
from byhand.document.compose.book import attention, block, tokens
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import folded, norm_passage
from byhand.document.compose.book.topics import Topic
from byhand.language import _

SLUG = "encoder"


def page(edition: Edition) -> Page:
    """The page on the encoder."""
    return Page(
        SLUG,
        _("The encoder"),
        _(
            "A second stream over a text of its own, the source. It predicts nothing: its last "
            "rows are what the decoder looks at."
        ),
        tuple(_passages(edition.of_encoder)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    outside = [topic for topic in edition.topics if topic.layer is None]
    ends = [topic for topic in outside if topic.kind == "norm"]
    yield from (tell(edition, topic) for topic in outside if topic not in ends)
    inside = [topic for topic in edition.topics if topic.layer is not None]
    yield from folded(edition, inside, SLUG, (".add",), tell)
    yield from (tell(edition, topic) for topic in ends)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic of the encoder."""
    edition = edition.view(topic)
    if topic.layer is not None:
        if attention.belongs(edition, topic):
            return attention.tell(edition, topic, SLUG)
        return block.tell(edition, topic, SLUG)
    if topic.kind == "norm":
        why = _("One more norm at the end of the encoder: these rows are what the decoder reads.")
        return norm_passage(edition, topic, SLUG, why)
    return tokens.tell(edition, topic, SLUG)
