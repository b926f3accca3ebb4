"""The base of the operations on ranges: reading values, and rounding results to the format."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, ldexp

import numpy as np

from byhand.numbers.allowed.admitting import admitted
from byhand.numbers.allowed.ggml import of_two_terms
from byhand.numbers.allowed.precisions import FLOAT64 as DOUBLE
from byhand.numbers.allowed.precisions import OWN, Precision, Unit, precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    Data,
    Origin,
    Range,
    Truths,
    plus,
    quadrature,
    upward,
    wide,
)
from byhand.numbers.base import Array, Numbers

quiet = np.errstate  # ∞ and NaN are expected here: NumPy must not warn
LEAST = ldexp(1.0, -1022)  # the largest loss of our own float64 below the normal numbers


def overflowing(radius: Data, sizes: Data, largest: float) -> Data:
    """The radius, set in place to ∞ where an intermediate result may exceed the largest number."""
    if not sizes.max(initial=0.0) <= largest:
        radius[~(sizes <= largest)] = inf
    return radius


class Rounding(Numbers):
    """The rounding of implementations of one precision."""

    def __init__(self, format: str | Precision = "float32") -> None:
        super().__init__()
        self.precision = precision(format) if isinstance(format, str) else format

    @quiet(all="ignore")
    def admit(self, data: Array) -> Range:
        """Weights as they are, without a copy; for 16-bit formats they are cast first."""
        return data if isinstance(data, Range) else admitted(data, self.precision)

    @quiet(all="ignore")
    def admit_weight(
        self, data: Array, stored: str | None = None, addends: Callable[[], Array] | None = None
    ) -> Range:
        """A weight; where the precision goes by it, with the format of its file."""
        weight = self.admit(data)
        if not self.precision.ggml or stored is None:
            return weight
        if addends is not None:
            weight = of_two_terms(weight, wide(addends()), self.precision)
        weight.stored = stored
        return weight

    def _read(self, x: Array) -> Range:
        """A value as an operation reads it, rounded to the format if it was not yet."""
        if not isinstance(x, Range):
            return self.admit(x)
        if x.origin is not None and x.origin.unstored:
            return self._stored(x.mid, x.rad, x.usual, own=0.0)
        return x

    def _unrounded(self, x: Array) -> Range:
        """A value as a fused kernel may read it: a claim before it was rounded to the format."""
        read, store = self._read(x), self.precision.store
        if not (self.precision.fused and read.claimed and store.half):
            return read
        size = np.abs(wide(read.mid))
        rad = plus(read.radius(), size * (store.half * (1 + 2 * store.half)) + store.least)
        usual = quadrature(read.usual, size * (TYPICAL * store.half))
        return Range(read.mid, rad, usual, read.absent, claimed=True, origin=read.origin)

    def _stored(
        self,
        mid: Data,
        rad: Data | None,
        usual: Data | None = None,
        *,
        own: float = 2 * OWN,
        origin: Origin | None = None,
        absent: Truths | None = None,
        settled: bool = False,
        store: Unit | None = None,
    ) -> Range:
        """The result of an operation, rounded to the format.

        Before that rounding an implementation is within `rad` of the exact result, and usually
        within `usual`.  `mid` is within `own`·|mid| of it; any further error is in `rad`.
        `settled`: the usual error is already that of the rounded result.  `store` is the rounding,
        where it is another than usual.
        """
        store = self.precision.store if store is None else store
        size = np.abs(mid)
        room = size * (store.half + own * (1 + store.half))
        if rad is not None:
            room += rad * (1 + store.half) if store.half else rad
        room += store.least + LEAST
        upward(room)
        if not np.isfinite(mid.sum()):
            room[~np.isfinite(mid)] = inf
        if absent is not None:
            for part in (mid, room, size):
                np.copyto(part, 0.0, where=absent)
        spread = usual
        if store.half and not settled:
            spread = size * (TYPICAL * store.half)
            spread += TYPICAL * store.least  # of float16, what is lost below its normal numbers
            spread = quadrature(usual, spread)
        if store.largest < DOUBLE.largest:
            size += room
            overflowing(room, size, store.largest)
        return Range(mid, room, spread, absent, origin=origin)

    def _narrower(self, p: Precision, mid: Data, rad: Data) -> Data:
        """The radius plus the last rounding of an island that is coarser than the stored format:
        float32 inside float64."""
        if p.work.half <= self.precision.store.half:
            return rad
        return rad + (np.abs(mid) + rad) * p.work.half + p.work.least

    def _part(self, p: Precision, mid: Data, rad: Data, usual: Data | None, made: Origin) -> Range:
        """A part of a norm: stored, or left in the working format where islands leave it."""
        made.inside = True
        if not p.unstored:
            return self._stored(mid, self._narrower(p, mid, rad), usual, origin=made)
        made.unstored = True
        work = p.work.half
        room = rad * (1 + work) + np.abs(mid) * (work + 2 * OWN * (1 + work)) + p.work.least
        upward(room)
        if not np.isfinite(mid.sum()):
            room[~np.isfinite(mid)] = inf
        return Range(mid, room, quadrature(usual, np.abs(mid) * (TYPICAL * work)), origin=made)
