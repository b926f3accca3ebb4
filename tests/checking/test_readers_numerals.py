"""One number as people write it: its value, and how exactly it is meant."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.checking.readers.numerals import Numeral, numeral
from byhand.errors import ByhandError
from byhand.files.tree import List, Scalar


def read(text: str) -> Numeral:
    return numeral(Scalar("sheet.yaml", 7, "loss", text))


@pytest.mark.parametrize(
    ("text", "value", "slack"),
    [
        ("0.30", 0.3, 0.005),
        ("0.3", 0.3, 0.05),
        ("-0.06", -0.06, 0.005),
        ("−0.06", -0.06, 0.005),  # a minus of the typesetter
        ("+1.5", 1.5, 0.05),
        (".5", 0.5, 0.05),
        ("3", 3.0, 0.5),
        ("3.", 3.0, 0.5),
        ("57,344", 57_344.0, 0.5),
        ("1,234,567.89", 1_234_567.89, 0.005),
        ("57k", 57_000.0, 500.0),
        ("57.3k", 57_300.0, 50.0),
        ("1.5M", 1_500_000.0, 50_000.0),
        ("7B", 7e9, 5e8),
        ("1e-5", 1e-5, 5e-6),
        ("1.50E+3", 1500.0, 5.0),
        ("15.06%", 0.1506, 0.00005),
        ("~57k", 57_000.0, 1000.0),
        ("~1.75", 1.75, 0.01),
        ("≈ 0.2", 0.2, 0.1),
        ("0.2 to 0.4", 0.3, 0.1),
        ("-1 to 57,344", 28671.5, 28672.5),
        ("1/4 to 3/4", 0.5, 0.25),
    ],
)
def test_a_number_is_meant_as_exactly_as_it_is_written(
    text: str, value: float, slack: float
) -> None:
    found = read(text)
    assert found.claimed
    assert found.value == value
    assert found.slack == pytest.approx(slack, rel=1e-7)
    assert found.slack > 0


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("1/3", 1 / 3),
        ("-3/2", -1.5),
        ("2^10", 1024.0),
        ("sqrt(2)", math.sqrt(2)),
        ("√2/2", math.sqrt(2) / 2),
        ("e/(1+e)", math.e / (1 + math.e)),
        ("ln(2)", math.log(2)),
    ],
)
def test_an_expression_is_meant_as_it_stands(text: str, true: float) -> None:
    found = read(text)
    assert found.value == true
    assert found.slack <= math.ulp(true)


def test_a_quarter_needs_no_slack_at_all() -> None:
    assert read("1/4") == Numeral(0.25, 0.0)


def test_a_range_between_irrational_ends_holds_them() -> None:
    found = read("sqrt(2) to sqrt(3)")
    assert found.value - found.slack <= math.sqrt(2)
    assert found.value + found.slack >= math.sqrt(3)


@pytest.mark.parametrize("text", ["", "_", "?", "null", "~", "  ", " _ "])
def test_a_blank_claims_nothing(text: str) -> None:
    assert not read(text).claimed


def test_a_masked_entry_is_minus_infinity() -> None:
    assert read("masked") == Numeral(-math.inf)


@given(st.integers(-(10**12), 10**12), st.integers(0, 12), st.sampled_from(["", "k", "M", "%"]))
def test_every_number_that_prints_so_lies_within_the_slack(
    digits: int, places: int, suffix: str
) -> None:
    unit = Fraction(10) ** ({"": 0, "k": 3, "M": 6, "%": -2}[suffix] - places)
    whole, behind = divmod(abs(digits), 10**places)
    text = f"{'-' if digits < 0 else ''}{whole}" + (f".{behind:0{places}}" if places else "")
    found = read(text + suffix)
    value, slack = Fraction(found.value), Fraction(found.slack)
    true = digits * unit
    assert abs(value - true) + unit / 2 <= slack  # both ends are inside
    rounding = Fraction(math.ulp(found.value)) + 3 * Fraction(math.ulp(found.slack))
    assert slack <= unit / 2 + rounding
    about = read("~" + text + suffix)
    assert abs(Fraction(about.value) - true) + unit <= Fraction(about.slack)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nan", "nan is not a number"),
        ("-inf", "an entry that is never attended to is written masked"),
        (".inf", "a finite number"),
        ("0,30", "decimals stand behind a point: 0.30"),
        ("0.4 to 0.2", "the range ends before it begins"),
        ("1e999", "the number is too large"),
        ("1e400", "the number is too large"),
        ("exp(800)", "the number is too large"),
        ("cat", "there is no constant 'cat'"),
        ("1/0", "cannot be read"),
        ("ln(0)", "cannot be read"),
        ("10^10^10", "cannot be read"),
        ("1 2", "cannot be read"),
        ("0x10", "cannot be read"),
    ],
)
def test_what_is_no_number_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ByhandError) as caught:
        read(text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("sheet.yaml:7: loss")


def test_a_list_is_no_number() -> None:
    with pytest.raises(ByhandError, match="a number is missing"):
        numeral(List("sheet.yaml", 7, "loss", ()))
