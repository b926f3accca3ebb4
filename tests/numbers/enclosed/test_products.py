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
from byhand.numbers.enclosed.limbs.checksums import WrongProduct
from byhand.numbers.enclosed.limbs.joined_limbs import Tail
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.products import Product, multiply_matrix
from byhand.numbers.enclosed.limbs.row_norms import row_norms
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


# ------------------------------------------------------------------ limbs that are joined


def joined(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """Of every product that follows: whether its first and its last two limbs are one."""
    found: list[tuple[bool, bool]] = []
    whole = products._Run.product

    def product(run: Any) -> Product:
        found.append((run.x.n < run.given, run.tail is not None))
        return whole(run)

    made = products._Run.__init__

    def start(run: Any, x: Digits, *others: Any) -> None:
        run.given = x.n
        made(run, x, *others)

    monkeypatch.setattr(products._Run, "__init__", start)
    monkeypatch.setattr(products._Run, "product", product)
    return found


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("inputs", [7, 300])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_product_with_a_rounded_end_is_off_by_no_more_than_it_says(
    n: int, inputs: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ml_dtypes

    seen = joined(monkeypatch)
    random = np.random.default_rng(n + inputs)
    w = random.standard_normal((inputs, 6)).astype(
        np.float32 if kind == "float32" else ml_dtypes.bfloat16
    )
    bias = random.standard_normal(6).astype(np.float32)
    x = digits(random, n, 4, inputs)
    low = x.low + (0 if inputs < 10 else 9)  # the bound of the roundings is 3·inputs^1.5 units
    product = times(x, w.astype(np.float32), low, bias, math.ldexp(64.0, low))
    missed = worst(product, exactly(x, w, bias))
    assert seen == [(False, True)]
    assert Fraction(product.error) / 2000 <= missed <= Fraction(product.error)
    assert product.error <= math.ldexp(66.0, low)


def test_rounding_at_the_end_reaches_a_third_of_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = joined(monkeypatch)
    random = np.random.default_rng(9)
    w = random.standard_normal((4, 60)).astype(np.float32)
    x = digits(random, 4, 60, 4)
    product = times(x, w, x.low, tolerance=math.ldexp(64.0, x.low))
    assert seen[0][1]
    assert worst(product, exactly(x, w)) > Fraction(product.error) / 3


def test_the_bound_of_rounding_is_nearly_reached_by_a_sum_that_loses_all_terms_but_one() -> None:
    """2^53 + 1 + 1 + …, each rounded to 2^53."""
    limbs = np.zeros((2, 1, 17))
    limbs[0, 0, 0], limbs[1, 0, 1:] = 2.0**30, 1.0
    x, matrix = Digits(limbs, 0), Matrix(np.array([[2.0]] + [[1.0]] * 16))
    tail, _error = Tail.of(x, matrix, row_norms(x, matrix.blocks), x.top + matrix.top)
    terms = list(zip(limbs[0, 0] * 2.0**22 + limbs[1, 0], matrix.tiles[0].slices[0].data[:, 0],
                     strict=True))  # fmt: skip
    total = 0.0
    for one, other in terms:
        total += one * other
    lost = abs(Fraction(total) - sum(Fraction(one) * Fraction(other) for one, other in terms))
    assert Fraction(tail.rounding) / 8 <= lost <= Fraction(tail.rounding)


@pytest.mark.parametrize("small", [0, 1, 5])
def test_a_first_limb_of_few_bits_is_joined_to_the_second(
    small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = joined(monkeypatch)
    random = np.random.default_rng(small)
    x = digits(random, 4, 3, 40, top=30)
    x.limbs[0] = random.integers(-small, small + 1, (3, 40))
    w = random.standard_normal((40, 9)).astype(np.float32)
    bias = random.standard_normal(9).astype(np.float32)
    assert worst(times(x, w, -900, bias), exactly(x, w, bias)) == 0
    x.limbs[0] = 2.0**12
    assert worst(times(x, w, -900, bias), exactly(x, w, bias)) == 0
    assert seen == [(True, False), (False, False)]


def test_slices_of_few_entries_are_kept_entry_by_entry() -> None:
    random = np.random.default_rng(12)
    w = random.integers(-100, 100, (30, 20)) / 128
    w[3, 5], w[4, 5], w[29, 7], w[0, 19] = 2.0**-30, -(2.0**-31), 3 * 2.0**-40, 2.0**-60
    matrix = Matrix(w)
    first, *others = matrix.tiles[0].slices
    assert first.data is not None
    assert [sum(len(few.values) for few in piece.few) for piece in others] == [3, 1]
    assert matrix.bytes == 30 * 20 * 8 + 4 * 24
    x = digits(random, 3, 4, 30)
    assert worst(times(x, w, -900), exactly(x, w)) == 0


def test_a_slice_without_an_entry_between_others_is_passed_over() -> None:
    random = np.random.default_rng(31)
    w = np.ldexp(random.choice([-1.0, 1.0], (200, 5)), random.choice([0, -50], (200, 5)))
    w[:, 0] = 1.0  # a column that ends with the first slice
    x = digits(random, 3, 4, 200)
    assert any(piece.thin and not piece.few for piece in Matrix(w).tiles[0].slices)
    assert worst(times(x, w, -400), exactly(x, w)) == 0
    rounded = times(x, w, -60, tolerance=2.0**-58)
    assert worst(rounded, exactly(x, w)) <= rounded.error


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


@pytest.mark.parametrize("kind", ["float32", "row"])
def test_a_wrong_end_is_found_out(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two limbs alone, so that nothing is exact and only the rounded sums can tell."""
    seen = joined(monkeypatch)
    random = np.random.default_rng(8)
    x = digits(random, 2, 4, 30)
    w = random.standard_normal((30, 20)).astype(np.float32)
    times(x, w, x.low, tolerance=math.ldexp(64.0, x.low))
    monkeypatch.setattr(products, "matmul", flaw(kind))
    with pytest.raises(WrongProduct, match="checksum"):
        times(x, w, x.low, tolerance=math.ldexp(64.0, x.low))
    assert seen == [(False, True)] * 2


def test_what_is_too_large_to_be_exact_is_refused() -> None:
    x = Digits(np.full((2, 1, 4), 2.0**40), 3 * WIDTH)
    with pytest.raises(WrongProduct, match="too large"):
        times(x, np.ones((4, 1), np.float32), -60)


def test_the_memory_is_eight_bytes_a_slice_entry() -> None:
    matrix = Matrix(np.random.default_rng(9).standard_normal((10, 6)).astype(np.float32))
    entries = sum(piece.data.size for tile in matrix.tiles for piece in tile.slices)
    assert matrix.bytes == 8 * entries
