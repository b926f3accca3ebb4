"""Ranges, and the arithmetic of their radii.

Radii are float64, rounded to nearest and then enlarged.  `upward` multiplies by 1 + 2^-32, which
covers 2^20 roundings of non-negative terms, each at most a factor 1 + 2^-53.  Every subtraction has
a comment of its own.  An entry of radius ∞ may be anything, even NaN.  So 0·∞ is ∞ here: the
implementation's own 0·∞ would be NaN.
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
    """All allowed values of each entry: those within `rad` of `mid`.

    `mid` is the exact result for the middles of the inputs, up to an error that `rad` includes.  It
    is float64, or for weights the float format they came in.  `usual` estimates, without proof, the
    standard deviation of what implementations give.  None stands for zeros.  `absent` marks masked
    scores and weights.  Weights and claims below `least`, the smallest normal number, may be read
    as 0.  Results have this in their radius, since they may become 0 when stored.
    """

    mid: Data
    rad: Data | None = None
    usual: Data | None = None
    absent: Truths | None = None
    relative: float = 0.0  # for weights: a further radius, relative to |mid|
    least: float = 0.0  # weights and claims below it may be read as 0
    claimed: bool = False  # whether some entries are claims
    origin: Origin | None = field(default=None, repr=False)
    stored: str | None = None  # for weights: the format of their file

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
        """The range with `view` applied to each of its arrays, such as a slice or a transpose."""
        parts = (self.mid, self.rad, self.usual, self.absent)
        mid, rad, usual, absent = (None if part is None else view(part) for part in parts)
        assert mid is not None
        return Range(
            mid, rad, usual, absent, self.relative, self.least, self.claimed, stored=self.stored
        )

    def radius(self) -> Data | None:
        """`rad` plus the relative part, and |mid| where it may be read as 0; None: zeros."""
        rad = self.rad
        if self.relative:
            part = np.abs(wide(self.mid)) * (self.relative * UP)
            rad = part if rad is None else (rad + part) * UP
        return self._read_as_zero(rad) if self.least else rad

    def _read_as_zero(self, rad: Data | None) -> Data | None:
        """The radius, at least |mid| where the number may be below `least`."""
        size = np.abs(wide(self.mid))
        small = size < (self.least if rad is None else self.least + rad)
        if not np.any(size[small] if size.ndim else size * small):
            return rad
        whole: Data = np.where(small, size, 0.0)
        return whole if rad is None else np.maximum(whole, rad)


@dataclass(eq=False, slots=True)
class Origin:
    """How an unclaimed value was made, which makes some bounds tighter or wider."""

    shares: bool = False  # a softmax made it: masked entries are 0
    choice: bool = False  # 1 or 0: with a radius it is open which
    rule: bool = False  # angles per position that the plan gives: how far they are off is in them
    unstored: bool = False  # still in the working format, not yet rounded to the stored one
    inside: bool = False  # a part of a norm, or of its way back
    last: bool = False  # the last term of a layernorm's way back
    centred: bool = False  # it belongs to a layernorm, not to RMSNorm
    addends: Data | None = None  # of a sum: |x| + |y|
    shift: Data | None = None  # of centred rows: the part of the error that a row shares
    made_of: tuple[Range, Range] | None = None  # of centred rows: x and its mean
    lost: Data | None = None  # of a slope: losses below the normal numbers of its terms
    # what a way back through the step may use; it stays where the step is claimed
    parts: Data | None = None  # of centred and normalised rows: |x| + |mean|, divided as they are
    factors: tuple[Range, Range] | None = None  # of scores: q and k
    scores: Range | None = None  # of shares: what they are the softmax of

    def kept(self) -> Origin:
        """The origin of the step's claims: its own, without how they were rounded."""
        return Origin(
            shares=self.shares,
            choice=self.choice,
            inside=self.inside,
            parts=self.parts,
            factors=self.factors,
        )


def wide(x: Data) -> Data:
    """The array in float64; the array itself where it is float64 already."""
    return widened(x, FLOAT64)


def upward(radius: Data) -> Data:
    """The radius, enlarged in place to cover the rounding of its computation; NaN becomes ∞."""
    radius *= UP
    if np.isnan(radius.sum()):  # no radius is negative: only a NaN makes the sum NaN
        radius[np.isnan(radius)] = inf
    return radius


def plus(*parts: Data | None) -> Data | None:
    """The sum of the parts that are not None."""
    total: Data | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def quadrature(*parts: Data | None) -> Data | None:
    """√(Σ part²) of the parts that are not None: how independent errors add up."""
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


def added_up(count: Data | int, unit: float) -> Data:
    """(1 + u)^k - 1: the same for additions alone, also where k·u is 1 or more."""
    grown: Data = np.expm1(np.asarray(count) * (unit * UP))
    return grown


def peaks(x: Data) -> Data:
    """√Σx²/Σ|x| of each row, keeping the axis: from 1/√n (equal entries) to 1 (one entry)."""
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
