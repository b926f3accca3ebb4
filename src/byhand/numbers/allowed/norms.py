"""The parts of layernorm and RMSNorm on ranges.

Where a part was not claimed, the next part knows how it was made.  The error of a mean is shared by
a whole row, whose centred entries sum to 0.  A normalised entry may have been computed as x/std -
mean/std.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np

from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.precisions import OWN, ROW, Precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    Data,
    Origin,
    Range,
    gamma,
    plus,
    product_radius,
    product_usual,
    quadrature,
    wide,
)
from byhand.numbers.allowed.rounding import Rounding, overflowing, quiet
from byhand.numbers.base import Array, Note


class Norms(Rounding):
    """mean, center, mean_square, root, normalize, affine."""

    def _norm_precision(self, centred: bool) -> Precision:
        """The precision of a norm: float32 for 16-bit formats, and for RMSNorm in float64."""
        if centred and not self.precision.narrow:
            return self.precision
        return self.precision.island

    @quiet(all="ignore")
    def mean(self, x: Array) -> Range:
        x = self._unrounded(x)
        p = self._norm_precision(centred=True)
        data, unit = wide(x.mid), p.rows.half
        n = data.shape[-1]
        mid = data.mean(axis=-1)
        size = np.abs(data).mean(axis=-1)
        # a sum and a quotient; Welford's running mean adds 1 + 2·ln n roundings to as many
        relative = gamma(n + 2 + 2 * ceil(log(n)) if n > 1 else 2, unit)
        # of the sum n partial sums may be flushed to 0, of Welford's way three numbers at each of n
        rad = size * (relative + (n + 2) * OWN) + (n + 2) * (1 + relative) * p.rows.least
        if (radius := x.radius()) is not None:
            rad += radius.mean(axis=-1) * (1 + relative)
        overflowing(rad, n * size, p.rows.largest / (1 + relative))
        along, across = p.usual_sum(n, ROW)
        spread = np.sqrt(np.square(data).mean(axis=-1) / n)
        usual = np.hypot(mid * (along + 0.4 * unit), spread * across)
        if x.usual is not None:
            usual = np.hypot(usual, np.sqrt(np.square(x.usual).mean(axis=-1) / n))
        return self._part(p, mid, rad, usual, Origin(centred=True))

    @quiet(all="ignore")
    def center(self, x: Array, mean: Array) -> Range:
        x = self._unrounded(x)
        p = self._norm_precision(centred=True)
        data = wide(x.mid)
        known = mean.radius()
        shift = np.zeros(mean.shape) if known is None else known
        rad = np.broadcast_to(shift[..., None], data.shape)
        if (radius := x.radius()) is not None:
            rad = rad + radius
        usual = x.usual
        if mean.usual is not None:
            shared = np.broadcast_to(mean.usual[..., None], data.shape)
            usual = shared if usual is None else np.hypot(usual, shared)
        parts = np.abs(data) + np.abs(wide(mean.mid))[..., None]
        made = Origin(centred=True, shift=shift, made_of=(x, mean), parts=parts)
        return self._part(p, data - mean.mid[..., None], rad, usual, made)

    @quiet(all="ignore")
    def mean_square(self, x: Array) -> Range:
        x = self._unrounded(x) if x.claimed else x
        made = x.origin if x.origin is not None else Origin()
        p = self._norm_precision(made.centred)
        data, unit = wide(x.mid), p.rows.half
        n = data.shape[-1]
        mid = np.square(data).mean(axis=-1)
        relative = (1 + gamma(n + 3, unit)) * (1 + p.work.half) * (1 + p.cast) ** 2 - 1
        rad = mid * (relative + (n + 4) * OWN) + p.rows.least + p.work.least
        if (radius := x.radius()) is not None:
            moved = np.square(radius).mean(axis=-1)
            size = np.abs(data)
            if made.shift is None:
                moved += 2 * (size * radius).mean(axis=-1)
            else:
                # (c + s + e)² with s shared by the row: 2s·mean(c) + 2·mean(ce) + mean((s + e)²)
                alone = np.maximum(radius - made.shift[..., None], 0.0) + 4 * OWN * radius
                lean = np.abs(data.mean(axis=-1)) + (n + 2) * OWN * size.mean(axis=-1)
                moved += 2 * (size * alone).mean(axis=-1) + 2 * lean * made.shift
            rad += moved * (1 + relative)
        if made.made_of is not None:
            std = np.sqrt(mid) if radius is None else np.sqrt(mid) + np.sqrt(moved)
            rad += _other_ways(std, made.made_of[0], p, n)
        overflowing(rad, n * (mid + rad), p.rows.largest)
        usual = mid * (p.usual_sum(n, ROW)[0] + 0.5 * unit)
        if x.usual is not None:
            usual = np.hypot(usual, 2 * np.sqrt(np.square(data * x.usual).mean(axis=-1) / n))
        return self._part(p, mid, rad, usual, Origin(centred=made.centred))

    @quiet(all="ignore")
    def root(self, x: Array, *, eps: Fraction) -> Range:
        centred = x.origin is not None and x.origin.centred
        p = self._norm_precision(centred)
        shift, off = constant(eps)
        under = wide(x.mid) + shift
        below = under < 0  # a variance claimed to be negative has no root
        under = np.maximum(under, 0.0)
        mid = np.sqrt(under)
        rad = under * (p.work.half + 2 * OWN) + abs(shift) * (p.work.half + off) * (1 + p.work.half)
        rad += 2 * p.work.least  # of eps, and of the sum
        if (radius := x.radius()) is not None:
            rad += radius * (1 + p.work.half)
        # |√(v + d) - √v| is d/(√v + √(v + d)), and at most √|d|
        low = np.sqrt(np.maximum(under - rad * (1 + 4 * OWN), 0.0))
        moved = np.fmin(np.sqrt(rad), rad / (mid + low))
        rad = np.where(below, np.inf, moved + (mid + moved) * p.function)
        usual = mid * (0.4 * p.work.half)
        if x.usual is not None:
            usual = np.hypot(usual, np.fmin(x.usual / (2 * mid), np.sqrt(x.usual)))
        return self._part(p, mid, rad, usual, Origin(centred=centred))

    @quiet(all="ignore")
    def normalize(self, x: Array, by: Array) -> Range:
        x = self._unrounded(x) if x.claimed else x
        made = x.origin if x.origin is not None else Origin()
        p = self._norm_precision(made.centred)
        unit = p.work.half
        top, below = wide(x.mid), wide(by.mid)[..., None]
        mid = top / below
        r_x, r_by = x.radius(), by.radius()
        size = np.abs(mid)
        rad = size * ((1 + unit) * (1 + p.cast) - 1 + 4 * OWN)  # by a reciprocal, at the worst
        rad += (np.abs(top) if r_x is None else np.abs(top) + r_x) * p.work.least
        least = below
        if p.cast:  # a number that is below the normal ones of the working format loses more
            rad += p.work.least / below
            overflowing(rad, np.abs(top), p.work.largest)
        if r_by is None or by.claimed:  # it is the root, what was used may be a reciprocal root
            rad += size * (2 * p.function)
        if r_by is not None:
            least = np.maximum(below - r_by[..., None] * (1 + 4 * OWN), 0.0)
            rad += size * (r_by[..., None] / least) * (1 + 4 * unit)
        if r_x is not None:
            rad += r_x / least * (1 + 4 * unit)
        if made.made_of is not None:  # x/std - mean/std: each is rounded before they cancel
            whole, middle = made.made_of
            sizes = np.abs(wide(whole.mid)) + np.abs(middle.mid)[..., None]
            parts = sizes / least
            rad += parts * (1.05 * unit) + 2 * p.work.least
            overflowing(rad, parts, p.reach)
        overflowing(rad, np.broadcast_to(1 / least, rad.shape), p.reach)
        usual = size * (0.5 * unit)
        if by.usual is not None:
            usual = np.hypot(usual, size * (by.usual[..., None] / below))
        if x.usual is not None:
            usual = np.hypot(usual, x.usual / below)
        if not below.all():
            mid, rad = self._over_zero(top, below, mid, rad, exact=r_x is None and r_by is None)
        parts = None if made.parts is None else made.parts / least
        return self._part(p, mid, rad, usual, Origin(centred=made.centred, parts=parts))

    def _over_zero(
        self, top: Data, below: Data, mid: Data, rad: Data, *, exact: bool
    ) -> tuple[Data, Data]:
        """Zero for a row of zeros over zero, the limit eps → 0; else unknown."""
        zero = below == 0
        nothing = zero & ~top.any(axis=-1, keepdims=True)
        for place in map(tuple, np.argwhere(nothing[..., 0])):
            self.notes.append(Note("zero-variance", tuple(map(int, place))))
        known = nothing & exact
        return np.where(zero, 0.0, mid), np.where(known, 0.0, np.where(zero, np.inf, rad))

    @quiet(all="ignore")
    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Range:
        p = self.precision
        if gain is None and bias is None:
            return self._read(x)
        if p.unstored:  # RMSNorm rounds before the gain; layernorm, which does not, is inside
            x = self._read(x)
        x = self._unrounded(x) if x.claimed else x
        mid, rad, usual = wide(x.mid), x.radius(), x.usual
        if gain is not None:
            factor = self._one_more(self.admit(gain)) if plus_one else self.admit(gain)
            rad = product_radius(Range(mid, rad), factor)
            usual = product_usual(Range(mid, None, usual), factor)
            mid = mid * wide(factor.mid)
            if bias is not None:
                usual = quadrature(usual, np.abs(mid) * (TYPICAL * p.work.half))
        if bias is not None:
            more = self.admit(bias)
            if gain is not None:
                product = np.abs(mid)
                room = product * (p.work.half + OWN) + p.work.least
                rad = plus(rad, overflowing(room, product, p.reach))
            rad = plus(rad, more.radius())
            mid = mid + wide(more.mid)
        return self._stored(mid, rad, usual)

    def _one_more(self, gain: Range) -> Range:
        """1 + gain, which may be rounded; or a row and its product with the gain are added up."""
        p, data = self.precision, wide(gain.mid)
        rad = plus((1 + np.abs(data)) * (p.work.half + 2 * OWN) + p.work.least, gain.radius())
        usual = quadrature(gain.usual, np.abs(1 + data) * (TYPICAL * p.work.half))
        return Range(1 + data, rad, usual)


def _other_ways(std: Data, x: Range, p: Precision, n: int) -> Data:
    """The further error of Welford's variance, and where allowed of the one-pass variance.

    With E = u·rms(x)·(0.472·n + 4.7·√(1 + ln n)), a bound of √(mean e²) for the errors e of the
    running means: 2·√2·std·E + E² (README.md).
    """
    unit = p.rows.half
    squares = np.square(wide(x.mid)).mean(axis=-1)
    if (radius := x.radius()) is not None:
        squares = 2 * (squares + np.square(radius).mean(axis=-1))
    running = np.sqrt(squares) * (1.01 * unit * (0.472 * n + 4.7 * sqrt(1 + log(n))))
    running += (n + 3) * p.rows.least
    extra: Data = 2.83 * std * running + np.square(running)
    if p.one_pass:
        extra += 4 * gamma(n + 4, unit) * squares + 2 * p.rows.least
    return extra
