"""The slopes of the smooth activations: their derivatives as named values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from flint import fmpq

from byhand.numbers.exact.names import HALF, MINUS_ONE, ONE
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import Value

CUBIC = fmpq(44715, 1_000_000)  # of gelu_tanh
QUICK = fmpq(1702, 1000)  # of quick_gelu


def gelu(space: Space, x: Value) -> Value:
    """(1 + erf(x/√2))/2 + x·e^(-x²/2)/√(2π)."""
    two, one = space.plain(fmpq(2)), space.plain(ONE)
    inner = space.odd_function("erf", space.divide(x, space.sqrt(two)))
    bell = space.exp(space.dot((x,), (x,), -HALF))
    density = space.divide(bell, space.sqrt(space.multiply(two, space.pi())))
    return space.total([(HALF, one, one), (HALF, inner, one), (ONE, x, density)])


def gelu_tanh(space: Space, x: Value, root: fmpq | None = None) -> Value:
    """(1 + t)/2 + x·(1 - t²)·u′/2, where t = tanh u, u = √(2/π)·(x + 0.044715·x³).

    A `root` stands in place of √(2/π).
    """
    one = space.plain(ONE)
    if root is None:
        factor = space.sqrt(space.divide(space.plain(fmpq(2)), space.pi()))
    else:
        factor = space.plain(root)
    square = space.multiply(x, x)
    cube = space.multiply(square, x)
    u = space.multiply(factor, space.combine((ONE, CUBIC), (x, cube)))
    t = space.odd_function("tanh", u)
    steep = space.multiply(factor, space.combine((ONE, 3 * CUBIC), (one, square)))
    rest = space.total([(ONE, one, one), (MINUS_ONE, t, t)])
    bent = space.multiply(space.multiply(x, steep), rest)
    return space.combine((HALF, HALF, HALF), (one, t, bent))


def silu(space: Space, x: Value) -> Value:
    """s + x·s·(1 - s), where s = 1/(1 + e^-x)."""
    share, both = _sigmoid(space, x)
    return space.total([(ONE, share, space.plain(ONE)), (ONE, x, both)])


def quick_gelu(space: Space, x: Value) -> Value:
    """The slope of silu at 1.702·x."""
    return silu(space, x.times(QUICK))


def sigmoid(space: Space, x: Value) -> Value:
    """s·(1 - s), where s = 1/(1 + e^-x)."""
    return _sigmoid(space, x)[1]


def _sigmoid(space: Space, x: Value) -> tuple[Value, Value]:
    """s = 1/(1 + e^-x) and s·(1 - s)."""
    power = space.exp(x.times(MINUS_ONE))
    share = space.inverse(space.add(space.plain(ONE), power))
    return share, space.multiply(space.multiply(share, share), power)


def tanh(space: Space, x: Value) -> Value:
    """1 - tanh²(x)."""
    one, t = space.plain(ONE), space.odd_function("tanh", x)
    return space.total([(ONE, one, one), (MINUS_ONE, t, t)])


def identity(space: Space, x: Value) -> Value:
    """1."""
    return space.plain(ONE)


SLOPES: Mapping[str, Callable[[Space, Value], Value]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_fast": partial(gelu_tanh, root=fmpq(7978845608, 10**10)),
    "gelu_bloom": partial(gelu_tanh, root=fmpq(79788456, 10**8)),
    "silu": silu,
    "quick_gelu": quick_gelu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "identity": identity,
}
