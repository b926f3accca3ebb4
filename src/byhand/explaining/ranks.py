"""How many tokens are ahead of one: its rank among the logits, proven where that can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.errors import Undecided
from byhand.explaining.approximations import bounds, floats_near
from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.enclosure import Enclosure


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of a token, 1 for the largest logit; tokens with the same logit share a place.

    The place lies from `least` to `most`.  Both are None where a logit is not a number.
    """

    token: int
    least: int | None
    most: int | None
    proven: bool  # of the model's numbers themselves, not of rounded ones

    @property
    def place(self) -> int | None:
        """The place, where it is decided."""
        return self.least if self.least == self.most else None


def rank(numbers: Numbers, logits: Any, row: int, token: int) -> Rank:
    """The rank of a token in one row of logits (pos, vocab)."""
    logits = numbers.take_rows(logits, [row])
    entries = numbers.entries(logits)[0]
    others = [id for id in range(len(entries)) if id != token]
    ahead = 0
    if (ends := bounds(numbers, logits)) is not None:
        low, high = ends[0][0], ends[1][0]
        clear = low > high[token]
        ahead = int(np.count_nonzero(clear))
        others = [id for id in others if not clear[id] and high[id] >= low[token]]
    elif numbers.uniform is not None:
        return _rank_of_rounded(numbers, logits, entries, token)
    larger = [_larger(entries[id], entries[token]) for id in others]
    ahead += larger.count(True)
    undecided = larger.count(None)
    return Rank(token, ahead + 1, ahead + undecided + 1, proven=not undecided)


def _rank_of_rounded(numbers: Numbers, logits: Any, entries: Any, token: int) -> Rank:
    """Rounded numbers are compared as they are, and prove nothing."""
    if entries.dtype != object:
        entries = floats_near(numbers, logits)[0]  # no float format is finer than float64
        if np.isnan(entries).any():
            return Rank(token, None, None, proven=False)
    place = int(np.count_nonzero(entries > entries[token])) + 1
    return Rank(token, place, place, proven=False)


def _larger(one: Any, other: Any) -> bool | None:
    """Whether a value is larger than another, proven; None where that is undecided."""
    if isinstance(one, Enclosure):
        if one.lower > other.upper:
            return True
        return False if one.upper <= other.lower else None
    try:
        return bool(other < one)
    except Undecided:
        return None
