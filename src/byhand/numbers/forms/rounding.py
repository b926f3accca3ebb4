"""Float64 bounds for many numbers at once: every function covers the roundings it makes itself.

Assumed: IEEE 754 binary64, round to nearest, gradual underflow.  With u = 2^-53, a sum of n
products in any order, fused or not, is within γ_n·Σ|x||y| of the real one, γ_n = nu/(1 - nu)
(Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).  Underflow may lose
2^-1074 in each product; FLOOR pays for it.  A bound of zero says that the number is zero, so zero
times infinity is zero here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

Data = npt.NDArray[Any]
Truths = npt.NDArray[np.bool_]
Times = Callable[[Any, Any], Any]  # np.multiply or np.matmul

UNIT = 2.0**-53
FLOOR = 2.0**-1000

quiet = np.errstate(all="ignore")  # ∞ and NaN are expected, and turned into infinite bounds


def slack(roundings: int) -> float:
    """The factor that covers so many roundings of a bound, and the multiplication by itself."""
    return 1.0 + (roundings + 2) * 2.0**-52


def gamma(count: int) -> float:
    """A bound of γ_n: the relative error of a sum of so many products."""
    return count * UNIT * (1 + count * 2.0**-52)


def total(parts: Data) -> Data:
    """The sum over the first axis, not rounded upward.  Nobody may write into the result."""
    result: Data = parts[0] if len(parts) == 1 else np.add.reduce(parts, axis=0)
    return result


def finite(*arrays: Data) -> bool:
    """Whether all entries are finite.  It may say no where only their sum is not."""
    return all(bool(np.isfinite(np.add.reduce(array, axis=None))) for array in arrays)


def bounded(times: Times, x: Data, y: Data) -> Data:
    """The product of bounds, where 0·∞ is 0; not rounded upward."""
    product: Data = times(x, y)
    if finite(product):
        return product
    endless = [np.isinf(side) for side in (x, y)]
    some = [np.where(side > 0, 1.0, 0.0) for side in (x, y)]
    known = [np.where(no, 0.0, side) for no, side in zip(endless, (x, y), strict=True)]
    product = times(*known)
    reached = times(endless[0].astype(np.float64), some[1])
    reached = reached + times(some[0], endless[1].astype(np.float64))
    return np.where(reached > 0, inf, product)


def below(x: Data) -> Data:
    """A bound from below of a number that was rounded to x."""
    return np.nextafter(x, -inf)


def above(x: Data) -> Data:
    """A bound from above of a number that was rounded to x."""
    return np.nextafter(x, inf)
