"""The slopes of the activations against Arb, near zero, far out, and where they vanish.

A slope is a sum of two terms, which cancel near one point.  So the bounds are in units of the last
place of the terms' sizes together: numbers/README.md states them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, ctx

from byhand.numbers.floats import Floats
from byhand.numbers.floats.formats import narrowed
from byhand.numbers.floats.slopes import SLOPES
from byhand.numbers.tensors.slopes import ROOTS
from byhand.numbers.tensors.slopes import SLOPES as TENSOR_SLOPES

FLOATS = [np.float64, np.float32]
ROOM = {  # where the slopes are still far above the smallest numbers
    "gelu": {np.float64: 37.0, np.float32: 12.5},
    "gelu_tanh": {np.float64: 20.0, np.float32: 9.0},
    "silu": {np.float64: 700.0, np.float32: 84.0},
}


def in_numpy(name: str, x: Any) -> Any:
    result = np.empty_like(x)
    with np.errstate(all="ignore"):
        SLOPES[name](x, result)
    return result


def in_torch(name: str, x: Any) -> Any:
    return TENSOR_SLOPES[name](torch.tensor(x)).numpy()


everywhere = pytest.mark.parametrize("slope", [in_numpy, in_torch])
in_both = pytest.mark.parametrize("kind", FLOATS)


def gelu(x: arb) -> tuple[arb, arb, arb]:
    """The two terms of the slope, and the size of the exponent that is rounded."""
    density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
    return (-x / arb(2).sqrt()).erfc() / 2, x * density, arb(0)


def silu(x: arb) -> tuple[arb, arb, arb]:
    share, rest = 1 / (1 + (-x).exp()), 1 / (1 + x.exp())
    return share, x * share * rest, arb(0)


def gelu_tanh(x: arb) -> tuple[arb, arb, arb]:
    steep = (8 / arb.pi()).sqrt()
    twice = steep * (x + arb("0.044715") * x**3)
    share, rest = 1 / (1 + (-twice).exp()), 1 / (1 + twice.exp())
    return share, x * share * rest * steep * (1 + 3 * arb("0.044715") * x**2), abs(twice)


def points(kind: Any, room: float) -> Any:
    random = np.random.default_rng(7)
    near = random.uniform(-3, 3, 600)  # each slope vanishes once there
    tiny = random.choice([-1, 1], 200) * 10 ** random.uniform(-12, 0, 200)
    return np.concatenate([random.uniform(-room, room, 600), near, tiny, [0.0]]).astype(kind)


def units(found: Any, x: Any, true: Callable[[arb], tuple[arb, arb, arb]]) -> float:
    """How far the worst result is off, in units of the sizes of the terms."""
    worst, eps = 0.0, float(np.finfo(x.dtype).eps)
    with ctx.workprec(160):
        for value, at in zip(found, x, strict=True):
            one, other, exponent = true(arb(float(at)))
            size = (abs(one) + abs(other)) * (1 + exponent) * eps
            worst = max(worst, float(abs(arb(float(value)) - one - other) / size))
    return worst


@everywhere
@in_both
@pytest.mark.parametrize(("true", "bound"), [(gelu, 5), (silu, 3), (gelu_tanh, 2)])
def test_a_slope_is_within_a_few_units_of_its_terms(
    true: Any, bound: int, kind: Any, slope: Any
) -> None:
    x = points(kind, ROOM[true.__name__][kind])
    assert units(slope(true.__name__, x), x, true) <= bound


@everywhere
@in_both
@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu"])
def test_far_out_a_slope_is_one_or_zero_and_nan_stays(name: str, kind: Any, slope: Any) -> None:
    x = np.array([1e5, 1e30, np.inf], dtype=kind)
    assert slope(name, x).tolist() == [1, 1, 1]
    assert slope(name, -x).tolist() == [0, 0, 0]
    assert np.isnan(slope(name, np.array([np.nan], dtype=kind))).all()


@everywhere
@in_both
def test_the_slope_of_relu_at_zero_is_zero(kind: Any, slope: Any) -> None:
    x = np.array([-1, -0.0, 0.0, 1e-30], dtype=kind)
    assert slope("relu", x).tolist() == [0, 0, 0, 1]
    assert slope("identity", x).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_a_slope_in_a_narrow_format_is_rounded_once(format: str, name: str) -> None:
    narrow, wide = Floats(format), Floats("float32")
    x = narrow.admit(np.linspace(-8, 8, 999).reshape(3, 333))
    expected = narrowed(wide.slope(x.astype(np.float32), kind=name), narrow.dtype)
    assert np.array_equal(narrow.slope(x, kind=name), expected)


@pytest.mark.parametrize("name", TENSOR_SLOPES)
def test_the_slope_of_a_slope_is_torchs_second_derivative(name: str) -> None:
    x = torch.linspace(-6, 6, 101, dtype=torch.float64, requires_grad=True)
    activations: dict[str, Callable[[Any], Any]] = {
        "relu": torch.relu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "silu": torch.nn.functional.silu,
        "identity": lambda x: x * 1,
        "relu2": lambda x: torch.relu(x) ** 2,
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        **{
            kind: lambda x, root=root: x / 2 * (1 + torch.tanh(root * (x + 0.044715 * x**3)))
            for kind, root in ROOTS.items()
            if kind != "gelu_tanh"
        },
    }
    (first,) = torch.autograd.grad(activations[name](x).sum(), x, create_graph=True)
    assert torch.allclose(TENSOR_SLOPES[name](x), first, rtol=1e-13, atol=1e-14)  # torch cancels
    if name in ("relu", "identity", "relu2"):
        return
    (second,) = torch.autograd.grad(first.sum(), x)
    (found,) = torch.autograd.grad(TENSOR_SLOPES[name](x).sum(), x)
    assert torch.allclose(found, second, rtol=1e-11, atol=1e-13)
