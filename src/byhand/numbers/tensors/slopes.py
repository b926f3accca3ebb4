"""The slopes of the activations on torch tensors, which may themselves be differentiated.

What is beyond `FAR` is taken for `FAR`: the slopes are 0 or 1 there in every format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import pi, sqrt

import torch
from torch import Tensor

FAR = {"silu": 1024.0, "gelu": 64.0}
CUBIC, QUICK = 0.044715, 1.702
ROOTS = {"gelu_tanh": sqrt(2 / pi), "gelu_fast": 0.7978845608, "gelu_bloom": 0.79788456}
GRID = 64  # y is cut into a multiple of 1/64, whose square is exact, and a rest


def relu(x: Tensor) -> Tensor:
    """1 above 0, else 0."""
    return torch.where(x.isnan(), torch.nan, (x > 0).to(x.dtype))


def silu(x: Tensor) -> Tensor:
    """s·(1 + x·(1 - s)), where s = 1/(1 + e^-x)."""
    x = x.clamp(-FAR["silu"], FAR["silu"])
    return x.sigmoid() * (1 + x * (-x).sigmoid())


def quick_gelu(x: Tensor) -> Tensor:
    """The slope of silu at 1.702·x."""
    return silu(QUICK * x)


def sigmoid(x: Tensor) -> Tensor:
    """s·(1 - s), where s = 1/(1 + e^-x)."""
    return x.sigmoid() * (-x).sigmoid()


def tanh(x: Tensor) -> Tensor:
    """1 - tanh²(x), which is 1/cosh²(x)."""
    return x.cosh().reciprocal().square()


def relu2(x: Tensor) -> Tensor:
    """2·max(0, x)."""
    return 2 * x.relu()


def _gelu_tanh(root: float, x: Tensor) -> Tensor:
    """s·(1 + x·(1 - s)·2u′), where s = 1/(1 + e^-2u) and u = root·(x + 0.044715·x³)."""
    x = x.clamp(-FAR["gelu"], FAR["gelu"])
    steep = 2 * root
    twice = steep * x * (1 + CUBIC * x * x)
    return twice.sigmoid() * (1 + x * (-twice).sigmoid() * steep * (1 + 3 * CUBIC * x * x))


def gelu(x: Tensor) -> Tensor:
    """Φ(x) + x·φ(x), which is 1 minus the slope at -x: so the tail is worked out, and turned."""
    y = x.abs().clamp(max=FAR["gelu"])
    tail = _bell(y) * (torch.special.erfcx(y * sqrt(0.5)) / 2 - y * (1 / sqrt(2 * pi)))
    return torch.where(x > 0, 1 - tail, tail)


def _bell(y: Tensor) -> Tensor:
    """e^(-y²/2); y² would be rounded, and its last unit counts y² times."""
    high = (y.detach() * GRID).round() / GRID
    return (high * high * -0.5).exp() * ((y - high) * (y + high) * -0.5).exp()


def identity(x: Tensor) -> Tensor:
    """1."""
    return torch.ones_like(x)


SLOPES: Mapping[str, Callable[[Tensor], Tensor]] = {
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
