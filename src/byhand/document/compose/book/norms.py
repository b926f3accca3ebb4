"""The words about a norm, which stands before a side-trip, after it, or at the end."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.book import Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.passages import passage, title_of, unchanged_affine
from byhand.document.compose.book.topics import Topic
from byhand.expression import Number, write
from byhand.language import _


def norm_passage(edition: Edition, topic: Topic, slug: str, title: str, why: str) -> Passage:
    """A norm with all its lines: mean, centered, variance, …"""
    return passage(
        edition,
        topic,
        slug,
        title_of(edition, topic.layer, title),
        (why, *_sentences(edition, topic)),
    )


def of_a_copy() -> str:
    """Where the norm stands in a model that normalises what a side-trip reads."""
    return _(
        "The norm works on a copy (Pre-LN): the new stream is the old one plus what the side-trip "
        "made of its norm, h + attention(norm(h)). The stream itself is never normalised on the "
        "way, so what is written to it stays until something later subtracts it, and training "
        "reaches every block along it."
    )


def _sentences(edition: Edition, topic: Topic) -> Iterator[str]:
    rms = topic.step("rms") is not None
    root = topic.step("rms") or topic.step("std")
    assert root is not None
    if rms:
        yield _(
            "Each position's row is divided by the root of the mean of its squares; its mean stays "
            "as it is."
        )
    else:
        yield _(
            "Of each position's row the mean is subtracted, and what is left is divided by its "
            "standard deviation: mean 0, spread 1."
        )
    eps = root.attributes["eps"]
    if eps:
        text = (
            _("The {eps} under the root keeps a row of zeros from dividing by 0.")
            if rms
            else _("The {eps} under the root keeps a row of equal numbers from dividing by 0.")
        )
        yield text.format(eps=write(Number(eps)))
    elif not rms and edition.model.spec.d_model == 2:
        yield _(
            "With two numbers in a row this leaves only a sign: they lie equally far on both sides "
            "of their mean, so unless they are equal, (1, −1) or (−1, 1) comes out, and how far "
            "apart they were is gone."
        )
    out = topic.step("out")
    if out is not None:
        if unchanged_affine(edition, out):
            yield _("Gain 1 and bias 0 then change nothing.")
        elif "bias" in out.inputs:
            yield _("A learned gain and bias, one of each for every column, come last.")
        else:
            yield _("A learned gain for every column comes last.")
