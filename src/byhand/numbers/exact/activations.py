"""Softmax of a row, and the smooth activations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flint import fmpq

from byhand.errors import Undecided
from byhand.numbers.exact.names import HALF, MINUS_ONE, ONE
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import How, Value


def softmax_row(space: Space, scores: list[Value]) -> list[Value]:
    """The softmax of one row; the weights add up to exactly 1.

    It is shifted by the lowest score if that is known, which keeps forms small.  Any other score
    would do, since the shift cancels.
    """
    if len(scores) < 2:
        return [space.plain(ONE, How("softmax", scores)) for _score in scores]
    low = scores[0]
    for score in scores[1:]:
        try:
            low = score if space.compare(score, low) < 0 else low
        except Undecided:
            continue
    exponentials = [space.exp(space.subtract(score, low)) for score in scores]
    share = space.inverse(space.combine([ONE] * len(scores), exponentials))
    return [
        space.total([(ONE, e, share)], How("softmax", scores, position=k))
        for k, e in enumerate(exponentials)
    ]


def gelu(space: Space, x: Value) -> Value:
    """x · (1 + erf(x/√2)) / 2."""
    inner = space.odd_function("erf", space.divide(x, space.sqrt(space.plain(fmpq(2)))))
    return half_of_one_more(space, x, inner)


def gelu_tanh(space: Space, x: Value, root: fmpq | None = None) -> Value:
    """x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2; another number may stand for the root."""
    if root is None:
        factor = space.sqrt(space.divide(space.plain(fmpq(2)), space.pi()))
    else:
        factor = space.plain(root)
    cube = space.multiply(space.multiply(x, x), x)
    argument = space.combine((ONE, fmpq(44715, 1_000_000)), (x, cube))
    return half_of_one_more(space, x, space.odd_function("tanh", space.multiply(factor, argument)))


def half_of_one_more(space: Space, x: Value, inner: Value) -> Value:
    """x·(1 + inner)/2."""
    parts = [(HALF, x, space.plain(ONE)), (HALF, x, inner)]
    return space.total(parts, How("gelu", x, inner))


def silu(space: Space, x: Value) -> Value:
    """x / (1 + e^-x)."""
    return space.divide(x, _one_and_power(space, x))


def quick_gelu(space: Space, x: Value) -> Value:
    """x / (1 + e^(-1.702·x))."""
    return space.divide(x, _one_and_power(space, x.times(fmpq(1702, 1000))))


def sigmoid(space: Space, x: Value) -> Value:
    """1 / (1 + e^-x)."""
    return space.divide(space.plain(ONE), _one_and_power(space, x))


def _one_and_power(space: Space, x: Value) -> Value:
    """1 + e^-x."""
    return space.add(space.plain(ONE), space.exp(x.times(MINUS_ONE)))


def tanh(space: Space, x: Value) -> Value:
    """(e^2x - 1)/(e^2x + 1)."""
    return space.odd_function("tanh", x)


ACTIVATIONS: dict[str, Callable[[Space, Value], Value]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_fast": partial(gelu_tanh, root=fmpq(7978845608, 10**10)),
    "gelu_bloom": partial(gelu_tanh, root=fmpq(79788456, 10**8)),
    "silu": silu,
    "quick_gelu": quick_gelu,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
