"""Ranges, and the arithmetic of their radii.

Radii are float64, computed to the nearest and then made larger: `upward` multiplies by 1 + 2^-32,
which pays for 2^20 roundings of non-negative terms (each at most a factor 1 + 2^-53, and nothing
is subtracted without a remark).  ∞ is a radius like others: of such an entry nothing is said, it
may even be NaN.  So 0·∞ is ∞ here: the implementation's own 0·∞ would be NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import hypot, inf, ldexp
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.allowed.precisions import Precision
from byhand.numbers.floats.formats import FLOAT64, widened

Data = npt.NDArray[Any]
Truths = npt.NDArray[np.bool_]
UP = 1 + ldexp(1.0, -32)
TYPICAL = 0.4  # the standard deviation of one rounding, in unit roundoffs of the number
CHUNK = 1 << 15  # entries that are worked on at a time, so that temporaries stay in the cache


@dataclass(eq=False, slots=True)
class Range:
    """Of each entry, all that is allowed: whatever lies within `rad` of `mid`.

    `mid` is what exact arithmetic gives from the middles of what was read, up to an error that is
    inside `rad`: float64, or for weights whatever float format they came in.  `usual` estimates,
    without proof, one standard deviation of what implementations give.  None stands for zeros.
    `absent` marks masked scores and weights.  What is known from outside, weights and claims, may
    be read as 0 where it is below `least`, the smallest normal number; what is worked out has that
    in its radius, since it may be 0 as soon as it is stored.
    """

    mid: Data
    rad: Data | None = None
    usual: Data | None = None
    absent: Truths | None = None
    relative: float = 0.0  # of weights: a further radius, times |mid|
    least: float = 0.0  # of weights and claims: below it they may be read as 0
    claimed: bool = False  # some of it at least: the implementation may have gone on from its own
    origin: Origin | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the middles."""
        return self.mid.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.mid.ndim

    def __len__(self) -> int:
        return len(self.mid)

    def __getitem__(self, index: Any) -> Range:
        return self.each(lambda part: part[index])

    def each(self, view: Callable[[Data], Data]) -> Range:
        """The same entries, or some of them, in another order: `view` is done to each array."""
        parts = (self.mid, self.rad, self.usual, self.absent)
        mid, rad, usual, absent = (None if part is None else view(part) for part in parts)
        assert mid is not None
        return Range(mid, rad, usual, absent, self.relative, self.least, self.claimed)

    def radius(self) -> Data | None:
        """`rad`, the relative part, and all that may be read as 0; None: zeros."""
        rad = self.rad
        if self.relative:
            part = np.abs(wide(self.mid)) * (self.relative * UP)
            rad = part if rad is None else (rad + part) * UP
        return self._read_as_zero(rad) if self.least else rad

    def _read_as_zero(self, rad: Data | None) -> Data | None:
        """The radius, as large as the number itself where that may be below `least`."""
        size = np.abs(wide(self.mid))
        small = size < (self.least if rad is None else self.least + rad)
        if not np.any(size[small] if size.ndim else size * small):
            return rad
        whole: Data = np.where(small, size, 0.0)
        return whole if rad is None else np.maximum(whole, rad)


@dataclass(eq=False, slots=True)
class Origin:
    """How a value was made, while nobody claims it: some bounds are tighter, or wider, for it."""

    shares: bool = False  # by a softmax: masked entries are 0
    unstored: bool = False  # still in the working format: not yet rounded to the one it is kept in
    centred: bool = False  # in a layernorm, not in RMSNorm
    addends: Data | None = None  # of a sum: |x| + |y|
    shift: Data | None = None  # of centred rows: the part of the radius that all of a row share
    made_of: tuple[Range, Range] | None = None  # of centred rows: x and its mean


def wide(x: Data) -> Data:
    """In float64; the array itself where it is already."""
    return widened(x, FLOAT64)


def upward(radius: Data) -> Data:
    """The radius made larger by what computing it may have lost, in place; NaN becomes ∞."""
    radius *= UP
    if np.isnan(radius.sum()):  # no radius is negative: only a NaN makes the sum NaN
        radius[np.isnan(radius)] = inf
    return radius


def plus(*parts: Data | None) -> Data | None:
    """The sum of those that are there."""
    total: Data | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def quadrature(*parts: Data | None) -> Data | None:
    """√(Σ part²) of those that are there: how independent errors add up."""
    there = [part for part in parts if part is not None]
    if len(there) < 2:
        return there[0] if there else None
    total: Data = np.square(there[0])
    for part in there[1:]:
        total += np.square(part)
    np.sqrt(total, out=total)
    return total


def product_radius(x: Range, y: Range) -> Data | None:
    """|x|·r_y + |y|·r_x + r_x·r_y: how far x·y moves when both move within their radii."""
    r_x, r_y = x.radius(), y.radius()
    parts = (
        None if r_y is None else np.abs(wide(x.mid)) * r_y,
        None if r_x is None else np.abs(wide(y.mid)) * r_x,
        None if r_x is None or r_y is None else r_x * r_y,
    )
    return plus(*parts)


def product_usual(x: Range, y: Range) -> Data | None:
    """The usual error that x·y has from its factors."""
    return quadrature(
        None if y.usual is None else np.abs(wide(x.mid)) * y.usual,
        None if x.usual is None else np.abs(wide(y.mid)) * x.usual,
    )


@lru_cache(maxsize=1024)
def gamma(count: int, unit: float) -> float:
    """k·u/(1 - k·u): the largest relative error of k roundings, one after the other."""
    product = count * unit
    return product / (1 - product) if product < 1 else inf


def gammas(counts: Data, unit: float) -> Data:
    """The same for an array of counts."""
    products = counts * unit
    return np.where(products < 1, products / (1 - products), inf)


def peaks(x: Data) -> Data:
    """√Σx²/Σ|x| of each row, with its axis: 1/√n where all are alike, 1 where one is all."""
    data = wide(x)
    lengths = np.sqrt(np.einsum("...i,...i->...", data, data))
    totals = np.abs(data).sum(axis=-1)
    ratios: Data = np.divide(lengths, totals, out=np.ones(totals.shape), where=totals > 0)
    return ratios[..., None]


def usual_of_sums(
    p: Precision,
    sums: Data,
    sizes: Data,
    peak: Data,
    count: int,
    *,
    each: float = 0.0,
    stored: bool = False,
) -> Data:
    """The usual error of sums of products, whose sizes are Σ|x||y|; `peak` is that of the rows x.

    √(Σ x²y²) is about 1.25·peak·size: 1.25 is √(mean y²)/mean|y| of a normal distribution.
    `each` is a further usual error of each term, relative to it; `stored` takes the rounding of
    the result into account as well.  What enters a product may be cut off, always towards 0.
    """
    along, across = p.usual_sum(count)
    along = hypot(along, 0.5 * p.entering, TYPICAL * p.store.half * stored)
    across = hypot(across, 0.3 * p.entering, each)
    usual: Data = np.multiply(sizes, peak * (1.25 * across), dtype=np.float64)
    np.square(usual, out=usual)
    usual += np.square(sums * along)
    if stored:
        usual += (TYPICAL * p.store.least) ** 2
    np.sqrt(usual, out=usual)
    return usual
