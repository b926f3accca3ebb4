"""Values: arithmetic, comparison, registers, decimals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import InputError, Undecided
from byhand.expression import parse
from byhand.numbers.base import Printed
from byhand.numbers.exact import Exact, Limits
from byhand.numbers.exact.decide import simplest_between
from oracles.arb_tree import precise_ball


@pytest.fixture
def numbers():
    return Exact()


def value(numbers, text):
    return numbers.scalar(parse(text))


def test_a_rational_is_exact_and_an_irrational_is_named(numbers):
    assert numbers.value(Fraction(3, 2)).register == "exact"
    assert value(numbers, "sqrt(4)").register == "exact"
    assert value(numbers, "sqrt(2)").register == "named"
    assert value(numbers, "sqrt(2)^2").fraction == 2
    assert value(numbers, "sqrt(2)").fraction is None


def test_operators_mix_with_integers_and_fractions(numbers):
    e = value(numbers, "e")
    assert str(1 + e) == "1 + e"
    assert str(e - Fraction(1, 2)) == "(2e - 1)/2"
    assert str(2 / (1 + e)) == "2/(1 + e)"
    assert str(-e * Fraction(2, 3)) == "-2e/3"
    assert str((1 + e) ** 2) == "(1 + e)^2"
    assert str((1 + e) ** -1) == "1/(1 + e)"
    assert abs(1 - e) == e - 1
    assert +e is e


def test_equality_is_true_by_algebra_and_false_by_separation(numbers):
    assert value(numbers, "(e^2 - 1)/(e - 1)") == value(numbers, "e + 1")
    assert value(numbers, "e") != value(numbers, "2.718281828459045")
    assert value(numbers, "1/2") == Fraction(1, 2) == value(numbers, "0.5")
    assert value(numbers, "1/2") == 0.5
    assert value(numbers, "1/10") != 0.1
    assert (value(numbers, "e") == "e") is False
    assert 2 < value(numbers, "e") < 3 <= value(numbers, "pi")
    assert value(numbers, "e")
    assert not value(numbers, "e - e")


def test_an_undecidable_comparison_raises(numbers):
    tanh, quotient = value(numbers, "tanh(1)"), value(numbers, "(e^2 - 1)/(e^2 + 1)")
    for question in (
        lambda: tanh == quotient,
        lambda: tanh < quotient,
        lambda: 1 / (tanh - quotient),
        lambda: abs(tanh - quotient),
    ):
        with pytest.raises(Undecided, match="4096 bits"):
            question()


def test_values_are_not_hashable_since_equal_numbers_may_look_different(numbers):
    with pytest.raises(TypeError, match="unhashable"):
        hash(value(numbers, "e"))


def test_values_of_two_spaces_do_not_mix(numbers):
    with pytest.raises(InputError, match="different number spaces"):
        value(numbers, "e") + value(Exact(), "e")


def test_division_by_zero_is_refused_also_where_zero_takes_a_proof(numbers):
    with pytest.raises(ZeroDivisionError):
        1 / value(numbers, "0")
    with pytest.raises(ZeroDivisionError):
        1 / (2 * value(numbers, "sqrt(2 + sqrt(3))") - value(numbers, "sqrt(6) + sqrt(2)"))


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        ("1/3", 4, "0.3333"),
        ("2/3", 4, "0.6667"),
        ("-1/8", 2, "-0.13"),
        ("5/1000", 2, "0.01"),
        ("-5/1000", 2, "-0.01"),
        ("1/2", 0, "1"),
        ("e", 10, "2.7182818285"),
        ("-pi", 3, "-3.142"),
        ("e^-20", 4, "0.0000"),
        ("0.005 + e^-200", 2, "0.01"),
        ("0.005 - e^-200", 2, "0.00"),
        ("1000*pi", 1, "3141.6"),
        ("exp(80)", 4, "5.5406e34"),
    ],
)
def test_decimals_are_rounded_and_proven(numbers, text, places, expected):
    assert value(numbers, text).decimal(places) == expected


def test_a_tie_that_only_algebra_sees_is_rounded_away_from_zero(numbers):
    zero = value(numbers, "2*sqrt(2 + sqrt(3)) - sqrt(6) - sqrt(2)")
    assert zero.fraction is None
    assert (zero + Fraction(5, 1000)).decimal(2) == "0.01"
    assert (zero + Fraction(5, 1000)).rounded(2) == Fraction(1, 100)
    assert (zero - Fraction(5, 1000)).rounded(2) == -Fraction(1, 100)


def test_a_tie_that_nothing_settles_is_within_one_unit_or_undecided(numbers):
    zero = value(numbers, "tanh(1) - (e^2 - 1)/(e^2 + 1)")
    assert (zero + Fraction(5, 1000)).decimal(2) in ("0.00", "0.01")
    with pytest.raises(Undecided):
        (zero + Fraction(5, 1000)).rounded(2)


@pytest.mark.parametrize(
    ("text", "digits", "expected"),
    [
        ("0", 3, "0"),
        ("1/3", 3, "0.333"),
        ("999.99", 3, "1.00e3"),
        ("12345", 3, "1.23e4"),
        ("123", 3, "123"),
        ("e^-20", 3, "2.06e-9"),
        ("exp(80)", 8, "5.5406224e34"),
        ("-exp(80)", 1, "-6e34"),
        ("pi", 6, "3.14159"),
    ],
)
def test_significant_digits(numbers, text, digits, expected):
    assert value(numbers, text).significant(digits) == expected


def test_numbers_with_exponents_beyond_floats_have_digits(numbers):
    tower = numbers.space.exp(value(numbers, "exp(80)"))
    assert tower.significant(6) == "2.82284e24062617278517392430778741707067862"
    assert tower > 1


@given(st.fractions(), st.integers(0, 8))
def test_decimals_of_a_rational_are_the_nearest(q, places):
    shown = Fraction(Exact().value(q).decimal(places).replace("e", "E"))
    if abs(q) < 10**29:
        assert abs(shown - q) <= Fraction(1, 2 * 10**places)
        if abs(shown - q) == Fraction(1, 2 * 10**places):
            assert abs(shown) > abs(q)


@given(st.fractions(-3, 3, max_denominator=50), st.integers(0, 30))
def test_decimals_of_an_exponential_are_within_half_a_unit(q, places):
    numbers = Exact()
    number = numbers.space.exp(numbers.value(q))
    shown = Fraction(number.decimal(places))
    with ctx.workprec(400):
        difference = precise_ball(parse(f"exp({q})")) - arb(fmpq(*shown.as_integer_ratio()))
        assert abs(difference) <= arb(fmpq(1, 2 * 10**places))


@given(
    st.lists(st.tuples(st.fractions(-9, 9, max_denominator=9), st.integers(-999, 999)), max_size=4),
    st.integers(0, 8),
)
def test_the_interval_of_a_sum_of_printed_numbers_holds_it_and_little_more(parts, places):
    numbers = Exact()
    printed = numbers.admit([Printed(Fraction(n, 100), 2) for _c, n in parts])
    total = sum((w * c for w, (c, _n) in zip(printed, parts, strict=True)), numbers.value(1))
    middle, radius = map(Fraction, total.interval(places))
    center = 1 + sum(c * Fraction(n, 100) for c, n in parts)
    half = sum(abs(c) * Fraction(1, 200) for c, _n in parts)
    needed = half + abs(middle - center)
    assert needed <= radius <= needed * Fraction(11, 10)
    assert abs(middle - center) <= Fraction(1, 2 * 10**places)


def test_a_printed_number_is_an_interval_that_algebra_still_knows(numbers):
    (w, v) = numbers.admit([Printed(Fraction("0.1234"), 4), Printed(Fraction("0.1234"), 4)])
    assert w.register == v.register == (w + 1).register == "enclosed"
    assert w - w == 0
    assert (w * v / w - v).fraction == 0
    assert w > Fraction("0.1233")
    assert w.ball(64).contains(numbers.value(Fraction("0.12345")).ball(64))
    assert w.ball(64).contains(numbers.value(Fraction("0.12335")).ball(64))
    assert not w.ball(64).contains(numbers.value(Fraction("0.1236")).ball(64))
    middle, radius = w.interval(4)
    assert middle == "0.1234"
    assert Fraction("0.00005") <= Fraction(radius) < Fraction("0.000052")
    assert w.decimal(4) == "0.1234"
    with pytest.raises(Undecided, match="not known narrowly enough"):
        w.decimal(5)
    for question in (lambda: w == v, lambda: w > v, lambda: w < Fraction("0.1234")):
        with pytest.raises(Undecided):
            question()


def test_a_value_next_to_a_rational_is_not_taken_for_it(numbers):
    near = value(numbers, "1/3 + exp(-200)*exp(-200*sqrt(2))")
    assert numbers.space.settled(near) is near
    same = value(numbers, "2*sqrt(2 + sqrt(3)) - sqrt(6) - sqrt(2) + 1/3")
    assert same.fraction is None
    assert numbers.space.settled(same).fraction == Fraction(1, 3)


def test_relu_of_an_open_sign_keeps_the_two_sides_apart(numbers):
    w, v = numbers.admit([Printed(Fraction("0.5"), 1), Printed(Fraction("0.5"), 1)])
    up, decided = numbers.space.relu(w - v)
    down, _decided = numbers.space.relu(v - w)
    twice, _decided = numbers.space.relu(2 * (w - v))
    assert not decided
    assert (twice - 2 * up).fraction == 0
    assert (up - down).fraction is None
    assert up.ball(64).contains(0)
    assert up.ball(64).contains(numbers.value(Fraction(1, 10)).ball(64))
    assert not up.ball(64).contains(-1)


def test_floats_are_the_dyadic_rationals_they_are(numbers):
    entry = numbers.admit(np.array([0.1], dtype=np.float32))[0]
    assert entry.fraction == Fraction(13421773, 134217728)
    assert numbers.admit([0.1])[0].fraction == Fraction(0.1)
    whole = numbers.admit(np.array([np.int64(2**62 + 1), None], dtype=object))[0]
    assert whole.fraction == 2**62 + 1
    long = np.longdouble(1) + np.longdouble(2) ** -60
    assert numbers.admit(np.array([long]))[0].fraction == Fraction(*long.as_integer_ratio())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "0.5", object()])
def test_what_is_not_a_finite_number_is_refused(numbers, bad):
    with pytest.raises(InputError, match="number"):
        numbers.admit(np.array([bad], dtype=object))


numbers_of_all_kinds = st.sampled_from(
    ["1", "-2/3", "e", "sqrt(2)", "pi", "ln(3)", "1/(1 + e)", "sqrt(3) - e", "cos(1)", "tanh(1/2)",
     "sin(2*pi/7)", "2^(1/3)", "e^(1/2) - 1", "(1 + e + sqrt(2))^5", "erf(e)"]
)  # fmt: skip


@given(numbers_of_all_kinds, numbers_of_all_kinds, numbers_of_all_kinds, st.sampled_from([4, 24]))
def test_the_field_axioms_hold(first, second, third, terms):
    numbers = Exact(Limits(terms=terms))
    a, b, c = (value(numbers, text) for text in (first, second, third))
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a - a == 0
    assert a / a == 1
    assert (a / b) * b == a
    assert a + (-a) == 0


@given(st.fractions(-1000, 1000), st.fractions(0, 1, max_denominator=10**6))
def test_the_simplest_fraction_of_an_interval_is_in_it(low, width):
    a, b = (fmpq(q.numerator, q.denominator) for q in (low, low + width))
    found = simplest_between(a, b)
    assert a <= found <= b
    assert found.q <= a.q
    for denominator in range(1, min(int(found.q), 50)):
        assert (a * denominator).ceil() > b * denominator


def test_large_numbers_that_cancel_have_decimals_where_a_finer_enclosure_tells() -> None:
    """At 64 bits e^100 less its whole part may be anything; its digits are 0.77374192…"""
    tree = parse("exp(100) - 26881171418161354484126255515800135873611118")
    assert Exact().scalar(tree).decimal(6) == "0.773742"


def test_a_range_too_small_for_any_fraction_is_a_wider_one() -> None:
    tiny = arb(0, 1) * arb(2) ** arb(-(10**12))
    found = Exact().space.ranged(tiny)
    assert found.register == "enclosed"
    assert found.interval(3)[0] == "0.000"
