"""Functions of Arb balls: each returns a ball that contains every value of the function.

That is its value at every number in the argument, at the working precision.  An argument that is
not finite gives a result that is not finite.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, fmpq

from byhand.numbers.enclosed.balls.ranges import ANY_SHARE, WIDE, increasing, power, shares


def softmax_row(row: list[arb]) -> list[arb]:
    """Returns balls that contain the softmax of every row of numbers in these balls.

    The row is shifted by the largest midpoint, which does not change the softmax.
    """
    if len(row) < 2:
        return [arb(1) for _score in row]
    if not all(score.is_finite() for score in row):
        return [ANY_SHARE] * len(row)
    if any(score.rad() > WIDE for score in row):
        return shares(row)
    top = row[0].mid()
    for score in row:
        if score.mid() > top:
            top = score.mid()
    powers = [(score - top).exp() for score in row]
    total = sum(powers[1:], powers[0])
    return [power / total for power in powers]


def relu(x: arb) -> arb:
    """max(0, x); for a ball across zero, a ball from 0 to its upper end."""
    if x > 0:
        return x
    if x <= 0:
        return arb(0)
    return x.nonnegative_part() if x.is_finite() else x


def sigmoid(x: arb) -> arb:
    """1/(1 + e^-x), computed from the smaller of e^x and e^-x."""
    return increasing(_sigmoid, x)


def _sigmoid(x: arb) -> arb:
    if x.mid() < 0:
        power = x.exp()
        return power / (1 + power)
    return 1 / (1 + (-x).exp())


def _gelu() -> Callable[[arb], arb]:
    factor = -1 / arb(2).sqrt()
    return lambda x: x * (x * factor).erfc() / 2


def _gelu_tanh(root: fmpq | None = None) -> Callable[[arb], arb]:
    known = (2 / arb.pi()).sqrt() if root is None else arb(root)
    factor = 2 * known  # (1 + tanh u)/2 is the sigmoid of 2u
    cubic = arb(fmpq(44715, 10**6))
    return lambda x: x * sigmoid(factor * x * (1 + cubic * x * x))


def _quick_gelu() -> Callable[[arb], arb]:
    factor = arb(fmpq(1702, 1000))
    return lambda x: x * sigmoid(factor * x)


def tanh(x: arb) -> arb:
    """(e^2x - 1)/(e^2x + 1)."""
    return increasing(arb.tanh, x)


ACTIVATIONS: dict[str, Callable[[], Callable[[arb], arb]]] = {
    "relu": lambda: relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "gelu_fast": lambda: _gelu_tanh(fmpq(7978845608, 10**10)),
    "gelu_bloom": lambda: _gelu_tanh(fmpq(79788456, 10**8)),
    "silu": lambda: lambda x: x * sigmoid(x),
    "quick_gelu": _quick_gelu,
    "relu2": lambda: lambda x: power(relu(x), 2),
    "sigmoid": lambda: sigmoid,
    "tanh": lambda: tanh,
}
