"""Slopes of the activations: balls that contain the derivative at every number of the argument.

The derivatives of gelu, gelu_tanh and silu are of one kind.  f(x) = x·g(x) with g(x) + g(-x) = 1,
so f′(x) + f′(-x) = 1: the slope lies between 1 - STEEPEST and STEEPEST.  A wide ball is bounded by
this, and by the slope at its middle and how fast slopes change, at most BENT.  A narrow one is
worked out in balls, which keeps the digits of slopes near 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flint import arb, fmpq

from byhand.numbers.enclosed.balls.functions import sigmoid
from byhand.numbers.enclosed.balls.ranges import ANY_SHARE, WIDE

Function = Callable[[arb], arb]
STEEPEST = {"gelu": fmpq(113, 100), "gelu_tanh": fmpq(113, 100), "silu": fmpq(1101, 1000)}
BENT = {"gelu": fmpq(4, 5), "gelu_tanh": fmpq(81, 100), "silu": fmpq(51, 100)}
CUBIC = fmpq(44715, 10**6)  # of gelu_tanh


def relu(x: arb) -> arb:
    """1 above 0, else 0; for a ball across zero, a ball from 0 to 1."""
    if x > 0:
        return arb(1)
    return arb(0) if x <= 0 else ANY_SHARE


def _gelu() -> Function:
    """Φ(x) + x·φ(x)."""
    root, height = -1 / arb(2).sqrt(), 1 / (2 * arb.pi()).sqrt()
    return lambda x: (x * root).erfc() / 2 + x * height * (-x * x / 2).exp()


def _gelu_tanh() -> Function:
    """s + x·s·(1 - s)·2u′, where s = (1 + tanh u)/2 is the sigmoid of 2u."""
    factor, cubic = 2 * (2 / arb.pi()).sqrt(), arb(CUBIC)

    def slope(x: arb) -> arb:
        twice = factor * x * (1 + cubic * x * x)
        share, rest = sigmoid(twice), sigmoid(-twice)
        return share + x * share * rest * factor * (1 + 3 * cubic * x * x)

    return slope


def _silu() -> Function:
    """s·(1 + x·(1 - s)), where s is the sigmoid of x."""
    return lambda x: sigmoid(x) * (1 + x * sigmoid(-x))


def _smooth(kind: str, make: Callable[[], Function]) -> Callable[[], Function]:
    """The slope of a smooth activation, of narrow and of wide balls."""

    def made() -> Function:
        function, most, bent = make(), arb(STEEPEST[kind]), arb(BENT[kind])
        any_slope = (1 - most).union(most)

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
    "silu": _smooth("silu", _silu),
    "identity": lambda: lambda _x: arb(1),
}
