"""Real programs, in any order of summation, fused or not, stay within what is allowed; and those
whose every rounding errs as far as it may use it up."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from benchmarks.tightness.cases import Case, cases
from benchmarks.tightness.libraries import TYPES, Torch
from benchmarks.tightness.ports import FORMATS, Machine, Port, adverse, ports

from byhand.numbers.allowed import Allowed, Range

# the largest share of the bound that adverse roundings use: a bound that is loosened falls below,
# one that is tightened too far goes beyond 1
USED = {
    "add": 0.99, "multiply": 0.99, "linear": 0.99, "mean": 0.99, "center": 0.99,
    "mean_square": 0.95, "root": 0.85, "normalize": 0.1, "affine": 0.99, "layernorm, whole": 0.95,
    "RMSNorm, whole": 0.8, "rotate": 0.6, "scores": 0.99, "attention, whole": 0.7, "softmax": 0.8,
    "mix": 0.95, "loss": 0.45, "gelu": 0.7, "gelu_tanh": 0.7, "silu": 0.8, "quick_gelu": 0.95,
}  # fmt: skip


def shares(format: str, case: Case, some: list[object]) -> dict[str, float]:
    numbers = Allowed(format)
    value = case.allowed(numbers)
    assert value.rad is None or not np.isnan(value.rad).any()
    return {port.name: numbers.judge(value, (), case.given(port)).share for port in some}  # type: ignore[attr-defined]


@pytest.mark.parametrize("format", FORMATS)
def test_what_real_programs_give_is_allowed(format: str) -> None:
    some: list[object] = list(ports(format))
    if format in TYPES:
        some += [Torch(format, fused=fused) for fused in (False, True)]
    most: dict[str, float] = defaultdict(float)
    for case in cases(format, seed=1, long=False):
        for port, share in shares(format, case, some).items():
            assert share <= 1, (case.operation, case.inputs, port)
            most[case.operation] = max(most[case.operation], share)
    if format == "float64":  # the middles are float64 themselves: there is often no difference
        return
    # a loss may be made from logits, which are not given: its bound is for two ways at once
    least = {"relu": 0.0, "loss": 1 / 100}
    assert not {name for name, share in most.items() if share < least.get(name, 1 / 50)}


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "float64"])
def test_roundings_that_err_as_far_as_they_may_are_allowed(format: str) -> None:
    most: dict[str, float] = defaultdict(float)
    for case in cases(format, seed=2, long=False):
        for port, share in shares(format, case, list(adverse(format))).items():
            assert share <= 1, (case.operation, case.inputs, port)
            most[case.operation] = max(most[case.operation], share)
    if format == "float32":
        assert {name for name, used in USED.items() if most[name] < used} == set()


def test_long_sums_in_any_order_are_allowed() -> None:
    for case in cases("float32", seed=3):
        if case.inputs.startswith(("500 ", "512 ", "384 ")):
            for port, share in shares("float32", case, list(ports("float32"))).items():
                assert share <= 1, (case.operation, case.inputs, port)


def test_a_row_may_be_normalised_by_another_root_than_the_claimed_one() -> None:
    """The claimed root may be 4 units too large, and the reciprocal root that was used as well."""
    numbers = Allowed("float32")
    square, off = np.array([2.0]), 8 * 2.0**-24 * 0.999
    root = np.sqrt(square) * (1 + off)
    value = numbers.normalize(Range(np.ones((1, 4))), Range(root))
    used = np.ones((1, 4)) / np.sqrt(square) * (1 + off)
    assert 0.85 < numbers.judge(value, (), used).share <= 1


@pytest.mark.parametrize("size", [2, 64, 384])
@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_welfords_variance_is_allowed(size: int, far: float) -> None:
    numbers = Allowed("float32")
    chance = np.random.default_rng(size)
    x = (chance.standard_normal((16, size)) + far).astype(np.float32).astype(np.float64)
    value = numbers.mean_square(numbers.center(Range(x), numbers.mean(Range(x))))
    for port in (*ports("float32"), *adverse("float32")):
        assert numbers.judge(value, (), port.welford(x)[1]).possible, port.name


def test_welfords_variance_errs_beyond_that_of_two_passes() -> None:
    """Where the mean is 1000 deviations, more than two passes may: the class has to say it."""
    numbers = Allowed("float32")
    x = np.random.default_rng(0).standard_normal((16, 64)) + 1000
    x = x.astype(np.float32).astype(np.float64)
    middle = numbers.center(Range(x), numbers.mean(Range(x)))
    both = numbers.mean_square(middle)
    middle.origin.made_of = None  # type: ignore[union-attr]
    twice = numbers.mean_square(middle)
    welford = Port("", Machine("float32", 1)).welford(x)[1]
    assert numbers.judge(both, (), welford).possible
    assert not numbers.judge(twice, (), welford).possible
