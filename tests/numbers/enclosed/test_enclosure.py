"""One number's proven set: what it contains, and decimals that are as near as they claim."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import inf, log2

import ml_dtypes
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from byhand.numbers.enclosed.enclosure import (
    EVERYTHING,
    SLACK,
    Enclosure,
    bits_missing,
    decimal_exponent,
    upward,
)

F = Fraction
NUMBERS = st.fractions(max_denominator=10**30).flatmap(
    lambda x: st.integers(-60, 60).map(lambda e: x * F(10) ** e)
)
RADII = st.one_of(
    st.just(F(0)),
    st.integers(1, 9999).flatmap(lambda n: st.integers(-70, 70).map(lambda e: n * F(10) ** e)),
)


def value_and_unit(text: str) -> tuple[Fraction, Fraction]:
    """What a decimal says, and one unit of its last place."""
    mantissa, _, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return F(text), F(10) ** (int(exponent or 0) - places)


def significant_digits(text: str) -> int:
    return len(text.partition("e")[0].replace("-", "").replace(".", "").lstrip("0"))


# ------------------------------------------------------------------ what it contains


def test_it_contains_what_lies_within_the_radius_given_in_any_way() -> None:
    tenth = Enclosure(F(1, 10), F(1, 1000))
    for inside in (F(1, 10), 0.1, 0.1009, Decimal("0.101"), "0.099", "99/1000", np.float32(0.1)):
        assert tenth.contains(inside), inside
    assert tenth.contains(ml_dtypes.bfloat16(0.1))
    for outside in (0, 1, 0.1011, Decimal("0.0989"), "0.1010001", inf, -inf, float("nan")):
        assert not tenth.contains(outside), outside


def test_a_float_is_the_dyadic_number_it_is() -> None:
    exact = Enclosure(F(1, 10), F(0))
    assert exact.contains("0.1")
    assert not exact.contains(0.1)
    assert exact.exact


def test_bounds_overlap_and_containment_of_sets() -> None:
    wide, narrow = Enclosure(F(0), F(2)), Enclosure(F(1), F(1))
    assert (narrow.lower, narrow.upper) == (0, 2)
    assert wide.contains(narrow)
    assert not narrow.contains(wide)
    assert wide.overlaps(Enclosure(F(3), F(1)))  # the ends belong to them
    assert not wide.overlaps(Enclosure(F(31, 10), F(1)))
    assert wide.overlaps(wide.mid)
    assert not wide.overlaps("3.1")


def test_an_infinite_enclosure_contains_every_number_and_proves_nothing() -> None:
    assert EVERYTHING.contains(F(10) ** 300)
    assert EVERYTHING.contains(Enclosure(F(5), F(3)))
    assert not EVERYTHING.contains(inf)
    assert (EVERYTHING.lower, EVERYTHING.upper) == (-inf, inf)
    assert not EVERYTHING.proves(1)
    assert EVERYTHING.decimal(5) == "0 ± ∞"


def test_its_float_is_that_of_the_midpoint() -> None:
    assert float(Enclosure(F(1, 3), F(1, 1000))) == 1 / 3
    assert float(Enclosure(F(10) ** 400, F(0))) == inf
    assert float(Enclosure(-(F(10) ** 400), F(0))) == -inf


# ------------------------------------------------------------------ from Arb


def test_of_a_ball_it_is_the_very_same_set() -> None:
    with ctx.workprec(200):
        root = arb(2).sqrt()
        found = Enclosure.of(root)
        assert arb(root.mid()) == arb(str(found.mid.numerator)) / arb(str(found.mid.denominator))
        assert 0 < found.rad < F(2) ** -195
        assert found.lower**2 < 2 < found.upper**2
    assert Enclosure.of(arb(0)) == Enclosure(F(0), F(0))
    assert Enclosure.of(arb(-0.75)) == Enclosure(F(-3, 4), F(0))
    half = Enclosure.of(arb(1, 0.5))  # whose radius FLINT itself has rounded up
    assert half.mid == 1
    assert F(1, 2) <= half.rad < F(1, 2) + F(2) ** -29


@pytest.mark.parametrize("ball", [arb("nan"), arb("inf"), 1 / arb(0), arb(1) / arb(0, 1)])
def test_of_a_ball_that_knows_nothing_it_is_everything(ball: arb) -> None:
    assert Enclosure.of(ball) == EVERYTHING


def test_absurd_sizes_are_enclosed_without_writing_them_out() -> None:
    tiny = Enclosure.of(arb(-(10**12)).exp())
    assert tiny.contains(0)
    assert tiny.contains(F(1, 2 ** (2**20)))
    assert 0 < tiny.rad < F(1, 10**300_000)
    assert Enclosure.of(arb(10**12).exp()) == EVERYTHING
    power = Enclosure.of(arb(2) ** -(2**20 + 5))  # exact, and yet too small to be written out
    assert power.contains(F(1, 2 ** (2**20 + 5)))
    beside = Enclosure.of(1 + arb(0, 1) * arb(-(10**12)).exp())
    assert beside.mid == 1
    assert 0 < beside.rad < F(1, 10**300_000)


# ------------------------------------------------------------------ decimals


@given(NUMBERS, RADII, st.integers(1, 40), st.fractions(-1, 1))
def test_every_printed_digit_is_within_one_unit_of_every_number_of_the_set(
    mid: Fraction, rad: Fraction, digits: int, share: Fraction
) -> None:
    enclosure = Enclosure(mid, rad)
    text = enclosure.decimal(digits)
    if "±" in text:
        middle, radius = map(F, text.split(" ± "))
        assert middle - radius <= enclosure.lower <= enclosure.upper <= middle + radius
        assert not enclosure.proves(1)
        return
    shown, unit = value_and_unit(text)
    for true in (enclosure.lower, enclosure.upper, mid + share * rad):
        assert abs(shown - true) < unit or (mid == rad == 0 and text == "0")
    assert significant_digits(text) <= digits
    assert (significant_digits(text) == digits or text == "0") == enclosure.proves(digits)


@given(NUMBERS.filter(bool), st.integers(1, 30))
def test_a_radius_below_half_a_unit_proves_the_digits(mid: Fraction, digits: int) -> None:
    unit = F(10) ** (decimal_exponent(abs(mid)) - digits + 1)
    narrow = Enclosure(mid, unit / 2 * F(999, 1000))
    assert narrow.proves(digits)
    assert significant_digits(narrow.decimal(digits)) == digits
    assert not Enclosure(mid, unit * 11).proves(digits)


@pytest.mark.parametrize(
    ("mid", "rad", "digits", "text"),
    [
        (F(1, 3), F(0), 5, "0.33333"),
        (F(1, 2), F(0), 5, "0.50000"),
        (F(-1, 3), F(1, 10**4), 12, "-0.333"),
        (F(0), F(0), 5, "0"),
        (F(0), F(3, 10**41), 5, "0 ± 3e-41"),
        (F(1, 10**42), F(3, 10**41), 5, "0 ± 3.1e-41"),
        (F(3, 2), F(1), 5, "2 ± 1.5"),
        (F(2, 3) * 10**9, F(0), 4, "6.667e8"),
        (F(2, 3) / 10**9, F(0), 4, "6.667e-10"),
        (F(99999, 100000), F(1, 10**5), 3, "1.00"),
        (F(12345), F(0), 5, "12345"),
        (F(5), F(1, 100), 1, "5"),
        (F(21, 2), F(1, 2), 2, "1e1"),  # 11 would be a whole unit from 10
        (F(21, 2), F(49, 100), 2, "11"),
    ],
)
def test_decimals_as_they_are_written(mid: Fraction, rad: Fraction, digits: int, text: str) -> None:
    assert Enclosure(mid, rad).decimal(digits) == text


@given(NUMBERS, RADII, st.integers(1, 30))
def test_the_interval_in_decimals_encloses_the_set(
    mid: Fraction, rad: Fraction, digits: int
) -> None:
    middle, radius = map(F, Enclosure(mid, rad).interval(digits))
    assert middle - radius <= mid - rad <= mid + rad <= middle + radius


@given(st.integers(-3000, 3000), st.integers(-1, 1))
def test_the_first_digit_is_found_at_powers_of_ten_and_beside_them(e: int, beside: int) -> None:
    number = F(10) ** e * (1 + beside * F(1, 10**40))
    assert decimal_exponent(number) == (e - 1 if beside < 0 else e)


def test_a_set_shows_itself_as_middle_and_radius() -> None:
    assert repr(Enclosure(F(1, 2), F(0))) == "[0.5]"
    assert repr(Enclosure(F(1, 4), F(1, 1000))) == "[0.250 ± 0.001]"
    assert repr(EVERYTHING) == "[0 ± ∞]"
    assert repr(Enclosure(F(0), F(0))) == "[0]"


@given(st.fractions(min_value=0, max_denominator=10**20).filter(bool), st.integers(-50, 50))
def test_rounding_upwards_is_never_below_and_seldom_far_above(x: Fraction, e: int) -> None:
    number = x * F(10) ** e
    assert number <= F(upward(number.numerator, number.denominator)) <= number * F(11, 10)
    shifted = F(upward(x.numerator, x.denominator, -e))
    assert number <= shifted <= number * F(11, 10)


# ------------------------------------------------------------------ what is missing


@given(NUMBERS.filter(bool), RADII.filter(bool), st.integers(1, 30))
def test_no_bits_are_missing_only_where_the_digits_are_proven(
    mid: Fraction, rad: Fraction, digits: int
) -> None:
    middle, radius = np.array(_log2(abs(mid))), np.array(_log2(rad))
    missing = float(bits_missing(middle, radius, digits))
    if missing <= 0:
        assert Enclosure(mid, rad).proves(digits)
    else:  # and a radius that is so much smaller proves them
        smaller = rad / F(2) ** (int(missing) + 1)
        assert Enclosure(mid, smaller).proves(digits)
        assert not Enclosure(mid, rad).proves(digits + 3)


def _log2(x: Fraction) -> float:
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    return log2(x / F(2) ** shift) + shift


def test_missing_bits_at_the_edges() -> None:
    middles = np.array([-inf, -inf, 0.0, 0.0])
    radii = np.array([-inf, 0.0, inf, -inf])
    assert bits_missing(middles, radii, 5).tolist() == [-inf, inf, inf, -inf]
    assert 0 < SLACK < 1e-5
