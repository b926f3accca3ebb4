"""The pages of a book, one small file each: Edition → Page.

    whole       the whole pass, and the stream from its start to its end
    tokens      from text to vectors                attention   who looks at whom
    block       the additions, the norms, the MLP   prediction  the next token and its loss
    explained   what the numbers say                exact       what is exact, what is named
    parameters  every parameter counted

`telling` holds what they share.  `whole` on its own, and the four after it together, light every
step of the plan exactly once.
"""

from __future__ import annotations

from types import ModuleType

from byhand.document.book import Page, Passage
from byhand.document.compose.book import (
    attention,
    block,
    exact,
    explained,
    parameters,
    prediction,
    tokens,
    whole,
)
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.topics import Topic

STEP_PAGES = ("tokens", "attention", "block", "next")  # which together tell every step once


def pages(edition: Edition, *, explaining: bool = True) -> tuple[Page, ...]:
    """The pages in the order of reading; what the numbers say only where it is wanted."""
    written = [whole, tokens, attention, block, prediction, explained, exact, parameters]
    if not explaining:
        written.remove(explained)
    return tuple(module.page(edition) for module in written)


def tell(edition: Edition, topic: Topic) -> Passage:
    """The passage about one topic without the others, as it stands on its page."""
    passage: Passage = _told_on(edition, topic).tell(edition, topic)
    return passage


def slug_of(edition: Edition, topic: Topic) -> str:
    """The page on which a topic is told."""
    slug: str = _told_on(edition, topic).SLUG
    return slug


def _told_on(edition: Edition, topic: Topic) -> ModuleType:
    if topic.layer is not None:
        return attention if attention.belongs(edition, topic) else block
    return tokens if topic.kind in tokens.KINDS else prediction
