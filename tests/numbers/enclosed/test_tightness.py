"""Radius rules that are not far too wide: real values at the rim that use them up.

Each case moves the real values as far as their radii allow, in the direction that hurts most, and
asks which part of the resulting radius they use.  A rule a hundred times narrower would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed

SYSTEM, ORACLE = Limbs(160), Balls(400)
RIM = 2.0**-40
FIFTIETH = 0.02


class Rim:
    """Midpoints, one radius for each row, and real values that all of it has moved."""

    def __init__(self, middles: Any, way: Any) -> None:
        floats = np.asarray(middles, dtype=float)
        direction = np.broadcast_to(np.asarray(way, dtype=float), floats.shape)
        lengths = np.sqrt((direction**2).sum(-1, keepdims=True)) * (1 + 2.0**-40)
        moved = direction / lengths * RIM
        self.enclosed = Enclosed(arithmetic.from_floats(floats)[0], np.full(floats.shape[:-1], RIM))
        real = [Fraction(a) + Fraction(b) for a, b in zip(floats.flat, moved.flat, strict=True)]
        self.real = ORACLE.admit(np.array(real, object).reshape(floats.shape))


def used(ours: Any, real: Any) -> float:
    """The largest part of a radius that the real values use; they are inside, of course."""
    found, truth = SYSTEM.entries(ours), ORACLE.entries(real)
    shares = []
    for index in np.ndindex(*truth.shape):
        inside, value = found[index], truth[index]
        if value is None:
            continue
        assert inside.contains(value)
        assert 0 < inside.rad < inf
        shares.append(float(abs(value.mid - inside.mid) / inside.rad))
    return max(shares)


def scores(numbers: Any, q: Any, k: Any) -> Any:
    seen = [[True] * 2]
    return numbers.scores(q, k, mask=seen, queries=(1,), keys=(0, 1))


def add(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    return numbers.add(pick(Rim([[1, 2]], [1, 0])), pick(Rim([[3, 4]], [1, 0])))


def multiply(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    return numbers.multiply(pick(Rim([[5, 0.1]], [1, 0])), pick(Rim([[7, 0.1]], [1, 0])))


def affine(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    gain = numbers.admit(np.array([8.0, 1.0]))
    return numbers.affine(pick(Rim([[1, 2]], [1, 0])), gain=gain)


def linear(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    matrix = numbers.admit(np.array([[3.0, 0.0], [0.0, 1.0]]))
    return numbers.linear(pick(Rim([[1, 2]], [1, 0])), matrix, layout="in_out")


def normalize(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    x = pick(Rim([[3, -3, 3, -3]], [1, 1, -1, -1]))
    square = numbers.mean_square(x)
    return numbers.normalize(x, numbers.root(square, eps=Fraction(1, 100_000)))


def rotate(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    return numbers.rotate(
        pick(Rim([[[0.1, 0.2]]], [1, 0])), positions=(0,), width=2, base=Fraction(10_000),
        pairing="half",
    )  # fmt: skip


def dot_products(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    q = pick(Rim([[[4, 0]]], [1, 0]))
    return scores(numbers, q, pick(Rim([[[4, 0], [1, 0]]], [1, 0])))


def shares(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    q = pick(Rim([[[0, 1]]], [1, 0]))
    return numbers.softmax(scores(numbers, q, numbers.admit(np.array([[[4.0, 0], [-4.0, 0]]]))))


def mixed_values(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    weights = numbers.softmax(numbers.admit(np.array([[[0.0, 0.5]]])))
    return numbers.mix(weights, pick(Rim([[[1, 2], [3, 4]]], [1, 0])))


def mixed_shares(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    return numbers.mix(shares(numbers, pick), numbers.admit(np.array([[[5.0], [-5.0]]])))


def loss(numbers: Any, pick: Callable[[Rim], Any]) -> Any:
    return numbers.loss(numbers.softmax(pick(Rim([[0, 9, 0]], [-1, 1, 0]))), target=0)


CASES = [add, multiply, affine, linear, normalize, rotate, dot_products, shares, mixed_values,
         mixed_shares, loss]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_radius_is_used_to_a_fiftieth_at_least(case: Callable[..., Any]) -> None:
    ours = case(SYSTEM, lambda rim: rim.enclosed)
    real = case(ORACLE, lambda rim: rim.real)
    assert FIFTIETH < used(ours, real) <= 1


@pytest.mark.parametrize("kind", ["relu", "gelu", "gelu_tanh", "silu"])
def test_the_radius_of_an_activation_is_used(kind: str) -> None:
    rim = Rim([[1.5, 1.5]], [1, 0])
    ours = SYSTEM.activate(rim.enclosed, kind=kind)
    assert used(ours, ORACLE.activate(rim.real, kind=kind)) > 0.8
