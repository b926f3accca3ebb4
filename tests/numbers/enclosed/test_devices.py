"""What is done otherwise on a device, tried with tensors of this machine: it proves as much."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from test_kernels import as_tensor, digits, stand_in
from test_limbs_passes import gpt2, random_weights

from byhand import forward
from byhand.evaluate import work_out
from byhand.numbers.enclosed.limbs import arithmetic, prediction, radii, row_functions
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed

EPS = [Fraction(0), Fraction(1, 100000), Fraction(1, 4)]


def logits(rows: list[list[int]], radii: Any, low: int = -60) -> tuple[Enclosed, Enclosed]:
    """The same numbers in NumPy and as tensors."""
    flat = arithmetic.from_integers([value for row in rows for value in row], low)
    x = flat.reshape(len(rows), len(rows[0]))
    box = np.broadcast_to(np.asarray(radii, float), x.shape).copy()
    if not box.any():
        return Enclosed(x), Enclosed(as_tensor(x))
    tensor = torch.from_numpy(box)
    return Enclosed(x, box[:, 0], box=box), Enclosed(as_tensor(x), tensor[:, 0], box=tensor)


RANDOM = np.random.default_rng(0).integers(-(2**62), 2**62, (20, 50)).tolist()
ROWS = {
    "far apart": (RANDOM, 2.0**-40),
    "known exactly": (RANDOM, 0.0),
    "tied": ([[5, 7, 7, 1], [9, 2, 9, 9]], 0.0),
    "undecided": ([[5, 7, 7, 1], [9, 2, 9, 9]], 2.0**-60),
    "two": ([[5, 3], [3, 5]], 2.0**-61),
    "one": ([[5], [3]], 2.0**-61),
    "nothing known": (RANDOM, math.inf),
    "nearer than floats tell": ([[2**62, 2**62 + 1, 2**62 - 1], [1, 2, 3]], 2.0**-63),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("few", [1000, 2])
def test_next_tokens_are_those_of_numpy(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "FEW", few)
    one, other = (prediction.predictions(x) for x in logits(*ROWS[name]))
    for here, there in zip(one, other, strict=True):
        assert (here.id, here.proven, here.tied) == (there.id, there.proven, there.tied)
        assert here.candidates == there.candidates
        assert (here.margin is None) == (there.margin is None)
        if here.margin is not None:
            assert (here.margin.mid, here.margin.rad) == (there.margin.mid, there.margin.rad)


@pytest.mark.parametrize("eps", EPS)
def test_roots_of_all_rows_at_once_are_as_near_and_as_exact(eps: Fraction) -> None:
    values = [0, 1 << 60, (3 << 30) ** 2, 12345678901234567890123, 1 << 61, 3 << 58, 1]
    x = arithmetic.from_integers(values, -60)
    found, off = row_functions.at_once(as_tensor(x), eps, -140)
    known, known_off = row_functions.one_by_one(x, eps, -140)
    assert off.tolist() == known_off.tolist()
    assert known.low == found.low
    assert (arithmetic.to_integers(known) == arithmetic.to_integers(found)).all()
    for root, rounding, value in zip(
        arithmetic.to_fractions(found), off.tolist(), values, strict=True
    ):
        real = Fraction(value, 1 << 60) + eps
        assert root**2 <= real <= (root + Fraction(rounding)) ** 2


def test_inverses_of_all_rows_at_once_are_as_near_and_as_exact() -> None:
    values = [1 << 60, 3 << 58, 1 << 57, 12345678901234567890, 7]
    x = as_tensor(arithmetic.from_integers(values, -60))
    found, off = row_functions.inverses_of_rows(x, 140, None, 768)
    for inverse, rounding, value in zip(
        arithmetic.to_fractions(found), off.tolist(), values, strict=True
    ):
        assert 0 <= Fraction(1 << 60, value) - inverse <= Fraction(rounding)
        assert (rounding == 0) == (value & (value - 1) == 0)


def test_a_row_of_zeros_over_zero_is_still_found() -> None:
    x = arithmetic.from_integers([0, 1 << 60], -60)
    inverse, off = row_functions.inverses_of_rows(as_tensor(x), 100, None, 4)
    assert list(arithmetic.to_fractions(inverse)) == [0, 1]
    assert off.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", [1, 3, 7, 12])
@pytest.mark.parametrize("shape", [(5, 768), (3, 4, 20), (7, 130), (1, 1)])
def test_sums_of_squares_are_exact(n: int, shape: tuple[int, ...]) -> None:
    x = digits(n, shape, 3)
    one, other = row_functions.row_squares(x), row_functions.row_squares(as_tensor(x))
    assert (arithmetic.to_fractions(one) == arithmetic.to_fractions(other)).all()
    largest = Digits(np.full((n, *shape), 2.0**21), 3)
    one, other = row_functions.row_squares(largest), row_functions.row_squares(as_tensor(largest))
    assert (arithmetic.to_fractions(one) == arithmetic.to_fractions(other)).all()


def test_quotients_are_told_from_what_is_near_them() -> None:
    whole = arithmetic.from_integers([768 * 5, 768 * 5 + 1, 0, -768, 768 * 2**80], -10)
    for x in (whole, as_tensor(whole)):
        quotient = arithmetic.over_integer(x, 768, -32)
        assert arithmetic.is_quotient(quotient, 768, x).tolist() == [True, False, True, True, True]


def test_bounds_on_tensors_are_not_too_small() -> None:
    rng = np.random.default_rng(2)
    for scale in (1.0, 2.0**-800, 2.0**600):
        row = rng.normal(size=(4, 300)) * scale
        row[0] = 0.0
        found = radii.length(torch.from_numpy(row))
        for bound, entries in zip(found.tolist(), row.tolist(), strict=True):
            square = sum(Fraction(entry) ** 2 for entry in entries)
            assert square <= Fraction(bound) ** 2 <= square * (1 + Fraction(1, 2**38))
    small = torch.tensor([0.0, 2.0**-600, math.inf, 3.0], dtype=torch.float64)
    other = torch.tensor([math.inf, 2.0**-600, 0.0, 5.0], dtype=torch.float64)
    assert radii.times(small, other).tolist()[::2] == [0.0, 0.0]
    assert radii.times(small, other)[1] > 0
    assert radii.times(small, other)[3] >= 15
    assert radii.times(small, 0.0).tolist() == [0.0] * 4
    assert radii.times(2.0, small).tolist()[:3:2] == [0.0, math.inf]


def test_a_whole_pass_through_kernels_has_the_bits_of_the_array_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = gpt2(1, 8)
    weights = random_weights(spec, np.random.default_rng(3), "random")
    plan, tokens = forward.plan(spec, 3), (1, 2, 3)
    made = [work_out(plan, weights, tokens, Limbs(90, "cpu"))]
    with stand_in(monkeypatch) as launches:
        made.append(work_out(plan, weights, tokens, Limbs(90, "cpu")))
    assert launches.count > 50
    one, other = (steps["logits"].value for steps in made)
    assert one.digits.top == other.digits.top
    assert torch.equal(one.digits.limbs, other.digits.limbs)
    assert torch.equal(one.box, other.box)
