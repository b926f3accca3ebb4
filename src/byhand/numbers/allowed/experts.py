"""Experts on ranges: which are chosen, the share of each, and the sum of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from byhand.numbers.allowed.attention import Attention, shares_of
from byhand.numbers.allowed.largest import SURELY
from byhand.numbers.allowed.precisions import OWN, Precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    UP,
    Data,
    Origin,
    Range,
    Truths,
    gammas,
    quadrature,
    wide,
)
from byhand.numbers.allowed.rounding import overflowing, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats.results import chosen_of

CLEARLY = 16.0  # × the usual error: scores so far apart are usually in this order


class Experts(Attention):
    """expert_linear, choose, expert_shares, combine."""

    def stack(self, parts: Sequence[Array]) -> Range:
        ranges = [self._read(part) for part in parts]

        def stacked(arrays: list[Data | None]) -> Data | None:
            if all(array is None for array in arrays):
                return None
            zeros = np.zeros(ranges[0].shape)
            return np.stack([zeros if array is None else array for array in arrays])

        mid = np.stack([wide(each.mid) for each in ranges])
        return Range(mid, stacked([r.radius() for r in ranges]), stacked([r.usual for r in ranges]))

    def expert_linear(
        self, x: Array, weight: Array, *, bias: Array | None = None, layout: str
    ) -> Array:
        """x as it is stored, times the matrix of each expert."""
        more = None if bias is None else self.admit(bias)
        return super().expert_linear(self._read(x), self.admit(weight), bias=more, layout=layout)

    @quiet(all="ignore")
    def choose(self, x: Array, *, count: int) -> Range:
        """1 or 0; where rounding leaves the choice open, the likelier of both with a radius of 1.

        Implementations compare the scores, or their shares in a softmax.  What is equal up to
        rounding may be chosen in any order.  Equal numbers that nobody rounds are chosen in order.
        """
        x = self._read(x)
        p = self.precision
        scores, radius = wide(x.mid), x.radius()
        room = _softened(p, scores) if radius is None else _softened(p, scores) + radius
        likely, _tied = chosen_of(scores, count)
        rad = np.zeros(scores.shape)
        for row in range(len(scores)):
            before = _surely_before(scores[row], room[row], exactly=p.store.half == 0)
            possible = before.sum(axis=0) < count
            others = ~before.T
            np.fill_diagonal(others, False)
            sure = others.sum(axis=0) < count
            rad[row] = possible & ~sure
        usual = np.where(rad > 0, inf, 0.0)
        usual[_apart(p, scores, x.usual, likely)] = 0.0
        return Range(likely * 1.0, rad, usual, origin=Origin(choice=True))

    @quiet(all="ignore")
    def expert_shares(self, x: Array, chosen: Array, *, normalised: bool) -> Range:
        x, chosen = self._read(x), self._read(chosen)
        island = self.precision.island
        likely, never, unsure = _standing(chosen)
        away = ~likely
        among = Range(x.mid, x.radius(), x.usual, away if normalised else None)
        share, room, spread = shares_of(island, among)
        if normalised:
            room = room + self._of_all_first(island, wide(x.mid), away, share)
        undecided = (unsure.any(axis=-1, keepdims=True) if normalised else unsure) & ~never
        room = np.where(undecided, np.maximum(share, 1.0) if normalised else share + room, room)
        if chosen.usual is not None:
            spread = np.where(undecided & (chosen.usual > 0), inf, spread)
        for part in (share, room, spread):
            np.copyto(part, 0.0, where=never)
        np.copyto(share, 0.0, where=away)
        room = self._narrower(island, share, room)
        done = self._stored(share, room, spread, absent=never)
        return Range(done.mid, done.rad, done.usual)

    def _of_all_first(self, p: Precision, scores: Data, away: Truths, share: Data) -> Data:
        """What may be off further where shares of all experts are worked out first, and then
        divided by the sum of the chosen ones."""
        largest = np.where(away, -inf, scores).max(axis=-1, keepdims=True)
        below = scores.max(axis=-1, keepdims=True) - largest  # of the right choice: 0
        kept = p.work.half + (self.precision.store.half if self.precision.narrow else 0.0)
        count = share.shape[-1]
        relative = 2 * p.work.half + 2 * kept + gammas(np.asarray(count), p.rows.half)
        relative = relative + 2 * np.expm1(below * (2 * p.work.half + 2 * OWN))
        more: Data = share * (relative * (1 + 2**-20))
        more += 2 * p.work.least * count * np.exp(below)
        return more

    @quiet(all="ignore")
    def combine(self, x: Array, shares: Array) -> Range:
        """Each product and each sum may be stored, in any order; what has no share has no say."""
        p = self.precision
        x, shares = self._read(x), self._read(shares)
        r_x, r_s = x.radius(), shares.radius()
        part = wide(shares.mid).T[..., None]
        r_part = np.zeros(part.shape) if r_s is None else r_s.T[..., None]
        never = (part == 0) & (r_part == 0)
        answers = np.where(never, 0.0, wide(x.mid))
        moved = np.zeros(answers.shape) if r_x is None else np.where(never, 0.0, r_x)
        terms, sizes = part * answers, np.abs(part * answers)
        counts = np.count_nonzero(~never, axis=0)
        unit, least = max(p.accumulate.half, p.store.half), max(p.accumulate.least, p.store.least)
        relative = (1 + gammas(counts + 3.0, unit)) * (1 + p.entering) ** 2
        relative += -1 + (counts + 4) * OWN
        size = sizes.sum(axis=0)
        rad = size * relative + 2 * (1 + relative) * (counts + 1) * least
        free = r_part * np.abs(answers) + (np.abs(part) + r_part) * moved
        rad += np.where(never, 0.0, free).sum(axis=0) * (1 + relative)
        if p.entering_least:
            most = np.abs(answers) + moved + np.abs(part) + r_part
            rad += np.where(never, 0.0, most).sum(axis=0) * ((1 + relative) * p.entering_least)
        overflowing(rad, size, min(p.accumulate.largest, p.store.largest) / (1 + 4 * unit) ** 4)
        squares = np.square(terms).sum(axis=0)
        usual = np.sqrt(squares * (1 + counts / 2)) * (TYPICAL * unit)
        for spread, by in ((x.usual, part), (_turned(shares.usual), answers)):
            if spread is not None:
                more = np.where(never, 0.0, np.square(spread * by)).sum(axis=0)
                more[np.isnan(more)] = inf
                usual = np.sqrt(np.square(usual) + more)
        return self._stored(terms.sum(axis=0), rad, usual)


def _turned(usual: Data | None) -> Data | None:
    """(pos, expert) as (expert, pos, 1)."""
    return None if usual is None else usual.T[..., None]


def _standing(chosen: Range) -> tuple[Truths, Truths, Truths]:
    """Of each expert: whether it probably is chosen, surely is not, and whether that is open."""
    mid, radius = wide(chosen.mid), chosen.radius()
    known = np.ones(mid.shape, dtype=bool) if radius is None else radius == 0
    likely, never = mid > 0.5, known & (mid == 0)
    return likely, never, ~(never | (known & (mid == 1)))


def _softened(p: Precision, scores: Data) -> Data:
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


def _surely_before(scores: Data, room: Data, *, exactly: bool) -> Truths:
    """[j, k]: whether score j is larger than score k however rounding goes; or equal and first."""
    ahead = scores[:, None] - scores[None, :]
    apart = (room[:, None] + room[None, :]) * UP
    before: Truths = ahead * SURELY > apart
    if exactly:
        first = np.arange(len(scores))[:, None] < np.arange(len(scores))[None, :]
        before |= (ahead == 0) & (apart == 0) & first
    return before


def _apart(p: Precision, scores: Data, usual: Data | None, likely: Truths) -> Truths:
    """Whether a score is far from the edge of the choice, in units of the usual error."""
    if likely.all():
        return np.ones(scores.shape, dtype=bool)
    lowest = np.where(likely, scores, inf).argmin(axis=-1)[:, None]
    highest = np.where(likely, -inf, scores).argmax(axis=-1)[:, None]
    edge = np.where(likely, highest, lowest)
    own = quadrature(usual, 0.4 * _softened(p, scores))
    assert own is not None
    other = np.take_along_axis(own, edge, axis=-1)
    distance = np.abs(scores - np.take_along_axis(scores, edge, axis=-1))
    far: Truths = distance > CLEARLY * np.hypot(own, other)
    return far
