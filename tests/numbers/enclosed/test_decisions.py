"""Kept answers are compared, never trusted."""

from __future__ import annotations

import math

import pytest
import torch

from byhand.numbers.enclosed.gpu.decisions import (
    ROOM,
    CannotRepeat,
    Noting,
    Now,
    Repeating,
    answered_by,
    answers,
    outside_the_pass,
)
from byhand.numbers.enclosed.limbs.engine import engine_of


def row(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def holds(repeating: Repeating) -> bool:
    values, most = repeating.claimed()
    return not values or bool((torch.cat(values) <= row(*most)).all())


def test_bounds_have_room_and_are_compared() -> None:
    noted = Noting()
    kept = noted.bounds(row(3.0, 0.0, -4.0))
    assert kept == [3.0 * ROOM, 0.0, -4.0 / ROOM]
    for numbers, fine in (
        ((3.0, 0.0, -4.0), True),
        ((3.0 * ROOM, 0.0, -4.0 / ROOM), True),
        ((3.1 * ROOM, 0.0, -4.0), False),
        ((3.0, 1e-300, -4.0), False),
        ((3.0, 0.0, -1.9), False),
        ((math.nan, 0.0, -4.0), False),
    ):
        again = Repeating(noted)
        assert again.bounds(row(*numbers)) == kept
        assert holds(again) is fine


def test_who_looks_each_time_gives_no_room() -> None:
    assert Now().bounds(row(3.0)) == [3.0]
    assert isinstance(answers(), Now)


def test_what_was_said_to_hold_is_compared_and_nothing_else() -> None:
    yes, no = torch.tensor([True, True]), torch.tensor([True, False])
    for first, second, fine in (
        (yes, yes, True),
        (yes, no, False),
        (no, no, True),
        (no, yes, True),
    ):
        noted = Noting()
        said = noted.holds(first)
        again = Repeating(noted)
        assert again.holds(second) is said
        assert holds(again) is fine


def test_guesses_are_not_compared() -> None:
    noted = Noting()
    assert noted.guess(row(3.0)[0]) == 3.0
    again = Repeating(noted)
    assert again.guess(row(100.0)[0]) == 3.0
    assert holds(again)


def test_limbs_are_left_out_as_before_and_must_be_empty() -> None:
    limbs = torch.zeros((3, 2), dtype=torch.float64)
    limbs[1, 0], limbs[2] = 1.0, 2.0
    engine = engine_of(limbs)
    with answered_by(noted := Noting()):
        assert engine.empty_in_front(limbs) == 1
    for first_limb, fine in ((0.0, True), (1.0, False)):
        limbs[0, 1] = first_limb
        with answered_by(again := Repeating(noted)):
            assert engine.empty_in_front(limbs) == 1
        assert holds(again) is fine


def test_a_limb_stays_where_other_tokens_may_need_it() -> None:
    limbs = torch.zeros((2, 1), dtype=torch.float64)
    limbs[1] = 2.0**21 * 0.9
    engine = engine_of(limbs)
    assert engine.empty_in_front(limbs) == 1
    with answered_by(Noting()):
        assert engine.empty_in_front(limbs) == 0
        assert not engine.fits(limbs[1], 2.0**21)
    assert engine.fits(limbs[1], 2.0**21)


def test_other_questions_than_before_cannot_be_answered() -> None:
    noted = Noting()
    noted.guess(row(1.0)[0])
    with pytest.raises(CannotRepeat):
        Repeating(noted).claimed()
    again = Repeating(noted)
    again.guess(row(1.0)[0])
    with pytest.raises(CannotRepeat):
        again.guess(row(1.0)[0])


def test_nothing_is_brought_here_or_there_in_a_repeated_pass() -> None:
    array = row(1.0)
    engine = engine_of(array)
    for who in (Noting(), Repeating(Noting())):
        with answered_by(who), pytest.raises(CannotRepeat):
            engine.to_numpy(array)
    with answered_by(Repeating(Noting())):
        with pytest.raises(CannotRepeat):
            engine.constant(array.numpy(), array)
        with pytest.raises(CannotRepeat):
            outside_the_pass(lambda: 1)


def test_what_is_made_once_asks_no_question_of_the_pass() -> None:
    with answered_by(noted := Noting()):
        assert outside_the_pass(lambda: answers().guess(row(2.0)[0])) == 2.0
    assert not noted.kept
