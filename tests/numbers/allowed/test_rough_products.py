"""Rough products: what lies within half of their ranges is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.products import LONG, Rows

LAYOUTS = ("in_out", "out_in")


def single(x: Any) -> Any:
    return x.astype(np.float32).astype(np.float64)


def outliers(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    return rng.standard_normal(shape) * 1000.0 ** (rng.random(shape) > 0.97)


CASES = {
    "random": lambda rng, shape: rng.standard_normal(shape),
    "positive": lambda rng, shape: rng.random(shape) + 1,  # every partial sum rounds a lot
    "outliers": outliers,
    "tiny": lambda rng, shape: rng.standard_normal(shape) * 1e-25,
    "zeros": lambda rng, shape: np.zeros(shape),
}


def numbers_of(case: str, inputs: int, layout: str, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(inputs)
    columns = CASES[case](rng, (inputs, 300)).astype(dtype)
    matrix = columns if layout == "in_out" else np.ascontiguousarray(columns.T)
    return single(CASES[case](rng, (5, inputs))), matrix


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("inputs", [LONG, LONG + 1, 1000, 3072])
@pytest.mark.parametrize("case", CASES)
def test_half_of_a_rough_range_lies_in_the_better_one(case: str, inputs: int, layout: str) -> None:
    x, matrix = numbers_of(case, inputs, layout)
    for precision in ("float32", "bfloat16", "tf32"):
        numbers = Allowed(precision)
        better = numbers.linear(Range(x), matrix, layout=layout)
        numbers.rough = True
        rough = numbers.linear(Range(x), matrix, layout=layout)
        assert better.rad is not None
        assert rough.rad is not None
        assert (np.abs(better.mid - rough.mid) + rough.rad / 2 <= better.rad).all()
        if case == "random":
            assert not np.array_equal(better.mid, rough.mid)
            assert np.median(rough.rad / better.rad) > 1 / 8
            assert rough.usual is not None
            assert better.usual is not None
            assert 0.4 < np.median(rough.usual / better.usual) < 2.5


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_a_rough_product_is_off_by_no_more_than_a_quarter_of_what_is_allowed(
    case: str, layout: str
) -> None:
    x, matrix = numbers_of(case, LONG, layout)
    rows = Rows(x, None, None, rough=True)
    assert rows.single is not None
    products = np.concatenate([part.products for part in rows.times(matrix, layout)], axis=1)
    columns = (matrix if layout == "in_out" else matrix.T).astype(np.longdouble)
    off = np.abs(products - x.astype(np.longdouble) @ columns)
    sizes = np.abs(x) @ np.abs(columns)
    allowed = LONG * 2.0**-24 * sizes + LONG * 2.0**-126
    assert (off <= allowed / 4 * 1.02).all()
    if case == "positive":
        assert (off > allowed / 10_000).any()  # rough indeed


def test_short_sums_and_numbers_finer_than_float32_have_no_rough_product() -> None:
    rng = np.random.default_rng(7)
    assert Rows(single(rng.random((2, LONG - 1))), None, None, rough=True).single is None
    assert Rows(rng.random((2, LONG)), None, None, rough=True).single is None
    x = single(rng.random((2, LONG)))
    assert Rows(x, np.full(x.shape, 1e-9), None, rough=True).single is None


@pytest.mark.parametrize("precision", ["float64", "exact"])
def test_finer_numbers_have_no_rough_product(precision: str) -> None:
    x, matrix = numbers_of("random", LONG, "in_out")
    numbers = Allowed(precision)
    better = numbers.linear(Range(x), matrix, layout="in_out")
    numbers.rough = True
    assert np.array_equal(better.mid, numbers.linear(Range(x), matrix, layout="in_out").mid)


def test_weights_that_are_float64_have_no_rough_product() -> None:
    x, matrix = numbers_of("random", LONG, "in_out", np.float64)
    numbers = Allowed("float32")
    better = numbers.linear(Range(x), matrix, layout="in_out")
    numbers.rough = True
    assert np.array_equal(better.mid, numbers.linear(Range(x), matrix, layout="in_out").mid)
