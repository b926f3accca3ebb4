"""The middles against rational arithmetic and Arb: with no rounding of an implementation's, what is
allowed still holds the exact result, and is hardly wider than float64."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.activations import KINDS, SLOPES

EXACT = Allowed("exact")
EPS = Fraction(1, 100_000)
BITS = 4096  # 1 + erf(-40) cancels to 10^-700
Data = Any


def ball(x: float | Fraction) -> arb:
    value = Fraction(x)
    return arb(fmpq(value.numerator, value.denominator))


def holds(value: Range, exact: Data) -> None:
    """Every exact entry, an arb or a Fraction, lies within its range, which is narrow."""
    assert value.rad is not None
    assert value.shape == exact.shape
    for place in np.ndindex(value.shape):
        mid, rad = value.mid[place], value.rad[place]
        with ctx.workprec(BITS):
            entry = exact[place] if isinstance(exact[place], arb) else ball(exact[place])
            assert abs(entry - ball(mid)) <= ball(rad), (place, mid, rad)


def rows(seed: int, *shape: int, size: float = 1.0) -> Data:
    return np.random.default_rng(seed).standard_normal(shape) * size


def each(f: Callable[[arb], arb], x: Data) -> Data:
    with ctx.workprec(BITS):
        flat = np.empty(x.size, dtype=object)
        flat[:] = [f(ball(v)) for v in x.ravel()]
        return flat.reshape(x.shape)


def fractions(x: Data) -> Data:
    flat = np.empty(x.size, dtype=object)
    flat[:] = [Fraction(v) for v in x.ravel()]
    return flat.reshape(x.shape)


@pytest.mark.parametrize("seed", range(4))
def test_sums_and_products_hold_the_rational_result(seed: int) -> None:
    x, y = rows(seed, 4, 9), rows(seed + 10, 4, 9) * 10.0 ** (seed * 4)
    holds(EXACT.add(Range(x), Range(-x * 0.999)), fractions(x) + fractions(-x * 0.999))
    holds(EXACT.multiply(Range(x), Range(y)), fractions(x) * fractions(y))
    weight, bias = rows(seed + 20, 9, 5), rows(seed + 30, 5)
    exact = fractions(y) @ fractions(weight) + fractions(bias)
    for layout, matrix in (("in_out", weight), ("out_in", np.ascontiguousarray(weight.T))):
        value = EXACT.linear(Range(y), Range(matrix), bias=Range(bias), layout=layout)
        holds(value, exact)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_narrow_weights_are_taken_as_the_numbers_they_are(kind: type) -> None:
    x, weight = rows(0, 3, 40), rows(1, 40, 700).astype(kind)
    exact = fractions(x) @ fractions(weight.astype(np.float64))
    value = EXACT.linear(Range(x), EXACT.admit(weight), layout="in_out")
    holds(value, exact)
    assert value.rad is not None
    assert value.rad.max() < 1e-12


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_the_parts_of_a_norm_hold_the_exact_result(offset: float) -> None:
    x = rows(5, 3, 16) + offset
    exact = fractions(x)
    mean = exact.sum(axis=-1) / 16
    centred = exact - mean[:, None]
    square = (centred * centred).sum(axis=-1) / 16
    value = EXACT.mean(Range(x))
    holds(value, mean)
    middle = EXACT.center(Range(x), value)
    holds(middle, centred)
    variance = EXACT.mean_square(middle)
    holds(variance, square)
    std = EXACT.root(variance, eps=EPS)
    with ctx.workprec(BITS):
        roots = np.array([ball(v + EPS).sqrt() for v in square], dtype=object)
        quotients = np.array(
            [[ball(c) / root for c in row] for row, root in zip(centred, roots, strict=True)],
            dtype=object,
        )
    holds(std, roots)
    normal = EXACT.normalize(middle, std)
    holds(normal, quotients)
    assert normal.rad is not None
    assert normal.rad.max() < 1e-9


@pytest.mark.parametrize("size", [0.1, 5.0, 200.0])
def test_softmax_holds_the_exact_shares(size: float) -> None:
    x = rows(7, 4, 12, size=size)
    with ctx.workprec(BITS):
        exps = each(arb.exp, x)
        exact = exps / exps.sum(axis=-1)[:, None]
    value = EXACT.softmax(Range(x))
    holds(value, exact)
    assert value.rad is not None
    assert (value.rad <= 1e-13).all()


def gelu(x: arb) -> arb:
    return x * (1 + (x / arb(2).sqrt()).erf()) / 2


def gelu_tanh(x: arb) -> arb:
    cube = arb(fmpq(44715, 1_000_000)) * x**3
    return x * (1 + ((2 / arb.pi()).sqrt() * (x + cube)).tanh()) / 2


def silu(x: arb) -> arb:
    return x / (1 + (-x).exp())


def quick_gelu(x: arb) -> arb:
    return x / (1 + (-x * arb(fmpq(1702, 1000))).exp())


@pytest.mark.parametrize("oracle", [gelu, gelu_tanh, silu, quick_gelu])
def test_activations_hold_the_exact_values(oracle: Callable[[arb], arb]) -> None:
    x = np.concatenate([rows(3, 60, size=size) for size in (1e-6, 0.1, 3.0, 20.0)])[None]
    holds(EXACT.activate(Range(x), kind=oracle.__name__), each(oracle, x))


@pytest.mark.parametrize("oracle", [gelu, gelu_tanh, silu, quick_gelu])
def test_no_activation_is_steeper_than_its_slope(oracle: Callable[[arb], arb]) -> None:
    x = np.linspace(-12.0, 12.0, 4801)
    y, _own = KINDS[oracle.__name__](x, EXACT.precision)
    steep = np.abs(np.diff(y) / np.diff(x)).max()
    assert 0.995 * SLOPES[oracle.__name__] < steep <= SLOPES[oracle.__name__]


def test_turned_pairs_hold_the_exact_ones() -> None:
    places, width, base = [0, 1, 50, 100_000], 8, Fraction(10_000)
    x = rows(1, 1, 4, width)
    value = EXACT.rotate(Range(x), positions=places, width=width, base=base, pairing="half")
    exact = np.empty(x.shape, dtype=object)
    with ctx.workprec(BITS):
        for row, place in enumerate(places):
            for pair in range(width // 2):
                angle = place * (-arb(10_000).log() * 2 * pair / width).exp()
                a, b = ball(x[0, row, pair]), ball(x[0, row, pair + width // 2])
                exact[0, row, pair] = a * angle.cos() - b * angle.sin()
                exact[0, row, pair + width // 2] = a * angle.sin() + b * angle.cos()
    holds(value, exact)


def test_the_loss_holds_the_exact_one() -> None:
    probs = np.array([[0.25, 0.75], [1e-9, 1 - 1e-9]])
    value = EXACT.loss(Range(probs, np.zeros_like(probs)), target=0)
    holds(value, each(lambda p: -p.log(), probs[-1:, 0]))


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6),
    st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6),
)
def test_any_dot_product_is_held(x: list[float], y: list[float]) -> None:
    left, right = np.array([x]), np.array(y[: len(x)])[:, None]
    exact = sum((Fraction(a) * Fraction(b) for a, b in zip(x, y, strict=False)), Fraction(0))
    value = EXACT.linear(Range(left), Range(right), layout="in_out")
    assert value.rad is not None
    assert abs(exact - Fraction(value.mid[0, 0])) <= Fraction(value.rad[0, 0])
