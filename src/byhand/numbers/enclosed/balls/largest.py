"""The largest of several balls, with its proof, or the balls that may be the largest."""

from __future__ import annotations

from collections.abc import Callable

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


Standing = tuple[list[int], list[int], bool]


def largest(row: list[arb], count: int) -> Standing:
    """The indices that are surely among the `count` largest, and those that may be.

    Of equal numbers, known exactly, the lowest indices count; the last result says whether that
    decided.  A number is surely among them if fewer than `count` others may come before it.
    """
    every = list(range(len(row)))
    return _largest(row, count, lambda _k: every, every, every)


def largest_in_groups(row: list[arb], count: int, groups: int, kept: int, rule: str) -> Standing:
    """The same within those `kept` groups of neighbours that are largest by a rule.

    A number whose group is open may count, beside those of groups that surely are among them; it
    surely counts only in a group that surely does, against all groups that may.
    """
    width = len(row) // groups
    parts = [row[start : start + width] for start in range(0, len(row), width)]
    worth = [_best(part, 2 if rule == "top2" else 1) for part in parts]
    surely, maybe, tied = largest(worth, kept)

    def places(chosen: list[int]) -> list[int]:
        return [group * width + inner for group in chosen for inner in range(width)]

    def against(k: int) -> list[int]:
        return places(sorted({*surely, k // width}))

    sure, possible, also = _largest(row, count, against, places(surely), places(maybe))
    return sure, possible, tied or also


def _largest(
    row: list[arb],
    count: int,
    against: Callable[[int], list[int]],
    surely: list[int],
    maybe: list[int],
) -> Standing:
    """Who is, and may be, among the largest of `maybe`; `against` are the sure rivals of each."""

    def surely_before(j: int, k: int) -> bool:
        if row[j].is_exact() and row[k].is_exact() and row[j] == row[k]:
            return j < k
        return bool(row[j] > row[k])

    possible = [k for k in maybe if sum(surely_before(j, k) for j in against(k) if j != k) < count]
    there = set(possible) & set(surely)
    sure = [
        k for k in sorted(there) if sum(not surely_before(k, j) for j in maybe if j != k) < count
    ]
    tied = len(sure) == count and any(
        row[j] == row[k] for j in maybe if j not in sure for k in sure
    )
    return sure, possible, tied


def _best(part: list[arb], count: int) -> arb:
    """Returns a ball around the sum of the `count` largest numbers.

    The k-th largest number lies between the k-th largest of the lower and of the upper ends.
    """
    if not all(x.is_finite() for x in part):
        return arb("nan")
    ends = (sorted((x.lower() for x in part), reverse=True)[:count],
            sorted((x.upper() for x in part), reverse=True)[:count])  # fmt: skip
    low, high = (sum(side[1:], side[0]) for side in ends)
    return low if low.is_exact() and low == high else low.union(high)


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
