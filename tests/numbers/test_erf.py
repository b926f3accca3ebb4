"""erf, GELU and the other activations against Arb: the bounds that numbers/README.md states."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from byhand.numbers.floats import erf_coefficients
from byhand.numbers.floats.activations import ACTIVATIONS
from byhand.numbers.floats.erf import beyond, erf

ROOT = Path(__file__).resolve().parents[2]
FLOATS = [np.float64, np.float32]
ROOM = {np.float64: 37.0, np.float32: 12.5}  # where Φ(-y) is still far above the smallest numbers


def activated(name: str, x: Any) -> Any:
    result = np.empty_like(x)
    ACTIVATIONS[name](x, result)
    return result


def points(kind: Any, low: float, high: float, count: int = 4000) -> Any:
    """Random points, evenly spread ones, and many near 0."""
    random = np.random.default_rng(7)
    spread = random.uniform(low, high, count)
    tiny = random.choice([-1, 1] if low < 0 else [1], count // 4) * 10 ** random.uniform(
        -12, 0, count // 4
    )
    return np.concatenate([spread, np.linspace(low, high, count // 4), tiny]).astype(kind)


def units(found: Any, x: Any, true: Callable[[arb], arb]) -> Any:
    """How many units of the last place each result is off."""
    worst = []
    with ctx.workprec(160):
        for value, at in zip(found, x, strict=True):
            expected = true(arb(float(at)))
            size = max(abs(float(expected)), float(np.finfo(x.dtype).tiny))
            unit = float(np.spacing(x.dtype.type(size)))
            worst.append(float(abs(arb(float(value)) - expected) / arb(unit)))
    return np.array(worst)


@pytest.mark.parametrize("kind", FLOATS)
def test_erf_is_within_two_units(kind: Any) -> None:
    x = points(kind, -6.5, 6.5)
    assert units(erf(x), x, arb.erf).max() <= 1.5


@pytest.mark.parametrize("kind", FLOATS)
def test_erf_is_within_two_units_where_its_two_pieces_meet(kind: Any) -> None:
    x = np.linspace(0.99, 1.01, 2000).astype(kind)
    assert units(erf(x), x, arb.erf).max() <= 1.5


@pytest.mark.parametrize("kind", FLOATS)
def test_erf_is_odd_to_the_bit(kind: Any) -> None:
    x = points(kind, 0, 9)
    assert np.array_equal(erf(-x), -erf(x))


@pytest.mark.parametrize("kind", FLOATS)
def test_erf_ends_in_one_and_hands_nan_through(kind: Any) -> None:
    x = np.array([6.5, 40, 1e30, np.inf, 0.0], dtype=kind)
    assert erf(x).tolist() == [1, 1, 1, 1, 0]
    assert erf(-x).tolist() == [-1, -1, -1, -1, 0]
    assert np.signbit(erf(-x)).all()
    assert np.isnan(erf(np.array([np.nan], dtype=kind))).all()


@pytest.mark.parametrize("kind", FLOATS)
def test_the_tail_of_the_normal_distribution_is_within_six_units(kind: Any) -> None:
    y = points(kind, 0, ROOM[kind])
    assert units(beyond(y), y, lambda v: (v / arb(2).sqrt()).erfc() / 2).max() <= 6


@pytest.mark.parametrize("kind", FLOATS)
def test_gelu_is_within_eight_units_also_where_it_vanishes(kind: Any) -> None:
    x = points(kind, -ROOM[kind], 9)
    assert units(activated("gelu", x), x, lambda v: v * (-v / arb(2).sqrt()).erfc() / 2).max() <= 8


def exact_gelu_tanh(x: arb) -> arb:
    inner = (2 / arb.pi()).sqrt() * (x + arb("0.044715") * x**3)
    return x / (1 + (-2 * inner).exp())


@pytest.mark.parametrize("kind", FLOATS)
def test_gelu_tanh_is_off_by_a_few_units_for_each_unit_of_its_exponent(kind: Any) -> None:
    x = points(kind, -9, 9)
    exponent = np.abs(1.6 * x.astype(np.float64) + 0.0714 * x.astype(np.float64) ** 3)
    assert (units(activated("gelu_tanh", x), x, exact_gelu_tanh) <= 6 + 3 * exponent).all()


@pytest.mark.parametrize("kind", FLOATS)
def test_silu_is_within_six_units(kind: Any) -> None:
    x = points(kind, -85, 85)
    assert units(activated("silu", x), x, lambda v: v / (1 + (-v).exp())).max() <= 6


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu"])
def test_far_out_the_activations_are_zero_or_the_identity(name: str, kind: Any) -> None:
    x = np.array([1000, 1e25], dtype=kind)
    with np.errstate(all="ignore"):
        assert np.array_equal(activated(name, x), x)
        assert activated(name, -x).tolist() == [0, 0]


def test_the_coefficients_are_what_the_tool_makes() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "erf_coefficients.py"))
    with ctx.workprec(400):
        made = tool["module"]()
    assert Path(erf_coefficients.__file__).read_text() == made
