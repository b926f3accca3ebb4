"""Digits in limbs: exact where they say so, rounded by no more than they say elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from subprocess import run

import numpy as np
import pytest
import torch
from arb_oracle import as_torch, balanced, fractions_of, same_bits
from hypothesis import given
from hypothesis import strategies as st
from ml_dtypes import bfloat16

from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.arithmetic import APPROX, HALF, PRODUCT, QUOTIENT, Digits
from byhand.numbers.enclosed.limbs.engine import engine_of, in_pieces, threads

Row = tuple[list[int], int]  # integers and their grid


def edges(bits: int) -> st.SearchStrategy[int]:
    """Integers of up to `bits` bits; often those at which limbs carry."""
    special = [0, 1, -1, 2**bits, -(2**bits), 2**bits - 1]
    special += [
        sign * 2 ** (22 * k + e) + d
        for sign in (1, -1)
        for k in range(bits // 22 + 1)
        for e in (0, 21)
        for d in (-1, 0, 1)
        if 22 * k + e < bits
    ]
    return st.one_of(st.sampled_from(special), st.integers(-(2**bits), 2**bits))


@st.composite
def rows(draw: st.DrawFn, size: int = 5) -> Row:
    bits = draw(st.integers(1, 450))
    numbers = draw(st.lists(edges(bits), min_size=size, max_size=size))
    return numbers, draw(st.integers(-300, 200))


def digits(row: Row) -> Digits:
    return arithmetic.from_integers(*row)


def values(x: Digits) -> list[Fraction]:
    assert balanced(x)
    return list(np.asarray(arithmetic.to_fractions(x)).ravel())


def furthest(exact: list[Fraction], made: Digits) -> Fraction:
    """In units of the result's grid."""
    errors = (abs(a - b) for a, b in zip(exact, values(made), strict=True))
    return max(errors) / Fraction(2) ** made.low


@given(rows())
def test_integers_come_back_as_they_went_in(row: Row) -> None:
    assert values(digits(row)) == fractions_of(*row)
    assert list(arithmetic.to_integers(digits(row))) == row[0]


@given(rows(), rows())
def test_sums_differences_and_products_are_exact(one: Row, other: Row) -> None:
    x, y = digits(one), digits(other)
    pairs = list(zip(fractions_of(*one), fractions_of(*other), strict=True))
    assert values(arithmetic.add(x, y)) == [a + b for a, b in pairs]
    assert values(arithmetic.subtract(x, y)) == [a - b for a, b in pairs]
    assert values(arithmetic.multiply(x, y)) == [a * b for a, b in pairs]
    assert values(arithmetic.negate(x)) == [-a for a, _ in pairs]
    assert values(arithmetic.shift(x, -7)) == [a / 128 for a, _ in pairs]
    assert values(arithmetic.total(x, 0)) == [sum(a for a, _ in pairs)]
    assert values(arithmetic.stack([x, y])) == [a for a, _ in pairs] + [b for _, b in pairs]


@given(rows(), rows(), st.integers(-500, 400), st.integers(1, 2**29))
def test_rounding_stays_within_its_bounds(one: Row, other: Row, low: int, divisor: int) -> None:
    x, y = digits(one), digits(other)
    exact = fractions_of(*one)
    assert furthest(exact, arithmetic.regrid(x, low=low)) <= HALF
    products = [a * b for a, b in zip(exact, fractions_of(*other), strict=True)]
    assert furthest(products, arithmetic.multiply(x, y, low)) <= PRODUCT
    assert (
        furthest([a / divisor for a in exact], arithmetic.over_integer(x, divisor, low)) <= QUOTIENT
    )
    sums = [a + b for a, b in zip(exact, fractions_of(*other), strict=True)]
    assert furthest(sums, arithmetic.add(x, y, low)) <= HALF


@pytest.mark.parametrize("bound", ["HALF", "PRODUCT", "QUOTIENT"])
def test_rounding_bounds_are_reached(bound: str) -> None:
    rng = np.random.default_rng(1)
    x = arithmetic.from_integers([int(v) for v in rng.integers(-(2**62), 2**62, 2000)], -62)
    exact = list(arithmetic.to_fractions(x))
    made = {
        "HALF": lambda: furthest(exact, arithmetic.regrid(x, low=-40)),
        "PRODUCT": lambda: furthest([a * a for a in exact], arithmetic.multiply(x, x, -50)),
        "QUOTIENT": lambda: furthest([a / 3 for a in exact], arithmetic.over_integer(x, 3, -45)),
    }[bound]()
    assert made > 0.9 * getattr(arithmetic, bound)


def test_dropping_whole_limbs_rounds_by_hardly_more_than_half() -> None:
    x = arithmetic.from_integers([2**21 + 2**43, 2**21 - 2**22 * 5, -(2**21)], -66)
    made = arithmetic.regrid(x, low=-44)
    assert furthest(list(arithmetic.to_fractions(x)), made) == Fraction(1, 2)


@given(rows())
def test_magnitudes_are_bounds(row: Row) -> None:
    assert max(map(abs, fractions_of(*row))) <= Fraction(arithmetic.magnitude(digits(row)))


