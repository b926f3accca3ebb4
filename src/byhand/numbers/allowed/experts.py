"""Experts on ranges: which are chosen, the share of each, and the sum of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np

from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.attention import Attention, shares_of
from byhand.numbers.allowed.choices import apart, chosen_in_groups, softened, unsure
from byhand.numbers.allowed.precisions import OWN, Precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
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
    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Range:
        """1 or 0; where rounding leaves the choice open, the likelier of both with a radius of 1.

        Implementations compare the scores, or their shares in a softmax.  What is equal up to
        rounding may be chosen in any order.  Equal numbers that nobody rounds are chosen in order.
        """
        x = self._read(x)
        p = self.precision
        scores, radius = wide(x.mid), x.radius()
        room = softened(p, scores) if radius is None else softened(p, scores) + radius
        if groups is None or groups_chosen is None:
            likely, _tied = chosen_of(scores, count)
            open_, far = unsure(p, scores, room, count), apart(p, scores, x.usual, likely)
        else:
            way = (groups, groups_chosen, group_rule or "max")
            likely, open_, far = chosen_in_groups(p, scores, room, x.usual, count, way)
        usual = np.where(open_ & ~far, inf, 0.0)
        return Range(likely * 1.0, open_ * 1.0, usual, origin=Origin(choice=True))

    @quiet(all="ignore")
    def expert_shares(
        self,
        x: Array,
        chosen: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Range:
        x, chosen = self._read(x), self._read(chosen)
        island = self.precision.island
        likely, never, unsure = _standing(chosen)
        away = ~likely
        undecided = (unsure.any(axis=-1, keepdims=True) if normalised else unsure) & ~never
        if alone:
            share, room, spread = self._of_sums(x, away, normalised, eps)
            most = _open_parts(x, never) if normalised else np.abs(wide(x.mid)) + room
        else:
            among = Range(x.mid, x.radius(), x.usual, away if normalised else None)
            share, room, spread = shares_of(island, among)
            if normalised:
                room = room + self._of_all_first(island, wide(x.mid), away, share)
            most = np.maximum(share, 1.0) if normalised else share + room
        room = np.where(undecided, most, room)
        if chosen.usual is not None:
            spread = np.where(undecided & (chosen.usual > 0), inf, spread)
        for part in (share, room, spread):
            np.copyto(part, 0.0, where=never)
        np.copyto(share, 0.0, where=away)
        if scale is not None:
            share, room, spread = self._scaled(share, room, spread, scale)
        room = self._narrower(island, share, room)
        done = self._stored(share, room, spread, absent=never)
        return Range(done.mid, done.rad, done.usual)

    def _of_sums(
        self, x: Range, away: Truths, normalised: bool, eps: Fraction | None
    ) -> tuple[Data, Data, Data]:
        """The scores of the likely experts themselves, or over their sum, plus eps."""
        p = self.precision
        zeros = np.zeros(x.shape)
        rad, usual = x.radius(), x.usual
        rad, usual = (zeros if part is None else part for part in (rad, usual))
        data = wide(x.mid)
        if not normalised:
            return data.copy(), rad.copy(), usual.copy()
        there, r_there = np.where(away, 0.0, data), np.where(away, 0.0, rad)
        more, off = (0.0, 0.0) if eps is None else constant(eps)
        total = there.sum(axis=-1, keepdims=True) + more
        sizes = np.abs(there).sum(axis=-1, keepdims=True) + abs(more)
        count = data.shape[-1] + 1
        unit = max(p.rows.half, p.store.half)  # the sum may be stored on the way
        moved = sizes * (float(gammas(np.asarray(count), unit)) + count * OWN) + abs(more) * (
            unit + off
        )
        moved += r_there.sum(axis=-1, keepdims=True) + count * max(p.rows.least, p.store.least)
        below = np.abs(total) - moved * (1 + 4 * OWN)  # rounded: 4 OWN of what is taken away
        share = there / total
        size = np.abs(share)
        room = (rad + size * moved) / below * (1 + 4 * OWN) + size * (2 * p.work.half + 4 * OWN)
        room = np.where(below > 0, room + p.work.least, inf)
        spread = np.square(usual / total) + np.square(size * (0.6 * p.work.half))
        spread += np.square(share / total) * np.square(np.where(away, 0.0, usual)).sum(
            axis=-1, keepdims=True
        )
        return np.where(total == 0, 0.0, share), room, np.sqrt(spread)

    def _scaled(
        self, share: Data, room: Data, spread: Data, scale: Fraction
    ) -> tuple[Data, Data, Data]:
        """Shares, which may be stored before, times a number that may be rounded to the format."""
        factor, off = constant(scale)
        store, size = self.precision.store, abs(factor)
        relative = 2 * store.half + off + 4 * OWN
        mid = share * factor
        rad = room * (size * (1 + relative)) + np.abs(mid) * relative + store.least * (1 + size)
        usual = quadrature(spread * size, np.abs(mid) * (TYPICAL * store.half))
        assert usual is not None
        return mid, rad, usual

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


def _open_parts(x: Range, never: Truths) -> Data:
    """How far a part of a sum may be from the likely one where it is open who is added up.

    Parts of numbers that are not negative are from 0 to 1, but for rounding.
    """
    data, radius = wide(x.mid), x.radius()
    least = data if radius is None else data - radius
    known = (never | (least >= 0)).all(axis=-1, keepdims=True)
    return np.broadcast_to(np.where(known, 1.0 + 2.0**-6, inf), x.shape)
