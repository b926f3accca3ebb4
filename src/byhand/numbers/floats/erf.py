"""erf, and the normal distribution beyond y, as array code: NumPy has neither.

Each function is one polynomial and, for the tails, an exponential; `tools/erf_coefficients.py`
made the coefficients.  The bounds are measured against Arb by the tests:

    erf(x)       within 1 unit of the last place in float64, 2 in float32
    beyond(y)    within 5 units, down to where the format runs out of normal numbers
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from byhand.numbers.floats.erf_coefficients import COEFFICIENTS, K
from byhand.numbers.floats.formats import Data

KEEP = {8: np.int64(-(1 << 27)), 4: np.int32(-(1 << 12))}  # half of a significand, squared exactly
BITS = {8: np.int64, 4: np.int32}
FAR = 64  # far beyond the last share above 0; and ∞ - ∞ is no number


def erf(x: Data) -> Data:
    """erf(x) in the format of x (float64 or float32): within 1 or 2 units of the last place."""
    size = np.abs(x)
    near = np.minimum(size, 1)
    inner = _polynomial(near * near, "erf")
    inner *= near
    inner += near
    outer = np.subtract(1, _tail(size, "erfc"))
    np.copyto(outer, inner, where=size < 1)
    return np.copysign(outer, x, out=outer)


def beyond(y: Data) -> Data:
    """The share of the normal distribution beyond y ≥ 0, which is erfc(y/√2)/2."""
    return _tail(y, "normal")


def slope_beyond(y: Data) -> Data:
    """The share beyond y ≥ 0 minus y times the density there: the slope of GELU at -y."""
    kind = y.dtype.type
    y = np.minimum(y, kind(FAR))
    total = _over_bell(y, "normal")
    total -= y * kind(1 / sqrt(2 * pi))
    return _times_bell(total, y, kind(-0.5))


def _polynomial(x: Data, name: str) -> Data:
    first, *rest = COEFFICIENTS[x.dtype.name][name]
    kind = x.dtype.type
    total = np.full_like(x, first)
    for coefficient in rest:
        total *= x
        total += kind(coefficient)
    return total


def _tail(y: Data, name: str) -> Data:
    """e^(-y²)·p(s)/(1 + y), or e^(-y²/2)·p(s)/(1 + y), where s = (y - K)/(y + K)."""
    kind = y.dtype.type
    y = np.minimum(y, kind(FAR))
    return _times_bell(_over_bell(y, name), y, kind(-1 if name == "erfc" else -0.5))


def _over_bell(y: Data, name: str) -> Data:
    middle = y.dtype.type(K[name])
    total = _polynomial((y - middle) / (y + middle), name)
    total /= y + y.dtype.type(1)
    return total


def _times_bell(total: Data, y: Data, halves: Any) -> Data:
    """In place: total·e^(halves·y²)."""
    # y² would be rounded, and e^(-y²) wrong by y² units; y = high + low has high² without rounding
    size = y.dtype.itemsize
    high = (y.view(BITS[size]) & KEEP[size]).view(y.dtype)
    low = y - high
    low *= y + high
    low *= halves
    total *= np.exp(low)
    high *= high
    high *= halves
    total *= np.exp(high)
    return total
