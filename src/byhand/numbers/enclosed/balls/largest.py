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


def largest(row: list[arb], count: int) -> tuple[list[int], list[int], bool]:
    """The indices that are surely among the `count` largest, and those that may be.

    Of equal numbers, known exactly, the lowest indices count; the last result says whether that
    decided.  A number is surely among them if fewer than `count` others may come before it.
    """

    def surely_before(j: int, k: int) -> bool:
        if row[j].is_exact() and row[k].is_exact() and row[j] == row[k]:
            return j < k
        return bool(row[j] > row[k])

    every = range(len(row))
    possible = [k for k in every if sum(surely_before(j, k) for j in every if j != k) < count]
    sure = [k for k in possible if sum(not surely_before(k, j) for j in every if j != k) < count]
    tied = len(sure) == count and any(
        row[j] == row[k] for j in every if j not in sure for k in sure
    )
    return sure, possible, tied


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
