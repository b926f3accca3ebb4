"""Which numbers are the largest however rounding goes: the choice of experts, and of groups."""

from __future__ import annotations

from math import inf

import numpy as np

from byhand.numbers.allowed.largest import SURELY
from byhand.numbers.allowed.precisions import Precision
from byhand.numbers.allowed.ranges import UP, Data, Truths, quadrature
from byhand.numbers.floats.results import chosen_of, in_best_groups

CLEARLY = 16.0  # × the usual error: scores so far apart are usually in this order


def unsure(p: Precision, scores: Data, room: Data, count: int) -> Truths:
    """Where rounding leaves it open whether a score is among the `count` largest of its row."""
    everywhere = np.ones(scores.shape, dtype=bool)
    sure, possible = _standing(p, scores, room, count, everywhere, everywhere)
    return possible & ~sure


def chosen_in_groups(
    p: Precision,
    scores: Data,
    room: Data,
    usual: Data | None,
    count: int,
    way: tuple[int, int, str],
) -> tuple[Truths, Truths, Truths]:
    """The likely choice within the best groups, where it is open, and where that is far from it.

    way = (how many groups, how many of them count, the rule by which a group counts).
    """
    groups, kept, rule = way
    width = scores.shape[-1] // groups
    terms = 2 if rule == "top2" else 1

    def best(data: Data) -> Data:
        parts = np.sort(data.reshape(len(data), groups, width), axis=-1)[..., -terms:]
        total: Data = parts.sum(axis=-1)
        return total

    worth = best(scores)
    # sums of the largest differ by no more than the sums of the largest differences
    about = best(room)
    if terms > 1:  # a sum is stored; and what our own lost of it is known exactly
        about = about + np.abs(worth) * p.store.half + _lost(scores.reshape(*worth.shape, width))
    everywhere = np.ones(worth.shape, dtype=bool)
    groups_sure, groups_possible = _standing(p, worth, about, kept, everywhere, everywhere)
    surely, maybe = (np.repeat(part, width, axis=-1) for part in (groups_sure, groups_possible))
    sure, possible = _standing(p, scores, room, count, surely, maybe, width)
    inside, _tied = in_best_groups(scores, groups, kept, rule)
    likely, _tied = chosen_of(inside, count)
    there = np.isfinite(inside) | ~np.isfinite(scores)
    likely_groups, _tied = chosen_of(worth, kept)
    spread = None if usual is None else np.sqrt(best(np.square(usual)))
    clear = apart(p, worth, spread, likely_groups).all(axis=-1, keepdims=True)
    far = clear & (apart(p, scores, usual, likely, there) | ~there)
    return likely, possible & ~sure, far


def _lost(parts: Data) -> Data:
    """What is lost where the two largest are added up in float64: a number of float64 itself."""
    b, a = np.moveaxis(np.sort(parts, axis=-1)[..., -2:], -1, 0)
    total = a + b
    second = total - a
    lost: Data = np.abs((a - (total - second)) + (b - second))
    return lost


def _standing(
    p: Precision,
    scores: Data,
    room: Data,
    count: int,
    surely: Truths,
    maybe: Truths,
    width: int = 0,
) -> tuple[Truths, Truths]:
    """(Surely, perhaps) among the largest of the scores that count.

    `surely` and `maybe` say which scores count.  If one does, so do the others of its group of
    neighbours, which is so wide.
    """
    sure, possible = np.zeros((2, *scores.shape), dtype=bool)
    group = np.arange(scores.shape[-1]) // width if width else np.zeros(scores.shape[-1])
    together = group[:, None] == group[None, :]
    for row in range(len(scores)):
        before = surely_before(scores[row], room[row], exactly=p.store.half == 0)
        rivals = before & (surely[row][:, None] | together)
        possible[row] = maybe[row] & (rivals.sum(axis=0) < count)
        others = ~before.T & maybe[row][:, None]
        np.fill_diagonal(others, False)
        sure[row] = surely[row] & (others.sum(axis=0) < count)
    return sure, possible


def softened(p: Precision, scores: Data) -> Data:
    """How far apart scores may be, each way, whose shares in a softmax come in another order."""
    island = p.island
    down = scores.max(axis=-1, keepdims=True) - scores
    off: Data = down * (2 * island.work.half) + np.abs(scores) * island.cast
    if p.store.half:
        off += 1.01 * island.function + 4 * island.work.half
        off += p.store.half if p.narrow else 0.0
        least = max(island.work.least, p.store.least) if p.narrow else island.work.least
        lost = (4 * least * scores.shape[-1]) * np.exp(down)  # of a share, relative to it
        off += np.where(lost < 0.5, 2 * lost, inf)
    return off


def surely_before(scores: Data, room: Data, *, exactly: bool) -> Truths:
    """[j, k]: whether score j is larger than score k however rounding goes; or equal and first."""
    ahead = scores[:, None] - scores[None, :]
    apart = (room[:, None] + room[None, :]) * UP
    before: Truths = ahead * SURELY > apart
    if exactly:
        first = np.arange(len(scores))[:, None] < np.arange(len(scores))[None, :]
        before |= (ahead == 0) & (apart == 0) & first
    return before


def apart(
    p: Precision, scores: Data, usual: Data | None, likely: Truths, there: Truths | None = None
) -> Truths:
    """Whether a score is far from the edge of the choice, in units of the usual error.

    `there`: which of the scores take part; all of them where nothing is said.
    """
    others = ~likely if there is None else there & ~likely
    if not others.any(axis=-1).all():  # nothing is left out
        return np.ones(scores.shape, dtype=bool)
    lowest = np.where(likely, scores, inf).argmin(axis=-1)[:, None]
    highest = np.where(others, scores, -inf).argmax(axis=-1)[:, None]
    edge = np.where(likely, highest, lowest)
    own = quadrature(usual, 0.4 * softened(p, scores))
    assert own is not None
    other = np.take_along_axis(own, edge, axis=-1)
    distance = np.abs(scores - np.take_along_axis(scores, edge, axis=-1))
    far: Truths = distance > CLEARLY * np.hypot(own, other)
    return far
