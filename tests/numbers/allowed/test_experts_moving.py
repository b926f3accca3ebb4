"""Experts and sinks on ranges: wherever scores and answers lie, what follows is allowed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.numbers.allowed import Allowed, Range

Data = Any
POSITIONS, EXPERTS, WIDTH = 3, 5, 4


def chosen(scores: Data, count: int) -> Data:
    """1 at the largest of each row, the first of equal ones."""
    order = np.argsort(-scores, axis=-1, kind="stable")[:, :count]
    marks = np.zeros(scores.shape)
    np.put_along_axis(marks, order, 1.0, axis=-1)
    return marks


def shares(scores: Data, marks: Data, *, normalised: bool) -> Data:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    below = (powers * marks if normalised else powers).sum(axis=-1, keepdims=True)
    return powers * marks / below


def weights(scores: Data, sinks: Data) -> Data:
    last = np.broadcast_to(sinks[:, None, None], (*scores.shape[:-1], 1))
    both = np.concatenate((scores, last), axis=-1)
    powers = np.exp(both - both.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True))[..., :-1]


@given(
    seed=st.integers(0, 2**32),
    width=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 1.0, 30.0]),
    count=st.integers(1, EXPERTS),
    normalised=st.booleans(),
)
def test_wherever_scores_and_answers_lie_what_is_combined_is_allowed(
    seed: int, width: float, count: int, normalised: bool
) -> None:
    chance = np.random.default_rng(seed)
    mids = chance.integers(-4, 5, (POSITIONS, EXPERTS)) / 2.0  # some of them tie
    answers = chance.standard_normal((EXPERTS, POSITIONS, WIDTH))
    radii = chance.random(mids.shape) * width, chance.random(answers.shape) * width
    numbers = Allowed("exact")
    scores = Range(mids, radii[0])
    marks = numbers.choose(scores, count=count)
    parts = numbers.expert_shares(scores, marks, normalised=normalised)
    out = numbers.combine(Range(answers, radii[1]), parts)
    for part in (marks, parts, out):
        assert np.isfinite(part.rad).all()
    for _try in range(4):
        moved = mids + chance.choice([-1.0, 1.0, 0.5], mids.shape) * radii[0]
        said = answers + chance.choice([-1.0, 1.0, 0.5], answers.shape) * radii[1]
        found = chosen(moved, count)
        assert numbers.judge(marks, (), found).possible
        own = shares(moved, found, normalised=normalised)
        assert numbers.judge(parts, (), own, 1e-13).possible
        mixed = np.einsum("pe,epd->pd", own, said)
        assert numbers.judge(out, (), mixed, 1e-12).possible
        again = numbers.overlay(marks, (), found)  # from the claimed choice the shares are near
        near = numbers.expert_shares(scores, again, normalised=normalised)
        assert numbers.judge(near, (), own, 1e-13).possible
        assert (near.rad <= parts.rad * (1 + 1e-9) + 1e-15).all()


def chosen_in_groups(scores: Data, count: int, kept: int, rule: str) -> Data:
    """The same within the best groups of two."""
    each = scores.reshape(len(scores), -1, 2)
    best = chosen(each.sum(axis=-1) if rule == "top2" else each.max(axis=-1), kept)
    inside = np.where(best[..., None] > 0, each, -np.inf).reshape(scores.shape)
    return chosen(inside, count)


@given(
    seed=st.integers(0, 2**32),
    width=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 1.0]),
    kept=st.integers(1, 3),
    rule=st.sampled_from(["max", "top2"]),
    normalised=st.booleans(),
)
def test_wherever_scores_lie_the_choice_within_groups_and_its_shares_are_allowed(
    seed: int, width: float, kept: int, rule: str, normalised: bool
) -> None:
    chance = np.random.default_rng(seed)
    mids = chance.integers(1, 9, (POSITIONS, 6)) / 8.0  # some of them tie
    radii = np.minimum(chance.random(mids.shape) * width, mids * 0.9)
    numbers = Allowed("exact")
    scores = Range(mids, radii)
    marks = numbers.choose(scores, count=2, groups=3, groups_chosen=kept, group_rule=rule)
    settings: Any = {"normalised": normalised, "alone": True, "scale": Fraction(5, 2)}
    parts = numbers.expert_shares(scores, marks, **settings, eps=Fraction(1, 64))
    for _try in range(4):
        moved = mids + chance.choice([-1.0, 1.0, 0.5], mids.shape) * radii
        found = chosen_in_groups(moved, 2, kept, rule)
        assert numbers.judge(marks, (), found).possible
        own = moved * found * 2.5
        if normalised:
            own /= (moved * found).sum(axis=-1, keepdims=True) + 1 / 64
        assert numbers.judge(parts, (), own, 1e-13).possible
        again = numbers.overlay(marks, (), found)
        near = numbers.expert_shares(scores, again, **settings, eps=Fraction(1, 64))
        assert numbers.judge(near, (), own, 1e-13).possible
    if width == 0:
        assert not marks.rad.any()  # nothing is open: equal numbers are taken in order


@given(seed=st.integers(0, 2**32), width=st.sampled_from([0.0, 1e-3, 1.0, 30.0]))
def test_wherever_scores_and_sinks_lie_the_weights_are_allowed(seed: int, width: float) -> None:
    chance = np.random.default_rng(seed)
    mids, sinks = chance.standard_normal((2, 3, 4)) * 5, chance.standard_normal(2) * 5
    radii = chance.random(mids.shape) * width, chance.random(sinks.shape) * width
    numbers = Allowed("exact")
    value = numbers.softmax(Range(mids, radii[0]), sinks=Range(sinks, radii[1]))
    assert value.rad is not None
    for _try in range(4):
        moved = mids + chance.choice([-1.0, 1.0, 0.5], mids.shape) * radii[0]
        last = sinks + chance.choice([-1.0, 1.0, 0.5], sinks.shape) * radii[1]
        assert numbers.judge(value, (), weights(moved, last), 1e-13).possible


def test_a_tie_of_numbers_that_nobody_rounds_goes_to_the_first() -> None:
    marks = Allowed("exact").choose(Range(np.array([[1.0, 2.0, 2.0, 2.0]])), count=2)
    assert marks.mid.tolist() == [[0, 1, 1, 0]]
    assert marks.rad is not None
    assert not marks.rad.any()


@pytest.mark.parametrize("format", ["float32", "bfloat16", "float16"])
def test_where_rounding_may_tie_two_scores_either_may_be_chosen(format: str) -> None:
    numbers = Allowed(format)
    near = 1.0 + 2.0**-23 if format == "float32" else 1.0
    marks = numbers.choose(Range(np.array([[5.0, 1.0, near, -3.0]])), count=2)
    assert marks.mid[0, 0] == 1
    assert marks.mid[0, 3] == 0
    assert marks.rad is not None
    assert marks.rad.tolist() == [[0, 1, 1, 0]]
    for either in ([[1.0, 1, 0, 0]], [[1.0, 0, 1, 0]]):
        judged = numbers.judge(marks, (), np.array(either))
        assert judged.possible
        assert judged.follows is None  # open, which is no pass


def test_an_expert_that_overflows_does_no_harm_where_it_has_no_share() -> None:
    numbers = Allowed("float32")
    answers = np.ones((2, 1, 3))
    answers[1] = np.inf
    out = numbers.combine(Range(answers), Range(np.array([[1.0, 0.0]])))
    assert np.isfinite(out.rad).all()
    assert np.allclose(out.mid, 1)
