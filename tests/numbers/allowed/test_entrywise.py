"""The newer operations on ranges: what correct implementations give of nasty numbers is allowed.

Each way is written as a framework writes it, in torch and in the format itself or in float32.  The
inputs are zeros, ties, huge, tiny and subnormal numbers, each exactly known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from byhand.expression import Number, parse
from byhand.numbers.allowed import Allowed
from byhand.numbers.floats import Floats
from byhand.numbers.tensors.system import KINDS

FORMATS = ("float64", "float32", "bfloat16", "float16")
THIRD, ROOT = Number(Fraction(1, 3)), parse("sqrt(2)/2")
Way = Callable[[Tensor, Tensor], Tensor]


def nasty(format: str) -> Tensor:
    """Numbers of the format: around 0, 1, the limits of the tests, and the ends of the range."""
    kind = KINDS[format]
    ends = torch.finfo(kind)
    sizes = [0.0, 0.3, 0.5, 1.0, 1.0 + ends.eps, 3.0, 7.0, 7.03, 20.0, 88.0, 300.0, 1e-3, 1e-7,
             ends.tiny, ends.tiny / 4, ends.max, ends.max / 2]  # fmt: skip
    random = np.random.default_rng(3).normal(size=14) * 4
    both = [sign * size for size in sizes for sign in (1, -1)]
    return torch.tensor([*both, *random], dtype=torch.float64).to(kind)


def pairs(format: str) -> tuple[Tensor, Tensor]:
    x = nasty(format)
    return x.repeat(len(x), 1), x.repeat(len(x), 1).T.contiguous()


def as_floats(x: Tensor) -> Any:
    return x.detach().to(torch.float64).numpy()


def in_float32(way: Way) -> Way:
    """The same worked out in float32 and rounded at the end; float64 stays."""

    def wide(x: Tensor, y: Tensor) -> Tensor:
        kind = torch.float64 if x.dtype == torch.float64 else torch.float32
        return way(x.to(kind), y.to(kind)).to(x.dtype)

    return wide


def gelu(root: float) -> Way:
    return lambda x, _y: x * 0.5 * (1 + torch.tanh(root * x * (1 + 0.044715 * x * x)))


WAYS: dict[str, tuple[Callable[[Any, Any, Any], Any], tuple[Way, ...]]] = {
    "rescale": (
        lambda n, x, _y: n.rescale(x, by=THIRD),
        (lambda x, _y: x * (1 / 3), lambda x, _y: x / 3),
    ),
    "rescale plus": (
        lambda n, x, _y: n.rescale(x, by=ROOT, plus=Fraction(1)),
        (lambda x, _y: x * 0.5**0.5 + 1, lambda x, _y: 1 + x / 2**0.5),
    ),
    "plus": (lambda n, x, _y: n.rescale(x, plus=Fraction(1, 3)), (lambda x, _y: x + 1 / 3,)),
    "soft_cap": (
        lambda n, x, _y: n.soft_cap(x, cap=Fraction(30)),
        (lambda x, _y: torch.tanh(x / 30) * 30, lambda x, _y: 30 * torch.tanh(x * (1 / 30))),
    ),
    "clamp": (
        lambda n, x, _y: n.clamp(x, least=Fraction(-7), most=Fraction(7)),
        (lambda x, _y: x.clamp(-7, 7),),
    ),
    "clamp above": (
        lambda n, x, _y: n.clamp(x, most=Fraction(703, 100)),
        (lambda x, _y: torch.minimum(x, torch.tensor(7.03, dtype=torch.float64).to(x.dtype)),),
    ),
    "weigh": (lambda n, x, y: n.weigh(x, y[:, :1]), (lambda x, y: x * y[:, :1],)),
    "gain": (
        lambda n, x, y: n.affine(x, gain=y[0], plus_one=True),
        (lambda x, y: x * (1 + y[0]), lambda x, y: x + x * y[0]),
    ),
    "relu2": (lambda n, x, _y: n.activate(x, kind="relu2"), (lambda x, _y: x.relu().square(),)),
    "quick_gelu": (
        lambda n, x, _y: n.activate(x, kind="quick_gelu"),
        (lambda x, _y: x * torch.sigmoid(1.702 * x),),
    ),
    "gelu_fast": (lambda n, x, _y: n.activate(x, kind="gelu_fast"), (gelu(0.7978845608),)),
    "gelu_bloom": (lambda n, x, _y: n.activate(x, kind="gelu_bloom"), (gelu(0.79788456),)),
    "sigmoid": (
        lambda n, x, _y: n.activate(x, kind="sigmoid"),
        (lambda x, _y: x.sigmoid(), lambda x, _y: 1 / (1 + torch.exp(-x))),
    ),
    "tanh": (lambda n, x, _y: n.activate(x, kind="tanh"), (lambda x, _y: x.tanh(),)),
}
PRECISIONS = (*FORMATS, *(f"transformers:{f}" for f in FORMATS[1:]), "bfloat16+fused")


def claims(format: str, ways: tuple[Way, ...]) -> Iterator[Any]:
    x, y = pairs(format)
    for way in ways:
        for done in (way, in_float32(way)):
            yield as_floats(done(x, y))


@pytest.mark.parametrize("name", WAYS)
def test_what_frameworks_give_is_allowed(name: str) -> None:
    operation, ways = WAYS[name]
    for precision in PRECISIONS:
        format = precision.partition("+")[0].rpartition(":")[2]
        allowed = Allowed(precision)
        x, y = (as_floats(part) for part in pairs(format))
        value = operation(allowed, allowed.admit(x), allowed.admit(y))
        for claim in claims(format, ways):
            judged = allowed.judge(value, (), claim)
            assert judged.possible, (precision, judged.worst, x[judged.worst], judged.share)
        own = Floats(format)
        with np.errstate(all="ignore"):
            mine = operation(own, *(own.admit(part) for part in (x, y)))
        assert allowed.judge(value, (), np.asarray(mine, dtype=np.float64)).possible, precision


@pytest.mark.parametrize("name", WAYS)
def test_a_wrong_number_is_not_allowed(name: str) -> None:
    """Of numbers that are neither huge nor tiny, a tenth more or less."""
    operation, _ways = WAYS[name]
    allowed = Allowed("float32")
    x, y = np.full((2, 3, 3), 1.7)
    value = operation(allowed, allowed.admit(x), allowed.admit(y))
    for wrong in (0.9, 1.1):
        assert not allowed.judge(value, (), allowed.entries(value) * wrong).possible


def test_numbers_that_are_no_numbers_leave_their_rows_open_and_no_others() -> None:
    allowed = Allowed("float32")
    x = np.array([[np.nan, 1.0], [np.inf, 2.0], [3.0, 4.0]])
    known = allowed.overlay(allowed.admit(np.zeros(x.shape)), (), x)
    for name, (operation, _ways) in WAYS.items():
        value = operation(allowed, known, allowed.admit(np.ones((3, 2))))
        assert np.isinf(value.rad).tolist() == [[True, False], [True, False], [False, False]], name
