"""Expressions as formulas: another program's arithmetic gives what the expression says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from byhand.document.media.xlsx.cells import Cell, Table, column_letters, refer
from byhand.document.media.xlsx.formulas import constant, formula
from byhand.expression import (
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
    parse,
)


def where(entry: Entry) -> Cell:
    """x runs along row 1, y down column A, and v along row 2 of another sheet."""
    (place,) = entry.index
    return {"x": Cell("Here", 0, place), "y": Cell("Here", place, 0), "v": Cell("There", 1, place)}[
        entry.address
    ]


def written(text: str) -> str:
    return formula(parse(text), where, "Here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x[0]*x[1] + x[2]*x[3]", "A1*B1+C1*D1"),
        ("(x[0] + x[1] + x[2] + x[3])/4", "SUM(A1:D1)/4"),
        ("(x[0]^2 + x[1]^2 + x[2]^2)/3", "SUMSQ(A1:C1)/3"),
        ("x[0] - v[1]", "A1-'There'!B2"),
        ("x[0] - (x[1] + x[2])", "A1-(B1+C1)"),
        ("-(x[0]^2)", "-(A1^2)"),
        ("x[0]/(x[1]*x[2])", "A1/(B1*C1)"),
        ("x[0]*(x[1]/x[2])", "A1*(B1/C1)"),
        ("e^(-x[0])", "EXP(-A1)"),
        ("relu(x[0])", "MAX(0,A1)"),
        ("10000^(-1/2)", "10000^(-(1/2))"),
        ("sqrt(x[0] + 0.00001)", "SQRT(A1+0.00001)"),
    ],
)
def test_a_formula_is_written_as_a_person_would(text: str, expected: str) -> None:
    assert written(text) == expected


def dot(one: str, other: str, length: int, start: int = 0) -> Sum:
    places = range(start, start + length)
    return Sum(tuple(Product((Entry(one, (i,)), Entry(other, (i,)))) for i in places))


def test_a_long_dot_product_of_two_rows_is_a_sumproduct() -> None:
    assert formula(dot("x", "v", 6), where, "Here") == "SUMPRODUCT(A1:F1,'There'!A2:F2)"


def test_a_long_dot_product_of_a_row_and_a_column_is_a_matrix_product() -> None:
    assert formula(dot("v", "y", 6), where, "Here") == "SUM(MMULT('There'!A2:F2,A1:A6))"
    assert formula(dot("y", "v", 6), where, "Here") == "SUM(MMULT('There'!A2:F2,A1:A6))"


def test_what_is_masked_in_the_middle_makes_two_ranges() -> None:
    terms = (*dot("x", "v", 5).terms, *dot("x", "v", 5, start=6).terms)
    both = "SUMPRODUCT(A1:E1,'There'!A2:E2)+SUMPRODUCT(G1:K1,'There'!G2:K2)"
    assert formula(Sum(terms), where, "Here") == both


# ------------------------------------------------------------------ against another program

numbers = st.builds(Fraction, st.integers(-9, 9), st.sampled_from([1, 2, 3, 5, 7])).map(Number)
exponents = st.sampled_from([-2, -1, 0, 1, 2, 3]).map(lambda n: Number(Fraction(n)))
trees = st.recursive(
    numbers | st.sampled_from([Name("e"), Name("pi")]),
    lambda part: st.one_of(
        part.map(Negative),
        st.lists(part, min_size=2, max_size=4).map(lambda x: Sum(tuple(x))),
        st.lists(part, min_size=2, max_size=3).map(lambda x: Product(tuple(x))),
        st.builds(Quotient, part, part),
        st.builds(Power, part, exponents),
        st.builds(Call, st.sampled_from(["sin", "cos", "tanh", "relu"]), part),
    ),
    max_leaves=8,
)  # fmt: skip

FUNCTIONS = {
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "relu": lambda x: max(0.0, x),
}


def value(tree: Expression) -> float:
    match tree:
        case Number(value=v):
            return float(v)
        case Name(text=name):
            return {"e": math.e, "pi": math.pi}[name]
        case Negative(of=x):
            return -value(x)
        case Sum(terms=parts):
            return sum(map(value, parts))
        case Product(factors=parts):
            return math.prod(map(value, parts))
        case Quotient(top=a, bottom=b):
            return value(a) / value(b)
        case Power(base=a, exponent=b):
            return value(a) ** value(b)
        case Call(function=f, argument=x):
            return FUNCTIONS[f](value(x))
    raise AssertionError(tree)


def worked_out(text: str) -> Any:
    """The formula as the package `formulas` works it out, with spreadsheets' precedence."""
    import formulas

    return formulas.Parser().ast(f"={text}")[1].compile()()


@given(trees)
def test_brackets_make_a_spreadsheet_read_what_is_meant(tree: Expression) -> None:
    try:
        expected = value(tree)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    assume(not isinstance(expected, complex) and abs(expected) < 1e9)
    found = float(worked_out(formula(tree, where)))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), formula(tree, where)


# ------------------------------------------------------------------ constants and places


@pytest.mark.parametrize(
    ("entry", "stands"),
    [
        (Fraction(1, 5), 0.2),
        (Fraction(-3), -3.0),
        (Fraction(1, 3), "1/3"),
        (Fraction(-2, 7), "-2/7"),
        (parse("sqrt(2)/2"), "SQRT(2)/2"),
        (parse("-ln(10)"), "-LN(10)"),
        (Fraction(0.1), 0.1),  # 1/10 as a float is: too long for a formula, itself as a number
        (Fraction(1, 3**40), 1 / 3**40),  # longer than the digits that Excel reads
        (0.1, 0.1),
        (None, None),
    ],
)
def test_a_weight_is_a_number_or_the_formula_that_gives_it(
    entry: Any, stands: float | str | None
) -> None:
    found = constant(entry)
    assert found == stands
    assert type(found) is type(stands)


def test_heads_stand_side_by_side_and_positions_below_each_other() -> None:
    table = Table("q", "Here", 10, 2, (3, 4, 2), down=1)  # head, pos, d_head
    assert (table.rows, table.columns, table.groups) == (4, 6, 3)
    assert refer(table.cell((2, 3, 1)), sheet="Here") == "H14"
    assert len({table.cell(index) for index in table.indices()}) == 24
    assert refer(table.first, table.last, sheet="Here", fixed=True) == "$C$11:$H$14"
    assert column_letters(702) == "AAA"
