"""What each class promises below the normal numbers and beyond the largest: a flushed input,
weight, product, partial sum or result is allowed, float16 keeps its own numbers; and no more is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.hostile.runs import judged, runs
from benchmarks.tightness.machines import KINDS, Machine
from benchmarks.tightness.ports import Port

from byhand.numbers.allowed import Allowed, Range

FLUSHING = {"float64": 2.0**-1022, "float32": 2.0**-126, "tf32": 2.0**-126, "bfloat16": 2.0**-126}
OUTLIER = 1000.0


def claimed(numbers: Allowed, *values: float) -> Range:
    """Numbers as somebody claims them."""
    row = np.array([values])
    return numbers.overlay(Range(np.zeros(row.shape), np.zeros(row.shape)), (), row)


def follows(numbers: Allowed, value: Range, given: Any) -> bool:
    return numbers.judge(value, (), np.asarray(given, dtype=np.float64)).follows


@pytest.mark.parametrize(("name", "least"), FLUSHING.items())
@pytest.mark.parametrize("islands", ["", "transformers:"])
def test_a_number_below_the_normal_ones_may_be_read_as_zero(
    name: str, least: float, islands: str
) -> None:
    numbers = Allowed(islands + name)
    table = np.array([[least / 2, 0.0, least, OUTLIER]], KINDS[name])
    rows = numbers.embed(table, [0])
    assert follows(numbers, rows, [[0.0, 0.0, least, OUTLIER]])
    assert not follows(numbers, rows, [[0.0, 0.0, 0.0, OUTLIER]])  # a normal number is kept
    assert not follows(numbers, rows, [[-least / 2, 0.0, least, OUTLIER]])
    # a flushed input that meets a large factor: all of the product is gone
    product = numbers.multiply(claimed(numbers, least / 2), claimed(numbers, OUTLIER))
    assert follows(numbers, product, [[0.0]])
    product = numbers.multiply(claimed(numbers, least), claimed(numbers, OUTLIER))
    assert not follows(numbers, product, [[0.0]])


@pytest.mark.parametrize(("name", "least"), FLUSHING.items())
@pytest.mark.parametrize("what", ["input", "weight", "bias"])
def test_a_flushed_number_of_a_product_is_allowed_and_no_more(
    name: str, least: float, what: str
) -> None:
    numbers = Allowed(name)
    small, large = np.array([[least / 2, 0.0]]), np.array([[OUTLIER, 0.0]])
    x, matrix = (small, large.T) if what == "input" else (large, small.T)
    bias = np.array([least / 2]) if what == "bias" else None
    if what == "bias":
        x, matrix = small * 0, large.T
    value = numbers.linear(claimed(numbers, *x[0]), matrix, bias=bias, layout="in_out")
    assert follows(numbers, value, [[0.0]])
    whole = least / 2 * (OUTLIER if what != "bias" else 1.0)
    if name == "float64":  # whose sizes are worked out in float32
        return
    assert value.rad is not None
    assert value.rad[0, 0] < 2.1 * whole + 20 * least


@pytest.mark.parametrize(("name", "least"), FLUSHING.items())
def test_flushed_products_and_partial_sums_are_allowed(name: str, least: float) -> None:
    numbers, n = Allowed(name), 64
    x = np.full((1, n), 2.0**-30)
    matrix = np.full((n, 1), least * 2.0**30 * (1 - 2.0**-7))
    value = numbers.linear(Range(x), matrix, layout="in_out")
    assert follows(numbers, value, [[0.0]])  # every product
    turn = np.resize([1.0, -1.0], (n, 1)) * least * (1 + 2.0**-7 * np.arange(n)[:, None])
    value = numbers.linear(Range(np.ones((1, n))), turn, layout="in_out")
    assert follows(numbers, value, [[0.0]])  # the sums of every two


def test_float16_keeps_its_subnormal_numbers_and_loses_half_of_their_spacing() -> None:
    for name in ("float16", "transformers:float16"):
        numbers = Allowed(name)
        small = 5 * 2.0**-24
        assert not follows(numbers, numbers.embed(np.array([[small]]), [0]), [[0.0]])
        product = numbers.multiply(claimed(numbers, small), claimed(numbers, 8.0))
        assert not follows(numbers, product, [[0.0]])
        half = numbers.multiply(claimed(numbers, small), claimed(numbers, 0.5))
        assert follows(numbers, half, [[2 * 2.0**-24]])
        assert not follows(numbers, half, [[2.0**-24]])


def test_tf32_cuts_off_what_is_below_its_last_place_under_the_normal_numbers_too() -> None:
    """A weight of 2^-140 has no bit that tf32 keeps, without any flushing."""
    numbers = Allowed("tf32")
    x = np.array([[OUTLIER, 0.5]])
    matrix = np.array([[2.0**-137 * 1.75], [2.0**-130]])
    port = Port("", Machine("tf32"))
    given = port.linear(x, matrix)
    assert given[0, 0] == 2.0**-131  # all of the first product is gone
    weights = matrix.astype(np.float32)
    assert follows(numbers, numbers.linear(Range(x), weights, layout="in_out"), given)
    assert not follows(Allowed("float64"), Allowed("float64").multiply(
        Range(x[:, :1]), Range(matrix[:1].T)), given)  # fmt: skip


@pytest.mark.parametrize("name", ["float32", "tf32", "bfloat16"])
def test_a_running_mean_may_stand_still_below_the_normal_numbers(name: str) -> None:
    numbers, n = Allowed(name), 256
    x = np.concatenate((np.zeros((1, 64)), np.full((1, n - 64), 2.0**-120)), axis=1)
    port = Port("", Machine(name, flushes=True, wide_steps=True), whole=True)
    mean, square = port.welford(x)
    worked = numbers.mean(Range(x))
    assert mean[0] < 0.95 * x.mean()
    assert follows(numbers, worked, mean)
    assert worked.rad is not None
    assert worked.rad[0] < 3 * n * 2.0**-126
    assert follows(numbers, numbers.mean_square(numbers.center(Range(x), worked)), square)


def test_a_sum_that_overflows_on_the_way_may_be_infinite() -> None:
    numbers = Allowed("float32")
    x = np.array([[2.0**64, 2.0**63]])  # whose squares add up to more than float32 has
    for value in (
        numbers.mean_square(Range(x * 0.95)),
        numbers.linear(Range(x), np.array([[2.0**63], [-(2.0**64)]], np.float32), layout="in_out"),
        numbers.mean(Range(np.array([[2.0**127, 2.0**127, -(2.0**127)]]))),
    ):
        assert follows(numbers, value, np.full(value.shape, np.inf))
    assert not follows(numbers, numbers.mean_square(Range(x / 4)), [np.inf])


def test_scores_of_float64_that_float32_does_not_reach_spoil_a_softmax_in_float32() -> None:
    numbers = Allowed("transformers:float64")
    row = Range(np.array([[[1e39, 1.0], [1.0, 2.0]]]))
    value = numbers.softmax(row)
    assert value.rad is not None
    assert np.isinf(value.rad[0, 0]).all()
    assert value.rad[0, 1].max() < 1e-5


def test_a_loss_from_logits_goes_with_a_small_share_that_was_rounded() -> None:
    numbers = Allowed("transformers:float16")
    share = 1.4 * 2.0**-24  # stored as one unit of the last place
    value = numbers.loss(claimed(numbers, 1.0, 2.0**-24), target=1)
    assert follows(numbers, value, [-np.log(share)])
    assert not follows(numbers, value, [-np.log(4 * share)])


def test_a_claimed_root_is_taken_for_one_that_was_written_in_decimals_too() -> None:
    """Its slack does not say that the implementation divided by the claimed root itself."""
    numbers = Allowed("float32")
    root = np.array([np.sqrt(2.0)])
    by = numbers.overlay(Range(root, root * 1e-6), (), root, 1e-9)
    used = np.ones((1, 4)) / root * (1 + 15 * 2.0**-24)
    assert follows(numbers, numbers.normalize(Range(np.ones((1, 4))), by), used)


def test_a_norm_in_float32_inside_of_float64_ends_with_a_rounding_to_float32() -> None:
    numbers = Allowed("transformers:float64")
    x, eps = np.full((1, 3), 1.1), Fraction(1, 10**12)
    value = numbers.normalize(Range(x), numbers.root(numbers.mean_square(Range(x)), eps=eps))
    assert value.rad is not None
    assert value.rad.min() > 10 * 2.0**-24


def test_hostile_but_correct_runs_are_allowed() -> None:
    """`python -m benchmarks.hostile` has thousands of them."""
    used: dict[str, float] = {}
    for run in runs(seed=11, models=8):
        for line in judged(run):
            assert line.share <= 1, (line.address, run.name)
            used[line.operation] = max(used.get(line.operation, 0.0), line.share)
    assert max(used.values()) > 0.9  # a bound that nobody comes near says little
