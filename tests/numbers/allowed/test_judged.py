"""Claims judged by ranges, and laid over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byhand.numbers.allowed import Allowed, Range

NUMBERS = Allowed("float32")
Data = Any


def value(*, absent: Data = None) -> Range:
    mid = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return Range(mid, np.full((2, 3), 0.5), np.full((2, 3), 0.1), absent)


def test_the_share_is_the_difference_over_what_is_allowed() -> None:
    claims = value().mid + np.array([[0.25, 0, 0], [0, -0.5, 0]])
    judged = NUMBERS.judge(value(), (), claims)
    assert judged.shares.tolist() == [[0.5, 0, 0], [0, 1.0, 0]]
    assert judged.possible
    assert judged.worst == (1, 1)
    assert judged.allowed[1, 1] == 0.5
    assert judged.expected[1, 1] == 5.0


def test_what_is_beyond_by_a_hair_does_not_follow() -> None:
    claims = value().mid + 0.5 + 1e-9
    judged = NUMBERS.judge(value(), (), claims)
    assert not judged.possible
    assert judged.share > 1


def test_slack_widens_what_is_allowed() -> None:
    claims = value().mid + 0.75
    assert NUMBERS.judge(value(), (), claims).share == 1.5
    assert NUMBERS.judge(value(), (), claims, 0.5).share == pytest.approx(0.75)
    assert NUMBERS.judge(value(), (), claims, np.full((2, 3), 1.0)).share == pytest.approx(0.5)


def test_an_exactly_known_value_must_be_met() -> None:
    exact = Range(np.array([1.0, 2.0]))
    assert NUMBERS.judge(exact, (), np.array([1.0, 2.0])).share == 0
    assert NUMBERS.judge(exact, (), np.array([1.0, 2.0000001])).share == np.inf
    assert NUMBERS.judge(exact, (), np.array([1.0, 2.0])).times is None


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_a_claim_that_is_no_number_does_not_follow(odd: float) -> None:
    claims = value().mid.copy()
    claims[0, 1] = odd
    judged = NUMBERS.judge(value(), (), claims)
    assert judged.share == np.inf
    assert judged.worst == (0, 1)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e300])
def test_where_everything_is_allowed_so_is_a_claim_that_is_no_number(odd: float) -> None:
    free = Range(np.zeros(3), np.array([np.inf, 1.0, 1.0]))
    assert NUMBERS.judge(free, (), np.array([odd, 0.5, 0.0])).share == 0.5


def test_blanks_are_not_judged() -> None:
    claims = np.array([[9.0, 2.0, 3.0], [9.0, 9.0, 9.0]])
    claimed = np.array([[False, True, True], [False, False, False]])
    judged = NUMBERS.judge(value(), (), claims, 0.0, claimed)
    assert judged.share == 0
    assert judged.claimed is not None
    assert judged.claimed.sum() == 2


def test_a_part_is_judged_by_its_index() -> None:
    assert NUMBERS.judge(value(), (1,), np.array([4.0, 5.0, 6.5])).share == 1
    assert NUMBERS.judge(value(), (slice(None), 2), np.array([3.0, 6.25])).share == 0.5
    assert NUMBERS.judge(value(), (1, 2), np.array(6.25)).share == 0.5


def test_masked_scores_are_not_judged_and_masked_weights_are_zero() -> None:
    hidden = np.array([[False, False, True], [False, False, False]])
    scores = Range(np.zeros((2, 3)), np.zeros((2, 3)), absent=hidden)
    claims = np.array([[0.0, 0.0, -1e9], [0.0, 0.0, 0.0]])
    assert NUMBERS.judge(scores, (), claims).share == 0
    shares = NUMBERS.softmax(scores)
    right = np.array([[0.5, 0.5, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert NUMBERS.judge(shares, (), right).possible
    right[0, 2] = np.nan
    assert NUMBERS.judge(shares, (), right).possible
    right[0, 2] = 1e-6
    assert NUMBERS.judge(shares, (), right).share == np.inf
    assert NUMBERS.judge(shares, (0,), right[0]).share == np.inf


def test_times_is_the_worst_row_in_units_of_the_usual_error() -> None:
    wide = Range(np.zeros((2, 100)), np.ones((2, 100)), np.full((2, 100), 0.01))
    claims = np.zeros((2, 100))
    claims[1] = 0.3
    assert NUMBERS.judge(wide, (), claims).times == pytest.approx(30)
    few = Range(np.zeros(1), np.ones(1), np.full(1, 0.01))
    assert NUMBERS.judge(few, (), np.array([0.03])).times == pytest.approx(1.5)


def test_times_leaves_out_what_nothing_is_said_of() -> None:
    some = Range(np.zeros(8), np.array([np.inf] + [1.0] * 7), np.array([np.nan] + [0.1] * 7))
    claims = np.array([1e6] + [0.1] * 7)
    assert NUMBERS.judge(some, (), claims).times == pytest.approx(1)


# ------------------------------------------------------------------------ laid over


def test_a_whole_claim_is_laid_over_as_it_is() -> None:
    claims = value().mid + 7
    over = NUMBERS.overlay(value(), (), claims)
    assert over.mid is claims
    assert over.rad is None
    assert over.usual is None


def test_slack_is_laid_over_as_radius() -> None:
    over = NUMBERS.overlay(value(), (), value().mid, 0.05)
    assert over.rad is not None
    assert (over.rad == 0.05).all()
    assert over.usual == pytest.approx(0.05 / np.sqrt(3))


def test_what_is_not_claimed_stays_as_it_was_worked_out() -> None:
    over = NUMBERS.overlay(value(), (1, slice(1, 3)), np.array([50.0, 60.0]), 0.25)
    assert over.mid.tolist() == [[1, 2, 3], [4, 50, 60]]
    assert over.rad is not None
    assert over.rad.tolist() == [[0.5, 0.5, 0.5], [0.5, 0.25, 0.25]]
    claimed = np.array([[True, False, False], [False, False, False]])
    over = NUMBERS.overlay(value(), (), np.full((2, 3), 9.0), 0.0, claimed)
    assert over.mid.tolist() == [[9, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_follows_from_no_number_may_be_anything(odd: float) -> None:
    claims = value().mid.copy()
    claims[0, 1] = odd
    over = NUMBERS.overlay(value(), (), claims)
    assert over.rad is not None
    assert over.rad.tolist() == [[0, np.inf, 0], [0, 0, 0]]
    weight = Range(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    after = NUMBERS.linear(over, weight, layout="in_out")
    assert NUMBERS.judge(after, (), np.array([[np.nan, np.nan], [15.0, 0.0]])).possible
    assert not NUMBERS.judge(after, (), np.array([[np.nan, np.nan], [15.1, 0.0]])).possible


def test_masked_entries_stay_masked() -> None:
    hidden = np.array([[False, False, True], [False, False, False]])
    over = NUMBERS.overlay(value(absent=hidden), (), np.full((2, 3), -np.inf))
    assert over.mid[0, 2] == 0
    assert over.rad is not None
    assert over.rad[0].tolist() == [np.inf, np.inf, 0]
    assert over.absent is hidden
    claims = np.where(hidden, -np.inf, 1.0)
    assert NUMBERS.overlay(value(absent=hidden), (), claims).rad is None


def test_weights_laid_over_are_still_shares() -> None:
    hidden = np.array([[False, True]])
    shares = NUMBERS.softmax(Range(np.zeros((1, 2)), absent=hidden))
    over = NUMBERS.overlay(shares, (), np.array([[1.0, 0.0]]))
    assert not NUMBERS.judge(over, (), np.array([[1.0, 0.5]])).possible
