"""Float64 arithmetic on upper bounds: every function returns a number that is not too small.

A radius, a norm or any other bound is a float64 array, a float, or None for "exactly zero".  All
operands are upper bounds and not negative (or +infinity), so only rounding could make a result too
small.  Each function covers its own roundings; callers need not.  Nothing gives NaN: zero times
infinity is zero here.  A bound of zero says that the number is zero, and the number behind an
infinite bound is finite.

Assumed: IEEE 754 binary64, round to nearest, gradual underflow (asserted by `selftest`).  With the
unit roundoff u = 2^-53, m roundings of non-negative operands lose at most the factor (1 - u)^m
(Higham, Accuracy and Stability of Numerical Algorithms, 2002, lemma 3.1: γ_m bounds it), and

    fl(y·(1 + (m + 2)·2^-52)) >= y·(1 - u)·(1 + (2m + 4)·u) >= y·(1 + 2mu) >= y/(1 - u)^m

for m·u <= 1/4.  1 + (m + 2)·2^-52 is itself a float64.  What underflow can lose is at most 2^-1074
for each product; TINY pays for it.

Not here: midpoints (`limbs`), and the rules that say which bounds are added and multiplied.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.engine import NUMPY, engine_of

Bound = Any  # a float64 array (NumPy or torch), a float, or None: exactly zero

TINY = 2.0**-1000  # what a product or quotient may have lost below the smallest float
INFINITE = math.inf
SMALL, LARGE = 2.0**-900, 2.0**900  # sums of squares within these lost nothing that counts


def slack(roundings: int) -> float:
    """The factor that covers so many roundings, and the multiplication by itself."""
    return 1.0 + (roundings + 2) * 2.0**-52


def plus(*terms: Bound) -> Bound:
    """A bound of the sum; None where all terms are."""
    known = [term for term in terms if term is not None]
    if not known:
        return None
    result = known[0]
    for term in known[1:]:
        result = result + term
    return result if len(known) == 1 else result * slack(len(known) - 1)


def times(*factors: Bound) -> Bound:
    """A bound of the product; None where a factor is."""
    if any(factor is None for factor in factors):
        return None
    result = factors[0]
    for factor in factors[1:]:
        result = _product(result, factor)
    return result


def _product(x: Any, y: Any) -> Any:
    if isinstance(x, float) and isinstance(y, float):
        return 0.0 if x == 0 or y == 0 else x * y * slack(1) + TINY
    engine: Any = engine_of(y if isinstance(x, float) else x)
    if engine is not NUMPY:
        return engine.where(_both(engine, x, y), engine.raised(x * y, slack(1), TINY), 0.0)
    for one, other in ((x, y), (y, x)):
        if isinstance(other, float) and 0.0 < other < INFINITE:  # what is left to ask is less
            with np.errstate(over="ignore"):
                product = one * other * slack(1) + TINY
            return engine_of(product).where(one != 0, product, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        product = x * y * slack(1) + TINY
    return engine_of(product).where((x != 0) & (y != 0), product, 0.0)


def _both(engine: Any, x: Any, y: Any) -> Any:
    """A bound of x·y, 0 where one is zero, in few passes; at most one of them is a float."""
    if isinstance(x, float):
        return y != 0 if x != 0 else y != y
    if isinstance(y, float):
        return x != 0 if y != 0 else x != x
    return engine.module.logical_and(x, y)


def over(top: Bound, bottom: Any) -> Bound:
    """A bound of top/bottom, where `bottom` is a bound from BELOW; infinite where it is not > 0.

    0/0 is infinite: a caller that knows the limit must handle it.
    """
    if top is None:
        return None
    if isinstance(bottom, float):
        if not bottom > 0:
            return INFINITE if isinstance(top, float) else top * 0.0 + INFINITE
        return top / bottom * slack(1) + TINY
    engine = engine_of(bottom)
    quotient = top / engine.where(bottom > 0, bottom, 1.0) * slack(1) + TINY
    return engine.where(bottom > 0, quotient, INFINITE)


def less(bound: Any, by: Bound) -> Any:
    """A bound from BELOW of bound - by, where `bound` is one from below too.

    The difference is rounded once; what is taken off is more than that rounding.
    """
    if by is None:
        return bound
    with np.errstate(invalid="ignore"):
        result = bound - by
        result = result - abs(result) * 2.0**-51 - TINY
    if isinstance(result, float):
        return -INFINITE if math.isnan(result) else result
    return engine_of(result).where(result == result, result, -INFINITE)


def root(bound: Bound) -> Bound:
    """A bound of the square root."""
    if bound is None:
        return None
    if isinstance(bound, float):
        return math.sqrt(bound) * slack(1)
    return engine_of(bound).root(bound) * slack(1)


def total(bound: Any, axis: int = -1) -> Any:
    """A bound of the sum along an axis, in any order of summation."""
    return bound.sum(axis) * slack(bound.shape[axis])


def spread(local: Bound, width: int) -> Bound:
    """A bound of the Euclidean length of a row whose entries are at most `local` in size."""
    return times(math.sqrt(width) * (1 + 2.0**-50), local)


def largest(bound: Any, axis: int = -1) -> Any:
    """The largest along an axis."""
    return bound.max(axis) if isinstance(bound, np.ndarray) else bound.amax(axis)


def length(bound: Any, axis: int = -1) -> Any:
    """A bound of the Euclidean length along an axis; entries may have signs.

    Divided by the largest entry first, so that no square overflows.  The squares that underflow are
    together less than 2^-900 of the sum, which is at least 1: far less than one of the roundings.
    """
    engine: Any = engine_of(bound)
    if engine is not NUMPY:
        return _length_elsewhere(engine, bound, axis)
    if axis in (-1, bound.ndim - 1):
        with np.errstate(over="ignore", invalid="ignore"):
            whole = NUMPY.squares(bound)
            if ((whole > SMALL) & (whole < LARGE)).all():  # what underflowed is far less than that
                return np.sqrt(whole) * slack(bound.shape[axis] + 4)
    most = largest(abs(bound), axis)
    scale = engine.where((most > 0) & (most < INFINITE), most, 1.0)
    part = bound / (scale[..., None] if axis in (-1, bound.ndim - 1) else _expanded(scale, axis))
    with np.errstate(over="ignore"):
        squares = (part * part).sum(axis) * slack(bound.shape[axis] + 4)
    return engine.root(squares) * scale * slack(3)


def _length_elsewhere(engine: Any, bound: Any, axis: int) -> Any:
    """The same in fewer passes over the array: one for the largest, two for the squares."""
    most = engine.module.linalg.vector_norm(bound, INFINITE, dim=axis)
    scale = engine.where((most > 0) & (most < INFINITE), most, 1.0)
    part = bound / scale.unsqueeze(axis)
    return engine.lengths(part, axis) * scale * slack(bound.shape[axis] + 8)


def _expanded(array: Any, axis: int) -> Any:
    return np.expand_dims(array, axis) if isinstance(array, np.ndarray) else array.unsqueeze(axis)


def mixed(shares: Any, bounds: Any) -> Any:
    """A bound of the matrix product (…, m, k)·(…, k, n) of bounds; 0·∞ is 0."""
    deep = shares.shape[-1]
    engine = engine_of(bounds)
    if engine is not NUMPY:
        found = (shares @ bounds) * slack(deep) + deep * TINY
        return engine.where(found == found, found, INFINITE)  # 0·∞ is not told from others here
    endless = [side == INFINITE for side in (shares, bounds)]
    if not any(bool(side.any()) for side in endless):
        return (shares @ bounds) * slack(deep) + deep * TINY
    finite = [np.where(no, 0.0, side) for no, side in zip(endless, (shares, bounds), strict=True)]
    result = (finite[0] @ finite[1]) * slack(deep) + deep * TINY
    some = [(side > 0).astype(np.float64) for side in (shares, bounds)]
    reached = some[0] @ endless[1].astype(np.float64) + endless[0].astype(np.float64) @ some[1]
    return np.where(reached > 0, INFINITE, result)


def growth(exponent: Any) -> Any:
    """A bound of e^x - 1 for a bound x >= 0 of the exponent; infinite above 64.

    No library's exponential is trusted.  e^y - 1 - y = y²·(1/2 + y/6 + …) <= (e - 2)·y² <= y² for
    0 <= y <= 1; and for larger x, e^x = (e^(x/64))^64 <= (1 + y + y²)^64 with y = x/64.
    """
    engine = engine_of(exponent)
    with np.errstate(over="ignore", invalid="ignore"):
        near = exponent * (1.0 + exponent) * slack(2) + TINY
        part = exponent * 2.0**-6
        far = (1.0 + part * (1.0 + part)) * slack(4)
        for _squaring in range(6):
            far = far * far * slack(1)
    far = engine.where(exponent <= 64.0, far, INFINITE)
    return engine.where(exponent <= 1.0, near, far)


def exponent_of(bound: float) -> int:
    """The largest k with 2^k <= bound, for a finite bound > 0."""
    return math.frexp(bound)[1] - 1
