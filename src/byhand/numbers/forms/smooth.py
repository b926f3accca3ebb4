"""gelu, gelu_tanh and silu of forms: f(x) = x·g(x), where g rises from 0 to 1, g(x) + g(-x) = 1.

Three bounds compete, entry by entry: the tangent at the middle, whose remainder is at most half the
curvature times the square of the radius; relu's line, from which f is at most DEPTH away; and
the range of f.  numbers/README.md derives the constants; tests prove them by Arb balls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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


def _gelu_tanh_share(x: Data) -> tuple[Data, Data]:
    inner = np.clip(x, -30.0, 30.0)  # beyond, the share is 0 or 1, less than e^-700 away
    twice = inner * GELU_FACTOR * (1 + GELU_CUBIC * inner * inner)
    return _sigmoid(twice, np.abs(twice) * (16 * UNIT))


def _silu_slope(x: Data, share: Data) -> Data:
    """s·(1 + x·(1 - s)), with 1 - s worked out at -x, so that no digits cancel."""
    rest, _error = _silu_share(-x)
    slope: Data = share * (1 + np.clip(x, -700.0, 700.0) * rest)
    return slope


def _gelu_tanh_slope(x: Data, share: Data) -> Data:
    inner = np.clip(x, -30.0, 30.0)
    rest, _error = _gelu_tanh_share(-inner)
    steep: Data = GELU_FACTOR * (1 + 3 * GELU_CUBIC * inner * inner)
    steep *= inner * share * rest
    return share + steep


def _gelu_slope(x: Data, share: Data) -> Data:
    inner = np.clip(x, -37.0, 37.0)
    return share + inner * BELL * power(inner * inner * -0.5)


FUNCTIONS: Mapping[str, Smooth] = {
    "silu": Smooth(_silu_share, _silu_slope, bent=0.51, depth=0.27847, least=(-1.2785, -1.2784)),
    "gelu_tanh": Smooth(
        _gelu_tanh_share, _gelu_tanh_slope, bent=0.81, depth=0.17005, least=(-0.7527, -0.7524)
    ),
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
