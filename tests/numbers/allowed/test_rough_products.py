"""Rough products: off by no more than they say, and their ranges hold the better ones."""

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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("inputs", [LONG, LONG + 1, 1000, 3072])
@pytest.mark.parametrize("case", CASES)
def test_a_rough_product_is_off_by_no_more_than_it_says(
    case: str, inputs: int, layout: str
) -> None:
    rng = np.random.default_rng(inputs)
    x = single(CASES[case](rng, (5, inputs)))
    columns = CASES[case](rng, (inputs, 300)).astype(np.float32)
    matrix = columns if layout == "in_out" else np.ascontiguousarray(columns.T)
    rows = Rows(x, None, None, rough=True)
    assert rows.single is not None
    parts = [
        (part.products.copy(), part.sizes.astype(np.float64)) for part in rows.times(matrix, layout)
    ]
    products = np.concatenate([part[0] for part in parts], axis=1)
    sizes = np.concatenate([part[1] for part in parts], axis=1) * rows.grown + rows.floor
    exact = x.astype(np.longdouble) @ columns.astype(np.longdouble)
    off = np.abs(products - exact).astype(np.float64)
    assert (sizes >= np.abs(x) @ np.abs(columns.astype(np.float64))).all()
    assert (off <= rows.own * sizes + rows.floor).all()
    if case == "positive":
        assert (off > rows.own * sizes / 1000).any()  # rough indeed


def test_short_sums_and_numbers_finer_than_float32_have_no_rough_product() -> None:
    rng = np.random.default_rng(7)
    assert Rows(single(rng.random((2, LONG - 1))), None, None, rough=True).single is None
    assert Rows(rng.random((2, LONG)), None, None, rough=True).single is None
    x = single(rng.random((2, LONG)))
    assert Rows(x, np.full(x.shape, 1e-9), None, rough=True).single is None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_rough_range_holds_the_better_one_and_is_little_wider(
    precision: str, layout: str
) -> None:
    rng = np.random.default_rng(7)
    x = single(rng.standard_normal((6, 800)))
    matrix = rng.standard_normal((800, 90) if layout == "in_out" else (90, 800)).astype(np.float32)
    numbers = Allowed(precision)
    better = numbers.linear(Range(x), matrix, layout=layout)
    numbers.rough = True
    rough = numbers.linear(Range(x), matrix, layout=layout)
    assert better.rad is not None
    assert rough.rad is not None
    assert (np.abs(better.mid - rough.mid) + better.rad <= rough.rad * (1 + 1e-9)).all()
    assert (rough.rad <= 1.15 * better.rad).all()
    assert not np.array_equal(better.mid, rough.mid)


@pytest.mark.parametrize("precision", ["float64", "exact"])
def test_finer_numbers_have_no_rough_product(precision: str) -> None:
    rng = np.random.default_rng(7)
    x, matrix = single(rng.standard_normal((2, 800))), rng.random((800, 9)).astype(np.float32)
    numbers = Allowed(precision)
    better = numbers.linear(Range(x), matrix, layout="in_out")
    numbers.rough = True
    assert np.array_equal(better.mid, numbers.linear(Range(x), matrix, layout="in_out").mid)
