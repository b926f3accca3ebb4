"""How likely each next token was: its log-probability, its rank, the margin and the entropy."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document import words
from byhand.document.book import Passage
from byhand.document.compose.book.edition import Edition
from byhand.document.compose.book.one_step import OneStep
from byhand.document.compose.book.spoken_numbers import said
from byhand.document.compose.standing import standing_table
from byhand.language import _

END = ("probs", "logits", "next")  # stations that are lit


def standing_passage(edition: Edition, step: OneStep, slug: str, most: int) -> Passage | None:
    """The passage on where the next tokens stood; None where their logits are not known."""
    table = standing_table(step.showing, step.counted[-most:], said, logs=True)
    if table is None:
        return None
    return Passage(
        id=f"{slug}-standing",
        title=_("Where the next tokens stood"),
        sentences=tuple(_sentences(step)),
        lit=tuple(address for address in END if address in edition.trace.steps),
        show=(table,),
        looks_back=True,
    )


def _sentences(step: OneStep) -> Iterator[str]:
    yield _(
        "ln p is the logarithm of a token's probability: the loss with the other sign. The rank is "
        "1 for the likeliest token. The margin is how far the largest logit is ahead. The entropy "
        "says how unsure the model is: 0 where one token is certain."
    )
    ranks = [each.rank for each in step.trace.standings or () if each is not None]
    if None not in ranks:
        first = sum(rank == 1 for rank in ranks)
        yield _("The next token was the likeliest one at {count} of {all} positions.").format(
            count=words.whole(first), all=words.whole(len(ranks))
        )
