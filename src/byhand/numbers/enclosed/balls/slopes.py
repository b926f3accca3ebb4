"""Slopes of the activations: balls that contain the derivative at every number of the argument.

The derivatives of gelu, gelu_tanh and silu are of one kind.  f(x) = x·g(x) with g(x) + g(-x) = 1,
so f′(x) + f′(-x) = 1: the slope lies between 1 - STEEPEST and STEEPEST.  A wide ball is bounded by
this, and by the slope at its middle and how fast slopes change, at most BENT.  A narrow one is
worked out in balls, which keeps the digits of slopes near 0.  The slopes of sigmoid and tanh lie
between 0 and STEEPEST, and change by at most 1/(6√3) and 4/(3√3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from flint import arb, fmpq

from byhand.numbers.enclosed.balls.functions import sigmoid
from byhand.numbers.enclosed.balls.ranges import ANY_SHARE, WIDE

Function = Callable[[arb], arb]
STEEPEST = {
    "gelu": fmpq(113, 100), "gelu_tanh": fmpq(113, 100), "silu": fmpq(1101, 1000),
    "gelu_fast": fmpq(113, 100), "gelu_bloom": fmpq(113, 100),
    "sigmoid": fmpq(1, 4), "tanh": fmpq(1),
}  # fmt: skip
BENT = {
    "gelu": fmpq(4, 5), "gelu_tanh": fmpq(81, 100), "silu": fmpq(51, 100),
    "gelu_fast": fmpq(81, 100), "gelu_bloom": fmpq(81, 100),
    "sigmoid": fmpq(97, 1000), "tanh": fmpq(773, 1000),
}  # fmt: skip
RISING = ("sigmoid", "tanh")  # their slopes are never below 0
CUBIC, QUICK = fmpq(44715, 10**6), fmpq(1702, 1000)  # of gelu_tanh, of quick_gelu
ROOTS = {"gelu_fast": fmpq(7978845608, 10**10), "gelu_bloom": fmpq(79788456, 10**8)}


def relu(x: arb) -> arb:
    """1 above 0, else 0; for a ball across zero, a ball from 0 to 1."""
    if x > 0:
        return arb(1)
    return arb(0) if x <= 0 else ANY_SHARE


def _gelu() -> Function:
    """Φ(x) + x·φ(x)."""
    root, height = -1 / arb(2).sqrt(), 1 / (2 * arb.pi()).sqrt()
    return lambda x: (x * root).erfc() / 2 + x * height * (-x * x / 2).exp()


def _gelu_tanh(root: fmpq | None = None) -> Function:
    """s + x·s·(1 - s)·2u′, where s = (1 + tanh u)/2 is the sigmoid of 2u; a root for √(2/π)."""
    factor = 2 * ((2 / arb.pi()).sqrt() if root is None else arb(root))
    cubic = arb(CUBIC)

    def slope(x: arb) -> arb:
        twice = factor * x * (1 + cubic * x * x)
        share, rest = sigmoid(twice), sigmoid(-twice)
        return share + x * share * rest * factor * (1 + 3 * cubic * x * x)

    return slope


def _silu() -> Function:
    """s·(1 + x·(1 - s)), where s is the sigmoid of x."""
    return lambda x: sigmoid(x) * (1 + x * sigmoid(-x))


def _quick_gelu() -> Function:
    """The slope of silu at 1.702·x."""
    silu, quick = SLOPES["silu"](), arb(QUICK)
    return lambda x: silu(quick * x)


def _sigmoid() -> Function:
    """s·(1 - s)."""
    return lambda x: sigmoid(x) * sigmoid(-x)


def _tanh() -> Function:
    """1 - tanh²(x), which is 4·s·(1 - s) at 2x."""
    return lambda x: 4 * sigmoid(2 * x) * sigmoid(-2 * x)


def relu2(x: arb) -> arb:
    """2·max(0, x)."""
    if x > 0:
        return 2 * x
    return arb(0) if x <= 0 else (2 * x).max(arb(0))


def _smooth(kind: str, make: Callable[[], Function]) -> Callable[[], Function]:
    """The slope of a smooth activation, of narrow and of wide balls."""

    def made() -> Function:
        function, most, bent = make(), arb(STEEPEST[kind]), arb(BENT[kind])
        least = arb(0) if kind in RISING else 1 - most
        any_slope = least.union(most)

        def slope(x: arb) -> arb:
            if not x.is_finite():
                return any_slope
            found = function(x)
            if x.rad() < WIDE:
                return found
            near = function(x.mid()) + arb(0, 1) * bent * x.rad()
            limit = near.intersection(any_slope)
            return limit.intersection(found) if found.is_finite() else limit

        return slope

    return made


SLOPES: Mapping[str, Callable[[], Function]] = {
    "relu": lambda: relu,
    "gelu": _smooth("gelu", _gelu),
    "gelu_tanh": _smooth("gelu_tanh", _gelu_tanh),
    **{kind: _smooth(kind, partial(_gelu_tanh, root)) for kind, root in ROOTS.items()},
    "silu": _smooth("silu", _silu),
    "quick_gelu": _quick_gelu,
    "sigmoid": _smooth("sigmoid", _sigmoid),
    "tanh": _smooth("tanh", _tanh),
    "relu2": lambda: relu2,
    "identity": lambda: lambda _x: arb(1),
}
