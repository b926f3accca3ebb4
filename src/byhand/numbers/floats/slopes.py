"""The slopes of the activations in floats: what a gradient is multiplied by on its way back.

Each writes into `out`, which must not be x itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt

import numpy as np

from byhand.numbers.floats.activations import CHUNK
from byhand.numbers.floats.erf import beyond
from byhand.numbers.floats.formats import Data


def relu(x: Data, out: Data) -> None:
    """1 above 0, else 0."""
    np.greater(x, x.dtype.type(0), out=out)


def silu(x: Data, out: Data) -> None:
    """s·(1 + x·(1 - s)), where s = 1/(1 + e^-x)."""
    kind = x.dtype.type
    share = kind(1) / (kind(1) + np.exp(-x))
    rest = kind(1) / (kind(1) + np.exp(x))  # 1 - share, without cancellation
    np.multiply(x, rest, out=out)
    out += kind(1)
    out *= share
    np.copyto(out, kind(0), where=np.isneginf(x))
    np.copyto(out, kind(1), where=np.isposinf(x))


def gelu_tanh(x: Data, out: Data) -> None:
    """s + x·s·(1 - s)·2u′, where s = (1 + tanh u)/2 and u′ = √(2/π)·(1 + 3·0.044715·x²)."""
    kind = x.dtype.type
    twice = kind(2 * sqrt(2 / pi)) * x * (kind(1) + kind(0.044715) * x * x)
    share, rest = kind(1) / (kind(1) + np.exp(-twice)), kind(1) / (kind(1) + np.exp(twice))
    steep = kind(2 * sqrt(2 / pi)) * (kind(1) + kind(3 * 0.044715) * x * x)
    both = share * rest
    np.multiply(x, both, out=out)
    out *= steep
    np.copyto(out, kind(0), where=both == 0)
    out += share


def gelu(x: Data, out: Data) -> None:
    """Φ(x) + x·φ(x): the normal distribution up to x, and x times its density."""
    kind = x.dtype.type
    step = max(1, CHUNK // max(1, x[:1].size))
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        part = x[rows]
        share = beyond(np.abs(part))
        share = np.where(part > 0, kind(1) - share, share)
        density = np.exp(part * part * kind(-0.5)) * kind(1 / sqrt(2 * pi))
        into = out[rows]
        np.multiply(part, density, out=into)
        np.copyto(into, kind(0), where=density == 0)
        into += share


def identity(x: Data, out: Data) -> None:
    """1."""
    np.copyto(out, x.dtype.type(1))


SLOPES: Mapping[str, Callable[[Data, Data], None]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "identity": identity,
}
