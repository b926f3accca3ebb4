"""Digits of numbers that no fraction could hold, against Arb's logarithms."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.balls.sizes import ExtremeEnclosure, enclosure_of_ball
from byhand.numbers.enclosed.enclosure import Enclosure


@given(st.integers(10**7, 10**40), st.booleans(), st.booleans(), st.integers(1, 20))
def test_the_digits_are_within_a_unit_of_the_last_place(
    size: int, small: bool, negative: bool, digits: int
) -> None:
    with ctx.workprec(600):
        ball = arb(-size if small else size).exp() * (-1 if negative else 1)
        found = enclosure_of_ball(ball)
        assert isinstance(found, ExtremeEnclosure)
        assert found.proves(digits)
        mantissa, _e, exponent = found.decimal(digits).partition("e")
        assert mantissa.startswith("-") == negative
        assert len(mantissa.lstrip("-").replace(".", "")) == digits
        read = arb(abs(Fraction(mantissa)).numerator) / arb(Fraction(mantissa).denominator)
        log = read.log() + arb(int(exponent)) * arb(10).log()
        apart = ((log - arb(-size if small else size)).exp() - 1) * read * arb(10) ** (digits - 1)
        assert abs(apart) < 1


def test_no_more_digits_are_told_than_the_ball_has() -> None:
    found = enclosure_of_ball(arb(-(10**9), 1e-6).exp())
    assert found.proves(5)
    assert not found.proves(8)
    assert 5 <= len(found.decimal(12).partition("e")[0].replace(".", "")) <= 7


def test_what_may_be_zero_has_no_digits_and_ordinary_numbers_are_ordinary() -> None:
    wide = enclosure_of_ball(arb(-(10**9)).exp() * arb(0, 1))
    assert not wide.proves(1)
    assert "±" in wide.decimal(3)
    assert type(enclosure_of_ball(arb(3))) is Enclosure
    assert enclosure_of_ball(arb("nan")).rad == inf


def test_a_share_of_any_size_is_proven_at_once() -> None:
    numbers = Balls(80)
    probs = numbers.softmax(numbers.admit([[0.0, -1e18, -1e9]]))
    assert (numbers.missing(probs, 12) <= 0).all()
    found = numbers.entries(probs)[0]
    assert [entry.proves(12) for entry in found] == [True, True, True]
    assert found[1].decimal(3) == "2.23e-434294481903251828"  # 10^(-10^18·log10 e)
    assert found[1].contains(0)  # the set that fractions can hold is wider
    assert numbers.missing(numbers.admit([[1.0]]), 12).tolist() == [[pytest.approx(-inf)]]
