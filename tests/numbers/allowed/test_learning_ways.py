"""Correct ways back that lose digits where others do not: each needs a term of its bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from ml_dtypes import bfloat16
from torch.nn import functional

from byhand.numbers.allowed import Allowed, Range

Data = Any
EPS = Fraction(1, 100_000)
single = np.float32


def parts_of(numbers: Allowed, x: Data) -> tuple[Range, Range, Range]:
    """The centred rows, the root and the normalised rows, all of them claimed as they are."""
    mean = _claimed(numbers, numbers.mean(Range(x)))
    rows = _claimed(numbers, numbers.center(Range(x), mean))
    by = _claimed(numbers, numbers.root(numbers.mean_square(rows), eps=EPS))
    return rows, by, _claimed(numbers, numbers.normalize(rows, by))


def _claimed(numbers: Allowed, value: Range) -> Range:
    return numbers.overlay(value, (), value.mid.astype(single))


def layernorm_back(numbers: Allowed, x: Data, grad: Data) -> Range:
    """The gradient of a layernorm's input."""
    rows, by, done = parts_of(numbers, x)
    dot = numbers.divisor_back(numbers.row_dots(done, Range(grad)), by)
    through = numbers.mean_square_back(numbers.root_back(dot, by), rows)
    whole = numbers.total(term_1=numbers.normalize_back(Range(grad), by), term_2=through)
    shift = numbers.mean_back(numbers.center_back(whole), width=x.shape[-1])
    return numbers.total(term_1=whole, term_2=shift)


def worst(numbers: Allowed, value: Range, given: Data) -> float:
    return numbers.judge(value, (), np.asarray(given, dtype=np.float64)).share


def rows_of(n: int, far: float) -> tuple[Data, Data, Data]:
    """x far from 0 whose normalised rows fall; what is normalised, and the root."""
    chance = np.random.default_rng(n)
    x = -np.sort(-chance.standard_normal((3, n)) - far).astype(single).astype(np.float64)
    root = np.sqrt(x.var(axis=-1, keepdims=True) + float(EPS))
    return x, (x - x.mean(axis=-1, keepdims=True)) / root, root


def test_sums_over_x_far_from_zero_lose_what_sums_over_normalised_rows_keep() -> None:
    """Σ grad·x - mean·Σ grad, as torch has it on processors, where Σ grad·x̂ is 0."""
    x, rows, root = rows_of(512, 3000.0)
    grad = np.abs(np.random.default_rng(1).standard_normal(x.shape)) + 1
    grad -= rows * (grad * rows).mean(axis=-1, keepdims=True)
    grad = grad.astype(single).astype(np.float64)
    exact = (grad * rows).sum(axis=-1)
    # every partial sum of Σ grad·x is off as far as it may be
    off = 2.0**-24 * np.abs(np.cumsum(grad * x, axis=-1)).sum(axis=-1)
    dot = exact + off / root[:, 0]
    numbers = Allowed("float32")
    _rows, _by, done = parts_of(numbers, x)
    value = numbers.row_dots(done, Range(grad))
    of_rows = 600 * 2.0**-24 * np.abs(grad * rows).sum(axis=-1)
    assert (np.abs(dot - exact) > of_rows).any()  # more than Σ grad·x̂ may lose
    assert worst(numbers, value, dot) <= 1


def test_the_mean_of_gradients_is_taken_before_they_cancel() -> None:
    """Of a gradient along x̂ nothing is left, but for the error of its mean."""
    x, rows, root = rows_of(2048, 0.0)
    grad = (rows * 5).astype(single).astype(np.float64)
    # every partial sum of the mean is off as far as it may be
    lean = 2.0**-24 * np.abs(np.cumsum(grad, axis=-1)).mean(axis=-1, keepdims=True)
    dot = (grad * rows).mean(axis=-1, keepdims=True)
    given = (grad - lean - rows * dot) / root
    numbers = Allowed("float32")
    assert worst(numbers, layernorm_back(numbers, x, grad), given) <= 1
    assert lean.min() > 100 * 2.0**-24 * np.abs(grad).mean()  # far more than a few roundings


PLACES = range(2)
SEES: dict[str, Any] = {"mask": ((True, True),) * 2, "queries": PLACES, "keys": PLACES}


