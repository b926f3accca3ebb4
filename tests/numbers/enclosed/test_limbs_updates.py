"""An optimizer's step in `Limbs`, and products with the weights it made, contain the real values.

Gradients of all sizes, from 2^-60 to 2^60, since every model has its own.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from real_values import ORACLE, Pair, contained

from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry

SIZES = [1.0, 2.0**-60, 2.0**60]
RADII = [None, 2.0**-60, 0.5]  # relative to the size


@pytest.fixture(params=[None, "cpu"], ids=["numpy", "tensors"])
def system(request: pytest.FixtureRequest) -> Limbs:
    return Limbs(140, request.param)


@pytest.fixture(params=RADII, ids=lambda radius: f"radius {radius}")
def radius(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=SIZES, ids=lambda size: f"size {size}")
def size(request: pytest.FixtureRequest) -> Any:
    return request.param


def made(
    system: Limbs, shape: tuple[int, ...], radius: float | None, size: float, seed: int = 0
) -> Pair:
    random = np.random.default_rng(seed)
    radius = None if radius is None else radius * size
    return Pair(random, shape, radius, size, system, aligned=system.device is None)


def test_the_norm_of_gradients_and_how_they_are_clipped(
    system: Limbs, radius: float | None, size: float
) -> None:
    x, y = made(system, (3, 4), radius, size), made(system, (5,), radius, size, 1)
    ours = [system.sum_squares(part.enclosed) for part in (x, y)]
    real = [ORACLE.sum_squares(part.known) for part in (x, y)]
    for mine, theirs in zip(ours, real, strict=True):
        contained(system, mine, theirs)
    norm, truth = system.norm(a=ours[0], b=ours[1]), ORACLE.norm(a=real[0], b=real[1])
    contained(system, norm, truth)
    for limit in (Fraction(1), Fraction(1, 10**9), Fraction(10**30)):
        settings = {"limit": limit, "eps": Fraction(1, 10**6)}
        factor, known = (
            system.clip_factor(norm, **settings),
            ORACLE.clip_factor(truth, **settings),
        )
        contained(system, factor, known)
        contained(system, system.scale_by(x.enclosed, factor), ORACLE.scale_by(x.known, known))


def test_a_norm_that_is_small_enough_is_not_clipped_at_all(system: Limbs) -> None:
    norm = by_entry(system.enclosed(system.admit(np.array([0.5]))).digits, None)
    known = system.clip_factor(norm, limit=Fraction(1), eps=Fraction(1, 10**6))
    assert (system.entries(known)[0].mid, system.entries(known)[0].rad) == (1, 0)


def test_a_factor_whose_clipping_is_open_lies_between_its_ends() -> None:
    """The norm is between 1/2 and 2, the limit 1: the factor is between 1/2 and 1."""
    numbers = Limbs(100)
    digits = arithmetic.from_floats(np.array([1.25]))[0]
    norm = by_entry(digits, np.array([0.75]))
    found = numbers.entries(numbers.clip_factor(norm, limit=Fraction(1), eps=Fraction(0)))[0]
    assert abs(found.lower - Fraction(1, 2)) < 2.0**-45
    assert abs(found.upper - 1) < 2.0**-45


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_blend(system: Limbs, radius: float | None, size: float, squared: bool, both: bool) -> None:
    y, x = made(system, (3, 4), radius, size), made(system, (3, 4), 2.0**-70, 1.0, 1)
    settings: dict[str, Any] = {
        "of_y": Fraction(-1, 1000), "of_x": Fraction(9, 10), "squared": squared
    }  # fmt: skip
    ours = system.blend(y.enclosed, x.enclosed if both else None, **settings)
    contained(system, ours, ORACLE.blend(y.known, x.known if both else None, **settings))


def test_blend_of_a_weight_as_it_was_given(system: Limbs, size: float) -> None:
    floats = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    y = made(system, (3, 4), 2.0**-60, size)
    settings = {"of_x": Fraction(999, 1000), "of_y": Fraction(-1, 10)}
    ours = system.blend(y.enclosed, system.admit(floats), **settings)
    contained(system, ours, ORACLE.blend(y.known, ORACLE.admit(floats), **settings))


@pytest.mark.parametrize("eps", [Fraction(0), Fraction(1, 10**8)])
def test_adam(system: Limbs, radius: float | None, size: float, eps: Fraction) -> None:
    x = made(system, (3, 4), radius, size)

    def step(numbers: Any, grad: Any) -> list[Any]:
        m = numbers.blend(grad, of_y=Fraction(1, 10))
        v = numbers.blend(grad, of_y=Fraction(1, 1000), squared=True)
        root = numbers.root_plus(v, eps=eps)
        return [m, v, root, numbers.divide(m, root)]

    for mine, theirs in zip(step(system, x.enclosed), step(ORACLE, x.known), strict=True):
        contained(system, mine, theirs, finite=radius is None or radius < 2.0**-10)


def test_adam_is_as_sharp_as_its_gradients(system: Limbs) -> None:
    """Entries of 2^-40 beside entries of 1, known to 2^-100: their quotients to 2^-50."""
    size = np.array([1.0, 2.0**-40, 1.0])
    x = made(system, (2, 3), None, size)  # type: ignore[arg-type]
    engine = x.enclosed.digits.engine
    ball = engine.zeros((2,), x.enclosed.digits.limbs) + 2.0**-100
    grad = Enclosed(x.enclosed.digits, ball)
    root = system.root_plus(
        system.blend(grad, of_y=Fraction(1), squared=True), eps=Fraction(1, 10**8)
    )
    found = system.entries(system.divide(grad, root))
    assert max(found[i, j].rad for i in range(2) for j in range(3)) < 2.0**-50


def test_a_quotient_by_what_may_be_zero_is_left_open(system: Limbs) -> None:
    x, y = (system.enclosed(system.admit(np.array(row))) for row in ([[1.0, 2.0]], [[0.5, 4.0]]))
    ball = y.digits.engine.zeros((1,), y.digits.limbs) + 0.75
    found = system.entries(system.divide(x, Enclosed(y.digits, ball)))
    assert found[0, 0].rad == np.inf
    assert found[0, 1].contains(ORACLE.entries(ORACLE.admit(np.array([2 / 3.25])))[0])


def test_an_entry_without_gradient_stays_as_it_was(system: Limbs) -> None:
    grad = system.scatter(made(system, (2, 3), 2.0**-50, 1.0).enclosed, (1, 1), rows=3)
    v = system.blend(grad, of_y=Fraction(1, 1000), squared=True)
    root = system.root_plus(v, eps=Fraction(1, 10**8))
    change = system.divide(system.blend(grad, of_y=Fraction(1, 10)), root)
    found = system.entries(change)
    assert all(found[row, j].mid == found[row, j].rad == 0 for row in (0, 2) for j in range(3))
    assert found[1, 0].rad > 0


# ------------------------------------------------------------------ weights that are values


@pytest.mark.parametrize("layout", ["in_out", "out_in"])
@pytest.mark.parametrize("heads", [None, 3])
def test_linear_with_a_weight_that_is_a_value(
    system: Limbs, radius: float | None, layout: str, heads: int | None
) -> None:
    x = made(system, (4, 7), radius, 1.0)
    weight = made(system, (7, 6) if layout == "in_out" else (6, 7), radius, 1.0, 1)
    bias = made(system, (6,), radius, 4.0, 2)
    settings: dict[str, Any] = {"layout": layout, "heads": heads}
    ours = system.linear(x.enclosed, weight.enclosed, bias=bias.enclosed, **settings)
    real = ORACLE.linear(x.known, weight.known, bias=bias.known, **settings)
    contained(system, ours, real)
    floats = np.ones(6, np.float32)
    ours = system.linear(x.enclosed, weight.enclosed, bias=system.admit(floats), **settings)
    real = ORACLE.linear(x.known, weight.known, bias=ORACLE.admit(floats), **settings)
    contained(system, ours, real)


def test_rows_gains_and_heads_of_weights_that_are_values(
    system: Limbs, radius: float | None
) -> None:
    table, x = made(system, (5, 6), radius, 1.0), made(system, (4, 6), radius, 1.0, 1)
    gain, bias = made(system, (6,), radius, 2.0, 2), made(system, (6,), radius, 2.0, 3)
    contained(system, system.embed(table.enclosed, [3, 3, 0]), ORACLE.embed(table.known, [3, 3, 0]))
    ours = system.affine(x.enclosed, gain=gain.enclosed, bias=bias.enclosed)
    contained(system, ours, ORACLE.affine(x.known, gain=gain.known, bias=bias.known))
    mixed, weight = made(system, (2, 4, 3), radius, 1.0, 4), made(system, (6, 5), radius, 1.0, 5)
    ours = system.head_outputs(mixed.enclosed, weight=weight.enclosed, layout="in_out")
    real = ORACLE.head_outputs(mixed.known, weight=weight.known, layout="in_out")
    contained(system, ours, real)


def test_errors_of_a_product_of_two_values_add_up_to_its_radius() -> None:
    numbers = Limbs(100)
    one = Enclosed(arithmetic.from_floats(np.ones((1, 1)))[0], np.array([0.5]))
    moved = ORACLE.admit(np.full((1, 1), Fraction(3, 2), object))
    made = numbers.linear(one, one, layout="in_out")
    assert contained(numbers, made, ORACLE.linear(moved, moved, layout="in_out")) > 0.9


def test_a_root_of_an_exact_number_is_off_by_its_rounding_alone(system: Limbs) -> None:
    x = system.enclosed(system.admit(np.array([[2.0, 3.0, 4.0]])))
    real = ORACLE.root_plus(ORACLE.admit(np.array([[2.0, 3.0, 4.0]])), eps=Fraction(0))
    made = system.root_plus(x, eps=Fraction(0))
    contained(system, made, real)
    assert system.entries(made)[0, 0].rad < 2.0**-140
