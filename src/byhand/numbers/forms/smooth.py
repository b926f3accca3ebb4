"""gelu, silu and their like of forms: f(x) = x·g(x), where g rises from 0 to 1, g(x) + g(-x) = 1.

Three bounds compete, entry by entry: the tangent at the middle, whose remainder is at most half the
curvature times the square of the radius; relu's line, from which f is at most DEPTH away; and
the range of f.  numbers/README.md derives the constants; tests prove them by Arb balls.  sigmoid
and tanh, which rise between two limits, have the tangent and the range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from byhand.numbers.forms.exponential import RELATIVE, power
from byhand.numbers.forms.form import Form, ends, radius
from byhand.numbers.forms.functions import bent, ranged
from byhand.numbers.forms.normal import normal_share
from byhand.numbers.forms.rounding import FLOOR, UNIT, Data, quiet, slack

NARROW = 2.0**-8  # radii up to which the tangent is best, wherever it is
SLOPE_ERROR = 2.0**-40  # far above what 20 roundings of numbers below 100 can do
BELL = 0.3989422804014327  # 1/√(2π), rounded
GELU_FACTOR, GELU_CUBIC = 1.5957691216057308, 0.044715  # 2·√(2/π), rounded
FAST_FACTOR, BLOOM_FACTOR = 1.5957691216, 1.59576912  # as some models write it
QUICK = 1.702
TINY = 2.0**-17  # up to here tanh x is x, less than |x|³/3


@dataclass(frozen=True, slots=True)
class Smooth:
    """One of the functions: how it is worked out, and what is known of it everywhere."""

    share: Callable[[Data], tuple[Data, Data]]  # g and a bound of its error
    slope: Callable[[Data, Data], Data]  # f′, within SLOPE_ERROR, given x and g
    bent: float  # |f″| is at most this
    depth: float  # f is at most this below relu, and never above
    least: tuple[float, float]  # the smallest value is taken between these


def _sigmoid(x: Data, unsure: Data) -> tuple[Data, Data]:
    """1/(1 + e^-x) and a bound of its error, where x is within `unsure`."""
    small = power(-np.abs(x))
    share = np.where(x >= 0, 1.0, small) / (1 + small)
    # the share moves by at most share·(1 - share) ≤ e^-|x| for a movement of x
    return share, share * (2 * RELATIVE + 8 * UNIT) + (small * 2 + FLOOR) * unsure + FLOOR


def _silu_share(x: Data) -> tuple[Data, Data]:
    return _sigmoid(x, np.zeros(x.shape))


def _quick_share(x: Data) -> tuple[Data, Data]:
    inner = np.clip(x, -1e4, 1e4) * QUICK
    return _sigmoid(inner, np.abs(inner) * (4 * UNIT))


def _gelu_tanh_share(factor: float, x: Data) -> tuple[Data, Data]:
    inner = np.clip(x, -30.0, 30.0)  # beyond, the share is 0 or 1, less than e^-700 away
    twice = inner * factor * (1 + GELU_CUBIC * inner * inner)
    return _sigmoid(twice, np.abs(twice) * (16 * UNIT))


def _silu_slope(x: Data, share: Data) -> Data:
    """s·(1 + x·(1 - s)), with 1 - s worked out at -x, so that no digits cancel."""
    rest, _error = _silu_share(-x)
    slope: Data = share * (1 + np.clip(x, -700.0, 700.0) * rest)
    return slope


def _quick_slope(x: Data, share: Data) -> Data:
    """The slope of silu at 1.702·x."""
    return _silu_slope(np.clip(x, -1e4, 1e4) * QUICK, share)


def _gelu_tanh_slope(factor: float, x: Data, share: Data) -> Data:
    inner = np.clip(x, -30.0, 30.0)
    rest, _error = _gelu_tanh_share(factor, -inner)
    steep: Data = factor * (1 + 3 * GELU_CUBIC * inner * inner)
    steep *= inner * share * rest
    return share + steep


def _gelu_slope(x: Data, share: Data) -> Data:
    inner = np.clip(x, -37.0, 37.0)
    return share + inner * BELL * power(inner * inner * -0.5)


def _like_gelu_tanh(factor: float) -> Smooth:
    return Smooth(
        partial(_gelu_tanh_share, factor),
        partial(_gelu_tanh_slope, factor),
        bent=0.81,
        depth=0.17005,
        least=(-0.7527, -0.7524),
    )


FUNCTIONS: Mapping[str, Smooth] = {
    "silu": Smooth(_silu_share, _silu_slope, bent=0.51, depth=0.27847, least=(-1.2785, -1.2784)),
    "quick_gelu": Smooth(
        _quick_share, _quick_slope, bent=0.869, depth=0.16362, least=(-0.7512, -0.7511)
    ),
    "gelu_tanh": _like_gelu_tanh(GELU_FACTOR),
    "gelu_fast": _like_gelu_tanh(FAST_FACTOR),
    "gelu_bloom": _like_gelu_tanh(BLOOM_FACTOR),
    "gelu": Smooth(normal_share, _gelu_slope, bent=0.8, depth=0.16998, least=(-0.7518, -0.7517)),
}


@quiet
def activated(x: Form, kind: str) -> Form:
    """f(x), by the narrowest of the three bounds."""
    f = FUNCTIONS[kind]
    middle, far = x.terms[0], radius(x)
    value, error, share = _at(f, middle)
    slope = f.slope(middle, share)
    tangent = far * (far * (f.bent / 2) + SLOPE_ERROR) * slack(4) + error
    if far.max(initial=0.0) <= NARROW:
        return bent(x, value, slope, tangent)
    low, high = ends(x)
    line = np.clip(high / (high - low), 0.0, 1.0)
    line = np.where(low >= 0, 1.0, np.where(high <= 0, 0.0, np.where(np.isnan(line), 0.0, line)))
    most = np.maximum((1 - line) * np.maximum(high, 0.0), -line * np.minimum(low, 0.0)) * slack(3)
    # f - line·x lies between -DEPTH and `most`
    half = (most + f.depth) * 0.5
    near_relu = half * slack(4) + (np.abs(middle) + most + 1) * (4 * UNIT)
    better = near_relu < tangent
    value = np.where(better, middle * line + (most - f.depth) * 0.5, value)
    slope = np.where(better, line, slope)
    remainder = np.where(better, near_relu, tangent)
    found = bent(x, value, slope, remainder)
    least, largest = _range(f, low, high)
    return ranged(found, least, largest, ~(remainder < (largest - least) * 0.5))


def _at(f: Smooth, x: Data) -> tuple[Data, Data, Data]:
    """f(x), a bound of its error, and the share g(x)."""
    share, unsure = f.share(x)
    value = x * share
    return value, (np.abs(x) * unsure + np.abs(value) * (4 * UNIT)) * slack(4) + FLOOR, share


def _range(f: Smooth, low: Data, high: Data) -> tuple[Data, Data]:
    """Bounds of f between two numbers: it falls up to where it is least, and then rises."""
    (at_low, low_error, _), (at_high, high_error, _) = _at(f, low), _at(f, high)
    largest = np.maximum(at_low + low_error, at_high + high_error)
    least = np.minimum(at_low - low_error, at_high - high_error)
    least = np.where((high < f.least[0]) | (low > f.least[1]), least, -f.depth)
    largest, least = largest + np.abs(largest) * 2.0**-52, least - np.abs(least) * 2.0**-52
    unknown = ~(np.isfinite(largest) & np.isfinite(least))
    return np.where(unknown, -f.depth, least), np.where(unknown, np.inf, largest)


# ------------------------------------------------------------------ sigmoid and tanh


@dataclass(frozen=True, slots=True)
class Rising:
    """A function that rises between two limits."""

    at: Callable[[Data], tuple[Data, Data, Data]]  # f, a bound of its error, f′ within SLOPE_ERROR
    bent: float  # |f″| is at most this
    limits: tuple[float, float]


def _sigmoid_at(x: Data) -> tuple[Data, Data, Data]:
    (share, error), (rest, _error) = _silu_share(x), _silu_share(-x)
    return share, error, share * rest


def _tanh_at(x: Data) -> tuple[Data, Data, Data]:
    """2s - 1, with s the sigmoid of 2x; near 0, where that cancels, x itself."""
    share, unsure, steep = _sigmoid_at(2 * x)
    size = np.abs(x)
    near = size <= TINY
    value = np.where(near, x, 2 * share - 1)
    cubed = np.where(near, size, 0.0) ** 3 * 0.34
    error = np.where(near, cubed + FLOOR * (x != 0), 2 * unsure + 4 * UNIT)
    return value, error * slack(4), 4 * steep


RISING: Mapping[str, Rising] = {
    "sigmoid": Rising(_sigmoid_at, bent=0.097, limits=(0.0, 1.0)),
    "tanh": Rising(_tanh_at, bent=0.77, limits=(-1.0, 1.0)),
}


@quiet
def risen(x: Form, kind: str) -> Form:
    """sigmoid or tanh, by the narrower of the tangent and the range."""
    f = RISING[kind]
    middle, far = x.terms[0], radius(x)
    value, error, slope = f.at(middle)
    tangent = far * (far * (f.bent / 2) + SLOPE_ERROR) * slack(4) + error
    found = bent(x, value, slope, tangent)
    low, high = ends(x)
    (at_low, low_error, _), (at_high, high_error, _) = f.at(low), f.at(high)
    least = np.maximum(at_low - low_error - 2.0**-52, f.limits[0])
    most = np.minimum(at_high + high_error + 2.0**-52, f.limits[1])
    return ranged(found, least, most, ~(tangent < (most - least) * 0.5))
