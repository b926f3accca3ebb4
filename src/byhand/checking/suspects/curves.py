"""Curves: functions of one number that ports have in place of an activation, with their constants.

Each is a function of an array, for finite entries; `written` says it as a formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.floats.activations import ACTIVATIONS

Data = npt.NDArray[Any]


@dataclass(frozen=True)
class Family:
    """A function with constants: how it is worked out and written, and where its constants lie."""

    make: Callable[..., Data]
    written: str  # with {0}, {1} for the constants
    usual: tuple[float, ...] = ()
    starts: tuple[tuple[float, ...], ...] = ()  # where a fit begins besides the usual constants


@dataclass(frozen=True)
class Curve:
    """A function of one number: a family with its constants, after and before the model's own."""

    family: str
    constants: tuple[float, ...] = ()
    within: str | None = None  # the activation that it is applied to the result of
    of: str | None = None  # the activation that is applied to its result

    def __call__(self, x: Data) -> Data:
        with np.errstate(all="ignore"):
            if self.within is not None:
                x = activated(self.within, x)
            y = np.asarray(FAMILIES[self.family].make(x, *self.constants), dtype=np.float64)
            return activated(self.of, y) if self.of is not None else y


def activated(kind: str, x: Data) -> Data:
    """One of the model's own activations, in float64."""
    data = np.ascontiguousarray(x, dtype=np.float64)
    if kind == "quick_gelu":
        return _swish(data, 1.702)
    result = np.empty(data.shape)
    ACTIVATIONS[kind](data, result)
    return result


def _sigmoid(x: Data) -> Data:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def _swish(x: Data, beta: float) -> Data:
    return np.asarray(x / (1 + np.exp(-beta * x)))


def _gelu_tanh(x: Data, a: float, b: float) -> Data:
    return np.asarray(0.5 * x * (1 + np.tanh(a * (x + b * x**3))))


def _gelu_erf(x: Data, inner: float) -> Data:
    scale = sqrt(2.0) * inner
    return activated("gelu", x * scale) / scale if scale else 0.5 * x


def _softplus(x: Data) -> Data:
    return np.asarray(np.logaddexp(0.0, x))


def _hard_sigmoid(x: Data) -> Data:
    return np.asarray(np.clip(x / 6 + 0.5, 0.0, 1.0))


FAMILIES: Mapping[str, Family] = {
    "tanh": Family(np.tanh, "tanh(x)"),
    "sigmoid": Family(_sigmoid, "σ(x)"),
    "softplus": Family(_softplus, "softplus(x) = ln(1 + e^x)"),
    "mish": Family(lambda x: x * np.tanh(_softplus(x)), "mish(x) = x·tanh(softplus(x))"),
    "relu6": Family(lambda x: np.clip(x, 0.0, 6.0), "ReLU6, min(max(x, 0), 6)"),
    "hard_swish": Family(lambda x: x * _hard_sigmoid(x), "hard swish"),
    "hard_sigmoid": Family(_hard_sigmoid, "hard sigmoid"),
    "relu_squared": Family(lambda x: np.square(np.maximum(x, 0.0)), "ReLU squared"),
    "selu": Family(
        lambda x: (
            1.0507009873554805
            * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0.0)))
        ),
        "SELU",
    ),
    "softsign": Family(lambda x: x / (1 + np.abs(x)), "x/(1 + |x|)"),
    "absolute": Family(np.abs, "|x|"),
    "squared": Family(np.square, "x²"),
    "negated": Family(np.negative, "-x"),
    "exponential": Family(np.exp, "e^x"),
    "sine": Family(np.sin, "sin x"),
    "relu": Family(lambda x: np.maximum(x, 0.0), "ReLU"),
    "identity": Family(lambda x: x, "x"),
    "silu": Family(lambda x: _swish(x, 1.0), "SiLU"),
    "gelu": Family(lambda x: _gelu_erf(x, sqrt(0.5)), "GELU with erf"),
    "quick_gelu": Family(lambda x: _swish(x, 1.702), "quick GELU, x·σ(1.702·x)"),
    "swish": Family(_swish, "x·σ({0}·x)", (1.0,), ((1.702,), (0.5,), (4.0,))),
    "gelu_erf": Family(_gelu_erf, "x·(1 + erf({0}·x))/2", (sqrt(0.5),), ((1.0,), (0.3,))),
    "leaky": Family(
        lambda x, a: np.where(x > 0, x, a * x), "x, times {0} below 0", (0.01,), ((0.2,),)
    ),
    "elu": Family(
        lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0.0))),
        "ELU with α = {0}",
        (1.0,),
    ),
    "soft_cap": Family(
        lambda x, c: c * np.tanh(x / c) * np.where(c > 0, 1, np.nan),
        "{0}·tanh(x/{0})",
        (30.0,),
        ((1.0,), (5.0,), (50.0,)),
    ),
    "limited": Family(lambda x, c: np.clip(x, -abs(c), abs(c)), "x, at most ±{0}", (1.0,)),
    "at_most": Family(lambda x, c: np.minimum(x, c), "min(x, {0})", (1.0,)),
    "at_least": Family(lambda x, c: np.maximum(x, c), "max(x, {0})", (0.0,)),
    "scaled": Family(lambda x, a: a * x, "{0}·x", (1.0,), ((0.5,), (2.0,))),
    "shifted": Family(lambda x, a: x + a, "x + {0}", (0.0,)),
    "power": Family(
        lambda x, p: np.sign(x) * np.abs(x) ** p, "|x|^{0} with its sign", (1.0,), ((2.0,), (0.5,))
    ),
    "gelu_tanh": Family(
        _gelu_tanh,
        "x·(1 + tanh({0}·(x + {1}·x³)))/2",
        (sqrt(2 / pi), 0.044715),
        ((0.8, 0.0), (1.0, 0.05)),
    ),
    "scaled_swish": Family(lambda x, a, b: a * _swish(x, b), "{0}·x·σ({1}·x)", (1.0, 1.0)),
}
