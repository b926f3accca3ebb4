"""The encoder: a stream of its own over the source, at which the decoder's blocks look."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.book import Page, Passage
from byhand.document.compose.book import attention, block, prediction, tokens
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.topics import Topic
from byhand.language import _

SLUG = "encoder"
MOST_TOLD = 4  # blocks that are told one by one; the others are built alike


def page(edition: Edition) -> Page:
    """The page on the encoder."""
    return Page(
        SLUG,
        _("The encoder"),
        _(
            "The model reads one text and writes another. What it reads has a residual "
            "stream of its own; the blocks of the decoder look at its end."
        ),
        tuple(_passages(edition)),
    )


def _passages(edition: Edition) -> Iterator[Passage]:
    left_out = 0
    for topic in edition.topics:
        if not topic.encoder:
            continue
        if topic.layer is not None and topic.layer >= MOST_TOLD and not edition.everything:
            left_out = max(left_out, topic.layer + 1 - MOST_TOLD)
            continue
        yield tell(edition, topic)
    if left_out:
        text = _(
            "{count} more blocks of the encoder have the same steps, with weights of their own."
        )
        more = tuple(
            address
            for topic in edition.topics
            if topic.encoder and (topic.layer or 0) >= MOST_TOLD
            for address in topic.addresses
        )
        told = (text.format(count=left_out),)
        yield Passage(f"{SLUG}-more", _("And so on"), told, lit=more)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic."""
    if topic.layer is not None:
        inside = attention.belongs(edition, topic)
        return (attention.tell if inside else block.tell)(edition, topic)
    read = topic.kind in tokens.KINDS
    return (tokens.tell if read else prediction.tell)(edition, topic)
