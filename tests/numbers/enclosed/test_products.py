"""Products of limbs: exact, or off by no more than they say; and a broken BLAS is found out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand.numbers.enclosed.limbs import pairs, products, slices
from byhand.numbers.enclosed.limbs.arithmetic import (
    WIDTH,
    Digits,
    approx,
    from_floats,
    to_fractions,
)
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.products import (
    Product,
    WrongProduct,
    multiply_matrix,
)
from byhand.numbers.enclosed.limbs.slices import Matrix

LIMB = 2**21


def digits(random: Any, n: int, *shape: int, top: int = 3) -> Digits:
    return Digits(random.integers(-LIMB, LIMB + 1, (n, *shape)).astype(float), top)


def largest(x: Digits, w: Any, bias: Any = None) -> float:
    rows = np.sqrt((approx(x) ** 2).sum(-1).max())
    columns = np.sqrt((w.astype(float) ** 2).sum(0).max())
    return float(rows * columns * 1.001 + (0.0 if bias is None else np.abs(bias).max()))


def times(x: Digits, w: Any, low: int, bias: Any = None, tolerance: float = 0.0) -> Product:
    known = None if bias is None else from_floats(bias)[0]
    most = largest(x, w, bias)
    return multiply_matrix(x, Matrix(w), low, known, largest=most, tolerance=tolerance)


def exactly(x: Digits, w: Any, bias: Any = None) -> Any:
    left = to_fractions(x)
    right = np.array([[Fraction(float(v)) for v in row] for row in w], dtype=object)
    made = left.dot(right)
    return made if bias is None else made + np.array([Fraction(float(v)) for v in bias])


def worst(product: Product, exact: Any) -> Fraction:
    return Fraction(max(abs(a - b) for a, b in zip(to_fractions(product.digits).flat, exact.flat,
                                                   strict=True)))  # fmt: skip


@pytest.mark.parametrize("span", [0, 12, 40])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_a_product_on_a_fine_grid_is_exact(kind: Any, span: int) -> None:
    random = np.random.default_rng(span)
    spread = 2.0 ** random.integers(-span, span + 1, (20, 30)) if kind != np.float16 else 1.0
    w = (random.standard_normal((20, 30)) * spread).astype(kind)
    x = digits(random, 4, 3, 20)
    product = times(x, w, -900)
    assert product.error == 0.0
    assert worst(product, exactly(x, w)) == 0


@pytest.mark.parametrize("low", [-90, -61, -40, -39, -20, 5])
@pytest.mark.parametrize("tolerant", [False, True])
def test_a_rounded_product_is_off_by_no_more_than_it_says(low: int, tolerant: bool) -> None:
    random = np.random.default_rng(100 + low)
    w = random.standard_normal((50, 9)).astype(np.float32)
    bias = random.standard_normal(9).astype(np.float32)
    x = digits(random, 4, 5, 50)
    product = times(x, w, low, bias, math.ldexp(4.0, low) if tolerant else 0.0)
    assert worst(product, exactly(x, w, bias)) <= Fraction(product.error)
    assert product.error <= math.ldexp(5.0 if tolerant else 0.6, low)
    assert product.digits.low <= low


def test_the_bound_of_what_is_left_out_is_reached_to_a_fiftieth() -> None:
    """All limbs alike and the same sign: then Cauchy and Schwarz are nearly equal."""
    x = Digits(np.full((4, 2, 40), LIMB - 1.0), 3)
    w = np.full((40, 3), 1.0 - 2.0**-40)
    product = times(x, w, -40, tolerance=2.0**-20)
    missed = worst(product, exactly(x, w))
    assert Fraction(product.error) / 50 <= missed <= Fraction(product.error)


def test_rounding_reaches_half_a_unit() -> None:
    random = np.random.default_rng(3)
    w = random.standard_normal((8, 60)).astype(np.float32)
    x = digits(random, 4, 60, 8)
    product = times(x, w, -30)
    assert worst(product, exactly(x, w)) > Fraction(product.error) * Fraction(9, 10)


def test_long_rows_of_the_largest_limbs_are_cut_and_stay_exact() -> None:
    """3072 products of 2^42 sum beyond 2^53: the certificate must split them."""
    x = Digits(np.full((2, 1, 3072), float(LIMB)), 3)
    w = np.full((3072, 2), 1.0 - 2.0**-22)
    product = times(x, w, -900)
    assert worst(product, exactly(x, w)) == 0


def test_many_rows_and_columns_go_through_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "COLUMNS", 7)
    monkeypatch.setattr(products, "ROWS", 4)
    random = np.random.default_rng(4)
    w = random.standard_normal((11, 25)).astype(np.float32)
    x = digits(random, 3, 10, 11)
    assert len(Matrix(w).tiles) == 4
    assert worst(times(x, w, -900), exactly(x, w)) == 0


@pytest.mark.parametrize("value", [0.0, 2.0**-149, 2.0**127])
def test_odd_weights_are_exact(value: float) -> None:
    w = np.full((3, 2), value, dtype=np.float32)
    x = digits(np.random.default_rng(5), 2, 2, 3)
    product = times(x, w, -900)
    assert worst(product, exactly(x, w)) == 0


def test_a_matrix_of_bfloat16_takes_one_slice_for_most_columns() -> None:
    import ml_dtypes

    w = np.random.default_rng(6).standard_normal((64, 64)).astype(ml_dtypes.bfloat16)
    first, *others = Matrix(w).tiles[0].slices
    assert first.columns is None
    assert sum(len(piece.columns) for piece in others if piece.columns is not None) < 20


# ------------------------------------------------------------------ limbs by limbs


@pytest.mark.parametrize("low", [-900, -70, -41, -3])
@pytest.mark.parametrize("shape", [(2, 3, 8, 5), (1, 1, 1, 1), (3, 2, 300, 2)])
def test_a_product_of_limbs_is_off_by_no_more_than_it_says(
    low: int, shape: tuple[int, int, int, int]
) -> None:
    random = np.random.default_rng(7)
    batch, m, k, n = shape
    x, y = digits(random, 4, batch, m, k), digits(random, 3, batch, k, n, top=-5)
    most = float(np.sqrt((approx(x) ** 2).sum(-1).max() * (approx(y) ** 2).sum(1).max()) * 1.01)
    product = multiply_pairs(x, y, low, largest=most, tolerance=math.ldexp(0.25, max(low, -900)))
    left, right = to_fractions(x), to_fractions(y)
    exact = np.stack([left[b].dot(right[b]) for b in range(batch)])
    assert worst(product, exact) <= Fraction(product.error)
    assert (product.error == 0.0) == (low == -900)


def test_long_products_of_the_largest_limbs_are_halved_and_stay_exact() -> None:
    x = Digits(np.full((2, 1, 1, 5000), float(LIMB)), 3)
    y = Digits(np.full((2, 1, 5000, 1), float(LIMB)), 3)
    product = multiply_pairs(x, y, -900, largest=5000.0 * 64, tolerance=0.0)
    exact = 5000 * to_fractions(x)[0, 0, 0] * to_fractions(y)[0, 0, 0]
    assert to_fractions(product.digits)[0, 0, 0] == exact


# ------------------------------------------------------------------ what is guarded


def flaw(kind: str) -> Any:
    real = np.matmul

    def broken(x: Any, y: Any, out: Any) -> None:
        real(x, y, out=out)
        if kind == "float32":
            out[...] = (x.astype(np.float32) @ y.astype(np.float32)).astype(float)
        elif kind == "one" and out.shape[-1] > 2:
            out.reshape(-1)[out.size // 3] += 1.0
        elif kind == "row" and out.shape[-1] > 2:  # a thread that did not write its rows
            out[..., -1, :] = 0.0

    return broken


@pytest.mark.parametrize("kind", ["float32", "one", "row"])
def test_a_wrong_product_is_found_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "matmul", flaw(kind))
    monkeypatch.setattr(pairs, "matmul", flaw(kind))
    random = np.random.default_rng(8)
    x = digits(random, 3, 4, 30)
    with pytest.raises(WrongProduct, match="checksum"):
        times(x, random.standard_normal((30, 20)).astype(np.float32), -60)
    y = digits(random, 3, 1, 30, 6)
    with pytest.raises(WrongProduct, match="checksum"):
        multiply_pairs(x.reshape(1, 4, 30), y, -60, largest=2000.0, tolerance=0.0)


def test_what_is_too_large_to_be_exact_is_refused() -> None:
    x = Digits(np.full((2, 1, 4), 2.0**40), 3 * WIDTH)
    with pytest.raises(WrongProduct, match="too large"):
        times(x, np.ones((4, 1), np.float32), -60)


def test_the_memory_is_eight_bytes_a_slice_entry() -> None:
    matrix = Matrix(np.random.default_rng(9).standard_normal((10, 6)).astype(np.float32))
    entries = sum(piece.data.size for tile in matrix.tiles for piece in tile.slices)
    assert matrix.bytes == 8 * entries
