"""Spectral norms: proven from above, and close."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byhand.numbers.enclosed.limbs import spectral
from byhand.numbers.enclosed.limbs.spectral import frobenius, spectral_norm, spectral_norms

RANDOM = np.random.default_rng(1)
SHAPES = [(1, 1), (1, 9), (7, 3), (3, 7), (40, 40), (64, 200), (130, 64)]


def stretched(matrix: Any) -> tuple[Fraction, Fraction]:
    """‖Av‖² and ‖v‖² exactly, for the vector that floats say is stretched most."""
    _left, _sizes, right = np.linalg.svd(matrix)
    v = [Fraction(float(x)) for x in right[0]]
    rows = [[Fraction(float(x)) for x in row] for row in matrix]
    image = [sum(a * b for a, b in zip(row, v, strict=True)) for row in rows]
    return Fraction(sum(x * x for x in image)), Fraction(sum(x * x for x in v))


def is_bound(bound: float, matrix: Any) -> bool:
    above, below = stretched(matrix)
    return Fraction(bound) ** 2 * below >= above


@pytest.mark.parametrize("shape", SHAPES)
def test_the_norm_of_a_random_matrix_is_bounded_and_hardly_more(shape: tuple[int, int]) -> None:
    matrix = RANDOM.standard_normal(shape)
    bound = spectral_norm(matrix)
    assert is_bound(bound, matrix)
    assert bound <= 1.05 * np.linalg.norm(matrix, 2)


@pytest.mark.parametrize("size", [2.0**-500, 1e-30, 1.0, 1e30, 2.0**500])
def test_the_size_of_the_entries_does_not_matter(size: float) -> None:
    matrix = RANDOM.standard_normal((12, 8)) * size
    bound = spectral_norm(matrix)
    assert is_bound(bound, matrix)
    assert bound <= 1.05 * size * np.linalg.norm(matrix / size, 2)


def test_a_cluster_of_singular_values_is_bounded() -> None:
    orthogonal, _r = np.linalg.qr(RANDOM.standard_normal((40, 40)))
    sizes = 1.0 - 1e-12 * np.arange(40)
    matrix = orthogonal * sizes
    assert is_bound(spectral_norm(matrix), matrix)


def test_rank_one_is_its_frobenius_norm() -> None:
    matrix = np.outer(RANDOM.standard_normal(30), RANDOM.standard_normal(20))
    bound = spectral_norm(matrix)
    assert is_bound(bound, matrix)
    assert bound <= frobenius(matrix) * (1 + 1e-12)


def test_zero_is_zero() -> None:
    assert spectral_norm(np.zeros((3, 4))) == 0.0


def test_a_guess_that_is_too_small_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectral, "_guess", lambda gram: 1e-3)
    matrix = RANDOM.standard_normal((20, 10))
    assert is_bound(spectral_norm(matrix), matrix)


def test_power_iteration_alone_would_not_do() -> None:
    """The guess is below the norm for some matrix: it is Cholesky that proves the bound."""
    orthogonal, _r = np.linalg.qr(RANDOM.standard_normal((60, 60)))
    matrix = orthogonal * np.linspace(0.9, 1.0, 60)
    assert spectral._guess(matrix.T @ matrix) < 1.0


@pytest.mark.parametrize("shape", [(3, 5, 4), (4, 32, 64), (2, 64, 16), (1, 1, 1)])
def test_a_stack_is_bounded_one_by_one(shape: tuple[int, int, int]) -> None:
    stack = RANDOM.standard_normal(shape) * np.array([1.0, 9.0, 0.1, 3.0])[: shape[0], None, None]
    bounds = spectral_norms(stack)
    for bound, matrix in zip(bounds, stack, strict=True):
        assert is_bound(float(bound), matrix)
        assert bound <= 1.3 * np.linalg.norm(matrix, 2)


def test_a_stack_with_a_zero_matrix_is_bounded() -> None:
    stack = np.stack([np.zeros((4, 3)), np.ones((4, 3))])
    bounds = spectral_norms(stack)
    assert bounds[0] >= 0.0
    assert bounds[1] >= np.sqrt(12.0)
