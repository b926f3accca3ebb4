"""Expressions become values, or are refused at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import ExpressionError
from byhand.expression import (
    FUNCTIONS,
    Call,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    parse,
)
from byhand.numbers.exact import Exact, Limits
from oracles.arb_tree import precise_ball


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exp(exp(exp(1000)))", "too large"),
        ("10^10^10", "too large"),
        ("exp(10^9)^(10^9)", "too large"),
        ("2^(2^200)", "too large"),
        ("(1/2)^(10^9)", "too large"),
        ("e^e^e^e^e", "too large"),
        ("pi^(10^9)", "too large"),
        ("(1 + e)^(10^12)", "too large"),
        ("1/0", "division by zero"),
        ("0^-1", "division by zero"),
        ("1/(sqrt(2)*sqrt(3) - sqrt(6))", "division by zero"),
        ("sqrt(-1)", "square root of a negative"),
        ("sqrt(2 - e)", "square root of a negative"),
        ("ln(0)", "not positive"),
        ("(-8)^(1/3)", "not positive"),
        ("1/(tanh(1) - (e^2 - 1)/(e^2 + 1))", "cannot be decided"),
        ("x + 1", "x has no value"),
        ("q[0,1]", "has no value"),
    ],
)
def test_what_has_no_value_within_bounds_is_refused(text, message):
    with pytest.raises(ExpressionError, match=message):
        Exact().scalar(parse(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0^0", "1"),
        ("0^(1/2)", "0"),
        ("(-1)^(10^50)", "1"),
        ("(-1)^(10^50 + 1)", "-1"),
        ("(-2)^3", "-8"),
        ("2^-3", "1/8"),
        ("exp(80)", "e^80"),
        ("exp(1000)/exp(999)", "e^1000/e^999"),
        ("pi^pi", "e^(π·ln(π))"),
    ],
)
def test_powers_of_all_kinds_have_values(text, expected):
    assert str(Exact().scalar(parse(text))) == expected


def test_large_powers_of_named_numbers_are_bounded_work():
    numbers = Exact()
    for text in ("(1 + sqrt(2))^100000", "(1 - e)^99999", "(1 + e + pi + ln(3) + sqrt(2))^60"):
        tree = parse(text)
        assert numbers.scalar(tree).ball(300).overlaps(precise_ball(tree, 2000))


rationals = st.fractions(-5, 5, max_denominator=12).map(Number)
leaf = st.one_of(rationals, st.sampled_from([Name("e"), Name("pi")]))


def larger(trees):
    pairs = st.tuples(trees, trees)
    return st.one_of(
        pairs.map(lambda p: Sum(p)),
        pairs.map(lambda p: Product(p)),
        pairs.map(lambda p: Quotient(*p)),
        trees.map(Negative),
        st.tuples(trees, st.integers(-3, 4)).map(lambda p: Power(p[0], parse(f"({p[1]})"))),
        st.tuples(st.sampled_from(FUNCTIONS), trees).map(lambda p: Call(*p)),
    )


@given(st.recursive(leaf, larger, max_leaves=10), st.sampled_from([2, 24]))
def test_every_tree_has_the_value_that_arb_finds_or_a_reason(tree, terms):
    try:
        value = Exact(Limits(terms=terms, bits=1024)).scalar(tree)
    except ExpressionError:
        return
    expected = precise_ball(tree, 3000)
    if expected.is_finite():
        assert value.ball(400).overlaps(expected)
    else:  # the oracle divides by, or takes the logarithm of, what it cannot separate from 0
        assert value.ball(400).contains(0) or not value.ball(400).is_finite() or value.rational
