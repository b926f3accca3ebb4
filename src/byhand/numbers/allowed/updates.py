"""The steps of an optimizer on ranges: torch's, one tensor at a time, many, or fused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.precisions import FLOAT32, OWN, Precision, precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    Data,
    Origin,
    Range,
    gamma,
    plus,
    quadrature,
    upward,
    wide,
)
from byhand.numbers.allowed.rounding import Rounding, overflowing, quiet
from byhand.numbers.base import Array

LONG = 1 << 20  # terms from which on a sum is vectorised: at most one in eight follows another
ALONG = 1 << 14  # terms that usually follow one another
FADING = 1024.0  # at most 1/(1 - β): how much β, rounded to the format, moves 1 - β^t


class Updates(Rounding):
    """sum_squares, norm, clip_factor, blend, root_plus, divide."""

    @property
    def _stepping(self) -> Precision:
        """The precision of parameters: with autocast they are float32, and so are their states."""
        if self.precision.inputs is None:
            return self.precision
        return precision("float32")

    def _settled(self, mid: Data, rad: Data, usual: Data | None) -> Range:
        return self._stored(mid, rad, usual, store=self._stepping.store)

    @quiet(all="ignore")
    def sum_squares(self, x: Array) -> Range:
        """Of 16 bits in float32; the root may be stored, and squared again for the whole norm."""
        x, p = self._read(x), self._stepping
        data, radius = wide(x.mid).ravel(), x.radius()
        n = data.size
        mid = np.square(data).sum(keepdims=True)
        count = n if n <= LONG else max(LONG, n // 8)
        unit = p.rows.half
        relative = gamma(count + 1, unit) + 2.1 * p.function + 2.1 * p.store.half
        rad = mid * (relative + (n + 2) * OWN) + 2 * n * FLOAT32.least * bool(unit)
        usual = mid * (p.usual_sum(n, ALONG)[0] + TYPICAL * p.store.half)
        if radius is not None:
            moved = 2 * np.abs(data) @ radius.ravel() + radius.ravel() @ radius.ravel()
            rad += moved * (1 + relative)
        if x.usual is not None:
            squares = np.square(data * x.usual.ravel()).sum(keepdims=True)
            usual = np.hypot(usual, 2 * np.sqrt(squares))
        overflowing(rad, mid + rad, FLOAT32.largest if p.narrow else p.store.largest)
        return Range(mid, upward(rad), usual, origin=Origin(unstored=p.narrow))

    @quiet(all="ignore")
    def norm(self, **squares: Array) -> Range:
        p, parts = self._stepping, list(squares.values())
        whole = np.asarray(sum(wide(part.mid) for part in parts))
        off = plus(*(part.radius() for part in parts))
        unit = p.rows.half
        more = whole * (gamma(len(parts) + 1, unit) + (len(parts) + 2) * OWN)
        return self._settled(*_root(whole, plus(off, more), _usual(*parts), p))

    @quiet(all="ignore")
    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Range:
        norm, p = self._read(norm), self._stepping
        top, below = constant(limit)[0], wide(norm.mid) + constant(eps)[0]
        factor = top / below
        off = factor * (4 * p.work.half + 6 * OWN) + p.work.least
        if (radius := norm.radius()) is not None:
            off += factor * radius / np.maximum(below - radius, 0.0) * (1 + 8 * p.work.half)
        mid = np.minimum(factor, 1.0)
        low, high = np.minimum(factor - off, 1.0), np.minimum(factor + off, 1.0)
        usual = np.minimum(factor * (0.5 * p.work.half), off)
        if norm.usual is not None:
            usual = np.minimum(np.hypot(usual, factor * norm.usual / below), off)
        free = low >= 1
        return self._settled(mid, np.maximum(mid - low, high - mid), np.where(free, 0.0, usual))

    @quiet(all="ignore")
    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Range:
        """Rounded once for each of three factors and sums, or x moves to y by a part of the way.

        Factors that are 1 together are β and 1 - β, whose β may be rounded to float32; a factor
        alone is 1/(1 - β^t), of such a β.
        """
        p = self._stepping
        y = self._read(y)
        other = _squared(y) if squared else y
        f_x, f_y = constant(of_x)[0], constant(of_y)[0]
        there, here = np.abs(wide(other.mid)), np.zeros(1)
        mid, rad = wide(other.mid) * f_y, _times(other.radius(), abs(f_y))
        usual = _times(other.usual, abs(f_y))
        if x is not None:
            x = self._read(x)
            here = np.abs(wide(x.mid))
            mid = mid + wide(x.mid) * f_x
            rad = plus(rad, _times(x.radius(), abs(f_x)))
            usual = quadrature(usual, _times(x.usual, abs(f_x)))
        size = here * abs(f_x) + there * abs(f_y)
        blurred = np.zeros(1)  # by β
        if of_x + of_y == 1:
            blurred, size = here + there, size + here * abs(f_y)
        elif not of_x:
            blurred = size * FADING
        room = size * (gamma(4, p.work.half) + 8 * OWN) + 3 * p.work.least
        room += blurred * (2 * p.single)
        overflowing(room, size, p.reach)
        spread = np.hypot(size * (TYPICAL * p.work.half), blurred * (TYPICAL * p.single))
        return self._settled(mid, room if rad is None else room + rad, quadrature(usual, spread))

    @quiet(all="ignore")
    def root_plus(self, x: Array, *, eps: Fraction) -> Range:
        x, p = self._read(x), self._stepping
        mid, rad, usual = _root(wide(x.mid), x.radius(), x.usual, p)
        shift = constant(eps)[0]
        rad += shift * (2 * p.work.half + 4 * OWN) + p.work.least
        return self._settled(mid + shift, rad, usual)

    @quiet(all="ignore")
    def divide(self, x: Array, y: Array) -> Range:
        x, y, p = self._read(x), self._read(y), self._stepping
        top, below = wide(x.mid), wide(y.mid)
        r_x, r_y = x.radius(), y.radius()
        mid = top / below
        size = np.abs(mid)
        rad = size * (4 * p.work.half + 4 * OWN) + p.work.least * (1 + np.abs(top))
        least = np.abs(below) if r_y is None else np.maximum(np.abs(below) - r_y * (1 + 4 * OWN), 0)
        for radius, times in ((r_x, 1.0), (r_y, size)):
            if radius is not None:
                rad += radius / least * times * (1 + 8 * p.work.half)
        usual = size * (TYPICAL * p.work.half)
        for spread, times in ((x.usual, 1.0), (y.usual, size)):
            if spread is not None:
                usual = np.hypot(usual, spread / np.abs(below) * times)
        return self._settled(mid, np.where(least > 0, rad, np.inf), usual)


def _root(
    under: Data, radius: Data | None, spread: Data | None, p: Precision
) -> tuple[Data, Data, Data]:
    """√x with its radius and usual error; a negative x may have come from anywhere."""
    below = under < 0
    under = np.maximum(under, 0.0)
    mid = np.sqrt(under)
    moved = np.zeros(mid.shape)
    if radius is not None:
        # |√(v + d) - √v| is d/(√v + √(v + d)), and at most √|d|
        low = np.sqrt(np.maximum(under - radius * (1 + 4 * OWN), 0.0))
        moved = np.fmin(np.sqrt(radius), radius / (mid + low))
    rad = moved + (mid + moved) * (p.function + 3 * p.work.half + 4 * OWN)
    usual = mid * (TYPICAL * p.work.half)
    if spread is not None:
        usual = np.hypot(usual, np.fmin(spread / (2 * mid), np.sqrt(spread)))
    return mid, np.where(below, np.inf, rad), usual


def _squared(x: Range) -> Range:
    data, radius, spread = wide(x.mid), x.radius(), x.usual
    size = np.abs(data)
    rad = None if radius is None else (2 * size + radius) * radius
    usual = None if spread is None else (2 * size + spread) * spread
    return Range(np.square(data), rad, usual)


def _times(part: Data | None, factor: float) -> Data | None:
    return None if part is None else part * factor


def _usual(*parts: Range) -> Data | None:
    return quadrature(*(part.usual for part in parts))
