"""Expressions: what is read, what is refused, and that what is written reads back."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from budgets import examples
from byhand.errors import ByhandError, ExpressionError
from byhand.expression import (
    DEEPEST_TREE,
    FUNCTIONS,
    LONGEST_TEXT,
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    leaves,
    parse,
    rational,
    read_number,
    substitute,
    write,
)
from oracles.arb_tree import ball_of, constant


def number(p: int, q: int = 1) -> Number:
    return Number(Fraction(p, q))


# An evaluation of its own, in balls, so that nothing is compared with itself.
def leaf(name: Name | Entry) -> arb:
    """Some value for every name and entry."""
    match name:
        case Name(text="e" | "pi"):
            return constant(name)
        case Name(text=text):
            return arb(sum(map(ord, text))) / 97
        case Entry(address=address, index=index):
            return arb(len(address) + sum(index)) / 89


def ball(tree: Expression) -> arb:
    return ball_of(tree, leaf)


NUMBERS = st.fractions(min_value=-50, max_value=50, max_denominator=30).map(Number)
NAMES = st.sampled_from(["e", "pi", "p", "q1", "x"]).map(Name)
ENTRIES = st.builds(
    Entry,
    st.sampled_from(["logits", "block.0.attn.scores"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
)


def bigger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, max_size=4).map(tuple)
    return (
        st.builds(Negative, inner)
        | st.builds(Sum, several)
        | st.builds(Product, several)
        | st.builds(Quotient, inner, inner)
        | st.builds(Power, inner, NUMBERS | inner)
        | st.builds(Call, st.sampled_from(FUNCTIONS), inner)
    )


TREES: st.SearchStrategy[Expression] = st.recursive(
    NUMBERS | NAMES | ENTRIES, bigger, max_leaves=12
)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("0.2", number(1, 5)),
        ("1e-5", number(1, 100_000)),
        (".5", number(1, 2)),
        ("2.", number(2)),
        ("-3/2", Negative(Quotient(number(3), number(2)))),
        ("sqrt(2)/2", Quotient(Call("sqrt", number(2)), number(2))),
        ("√2", Call("sqrt", number(2))),
        ("√2^3", Power(Call("sqrt", number(2)), number(3))),
        ("2e", Product((number(2), Name("e")))),
        ("2e3", number(2000)),
        ("2(1 + e)", Product((number(2), Sum((number(1), Name("e")))))),
        ("2*3·4", Product((number(2), number(3), number(4)))),
        ("1/2/3", Quotient(Quotient(number(1), number(2)), number(3))),
        ("2^3^2", Power(number(2), Power(number(3), number(2)))),
        ("2**-1", Power(number(2), Negative(number(1)))),
        ("-2^2", Negative(Power(number(2), number(2)))),
        ("2*-3", Product((number(2), Negative(number(3))))),
        ("6/-3", Quotient(number(6), Negative(number(3)))),
        ("π", Name("pi")),
        ("1 − 2", Sum((number(1), Negative(number(2))))),
        ("block.0.attn.scores[1, 2,0]", Entry("block.0.attn.scores", (1, 2, 0))),
    ],
)
def test_text_is_read_as_people_mean_it(text: str, tree: Expression) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "a number, a name or a bracket is missing", 1),
        ("1 +", "a number, a name or a bracket is missing", 4),
        ("1 - +2", "a number, a name or a bracket is missing", 5),
        ("1 2", "the expression should end here", 3),
        ("(1", "')' is missing", 3),
        ("1)", "the expression should end here", 2),
        ("2 $ 3", "this sign has no meaning here", 3),
        ("f(1, 2)", "this sign has no meaning here", 4),
        ("sqr(2)", "there is no function 'sqr'", 1),
        ("1 + cosh(2)", "there is no function 'cosh'", 5),
        ("x[1", "this sign has no meaning here", 2),
        ("٣", "this sign has no meaning here", 1),
        ("(" * 61 + "1" + ")" * 61, "nested more than 60 deep", 62),
        ("2^" * 61 + "1", "nested more than 60 deep", 123),
        ("√" * 61 + "1", "nested more than 60 deep", 62),
    ],
)
def test_a_wrong_expression_is_refused_at_its_column(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.message == message
    assert caught.value.column == column
    assert f"at column {column}" in (caught.value.found or "")


def test_an_unknown_function_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ExpressionError, match=r"did you mean sqrt\?"):
        parse("sqr(2)")
    with pytest.raises(ExpressionError, match=r"known: sqrt, exp, .* relu, step"):
        parse("zzz(2)")


@pytest.mark.parametrize(
    "text",
    ["1" * 4001, "1e4000", "1e-99999999999999999999", "0." + "1" * 4000, "1e" + "9" * 300],
)
def test_a_number_of_too_many_digits_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="more than 4,000 digits"):
        parse(text)


def test_a_long_text_and_a_deep_tree_are_refused() -> None:
    with pytest.raises(ExpressionError, match="more than 20000 characters"):
        parse("1" + "+1" * LONGEST_TEXT)
    with pytest.raises(ExpressionError, match=f"nested more than {DEEPEST_TREE} deep"):
        parse("1" + "/2" * DEEPEST_TREE)
    assert rational(parse("1" + "/2" * 100)) == Fraction(1, 2**100)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3/2", Fraction(-3, 2)),
        ("(1/2)^-3", Fraction(8)),
        ("2 - 3·(1/4)", Fraction(5, 4)),
        ("(-1)^999999999999999999", Fraction(-1)),
        ("(-1)^10^100", Fraction(1)),
        ("0^5", Fraction(0)),
        ("5^0", Fraction(1)),
        ("1^-7", Fraction(1)),
        ("(2/3)^3", Fraction(8, 27)),
    ],
)
def test_rational_expressions_have_their_exact_value(text: str, value: Fraction) -> None:
    assert rational(parse(text)) == value


@pytest.mark.parametrize("text", ["sqrt(4)", "e", "2^(1/2)", "1 + pi", "exp(0)", "x[1]", "-e"])
def test_what_is_not_plainly_rational_has_no_rational_value(text: str) -> None:
    assert rational(parse(text)) is None


@pytest.mark.parametrize(
    "text", ["1/0", "1/(2 - 2)", "0^-1", "ln(1/0)", "e/0", "e + 1/(1 - 1)", "0^(-1/2)", "2^(1/0)"]
)
def test_a_division_by_zero_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="a division by zero"):
        rational(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "10^10^10",
        "2^20000",
        "(1/3)^99999",
        "9^9^9^9",
        "10^3000·10^3000",
        "10^-5000",
        "(1e3998)^2",
        "2^(-7^1e3)",
    ],
)
def test_a_power_too_large_to_write_down_is_refused_at_once(text: str) -> None:
    with pytest.raises(ExpressionError, match="more than 4,000 digits"):
        rational(parse(text))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (number(-3, 2), "-3/2"),
        (Product((number(2), Name("e"))), "2e"),
        (Product((number(2), Call("sqrt", number(3)))), "2√3"),
        (Quotient(Name("e"), Sum((number(1), Name("e")))), "e/(1 + e)"),
        (Quotient(Power(Name("e"), number(1)), number(2)), "e^1/2"),
        (Sum((number(1), number(-2), Negative(Name("p")))), "1 - 2 - p"),
        (Negative(Sum((number(1), Name("e")))), "-(1 + e)"),
        (Power(number(-2), number(1, 2)), "(-2)^(1/2)"),
        (Call("exp", Negative(Name("pi"))), "exp(-π)"),
        (Call("sqrt", Sum((number(1), number(1, 9)))), "√(1 + 1/9)"),
        (Entry("logits", (0, 2)), "logits[0,2]"),
        (Sum(()), "0"),
        (Product(()), "1"),
    ],
)
def test_trees_are_written_as_people_write_them(tree: Expression, text: str) -> None:
    assert write(tree) == text


@settings(max_examples=examples(400))
@given(TREES)
def test_what_is_written_reads_back_to_the_same_value(tree: Expression) -> None:
    before, ctx.prec = ctx.prec, 256
    try:
        value, again = ball(tree), ball(parse(write(tree)))
        assume(value.is_finite())
        # Both enclose one real number: they overlap, and are narrow enough for that to mean it.
        assume(value.rad() < abs(value) * arb(2) ** -60 + arb(2) ** -60)
        assert again.overlaps(value)
        assert again.is_finite()
    finally:
        ctx.prec = before


@settings(max_examples=examples(200))
@given(TREES)
def test_what_is_written_settles_after_one_reading(tree: Expression) -> None:
    once = write(parse(write(tree)))
    assert write(parse(once)) == once


@settings(max_examples=examples(300))
@given(TREES)
def test_a_rational_value_lies_in_the_ball_of_its_tree(tree: Expression) -> None:
    try:
        value = rational(tree)
    except ExpressionError:
        return
    if value is not None and ball(tree).is_finite():
        # A fraction becomes a ball itself, so containment is asked of the difference.
        assert (ball(tree) - arb(fmpq(value.numerator, value.denominator))).contains(0)


def test_a_number_of_ten_thousand_digits_is_written_in_pieces() -> None:
    tree = number(7**12_000 + 1, 3)
    text = write(tree)
    assert "·10^3900 + " in text
    before, ctx.prec = ctx.prec, 40_000
    try:
        assert (ball(parse(text)) - ball(tree)).contains(0)
        assert abs(ball(parse(text)) - ball(tree)) < 1
    finally:
        ctx.prec = before


@given(st.text("0123456789.eE+-*/^()√·πpi sqrtexlncoah,[]_%−×²", max_size=40))
@settings(max_examples=examples(1500))
def test_any_text_gives_a_tree_or_an_expression_error(text: str) -> None:
    try:
        tree = parse(text)
        rational(tree)
    except ByhandError:
        return
    assert ball(parse(write(tree))) is not None


@given(st.text(max_size=60))
@settings(max_examples=examples(500))
def test_any_unicode_text_gives_a_tree_or_an_expression_error(text: str) -> None:
    with suppress(ByhandError):
        write(parse(text))


def test_leaves_come_from_left_to_right_and_can_be_replaced() -> None:
    tree = parse("2p + logits[1]/sqrt(q)^3")
    assert list(leaves(tree)) == [
        number(2), Name("p"), Entry("logits", (1,)), Name("q"), number(3),
    ]  # fmt: skip
    put = substitute(tree, lambda leaf: number(4))
    assert ball(put).overlaps(arb(8) + arb(4) / 8)
    assert substitute(parse("-(1·p)^2"), lambda leaf: Name("e")) == parse("-(1·e)^2")


@given(st.integers(-(10**12), 10**12), st.integers(0, 12))
def test_a_decimal_is_the_fraction_it_spells(n: int, places: int) -> None:
    digits = str(abs(n)).rjust(places + 1, "0")
    text = f"{digits[: len(digits) - places]}.{digits[len(digits) - places :]}"
    assert read_number(text) == Fraction(abs(n), 10**places)