def test_the_rows_sum_may_be_that_of_what_was_mixed_and_stored() -> None:
    """Values that the gradient does not see have a sum of 0; rounded, they have not."""
    numbers = Allowed("bfloat16")
    v = np.array([[[1.0, 1.0], [1.5, 1.5]]])
    grad = np.array([[[100.0, -100.0], [64.0, -64.0]]])
    scores = Range(np.array([[[0.0, 0.75], [0.5, 0.0]]]))
    weights = numbers.softmax(scores)
    back = numbers.scores(Range(grad), Range(v), **SEES)
    value = numbers.row_dots(weights, back)
    shares = np.exp(scores.mid) / np.exp(scores.mid).sum(axis=-1, keepdims=True)
    mixed = shares @ v
    mixed[..., 0] *= 1 + 2.0**-8  # as stored, at the worst
    mixed[..., 1] *= 1 - 2.0**-8
    given = (grad * mixed).sum(axis=-1)
    assert np.abs(given).min() > 0.5  # Σ weights·grad is 0 here
    assert worst(numbers, value, given) <= 1
    numbers_32 = Allowed("float32")
    exact = numbers_32.row_dots(
        numbers_32.softmax(scores), numbers_32.scores(Range(grad), Range(v), **SEES)
    )
    assert worst(numbers_32, exact, given) > 1000


def test_attention_weights_may_be_made_again_from_the_logarithm_of_their_sum() -> None:
    """Large scores: the logarithm is rounded at their size, which a maximum taken off is not."""
    numbers = Allowed("float32")
    scores = np.array([[[3000.25, 3000.125], [2999.0, 3001.5]]])
    top = scores.max(axis=-1, keepdims=True)
    logs = (top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))).astype(single)
    again = np.exp((scores.astype(single) - logs).astype(single)).astype(np.float64)
    grad = np.array([[[1.0], [1.0]]])
    weights = numbers.softmax(Range(scores))
    value = numbers.along_queries(weights, Range(grad))
    assert (np.abs(again - weights.mid) > 4 * weights.rad).any()
    assert worst(numbers, value, again.transpose(0, 2, 1) @ grad) <= 1


def test_a_probability_may_be_the_exponential_of_a_stored_logarithm() -> None:
    """In bfloat16 the logarithm -61.3 is off by up to 1/8: so is the probability, relatively."""
    numbers = Allowed("bfloat16")
    logits = torch.tensor([[0.0, -61.25, -40.5, -20.25]], dtype=torch.bfloat16).requires_grad_()
    functional.cross_entropy(logits, torch.tensor([0])).backward()
    probs = numbers.softmax(Range(logits.detach().double().numpy()))
    stored = torch.softmax(logits, -1).detach().double().numpy()
    value = numbers.loss_back(numbers.overlay(probs, (), stored), [0])
    assert worst(numbers, value, logits.grad.detach().double().numpy()) <= 1
    exact = np.exp(logits.detach().double().numpy())
    logs = np.log(exact / exact.sum())
    off = np.exp(logs * (1 + 2.0**-8))  # a logarithm that is off as far as it may be
    off[0, 0] = 0.0
    assert worst(numbers, value, off) <= 1
    assert worst(numbers, value, off * np.exp(-logs * 0.1)) > 1
    assert bfloat16(-61.3) == -61.25


@pytest.mark.parametrize("times", [1, 4])
def test_micro_batches_are_stored_and_added_in_16_bits(times: int) -> None:
    """As many partial sums as there are texts: only a batch may lose so much."""
    numbers = Allowed("bfloat16")
    numbers.texts = times
    chance = np.random.default_rng(5)
    x, grad = chance.standard_normal((2, 32, 6)).astype(bfloat16).astype(np.float64)
    so_far = np.zeros((6, 6))
    for part in np.split(np.arange(32), 4):
        one = (x[part].T @ grad[part]).astype(bfloat16).astype(np.float64)
        so_far = (so_far + one).astype(bfloat16).astype(np.float64)
    for side in (Range(grad), numbers.overlay(Range(grad), (), grad)):
        value = numbers.outer(Range(x), side, layout="in_out")
        assert (worst(numbers, value, so_far) <= 1) is (times == 4)
