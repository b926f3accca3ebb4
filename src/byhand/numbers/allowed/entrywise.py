"""What is done to each entry of a range on its own: factors, caps, limits, parts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from byhand.expression import Expression
from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.attention import capped, free_of_rounding
from byhand.numbers.allowed.precisions import OWN, Precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    Data,
    Range,
    product_radius,
    product_usual,
    quadrature,
    wide,
)
from byhand.numbers.allowed.rounding import Rounding, overflowing, quiet
from byhand.numbers.base import Array

EVERYWHERE = 8  # bits of a number that every float format has


class Entrywise(Rounding):
    """rescale, soft_cap, clamp, weigh, beside, bucket_scores."""

    @quiet(all="ignore")
    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Range:
        """The factor, or what is divided by, may be rounded to the format, and so may the sum."""
        p, x = self.precision, self._unrounded(x)
        mid, rad, usual = wide(x.mid), x.radius(), x.usual
        if by is not None:
            factor, off = constant(by)
            mid = mid * factor
            relative = 2 * p.store.half + off + 2 * OWN
            room = np.abs(mid) * relative + p.work.least
            if rad is not None:
                room += rad * (abs(factor) * (1 + relative))
            rad, usual = room, None if usual is None else usual * abs(factor)
            if not free_of_rounding(factor, off):  # the same for all entries
                usual = quadrature(usual, np.abs(mid) * (0.6 * p.store.half))
        if plus is None:
            return self._stored(mid, rad, usual)
        shift, off = constant(plus)
        size = np.abs(mid)
        room = size * p.store.half + abs(shift) * (p.store.half + off) + p.work.least
        if rad is not None:
            room += rad * (1 + p.store.half)
        overflowing(room, size, p.reach)
        return self._stored(mid + shift, room, quadrature(usual, size * (TYPICAL * p.work.half)))

    @quiet(all="ignore")
    def soft_cap(self, x: Array, *, cap: Fraction) -> Range:
        x = self._unrounded(x)
        zeros = np.zeros(x.shape)
        rad, usual = x.radius(), x.usual
        rad, usual = (zeros if part is None else part for part in (rad, usual))
        return self._stored(*capped(self.precision, float(cap), wide(x.mid), rad, usual))

    @quiet(all="ignore")
    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Range:
        """Nothing is rounded but the limits; the result moves no further than x and they do."""
        x = self._unrounded(x)
        mid, rad, usual = wide(x.mid), x.radius(), x.usual
        for end, side in ((least, -1.0), (most, 1.0)):
            if end is None:
                continue
            limit, off = float(end), moved_limit(self.precision, end)
            room = np.zeros(mid.shape) if rad is None else rad
            ahead = (limit - mid) * side  # how far the limit is still away; rounded: once
            near = ahead <= (room + off) * (1 + 4 * OWN)
            beyond = ahead < -(room + off) * (1 + 4 * OWN)
            mid = np.where(ahead < 0, limit, mid)
            held = np.where(beyond, off, np.maximum(room, off))
            rad = np.where(near, np.where(np.isinf(room), room, held), room)
            usual = None if usual is None else np.where(beyond, 0.0, usual)
        return Range(mid, rad, usual)

    @quiet(all="ignore")
    def weigh(self, x: Array, by: Array) -> Range:
        x, by = self._unrounded(x), self._unrounded(by)
        return self._stored(wide(x.mid) * wide(by.mid), product_radius(x, by), product_usual(x, by))

    def beside(self, x: Array, y: Array) -> Range:
        x = self._read(x)
        y = self._read(y).each(lambda part: np.broadcast_to(part, (len(x), *part.shape[1:])))

        def both(a: Data | None, b: Data | None) -> Data | None:
            if a is None and b is None:
                return None
            there = np.zeros(x.shape) if a is None else a, np.zeros(y.shape) if b is None else b
            return np.concatenate(there, axis=-1)

        mid = np.concatenate((wide(x.mid), wide(y.mid)), axis=-1)
        return Range(mid, both(x.radius(), y.radius()), both(x.usual, y.usual))

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Range:
        """Entries of a table, which nobody rounds."""
        rows = self.admit(table)[np.asarray(buckets, dtype=np.intp)]
        rows = rows.each(lambda part: np.moveaxis(part, -1, 0))
        return Range(wide(rows.mid), rows.radius(), rows.usual)


def moved_limit(p: Precision, end: Fraction) -> float:
    """How far a limit may be off: rounded to the format, where that does not have it."""
    odd = end.numerator // (end.numerator & -end.numerator) if end else 0
    short = odd.bit_length() <= EVERYWHERE and end.denominator & (end.denominator - 1) == 0
    return 0.0 if short else abs(float(end)) * (p.store.half + 4 * OWN) + p.store.least
