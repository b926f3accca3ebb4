"""The edges of what limbs hold: what lies beyond is refused or infinite, never wrong."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from byhand.errors import InputError
from byhand.expression import Number, Product
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.limbs.integers import value_of
from byhand.numbers.enclosed.limbs.operations import Limbs


def entry(numbers: Limbs, value: Any, *index: int) -> Any:
    return numbers.entries(value)[index]


@pytest.mark.parametrize("bits", [40, 80, 100, 140])
@pytest.mark.parametrize("more", [0.515625, -0.515625, 0.25, 1.75])
def test_what_is_left_out_may_be_what_the_rest_cancels(bits: int, more: float) -> None:
    """The first limbs of x cancel to the last bit, and the pairs below the grid are the result."""
    numbers = Limbs(bits)
    large = np.full((1, 3), 2.0**28)
    x = numbers.add(
        numbers.embed(numbers.admit(large + more * 2.0**8), [0]),
        numbers.embed(numbers.admit(-large), [0]),
    )
    weight = np.full((3, 1), 2.0 ** (-7 - bits))
    y = numbers.linear(x, numbers.admit(weight), layout="in_out")
    truth = 3 * Fraction(more) * 2**8 * Fraction(2) ** (-7 - bits)
    assert entry(numbers, y, 0, 0).contains(truth)


def test_scores_that_are_given_keep_their_mask() -> None:
    numbers = Limbs(60)
    given = np.array([[[1.0, ABSENT], [2.0, 2.0]]], dtype=object)
    shares = numbers.entries(numbers.softmax(numbers.admit(given)))
    assert shares[0, 0, 0].contains(1)
    assert shares[0, 0, 1] is np.ma.masked
    assert shares[0, 1, 1].contains(Fraction(1, 2))


@pytest.mark.parametrize("size", [2.0**-301, 2.0**301, 2.0**-1060])
def test_weights_beyond_the_range_are_refused(size: float) -> None:
    with pytest.raises(InputError, match="too large or too small"):
        Limbs(60).admit(np.array([1.0, size]))


def test_of_values_beyond_the_range_nothing_is_said() -> None:
    numbers = Limbs(60)
    x = numbers.embed(numbers.admit(np.full((1, 2), 2.0**250)), [0])
    for value in (numbers.multiply(x, x), numbers.multiply(numbers.multiply(x, x), x)):
        assert entry(numbers, value, 0, 0).rad == inf


def test_of_heads_and_norms_beyond_the_range_nothing_is_said_either() -> None:
    numbers = Limbs(60)
    x = numbers.embed(numbers.admit(np.full((1, 2), 2.0**250)), [0])
    weight = numbers.admit(np.full((2, 4), 2.0**200))
    heads = numbers.linear(x, weight, layout="in_out", heads=2)
    assert entry(numbers, heads, 1, 0, 0).rad == inf
    gain = numbers.admit(np.full(2, 2.0**200))
    scaled = numbers.affine(x, gain=gain)
    assert entry(numbers, numbers.linear(scaled, weight, layout="in_out"), 0, 0).rad == inf


def test_values_within_the_range_are_exact() -> None:
    numbers = Limbs(60)
    x = numbers.embed(numbers.admit(np.full((1, 2), 2.0**200)), [0])
    found = entry(numbers, numbers.multiply(x, x), 0, 0)
    assert (found.mid, found.rad) == (2**400, 0)


def test_a_norm_is_worked_out_again_from_given_values() -> None:
    numbers = Limbs(80)
    x = np.array([[3.0, -3.0], [1.0, 2.0]])
    centered = numbers.center(numbers.admit(x), numbers.admit(np.array([0.0, 1.5])))
    assert entry(numbers, centered, 1, 0).contains(Fraction(-1, 2))
    std = numbers.root(numbers.admit(np.array([9.0, 0.25])), eps=Fraction(0))
    assert entry(numbers, std, 1).contains(Fraction(1, 2))
    made = numbers.normalize(numbers.admit(x), numbers.admit(np.array([3.0, 0.5])))
    assert entry(numbers, made, 0, 1).contains(-1)
    assert entry(numbers, made, 1, 1).contains(4)


@pytest.mark.parametrize(
    "data",
    [
        np.array([2**60 + 1]),
        np.array([1, np.longdouble(1) / 3]),
        np.array([np.longdouble(1) / 3], dtype=object),
        np.array([Fraction(1, 3)], dtype=object),
    ],
    ids=["integer", "long double", "long double among objects", "fraction"],
)
def test_weights_that_are_no_floats_are_refused(data: Any) -> None:
    with pytest.raises(InputError, match="not a float"):
        Limbs(60).admit(data)


def test_integers_and_long_doubles_that_are_floats_are_taken() -> None:
    numbers = Limbs(60)
    for data in (np.array([3, -4]), np.array([3, -4], dtype=np.longdouble)):
        assert [x.mid for x in numbers.entries(numbers.admit(data))] == [3, -4]


@pytest.mark.parametrize("bits", [24, 33, 39])
def test_the_value_of_an_expression_is_within_one_unit(bits: int) -> None:
    for d in range(1, 200):
        part = Fraction(1, 12 * 10**9 + 2 * d + 1)
        tree = Product((Number(Fraction(4 * 10**9)), Number(part)))
        found, error = value_of(tree, bits)
        assert abs(part * 4 * 10**9 * 2**bits - found) <= error
