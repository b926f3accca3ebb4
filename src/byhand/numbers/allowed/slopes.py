"""The slopes of the activations: middles in float64, and bounds of the rounding of implementations.

Each function gives f′(x) and a bound of an implementation's error before the final rounding, with
our own error.  The sizes of the two terms of a slope count.  Where a function that approaches 1 is
so near to it that the format holds no number between, an implementation gives 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import pi, sqrt

import numpy as np

from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.allowed.activations import ERF, OURS, QUICK, where_exp_overflows
from byhand.numbers.allowed.precisions import OWN, ULPS, Precision
from byhand.numbers.allowed.ranges import Data, Origin, Range, quadrature, wide
from byhand.numbers.allowed.rounding import Rounding, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats.slopes import SLOPES

Result = tuple[Data, Data]
TANHS = ("gelu_tanh", "gelu_fast", "gelu_bloom")

BENDS: Mapping[str, float] = {  # |f′(x) - f′(y)| is at most this times |x - y|
    "gelu": 0.7979,
    "gelu_tanh": 0.7979,
    "silu": 0.5001,
    "quick_gelu": 0.8511,
    "gelu_fast": 0.7979,
    "gelu_bloom": 0.7979,
    "sigmoid": 0.0963,
    "tanh": 0.7699,
}


class Slopes(Rounding):
    """slope."""

    @quiet(all="ignore")
    def slope(self, x: Array, *, kind: str) -> Range:
        if kind == "relu2":
            return self._of_relu2(x)
        if kind not in (*KINDS, "relu"):
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        p = self.precision
        x = self._read(x)
        data, radius = np.ascontiguousarray(wide(x.mid)), x.radius()
        if kind == "relu":
            return _of_relu(data, radius)
        mid, own = KINDS[kind](data, p)
        own += p.work.least * (4 + 4 * np.abs(data))
        through = None if x.usual is None else x.usual * BENDS[kind]
        if radius is not None:  # a slope lies between -0.13 and 1.13
            most = np.where(np.isfinite(radius), 1.3, np.inf)
            own += np.minimum(radius * BENDS[kind], most) * (1 + 8 * p.work.half)
        spread = _typical(kind, data, mid, p) if p.work.half else None
        # a gradient may be multiplied by the parts of the slope one after the other: x³ has 3x²
        made = Origin(lost=8 + 4 * np.square(data))
        return self._stored(mid, own, quadrature(through, spread), own=0.0, origin=made)

    def _of_relu2(self, x: Array) -> Range:
        """2·max(0, x): it moves twice as far as x."""
        x = self._read(x)
        radius, usual = x.radius(), x.usual
        rad = None if radius is None else 2 * radius
        spread = None if usual is None else 2 * usual
        return self._stored(2 * np.maximum(wide(x.mid), 0.0), rad, spread)


def _typical(kind: str, x: Data, mid: Data, p: Precision) -> Data:
    """What rounding usually does; tanh near ±1 is off by a unit, and 1 - tanh² with it."""
    usual: Data = (1 + np.abs(mid)) * (0.25 * p.work.half)
    if kind in TANHS:
        steep = sqrt(2 / pi) * (1 + 3 * 0.044715 * np.square(x))
        usual = np.hypot(usual, np.minimum(np.abs(x) * steep / 2, 100.0) * p.single)
    return usual


def _of_relu(x: Data, radius: Data | None) -> Range:
    """1 above 0, else 0; either where x may lie on both sides."""
    mid = np.where(x > 0, 1.0, 0.0)
    if radius is None:
        return Range(mid)
    either = np.where((radius > 0) & (np.abs(x) <= radius), 1.0, 0.0)
    return Range(mid, either, either * 0.5)


def gelu(x: Data, p: Precision) -> Result:
    """(1 + erf(x/√2))/2 + x·e^(-x²/2)/√(2π): where 1 + erf cancels, its error does not."""
    y = _middle("gelu", x)
    in_erf = p.function + ERF * p.single + 0.98 * p.work.half
    dense = np.abs(x) * np.exp(-np.square(x) / 2) * (1 / sqrt(2 * pi))
    # two roundings in the exponent: off by a factor of e^d, d = 2u·x²/2
    factor = np.expm1(np.square(x) * (1.01 * p.work.half + 2 * OWN))
    own = dense * (factor + (p.function + 5 * p.work.half) * (1 + factor) + OURS)
    own += in_erf / 2 + 2 * p.work.half + OURS
    return y, own


def gelu_tanh(kind: str, x: Data, p: Precision) -> Result:
    """(1 + t)/2 + x·(1 - t²)·a′/2, t = tanh a and a = √(2/π)·(x + 0.044715·x³), or nearly so."""
    y = _middle(kind, x)
    inner = sqrt(2 / pi) * np.abs(x) * (1 + 0.044715 * np.square(x))
    steep = sqrt(2 / pi) * (1 + 3 * 0.044715 * np.square(x))
    gap = 2 / (1 + np.exp(np.minimum(2 * inner, 700.0)))  # 1 - |t|
    arch = gap * (2 - gap)  # 1 - t²
    off = inner * (p.function + 5 * p.work.half + 12 * OWN)
    in_t = _near_one(gap, p) + off * np.exp(np.minimum(2 * off, 700.0)) * arch
    in_arch = np.minimum(in_t * (2 + in_t), 1.0) + p.work.half
    half = np.abs(x) * steep / 2
    own = in_t / 2 + 2 * p.work.half + OURS
    own += half * (in_arch + arch * (8 * p.work.half + OURS))
    return y, own


def sigmoid(x: Data, p: Precision) -> Result:
    """s·(1 - s), s = 1/(1 + e^-x), which may be stored before."""
    y = _middle("sigmoid", x)
    share = 1 / (1 + np.exp(-x))
    in_share = share * (1.01 * p.function + 3 * p.work.half) + _near_one(1 / (1 + np.exp(x)), p)
    return y, where_exp_overflows(2 * in_share + y * (4 * p.work.half + OURS), y, x, p)


def tanh(x: Data, p: Precision) -> Result:
    """1 - t², t = tanh x, which may be stored before."""
    y = _middle("tanh", x)
    gap = 2 / (1 + np.exp(np.minimum(2 * np.abs(x), 700.0)))  # 1 - |t|
    in_t = _near_one(gap, p) + p.store.half
    return y, in_t * (2 + in_t) + 2 * p.work.half + OURS


def silu(x: Data, p: Precision) -> Result:
    """s·(1 + x·(1 - s)), s = 1/(1 + e^-x)."""
    y = _middle("silu", x)
    return y, where_exp_overflows(_of_sigmoid(x, p, np.zeros(1)), y, x, p)


def quick_gelu(x: Data, p: Precision) -> Result:
    """The same for 1.702·x, which is rounded, as 1.702 is."""
    inner = QUICK * x
    y = _middle("silu", inner)
    off = np.expm1(np.abs(inner) * (2.01 * p.work.half + 4 * OWN))
    return y, where_exp_overflows(_of_sigmoid(inner, p, off), y, inner, p)


def _of_sigmoid(x: Data, p: Precision, off: Data) -> Data:
    """The error of s·(1 + x·(1 - s)), where e^-x is off by the factor 1 ± `off` and its own."""
    unit = p.work.half
    share, rest = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))
    relative = rest * (off + 1.01 * p.function * (1 + off)) + 2.1 * unit
    in_share = np.where(x > 0, np.minimum(share * relative, _near_one(rest, p)), share * relative)
    in_share += rest * share * off * (x > 0)
    bent = np.abs(x) * rest
    own: Data = in_share * (1 + bent) * 1.01 + share * np.abs(x) * (in_share + rest * unit)
    own += share * (1 + bent) * (4 * unit + OURS)
    return own


def _near_one(gap: Data, p: Precision) -> Data:
    """The error of a function with values up to 1, `gap` below it: 1 where no number is near.

    NumPy's tanh of float32 stays below 1 up to 10, where the gap is 1/15 of the unit roundoff.
    """
    nearer = np.where(gap < p.single / 64, 0.0, ULPS * p.single)
    return np.where(gap < p.work.half / 64, gap + nearer, p.function + OURS)


def _middle(kind: str, x: Data) -> Data:
    result = np.empty(x.shape)
    SLOPES[kind](x, result)
    return result


KINDS: Mapping[str, Callable[[Data, Precision], Result]] = {
    "gelu": gelu,
    **{kind: partial(gelu_tanh, kind) for kind in TANHS},
    "silu": silu,
    "quick_gelu": quick_gelu,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
