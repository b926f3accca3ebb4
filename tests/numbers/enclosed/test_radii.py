"""Bounds that are never too small: every function against rational numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.numbers.enclosed.limbs import radii
from byhand.numbers.enclosed.limbs.radii import INFINITE, TINY

# as wide as radii and norms are: none below the radius of the finest grid, squared
bounds = st.one_of(
    st.just(0.0),
    st.floats(2.0**-480, 2.0**480, allow_nan=False),
    st.floats(0.5, 2.0),
)
EXTRA = Fraction(1) + Fraction(1, 2**40)  # what a bound may be above the truth, relatively


def array(*values: float) -> Any:
    return np.array(values)


def is_a_bound(bound: float, truth: Fraction) -> bool:
    """Not below, and hardly above."""
    return truth <= Fraction(bound) <= truth * EXTRA + 100 * Fraction(TINY)


@given(st.lists(bounds, min_size=1, max_size=6))
def test_a_sum_is_not_too_small(terms: list[float]) -> None:
    truth = sum(map(Fraction, terms), Fraction(0))
    assert is_a_bound(radii.plus(*terms), truth)
    assert is_a_bound(float(radii.plus(*(array(term) for term in terms))[0]), truth)


@given(bounds, bounds)
def test_a_product_is_not_too_small(x: float, y: float) -> None:
    truth = Fraction(x) * Fraction(y)
    assert is_a_bound(radii.times(x, y), truth)
    assert is_a_bound(float(radii.times(array(x), y)[0]), truth)


@given(bounds, st.floats(2.0**-400, 2.0**400))
def test_a_quotient_is_not_too_small(x: float, y: float) -> None:
    truth = Fraction(x) / Fraction(y)
    assert is_a_bound(radii.over(x, y), truth)
    assert is_a_bound(float(radii.over(array(x), array(y))[0]), truth)


@given(bounds, bounds)
def test_a_difference_from_below_is_not_too_large(x: float, y: float) -> None:
    truth = Fraction(x) - Fraction(y)
    assert Fraction(radii.less(x, y)) < truth
    assert Fraction(float(radii.less(array(x), array(y))[0])) < truth


@given(bounds)
def test_a_root_is_not_too_small(x: float) -> None:
    found = Fraction(radii.root(x))
    assert found**2 >= Fraction(x)
    assert found**2 <= Fraction(x) * EXTRA


@given(st.lists(bounds, min_size=1, max_size=40))
def test_a_length_is_not_too_small(row: list[float]) -> None:
    truth = sum((Fraction(x) ** 2 for x in row), Fraction(0))
    found = Fraction(float(radii.length(array(*row))))
    assert truth <= found**2 <= truth * EXTRA


def test_a_length_may_lie_along_any_axis() -> None:
    table = np.array([[3.0, 0.0], [4.0, 1.0]])
    assert radii.length(table, 0) == pytest.approx([5.0, 1.0], rel=1e-12)
    assert radii.length(table) == pytest.approx([3.0, math.sqrt(17)], rel=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), bounds), min_size=1, max_size=30))
def test_a_mixture_is_not_too_small(pairs: list[tuple[float, float]]) -> None:
    shares = np.array([[share for share, _bound in pairs]])
    column = np.array([[bound] for _share, bound in pairs])
    truth = sum((Fraction(share) * Fraction(bound) for share, bound in pairs), Fraction(0))
    assert Fraction(float(radii.mixed(shares, column)[0, 0])) >= truth


@given(st.floats(0, 1) | st.floats(0, 100) | st.floats(0, 2.0**-300))
def test_growth_bounds_the_exponential_less_one(x: float) -> None:
    from flint import arb, ctx

    found = float(radii.growth(array(x))[0])
    with ctx.workprec(1200):
        truth = arb(x).expm1()
        assert found == INFINITE or arb(found) >= truth
        assert x > 2.0**-20 or found <= float(truth) * (1 + 2.0**-18) + 2.0**-999


def test_growth_is_bounded_up_to_64_and_not_beyond() -> None:
    assert radii.growth(array(64.0))[0] < INFINITE
    assert radii.growth(array(64.1))[0] == INFINITE


def test_exactly_nothing_stays_nothing() -> None:
    assert radii.plus(None, None) is None
    assert radii.times(None, 3.0) is None
    assert radii.over(None, 3.0) is None
    assert radii.plus(None, 2.0) == 2.0
    assert radii.times(0.0, 5.0) == 0.0


def test_nothing_gives_nan() -> None:
    endless, zero = array(INFINITE), array(0.0)
    assert radii.times(endless, zero)[0] == 0.0  # zero is zero, whatever it is multiplied by
    assert radii.times(INFINITE, 0.0) == 0.0
    assert radii.over(endless, array(2.0))[0] == INFINITE
    assert radii.over(zero, zero)[0] == INFINITE
    assert radii.over(1.0, 0.0) == INFINITE
    assert radii.less(endless, endless)[0] == -INFINITE
    assert radii.less(INFINITE, INFINITE) == -INFINITE
    assert radii.length(array(INFINITE, 1.0)) == INFINITE
    assert radii.growth(endless)[0] == INFINITE


def test_an_infinite_radius_reaches_only_who_mixes_it_in() -> None:
    shares = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = radii.mixed(shares, np.array([[2.0], [INFINITE]]))[:, 0]
    assert found[0] == pytest.approx(2.0)
    assert found[1] == INFINITE


def test_an_exponent_is_the_largest_power_below() -> None:
    assert [radii.exponent_of(x) for x in (1.0, 1.99, 2.0, 0.75)] == [0, 0, 1, -1]
