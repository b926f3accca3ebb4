"""The activations in floats, entry by entry, with as few passes over the array as they need.

They are written so that they stay accurate where they are nearly zero: 1 + tanh and 1 + erf would
cancel there.  `tests/numbers/test_erf.py` measures the bounds that numbers/README.md states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt

import numpy as np

from byhand.numbers.floats.erf import beyond
from byhand.numbers.floats.formats import Data

LINEAR = -2 * sqrt(2 / pi)
CUBIC = LINEAR * 0.044715
CHUNK = 1 << 17  # entries done at a time, so that a dozen temporaries stay small


def relu(x: Data) -> Data:
    """max(0, x)."""
    result: Data = np.maximum(x, x.dtype.type(0))
    return result


def silu(x: Data) -> Data:
    """x/(1 + e^-x)."""
    below = np.negative(x)
    np.exp(below, out=below)
    below += x.dtype.type(1)
    return np.divide(x, below, out=below)


def gelu_tanh(x: Data) -> Data:
    """x·(1 + tanh u)/2, which is x/(1 + e^-2u), where u = √(2/π)·(x + 0.044715·x³)."""
    kind = x.dtype.type
    below = np.multiply(x, x)
    below *= kind(CUBIC)
    below += kind(LINEAR)
    below *= x
    np.exp(below, out=below)
    below += kind(1)
    return np.divide(x, below, out=below)


def gelu(x: Data) -> Data:
    """x·Φ(x), where Φ(x) = (1 + erf(x/√2))/2 is the normal distribution up to x."""
    flat = x.reshape(-1)
    result = np.empty_like(flat)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        share = beyond(np.abs(part))
        share = np.where(part > 0, x.dtype.type(1) - share, share)
        np.multiply(part, share, out=result[start : start + CHUNK])
    return result.reshape(x.shape)


ACTIVATIONS: Mapping[str, Callable[[Data], Data]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "identity": lambda x: x,
}
