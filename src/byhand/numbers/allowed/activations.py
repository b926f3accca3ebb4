"""The activations: middles in float64, and bounds of the rounding of implementations.

Each function gives f(x) and a bound of an implementation's error before the final rounding, with
our own error; None: it rounds nothing.  numbers/README.md derives the constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import log

import numpy as np

from byhand.numbers.allowed.precisions import HALF, OWN, Precision
from byhand.numbers.allowed.ranges import Data
from byhand.numbers.floats.activations import ACTIVATIONS

QUICK = 1.702
ERF = 4.0  # unit roundoffs of error that erf may have beyond 4 ulps: torch's fused gelu has 3
OURS = 16 * OWN  # the float64 functions are within 8 units of the last place

Result = tuple[Data, Data | None]

SLOPES: Mapping[str, float] = {  # |f(x) - f(y)| is at most this times |x - y|
    "relu": 1.0,
    "identity": 1.0,
    "gelu": 1.1290,
    "gelu_tanh": 1.1291,
    "gelu_fast": 1.1291,
    "gelu_bloom": 1.1291,
    "silu": 1.0999,
    "quick_gelu": 1.0999,  # silu(1.702·x)/1.702
    "sigmoid": 0.25,
    "tanh": 1.0,
}


def moved(kind: str, x: Data, by: Data) -> Data:
    """How far f(x) moves at most where x moves by so much."""
    if kind == "relu2":  # (r + d)² - r² with r = max(0, x)
        further: Data = by * (2 * np.maximum(x, 0.0) + by)
        return further
    return by * SLOPES[kind]


def relu(x: Data, p: Precision) -> Result:
    """max(0, x)."""
    return np.maximum(x, 0.0), None


def identity(x: Data, p: Precision) -> Result:
    """x."""
    return x, None


def gelu(x: Data, p: Precision) -> Result:
    """x·(1 + erf(x/√2))/2: where 1 + erf cancels, the error is relative to x."""
    y = _middle("gelu", x)
    # erf, with two roundings in its argument: its slope times that is at most 0.49
    in_erf = p.function + ERF * p.single + 0.98 * p.work.half
    own = np.abs(x) * (in_erf / 2 * (1 + 4 * p.work.half))
    own += np.abs(y) * (2.1 * p.work.half + OURS)
    return y, own


def gelu_tanh(kind: str, x: Data, p: Precision) -> Result:
    """x·(1 + tanh a)/2, or x/(1 + e^-2a), where a = √(2/π)·(x + 0.044715·x³), or nearly so."""
    y = _middle(kind, x)
    # a, whose terms have one sign: a power and five roundings; its slope times a is below 0.448
    in_a = p.function + 5 * p.work.half + 12 * OWN
    in_tanh = p.function + 0.448 * in_a * (1 + 2 * in_a)
    own = np.abs(x) * (in_tanh / 2 * (1 + 4 * p.work.half))
    own += np.abs(y) * (2.1 * p.work.half + OURS)
    return y, own


def silu(x: Data, p: Precision) -> Result:
    """x/(1 + e^-x), or x times that quotient."""
    y = _middle("silu", x)
    own = np.abs(y) * (2.1 * p.work.half + OURS)
    own += _rest(x, y) * (1.01 * p.function)
    return y, where_exp_overflows(own, y, x, p)


def quick_gelu(x: Data, p: Precision) -> Result:
    """x/(1 + e^-1.702x)."""
    inner = QUICK * x
    y = _middle("silu", inner) / QUICK
    own = np.abs(y) * (2.1 * p.work.half + OURS)
    # e^-a with two roundings in a: off by a factor of e^d, d = 2u·|a|
    factor = np.expm1(np.abs(inner) * (2.01 * p.work.half + 4 * OWN))
    own += _rest(x, y) * (factor + 1.01 * p.function * (1 + factor))
    return y, where_exp_overflows(own, y, inner, p)


def relu2(x: Data, p: Precision) -> Result:
    """max(0, x)²."""
    y = _middle("relu2", x)
    return y, y * (p.work.half + OURS)


def sigmoid(x: Data, p: Precision) -> Result:
    """1/(1 + e^-x), or e^x/(1 + e^x)."""
    y = _middle("sigmoid", x)
    own = y * (2.1 * p.work.half + OURS) + y * (1 - y) * (1.01 * p.function)
    return y, where_exp_overflows(own, y, x, p)


def tanh(x: Data, p: Precision) -> Result:
    """(e^2x - 1)/(e^2x + 1)."""
    y = _middle("tanh", x)
    return y, np.abs(y) * (p.function + OURS)


def _middle(kind: str, x: Data) -> Data:
    result = np.empty(x.shape)
    ACTIVATIONS[kind](x, result)
    return result


def _rest(x: Data, y: Data) -> Data:
    """|y|·(1 - s), where y = x·s, s = 1/(1 + e^-a): the effect on y of a relative error of e^-a."""
    share = np.divide(y, x, out=np.full(x.shape, 0.5), where=x != 0)
    rest: Data = np.abs(y) * np.maximum(1 + 16 * OWN - share, 0.0)
    return rest


def where_exp_overflows(own: Data, y: Data, x: Data, p: Precision) -> Data:
    """Where e^-x is beyond the range of the working format, an implementation gives 0."""
    if not p.work.half:
        return own
    far = x < 0.01 - log(p.work.largest)
    return np.where(far, np.maximum(own, np.abs(y)), own) if far.any() else own


TABLES = ("gelu_tanh", "gelu_fast", "gelu_bloom")  # that llama.cpp looks up, from -10 to 10


def from_table(kind: str, x: Data, y: Data) -> Data:
    """How far a table of float16 is off: x and f(x) are rounded to float16."""
    in_x = np.abs(x) * HALF.half + HALF.least
    own: Data = moved(kind, x, in_x) + np.abs(y) * (HALF.half * (1 + 4 * HALF.half))
    return own + HALF.least + 1e-20  # beyond -10 it is 0


KINDS: Mapping[str, Callable[[Data, Precision], Result]] = {
    "relu": relu,
    "gelu": gelu,
    **{kind: partial(gelu_tanh, kind) for kind in ("gelu_tanh", "gelu_fast", "gelu_bloom")},
    "silu": silu,
    "identity": identity,
    "quick_gelu": quick_gelu,
    "relu2": relu2,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
