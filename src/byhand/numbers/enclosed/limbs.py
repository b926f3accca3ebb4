"""Fixed-point numbers in limbs of 22 bits, whole arrays at a time, and their exact arithmetic.

A value is Σ_i limbs[i]·2^(top - 22(i+1)); the limbs are integers held in float64, balanced:
|limb| <= 2^21 (the first limb: <= 2^21 + 1).  One exponent `top` for the whole array, any
integer.  Everything is exact unless a `low` makes it round; then |result - exact| <= HALF·2^low
for every entry.  Functions that are not rational live in functions.py; products of matrices in
products.py; radii elsewhere.

Why it is exact.  Balanced limbs multiply to at most 2^42·(1 + 2^-20), so sums of 1000 products
stay below 2^53, where float64 adds integers exactly.  A power of two times a float is exact as
long as it neither over- nor underflows.  `carry` splits v = 2^22·rint(v/2^22) + rest with
|rest| <= 2^21: each of its operations is exact for |v| < 2^52.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, ldexp, prod
from typing import Any

import numpy as np

from byhand.numbers.enclosed.engine import NUMPY, Array, Engine, module_of

WIDTH = 22
BASE = 2.0**WIDTH
SMALL = 2.0**-WIDTH  # one limb down
BALANCED = 2.0 ** (WIDTH - 1)

# What rounding to the grid 2^low costs, in units of 2^low.  The limbs left out are balanced: at
# most (1/2)(1 + 2^-22 + …) units.  Where they had to be carried first, only three of them were; the
# others, at most 2^43 in size, are below 2^43·2^-88·(1 + 2^-21).
HALF = 0.5 * (1 + 2.0**-20)
# The same for a product that leaves out diagonals, at most 500 terms each: those more than two
# limbs below the grid, together at most 500·2^42·(1 + 2^-20)·2^-66 < 2^-15.
PRODUCT = HALF + 2.0**-15
# The same for a quotient by an integer, whose last rest is less than one unit one limb lower.
QUOTIENT = HALF + 2.0**-22
# |approx(x) - x| <= APPROX·|x|.  Horner's rule from the last limb: one rounding in each step.  A
# limb that is not 0 gives a sum of at least 1/2 - 2^-22 of its unit, against which the roundings
# before it, of a number below 2^22 units one limb down, are below 2^-53·(1/2 + 2^-20): so at most
# 2^-53 for the last step and 2^-53·(1 + 2^-18) for all before it.
APPROX = 2.0**-51


@dataclass(frozen=True, slots=True)
class Digits:
    """An array of numbers in fixed point: limbs (n, *shape), value Σ limbs[i]·2^(top - 22(i+1))."""

    limbs: Array
    top: int

    @property
    def n(self) -> int:
        return int(self.limbs.shape[0])

    @property
    def low(self) -> int:
        """Every value is a multiple of 2^low."""
        return self.top - WIDTH * self.n

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.limbs.shape[1:])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def engine(self) -> Engine:
        return module_of(self.limbs)

    def __getitem__(self, index: Any) -> Digits:
        """As an array of values is indexed; the limbs come along."""
        index = index if isinstance(index, tuple) else (index,)
        return Digits(self.limbs[(slice(None), *index)], self.top)

    def reshape(self, *shape: int) -> Digits:
        return Digits(self.limbs.reshape(self.n, *shape), self.top)

    def moveaxis(self, source: int, target: int) -> Digits:
        """Axes counted without that of the limbs, from 0."""
        source, target = source % self.ndim, target % self.ndim
        return Digits(self.engine.moveaxis(self.limbs, source + 1, target + 1), self.top)

    def swapaxes(self, one: int, other: int) -> Digits:
        one, other = one % self.ndim, other % self.ndim
        return Digits(self.limbs.swapaxes(one + 1, other + 1), self.top)

    def contiguous(self) -> Digits:
        return Digits(self.engine.contiguous(self.limbs), self.top)

    def broadcast(self, *shape: int) -> Digits:
        limbs = self.limbs.reshape(self.n, *(1,) * (len(shape) - self.ndim), *self.shape)
        return Digits(self.engine.broadcast(limbs, (self.n, *shape)), self.top)


# --------------------------------------------------------------------------------- carrying


def carry(limbs: Array) -> Array:
    """Balances all limbs but the first, in place; the first takes what is left.

    Exact for |limb| < 2^52.
    """
    engine = module_of(limbs)
    over, back = (engine.empty(limbs.shape[1:], limbs) for _ in range(2))
    for i in range(limbs.shape[0] - 1, 0, -1):
        engine.carry(limbs[i, ...], limbs[i - 1, ...], BASE, over, back)
    return limbs


def settle(limbs: Array, top: int) -> Digits:
    """Carries, and adds limbs in front while the first is too large.  Waits for the device."""
    engine = module_of(limbs)
    carry(limbs)
    while engine.largest(limbs[0, ...]) > BALANCED:
        limbs = engine.concatenate([engine.zeros((1, *limbs.shape[1:]), limbs), limbs])
        carry(limbs[:2])
        top += WIDTH
    return Digits(limbs, top)


# --------------------------------------------------------------------------------- grids


def regrid(x: Digits, top: int | None = None, low: int | None = None) -> Digits:
    """The same values on the grid 2^low, rounded where it is coarser: HALF·2^low.

    Without `top`: the smallest that is not below x's.  With one: top - low is a multiple of 22,
    and the values are known to fit, |value| <= 2^(top - 1).
    """
    low = x.low if low is None else low
    if top is None:
        n = max(1, -(-(x.top - low) // WIDTH))
    else:
        n, rest = divmod(top - low, WIDTH)
        if rest or n < 1:
            raise ValueError(f"no whole number of limbs between 2^{top} and 2^{low}")
    return Digits(_moved(x, low, n), low + WIDTH * n)


def _moved(x: Digits, low: int, n: int) -> Array:
    """The limbs on the grid 2^low, n of them."""
    engine, limbs = x.engine, x.limbs
    places, shift = divmod(x.low - low, WIDTH)  # the last limb moves up by places, times 2^shift
    first = n - places - x.n  # where x's first limb goes, counted from the first of the n
    # Balanced limbs are rounded by leaving the rest of them out; others are carried first.
    below = min(3, max(0, -places)) if shift else 0
    made = engine.zeros((n + below, *x.shape), limbs)
    for i in range(x.n):
        if first + i <= 0:  # what is above the new top, where the value fits, is a small number
            made[0] *= BASE
            made[0] += limbs[i]
        elif first + i < n + below:
            made[first + i] = limbs[i]
    if first + x.n <= 0:
        made[0] *= BASE ** (1 - first - x.n)
    if shift:
        made *= 2.0**shift
        carry(made)
    return made[:n]


def fitted(x: Digits, low: int) -> Digits:
    """On the grid 2^low with no more limbs than the largest entry needs.  Waits for the device."""
    return regrid(x, low + WIDTH * limbs_needed(x, low), low)


def limbs_needed(x: Digits, low: int) -> int:
    """How many limbs from 2^low up hold every entry of x, rounded to that grid."""
    bound = magnitude(x) + ldexp(1.0, max(low, -1000))
    if bound == 0.0 or x.size == 0:
        return 1
    exponent = frexp(bound)[1]  # bound < 2^exponent <= 2^(top - 1)
    return max(1, -(-(exponent + 1 - low) // WIDTH))


def magnitude(x: Digits) -> float:
    """An upper bound of |value| over the array, at most 2^-19 too large relatively."""
    engine = x.engine
    for i in range(x.n):
        if engine.largest(x.limbs[i]) > 0:
            head = x.limbs[i : i + 3]
            largest = engine.largest(_horner(head))
            # what follows the head is below one unit of its last limb
            bound = largest * (1 + 2.0**-50) + SMALL ** (head.shape[0] - 1)
            return ldexp(bound, x.top - WIDTH * (i + 1))
    return 0.0


def _horner(limbs: Array) -> Array:
    """Σ limbs[i]·2^(-22i) in float64."""
    total = limbs[-1] * 1.0
    for i in range(limbs.shape[0] - 2, -1, -1):
        total *= SMALL
        total += limbs[i]
    return total


def approx(x: Digits) -> Array:
    """The values as float64: |approx(x) - x| <= APPROX·|x| (no value beyond float64's range)."""
    total = _horner(x.limbs)
    total *= ldexp(1.0, x.top - WIDTH)
    return total


# --------------------------------------------------------------------------------- in and out


def from_floats(array: Array, low: int | None = None) -> tuple[Digits, bool]:
    """Floats of any format as digits, and whether that was exact.

    Without `low`: as many limbs as it takes, always exact.  With one: rounded, HALF·2^low.
    Waits for the device.
    """
    engine = module_of(array)
    rest = engine.floats(array)
    largest = engine.largest(rest)
    if not largest < 2.0**1000:
        raise ValueError("only floats below 2^1000 have digits here")
    exponent = frexp(largest)[1] if largest else (low or 0)
    if low is None:
        top, count = exponent + 1, None
    else:
        count = max(1, -(-(exponent + 1 - low) // WIDTH))
        top = low + WIDTH * count
    limbs = _cut(rest, top, count)
    return Digits(limbs, top), engine.largest(rest) == 0


def cut(array: Array, top: int, low: int) -> Digits:
    """Float64 numbers of at most 2^(top - 1) in size, rounded to the grid 2^low: HALF·2^low."""
    n, rest = divmod(top - low, WIDTH)
    if rest or n < 1:
        raise ValueError(f"no whole number of limbs between 2^{top} and 2^{low}")
    return Digits(_cut(array * 1.0, top, n), top)


def _cut(rest: Array, top: int, count: int | None) -> Array:
    """Limbs of floats, `count` or as many as it takes; what is left over stays in `rest`."""
    engine = module_of(rest)
    made: list[Array] = []
    raised = 0  # rest holds the remainder times 2^raised, so that it never underflows
    while len(made) < count if count is not None else not made or engine.largest(rest) > 0:
        weight = top - WIDTH * (len(made) + 1)
        if weight + raised < -400:
            rest *= 2.0**400
            raised += 400
        limb = engine.rint(rest * ldexp(1.0, -(weight + raised)))
        rest -= limb * ldexp(1.0, weight + raised)
        made.append(limb)
    # rint leaves |rest| <= 1/2 of a unit, so every limb but the first is balanced already
    return engine.concatenate([limb[None] for limb in made])


def from_integers(integers: Iterable[int], low: int, like: Array | None = None) -> Digits:
    """A row of Python integers times 2^low; on the device of `like`, else in NumPy."""
    left = list(integers)
    largest = max((abs(value) for value in left), default=0)
    n = max(1, -(-((largest.bit_length()) + 1) // WIDTH))
    limbs = np.zeros((n, len(left)))
    half, mask = 1 << (WIDTH - 1), (1 << WIDTH) - 1
    for place, value in enumerate(left):
        for i in range(n - 1, 0, -1):
            limb = ((value + half) & mask) - half
            limbs[i, place] = limb
            value = (value - limb) >> WIDTH
        limbs[0, place] = value
    engine = NUMPY if like is None else module_of(like)
    return Digits(engine.constant(limbs, like), low + WIDTH * n)


def to_integers(x: Digits) -> Any:
    """The values over 2^low: an object array of Python integers."""
    limbs = x.engine.to_numpy(x.limbs)
    total = np.zeros(x.shape, object)
    for limb in limbs:
        total = total * (1 << WIDTH) + limb.astype(np.int64).astype(object)
    return total


def to_fractions(x: Digits) -> Any:
    """The values: an object array of Fractions."""
    unit = Fraction(2) ** x.low
    integers = np.asarray(to_integers(x), object)
    made = np.empty(integers.shape, object)
    for index, value in np.ndenumerate(integers):
        made[index] = value * unit
    return made


# --------------------------------------------------------------------------------- arithmetic


def negate(x: Digits) -> Digits:
    return Digits(-x.limbs, x.top)


def shift(x: Digits, k: int) -> Digits:
    """x·2^k, free."""
    return Digits(x.limbs, x.top + k)


def add(x: Digits, y: Digits, low: int | None = None, top: int | None = None) -> Digits:
    """x + y, on the finer of the two grids unless `low` is given (then HALF·2^low).

    Waits for the device to see how large the sum is, unless `top` says it, as in `regrid`.
    """
    return _sum(x, y, 1.0, low, top)


def subtract(x: Digits, y: Digits, low: int | None = None, top: int | None = None) -> Digits:
    """x - y; as `add`."""
    return _sum(x, y, -1.0, low, top)


def _sum(x: Digits, y: Digits, sign: float, low: int | None, last_top: int | None) -> Digits:
    finer = min(x.low, y.low)
    n = max(1, -(-(max(x.top, y.top) - finer) // WIDTH))
    top = finer + WIDTH * n
    one, other = _aligned(x, finer, top), _aligned(y, finer, top)
    engine = x.engine
    shape = np.broadcast_shapes(x.shape, y.shape)
    limbs = engine.empty((n, *shape), one)
    for i in range(n):  # limb by limb, so that shapes broadcast
        limbs[i] = other[i]
        if sign < 0:
            limbs[i] *= sign
        limbs[i] += one[i]
    if last_top is not None:
        return regrid(Digits(carry(limbs), top), last_top, low)
    made = settle(limbs, top)
    return made if low is None or low == finer else regrid(made, low=low)


def _aligned(x: Digits, low: int, top: int) -> Array:
    return x.limbs if (x.low, x.top) == (low, top) else regrid(x, top, low).limbs


def times_integer(x: Digits, factor: int) -> Digits:
    """x times an integer of at most 2^30 in size."""
    if abs(factor) > 1 << 30:
        raise ValueError(f"a factor beyond 2^30: {factor}")
    return settle(x.limbs * float(factor), x.top)


def over_integer(x: Digits, divisor: int, low: int) -> Digits:
    """x / divisor, an integer from 1 to 2^29, on the grid 2^low: QUOTIENT·2^low.

    Long division, limb by limb: v = limb + 2^22·rest, quotient rint(v/divisor), and the rest is
    exact whichever way the division rounded.  |rest| <= divisor·(1/2 + 2^-20).
    """
    if not 1 <= divisor <= 1 << 29:
        raise ValueError(f"a divisor outside 1 to 2^29: {divisor}")
    places = max(0, -(-(x.low - low) // WIDTH)) + 1  # one limb beyond the grid
    engine = x.engine
    limbs = engine.zeros((x.n + places, *x.shape), x.limbs)
    rest: Array | None = None
    for i in range(x.n + places):
        value = x.limbs[i] * 1.0 if i < x.n else 0.0
        if rest is not None:
            value = value + rest * BASE
        quotient = engine.rint(value / float(divisor))
        rest = value - quotient * float(divisor)
        limbs[i] = quotient
    return regrid(settle(limbs, x.top), low=low)


def total(x: Digits, axis: int) -> Digits:
    """The exact sum over one axis of at most 2^29 entries."""
    axis = axis % x.ndim
    if x.shape[axis] > 1 << 29:
        raise ValueError("too many terms for an exact sum of limbs")
    return settle(x.engine.sum(x.limbs, axis + 1), x.top)


def multiply(x: Digits, y: Digits, low: int | None = None) -> Digits:
    """x·y, entry by entry; exact, or with `low` on that grid: PRODUCT·2^low."""
    top, full = x.top + y.top, x.n + y.n
    if low is None:
        keep = full
    else:
        keep = min(full, max(1, -(-(top - low) // WIDTH)) + 2)  # two limbs to round
    limbs = products(x.limbs, y.limbs, keep)
    made = Digits(carry(limbs), top)
    return made if low is None else regrid(made, low=low)


def products(x: Array, y: Array, keep: int) -> Array:
    """The first `keep` limbs of the product, not carried: limb 0 empty, limb d = Σ x_i·y_(d-1-i).

    What is left out is below (terms)·2^42 units of the first limb left out.
    """
    engine = module_of(x)
    shape = np.broadcast_shapes(tuple(x.shape[1:]), tuple(y.shape[1:]))
    made = engine.empty((keep, *shape), x)
    made[0] = 0.0
    for d in range(keep - 1):
        first, last = max(0, d - y.shape[0] + 1), min(x.shape[0], d + 1)
        if first < last:
            engine.diagonal(x, y, first, last, d, made[d + 1, ...])
        else:
            made[d + 1] = 0.0
    return made


def stack(parts: Sequence[Digits], axis: int = 0) -> Digits:
    """Arrays one after another along an axis, on their finest common grid."""
    low = min(part.low for part in parts)
    n = max(1, -(-(max(part.top for part in parts) - low) // WIDTH))
    top = low + WIDTH * n
    moved = [_aligned(part, low, top) for part in parts]
    axis = axis % parts[0].ndim
    return Digits(parts[0].engine.concatenate(moved, axis + 1), top)