@given(rows())
def test_approximations_are_near(row: Row) -> None:
    for near, exact in zip(arithmetic.approx(digits(row)), fractions_of(*row), strict=True):
        assert abs(Fraction(float(near)) - exact) <= Fraction(APPROX) * abs(exact)


def test_approximations_reach_a_fiftieth_of_their_bound() -> None:
    rng = np.random.default_rng(2)
    x = arithmetic.from_integers(
        [int(v) << 40 | 12345678901 for v in rng.integers(2**40, 2**60, 500)], 0
    )
    pairs = zip(arithmetic.approx(x), arithmetic.to_fractions(x), strict=True)
    assert max(abs(Fraction(float(a)) - b) / b for a, b in pairs) > APPROX / 50


FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(st.lists(FLOATS, min_size=1, max_size=6), st.integers(-200, 60))
def test_floats_are_read_exactly_or_rounded(given: list[float], low: int) -> None:
    exact = [Fraction(value) for value in given]
    made, precise = arithmetic.from_floats(np.array(given))
    assert precise
    assert values(made) == exact
    rounded, precise = arithmetic.from_floats(np.array(given), low)
    assert rounded.low == low
    assert furthest(exact, rounded) <= HALF
    assert precise == (values(rounded) == exact)


@pytest.mark.parametrize("kind", [np.float16, np.float32, bfloat16, np.float64])
def test_every_float_format_is_read_exactly(kind: type) -> None:
    given = np.array([0.1, -3.75, 1e-7, 60000.0, 0.0]).astype(kind)
    made, precise = arithmetic.from_floats(given)
    assert precise
    assert values(made) == [Fraction(float(value)) for value in given]


def test_torch_floats_are_read_exactly() -> None:
    given = torch.tensor([0.1, -3.75, 1e-7, 60000.0, 5e-324], dtype=torch.float64)
    for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        made, precise = arithmetic.from_floats(given.to(kind))
        assert precise
        assert values(made) == [Fraction(float(value)) for value in given.to(kind)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**1001])
def test_floats_without_digits_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="below 2\\^1000"):
        arithmetic.from_floats(np.array([value]))


def test_shapes_broadcast_as_arrays_do() -> None:
    x = arithmetic.from_integers(range(-6, 6), -3).reshape(3, 4)
    y = arithmetic.from_integers([10**12, -5, 7, 2**60], -50)
    z = arithmetic.from_integers([3, 2**70, -1], 4).reshape(3, 1)
    a, b, c = (arithmetic.to_fractions(v) for v in (x, y, z))
    assert (arithmetic.to_fractions(arithmetic.add(x, y)) == a + b).all()
    assert (arithmetic.to_fractions(arithmetic.multiply(x, z)) == a * c).all()
    assert (arithmetic.to_fractions(arithmetic.subtract(z, y)) == c - b).all()
    assert (arithmetic.to_fractions(arithmetic.total(x, -1)) == a.sum(1)).all()
    assert (arithmetic.to_fractions(x[1:, 2]) == a[1:, 2]).all()
    assert (arithmetic.to_fractions(x.swapaxes(0, 1)) == a.T).all()
    assert (arithmetic.to_fractions(x.moveaxis(0, -1).contiguous()) == a.T).all()
    assert (arithmetic.to_fractions(y.broadcast(3, 4)) == np.broadcast_to(b, (3, 4))).all()


OPERATIONS: dict[str, Callable[[Digits, Digits], Digits]] = {
    "add": lambda x, y: arithmetic.add(x, y),
    "subtract": lambda x, y: arithmetic.subtract(x, y, -90),
    "multiply": lambda x, y: arithmetic.multiply(x, y),
    "short product": lambda x, y: arithmetic.multiply(x, y, -101),
    "regrid": lambda x, y: arithmetic.regrid(x, low=-77),
    "over": lambda x, y: arithmetic.over_integer(y, 768, -111),
    "total": lambda x, y: arithmetic.total(x, 0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_numpy_and_torch_give_the_same_bits(name: str) -> None:
    rng = np.random.default_rng(3)
    numbers = [[int(v) * 3**40 for v in rng.integers(-(2**62), 2**62, 40)] for _ in range(2)]
    x, y = arithmetic.from_integers(numbers[0], -120), arithmetic.from_integers(numbers[1], -111)
    operation = OPERATIONS[name]
    assert same_bits(operation(x, y), operation(as_torch(x), as_torch(y)))


def test_pieces_on_threads_give_what_one_piece_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    given = np.arange(3.0 * 40000).reshape(3, 200, 200)

    def doubled(piece: np.ndarray) -> tuple[np.ndarray]:
        return (piece[:2] * 2,)

    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads() == 3
    (made,) = in_pieces(doubled, [given], [2])
    assert (made == given[:2] * 2).all()


def test_numpy_alone_does_not_import_torch() -> None:
    code = (
        "import sys, numpy; from byhand.numbers.enclosed.limbs import arithmetic, functions;"
        "functions.gelu(arithmetic.from_integers([1, 2], -30), -30);"
        "assert 'torch' not in sys.modules; assert 'flint' not in sys.modules"
    )
    run([sys.executable, "-c", code], check=True)


def test_other_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        engine_of([1.0])
