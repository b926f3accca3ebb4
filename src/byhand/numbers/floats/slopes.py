"""The slopes of the activations in floats: what a gradient is multiplied by on its way back.

Each writes into `out`, which must not be x itself.  They stay accurate where they are nearly zero;
`tests/numbers/test_slopes.py` measures the bounds that numbers/README.md states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import pi, sqrt

import numpy as np

from byhand.numbers.floats.erf import slope_beyond
from byhand.numbers.floats.formats import Data

CHUNK = 1 << 15  # entries done at a time, so that a few temporaries stay in the cache
FAR = {"silu": 1024.0, "gelu_tanh": 64.0}  # beyond it the slope is 0 or 1 in every format
CUBIC, QUICK = 0.044715, 1.702
ROOTS = {"gelu_tanh": sqrt(2 / pi), "gelu_fast": 0.7978845608, "gelu_bloom": 0.79788456}


def relu(x: Data, out: Data) -> None:
    """1 above 0, else 0."""
    np.greater(x, x.dtype.type(0), out=out)
    np.copyto(out, x, where=np.isnan(x))


def silu(x: Data, out: Data) -> None:
    """s + x·s·(1 - s), where s = 1/(1 + e^-x)."""
    for part, into in _parts(x, out):
        near = _within(part, "silu")
        np.multiply(near, _sigmoid(near, into), out=near)
        into += near


def quick_gelu(x: Data, out: Data) -> None:
    """s + 1.702·x·s·(1 - s), where s = 1/(1 + e^(-1.702·x))."""
    for part, into in _parts(x, out):
        near = _within(part, "silu") * x.dtype.type(QUICK)
        np.multiply(near, _sigmoid(near, into), out=near)
        into += near


def sigmoid(x: Data, out: Data) -> None:
    """s·(1 - s), where s = 1/(1 + e^-x)."""
    for part, into in _parts(x, out):
        np.copyto(into, _sigmoid(_within(part, "silu"), np.empty_like(into)))


def tanh(x: Data, out: Data) -> None:
    """1 - tanh²(x), which is 1/cosh²(x)."""
    np.cosh(x, out=out)
    np.divide(x.dtype.type(1), out, out=out)
    out *= out


def relu2(x: Data, out: Data) -> None:
    """2·max(0, x)."""
    np.maximum(x, x.dtype.type(0), out=out)
    out *= x.dtype.type(2)


def _gelu_tanh(root: float, x: Data, out: Data) -> None:
    """s + x·s·(1 - s)·2u′, where s = 1/(1 + e^-2u) and u = root·(x + 0.044715·x³)."""
    kind = x.dtype.type
    steep = 2 * root
    for part, into in _parts(x, out):
        near = _within(part, "gelu_tanh")
        square = near * near
        square *= kind(CUBIC)
        twice = square + kind(1)
        twice *= near
        twice *= kind(steep)
        square *= kind(3)
        square += kind(1)
        square *= kind(steep)
        square *= near
        square *= _sigmoid(twice, into)
        into += square


def gelu(x: Data, out: Data) -> None:
    """Φ(x) + x·φ(x), which is 1 minus the slope at -x: so the tail is worked out, and turned."""
    for part, into in _parts(x, out):
        tail = slope_beyond(np.abs(part))
        np.copyto(into, np.where(part > 0, x.dtype.type(1) - tail, tail))


def identity(x: Data, out: Data) -> None:
    """1."""
    np.copyto(out, x.dtype.type(1))


def _parts(x: Data, out: Data) -> Iterator[tuple[Data, Data]]:
    """Some rows of both at a time."""
    step = max(1, CHUNK // max(1, x[:1].size))
    for start in range(0, len(x), step):
        yield x[start : start + step], out[start : start + step]


def _within(x: Data, name: str) -> Data:
    far = x.dtype.type(FAR[name])
    near: Data = np.clip(x, -far, far)
    return near


def _sigmoid(x: Data, out: Data) -> Data:
    """Into `out`: s = 1/(1 + e^-x).  Returns s·(1 - s), which is s/(1 + e^x)."""
    one = x.dtype.type(1)
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += one
    np.divide(one, out, out=out)
    rest = np.exp(x)
    rest += one
    return np.divide(out, rest, out=rest)


SLOPES: Mapping[str, Callable[[Data, Data], None]] = {
    "relu": relu,
    "gelu": gelu,
    **{kind: partial(_gelu_tanh, root) for kind, root in ROOTS.items()},
    "silu": silu,
    "quick_gelu": quick_gelu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "relu2": relu2,
    "identity": identity,
}
