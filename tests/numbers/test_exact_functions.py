"""The rules of roots, exponentials, logarithms and angles, and that they stay sound."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import InputError
from byhand.expression import parse
from byhand.numbers.exact import Exact, Limits
from byhand.numbers.exact.angles import LARGEST_MULTIPLE
from oracles.arb_tree import precise_ball


def value(text, numbers=None):
    return (numbers or Exact()).scalar(parse(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # roots
        ("sqrt(2)*sqrt(3) - sqrt(6)", "0"),
        ("2/sqrt(2) - sqrt(2)", "0"),
        ("sqrt(8)", "2√2"),
        ("sqrt(2/3)", "√6/3"),
        ("sqrt(2/3)^2", "2/3"),
        ("1/(1 + sqrt(2))", "√2 - 1"),
        ("1/(sqrt(2) + sqrt(3))", "√3 - √2"),
        ("sqrt((1 - e)^2)", "e - 1"),
        ("sqrt(1 + 2*e + e^2)", "1 + e"),
        ("sqrt(e^3)", "e^(3/2)"),
        ("sqrt(sqrt(2))^4", "2"),
        ("sqrt(1000003*1000033)*sqrt(1000003) - 1000003*sqrt(1000033)", "0"),
        ("sqrt(0)", "0"),
        ("sqrt(10^60)", "1000000000000000000000000000000"),
        # exponentials and logarithms
        ("exp(1)*exp(2) - exp(3)", "0"),
        ("exp(1/2)*exp(1/3) - exp(5/6)", "0"),
        ("exp(-3*ln(10))", "1/1000"),
        ("exp(ln(10)/2)", "√10"),
        ("exp(ln(2)/4)^4", "2"),
        ("exp(ln(2)/3)^3", "2"),
        ("exp(ln(2)/3)*exp(ln(2)/6) - sqrt(2)", "0"),
        ("exp(2 + 3*ln(5))/e^2", "125"),
        ("exp(ln(1 + e))", "1 + e"),
        ("ln(exp(7/3))", "7/3"),
        ("ln(1)", "0"),
        ("ln(e)", "1"),
        ("ln(1/8) + 3*ln(2)", "0"),
        ("ln(6) - ln(2) - ln(3)", "0"),
        ("ln(sqrt(2)) - ln(2)/2", "0"),
        ("ln((1 + e)^2*e) - 2*ln(1 + e)", "1"),
        ("ln(1/(1 + e)) + ln(1 + e)", "0"),
        ("exp(1 + sqrt(2)) - e*exp(sqrt(2))", "0"),
        ("10000^(-1/2)", "1/100"),
        ("10000^(-2/8)", "1/10"),
        ("100^(3/2)", "1000"),
        ("2^(1/3)*4^(1/3)", "2"),
        ("2^(1/3)/2^(1/9)*2^(7/9)", "2"),
        # angles
        ("sin(1)^2 + cos(1)^2", "1"),
        ("sin(1/3)^2 + cos(1/3)^2", "1"),
        ("cos(2) - 2*cos(1)^2", "-1"),
        ("sin(2) - 2*sin(1)*cos(1)", "0"),
        ("cos(-1) - cos(1)", "0"),
        ("sin(-1) + sin(1)", "0"),
        ("cos(1/2)^2 - (1 + cos(1))/2", "0"),
        ("cos(1 + sqrt(2)) - cos(1)*cos(sqrt(2)) + sin(1)*sin(sqrt(2))", "0"),
        ("sin(1 + pi/2) - cos(1)", "0"),
        ("sin(0)", "0"),
        ("cos(0)", "1"),
        ("cos(pi)", "-1"),
        ("sin(pi/6)", "1/2"),
        ("cos(pi/4)", "√2/2"),
        ("cos(pi/6)", "√3/2"),
        ("cos(pi/5)", "(1 + √5)/4"),
        ("cos(pi/12) - (sqrt(6) + sqrt(2))/4", "0"),
        ("cos(pi/8)", "√(2 + √2)/2"),
        ("cos(pi/8)*sin(pi/8)", "√2/4"),
        ("cos(100*pi/3)", "-1/2"),
        ("cos(2*pi/7)*cos(4*pi/7)*cos(8*pi/7)", "1/8"),
        ("sin(2*pi/7)^2 + sin(4*pi/7)^2 + sin(8*pi/7)^2", "7/4"),
        ("cos(2*pi/9) + cos(4*pi/9) + cos(8*pi/9)", "0"),
        ("cos(2*pi/21)*0 + cos(2*pi/7) - cos(6*pi/21)", "0"),
        ("1/cos(2*pi/7)*cos(2*pi/7)", "1"),
        # the others
        ("tanh(0) + erf(0)", "0"),
        ("tanh(-1) + tanh(1)", "0"),
        ("erf(-e) + erf(e)", "0"),
        ("relu(1 - e) + relu(e - 1)", "e - 1"),
        ("step(1 - e) + step(e - 1) + step(0)", "1"),
    ],
)  # fmt: skip
def test_rules_simplify_by_form(text, expected):
    assert str(value(text)) == expected


def test_the_cosines_of_a_nineteenth_of_a_turn_add_up_to_zero():
    numbers = Exact()
    total = numbers.value(0)
    for k in range(19):
        total = total + value(f"cos(2*pi*{k}/19)", numbers)
    assert total.fraction == 0


@pytest.mark.parametrize("n", [*range(1, 31), 36, 48, 60, 64, 100, 127, 1009])
def test_every_part_of_a_turn_lies_on_the_circle_at_its_angle(n):
    numbers = Exact()
    for k in {1, 2, n // 3, n - 1}:
        c, s = value(f"cos(2*pi*{k}/{n})", numbers), value(f"sin(2*pi*{k}/{n})", numbers)
        assert c * c + s * s == 1
        assert c.ball(300).overlaps(precise_ball(parse(f"cos(2*pi*{k}/{n})")))
        assert s.ball(300).overlaps(precise_ball(parse(f"sin(2*pi*{k}/{n})")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sqrt(1 - e)", "square root of a negative"),
        ("ln(0)", "not positive"),
        ("ln(1 - e)", "not positive"),
    ],
)
def test_what_does_not_exist_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        value(text)


def test_nested_roots_that_depend_on_each_other_are_seen_by_a_proof():
    numbers = Exact()
    nested, flat = value("2*sqrt(2 + sqrt(3))", numbers), value("sqrt(6) + sqrt(2)", numbers)
    assert nested == flat
    assert (nested - flat).fraction is None  # the forms differ: it takes a conjugate


def test_a_conjugate_that_is_zero_is_not_used():
    numbers = Exact()
    nested, flat = value("2*sqrt(2 + sqrt(3))", numbers), value("sqrt(6) + sqrt(2)", numbers)
    both = nested + flat  # its conjugate, flat - nested, is zero
    inverse = 1 / both
    assert inverse * both == 1
    assert inverse.ball(300).overlaps(precise_ball(parse("1/(2*√(2 + √3) + √6 + √2)")))
    assert not numbers.space.proves_zero(both)


def test_a_relation_of_exponents_that_only_looks_true_is_not_believed():
    numbers = Exact()
    near = value("exp(sqrt(2) + sqrt(3) + 2^-310)", numbers)
    product = value("exp(sqrt(2))*exp(sqrt(3))", numbers)
    assert near > product
    assert not numbers.space.proves_zero(near - product)


def test_a_relation_of_exponents_that_holds_is_proven():
    numbers = Exact()
    space = numbers.space
    a, b = value("1/(1 + e)", numbers), value("pi/(1 + e)", numbers)
    product, at_once = space.exp(a) * space.exp(b), space.exp(a + b)
    assert (product - at_once).fraction is None
    assert product == at_once


def test_names_met_later_are_merged_also_inside_roots():
    numbers = Exact()
    root = value("sqrt(1 + exp(1/2))", numbers)
    finer = value("exp(1/4)", numbers)
    assert (root * root - finer * finer).fraction == 1
    assert str(root * root) == "1 + e^(1/2)"
    coarse = value("sqrt(3 + cos(1))", numbers)
    half = value("cos(1/2)", numbers)
    assert (coarse * coarse - 2 * half * half).fraction == 2


def test_letters_stand_for_the_first_of_their_multiples():
    numbers = Exact(Limits(terms=2))
    space = numbers.space
    double = value("2 + 2*e + 2*pi", numbers)
    assert space.letter(double).is_name
    square = value("1 + 2*e + e^2 + 2*pi + 2*e*pi + pi^2", numbers)
    for power, text in ((square, "(1 + e + π)^2"), (1 / square, "1/(1 + e + π)^2")):
        assert space.ln(power).ball(300).overlaps(precise_ball(parse(f"ln({text})")))
        assert space.sqrt(power).ball(300).overlaps(precise_ball(parse(f"√({text})")))


@given(st.integers(2, 10**6), st.integers(2, 10**6))
def test_roots_of_integers_share_a_basis(a, b):
    numbers = Exact()
    product = value(f"sqrt({a})*sqrt({b})", numbers)
    assert (product - value(f"sqrt({a * b})", numbers)).fraction == 0


@given(
    st.fractions(-4, 4, max_denominator=12),
    st.integers(2, 60),
    st.fractions(-3, 3, max_denominator=12),
)
def test_powers_of_integers_add_their_exponents(q, n, r):
    numbers = Exact()
    space = numbers.space
    base = space.ln(numbers.value(n))
    assert space.exp(base * q) * space.exp(base * r) == space.exp(base * (q + r))


@given(st.fractions(-9, 9, max_denominator=9), st.fractions(-9, 9, max_denominator=9))
def test_angle_sums_hold_for_rational_angles(a, b):
    numbers = Exact()
    space = numbers.space
    x, y = numbers.value(a), numbers.value(b)
    left = space.sin(x + y)
    right = space.sin(x) * space.cos(y) + space.cos(x) * space.sin(y)
    assert left.ball(300).overlaps(right.ball(300))
    finest = lcm(a.denominator, b.denominator)
    if max(abs(a), abs(b), abs(a + b)) * finest <= LARGEST_MULTIPLE:
        assert (left - right).fraction == 0


def test_big_radicands_are_left_whole_and_stay_sound():
    big = Fraction(10**40 + 7, 3**90)
    numbers = Exact()
    root = numbers.space.sqrt(numbers.value(big))
    assert (root * root).fraction == big
