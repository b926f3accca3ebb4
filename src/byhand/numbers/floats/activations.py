"""The activations in floats, with few passes over the array.

Each writes into `out`, which must not be x itself.

They are written so that they stay accurate where they are nearly zero: 1 + tanh and 1 + erf would
cancel there.  `tests/numbers/test_erf.py` measures the bounds that numbers/README.md states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import pi, sqrt

import numpy as np

from byhand.numbers.floats.erf import beyond
from byhand.numbers.floats.formats import Data

ROOTS = {"gelu_tanh": sqrt(2 / pi), "gelu_fast": 0.7978845608, "gelu_bloom": 0.79788456}
CHUNK = 1 << 17  # entries done at a time, so that a dozen temporaries stay small


def relu(x: Data, out: Data) -> None:
    """max(0, x)."""
    np.maximum(x, x.dtype.type(0), out=out)


def silu(x: Data, out: Data) -> None:
    """x/(1 + e^-x)."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += x.dtype.type(1)
    np.divide(x, out, out=out)


def sigmoid(x: Data, out: Data) -> None:
    """1/(1 + e^-x)."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    out += x.dtype.type(1)
    np.divide(x.dtype.type(1), out, out=out)


def quick_gelu(x: Data, out: Data) -> None:
    """x/(1 + e^(-1.702·x))."""
    np.multiply(x, x.dtype.type(-1.702), out=out)
    np.exp(out, out=out)
    out += x.dtype.type(1)
    np.divide(x, out, out=out)


def tanh(x: Data, out: Data) -> None:
    """(e^2x - 1)/(e^2x + 1)."""
    np.tanh(x, out=out)


def relu2(x: Data, out: Data) -> None:
    """max(0, x)²."""
    np.maximum(x, x.dtype.type(0), out=out)
    out *= out


def _gelu_tanh(root: float, x: Data, out: Data) -> None:
    """x·(1 + tanh u)/2, which is x/(1 + e^-2u), where u = root·(x + 0.044715·x³)."""
    kind = x.dtype.type
    np.multiply(x, x, out=out)
    out *= kind(-2 * root * 0.044715)
    out += kind(-2 * root)
    out *= x
    np.exp(out, out=out)
    out += kind(1)
    np.divide(x, out, out=out)


def gelu(x: Data, out: Data) -> None:
    """x·Φ(x), where Φ(x) = (1 + erf(x/√2))/2 is the normal distribution up to x."""
    step = max(1, CHUNK // max(1, x[:1].size))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        part = x[rows]
        share = beyond(np.abs(part))
        share = np.where(part > 0, x.dtype.type(1) - share, share)
        np.multiply(part, share, out=out[rows])


def identity(x: Data, out: Data) -> None:
    """x."""
    np.copyto(out, x)


ACTIVATIONS: Mapping[str, Callable[[Data, Data], None]] = {
    "relu": relu,
    "gelu": gelu,
    **{kind: partial(_gelu_tanh, root) for kind, root in ROOTS.items()},
    "silu": silu,
    "quick_gelu": quick_gelu,
    "relu2": relu2,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "identity": identity,
}
