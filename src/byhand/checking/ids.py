"""Claims about token ids: an id is right or wrong; rounding may leave a next token undecided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.address import Index
from byhand.checking.verdicts import Suspect
from byhand.language import _
from byhand.numbers.allowed import Contest, Judged
from byhand.numbers.base import Prediction

if TYPE_CHECKING:
    from byhand.checking.replay import Line


def judge_ids(worked: Any, line: Line) -> Judged:
    """The claimed ids against what was worked out.

    A next token is right where its logit is the largest however rounding goes, and wrong where
    another logit is always larger.  Otherwise it is undecided.
    """
    ids = worked if isinstance(worked, Sequence) else (worked,)
    claim, said = line.claim, line.values
    places = _places(len(ids), claim.index).reshape(np.shape(said))
    shares, expected = np.zeros(places.shape), np.zeros(places.shape)
    left_open = np.zeros(places.shape, dtype=bool)
    usual: list[float | None] = []
    for place in np.ndindex(places.shape):
        entry = ids[int(places[place])]
        expected[place] = _most_likely(entry)
        if claim.claimed is not None and not claim.claimed[place]:
            continue
        if isinstance(entry, Contest):
            standing = entry.standing(float(said[place]))
            left_open[place] = standing.largest is None
            shares[place] = standing.share
            usual += [] if standing.largest else [standing.times]
        else:
            shares[place] = 0.0 if said[place] == entry else np.inf
    known = [times for times in usual if times is not None]
    return Judged(
        shares,
        max(known, default=None) if len(known) == len(usual) else None,
        expected,
        np.zeros(places.shape),
        claim.claimed,
        left_open if left_open.any() else None,
    )


def are_next(line: Line, tokens: Sequence[Prediction]) -> bool | None:
    """Whether the claimed ids are next tokens (a tie has several); None where undecided."""
    if not tokens:
        return None
    claim, said = line.claim, line.values
    places = _places(len(tokens), claim.index).reshape(np.shape(said))
    decided = True
    for place in np.ndindex(places.shape):
        found = tokens[int(places[place])]
        if claim.claimed is not None and not claim.claimed[place]:
            continue
        if found.id is None:
            decided = False
        elif said[place] not in (found.tied or (found.id,)):
            return False
    return True if decided else None


def next_of_the_text(line: Line, tokens: Sequence[int], target: int | None) -> Suspect | None:
    """That the claimed next token is the one that the text goes on with; None where it is not."""
    coming = [*tokens[1:], target]
    claim, said = line.claim, np.asarray(line.values)
    places = _places(len(coming), claim.index).reshape(np.shape(said))
    filled = [
        (said[place], coming[int(places[place])])
        for place in np.ndindex(places.shape)
        if claim.claimed is None or claim.claimed[place]
    ]
    if not filled or any(claimed != comes for claimed, comes in filled):
        return None
    return Suspect(
        "next-of-text",
        _(
            "it follows if the token that comes next in the text is given; "
            "the model expects another"
        ),
        _("take the token with the largest logit"),
        0.0,
    )


def _places(count: int, index: Index) -> Any:
    return np.arange(count)[index or slice(None)]


def _most_likely(entry: Any) -> float:
    """The worked-out id; for a next token, the one with the largest midpoint."""
    if isinstance(entry, Contest):
        assert entry.logits is not None
        return float(np.argmax(entry.logits.mid))
    return float(entry)
