"""The largest of several balls, with its proof, or the balls that may be the largest."""

from __future__ import annotations

from flint import arb

from byhand.numbers.base import Prediction
from byhand.numbers.enclosed.enclosure import Enclosure


def predict(row: list[arb]) -> Prediction:
    """The lowest index of the largest numbers; undecided where the balls prove neither.

    A tie is proven by balls of radius 0 alone.  The margin is an Enclosure.
    """
    leaders = _may_be_largest(row, range(len(row)))
    first = row[leaders[0]]
    if all(row[k].is_exact() and row[k] == first for k in leaders):
        if len(leaders) > 1:
            return Prediction(leaders[0], Enclosure.of(arb(0)), True, tied=tuple(leaders))
    elif len(leaders) > 1:
        return Prediction(None, None, False, candidates=tuple(leaders))
    best = leaders[0]
    others = [k for k in range(len(row)) if k != best]
    if not others:
        return Prediction(best, None, True)
    next_best = _hull([row[k] for k in _may_be_largest(row, others)])
    return Prediction(best, Enclosure.of(row[best] - next_best), True)


def _may_be_largest(row: list[arb], among: list[int] | range) -> list[int]:
    """The indices that no other number is proven to exceed; all, where nothing is proven."""
    highest = None  # the largest lower bound
    for k in among:
        if row[k].is_finite():
            low = row[k].lower()
            if highest is None or low > highest:
                highest = low
    return [k for k in among if highest is None or not row[k] < highest]


def _hull(balls: list[arb]) -> arb:
    """A ball around the largest of these, whichever it is."""
    result = balls[0]
    for ball in balls[1:]:
        result = result.max(ball)
    return result
