"""Decimals that are not all of a number say so: by ≈, or by the sign of a register."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import byhand
from byhand.document.compose.explanation.numerals import exact_text
from byhand.document.compose.forms import Forms, weight_cell
from byhand.document.compose.trace import document
from byhand.document.compose.working import workings
from byhand.document.media.terminal.layout import MANNERS, cell_lines
from byhand.document.media.terminal.parts import Terminal
from byhand.document.numerals import forms_of, one_line
from byhand.document.parts import WorkingLine
from byhand.expression import Number, parse
from byhand.files import parse_model
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil

WIDE = Fraction(10**40 + 1, 3**70)  # no table holds it
WIDEST = 2 + Fraction(1, 3**400)  # nor any line: it has a letter
LONG = "0." + "123456789" * 8


def exact(value: Fraction) -> object:
    return Exact().admit(np.array([value], object))[0]


# ------------------------------------------------------------------ exact fractions


def test_a_fraction_too_wide_for_a_table_keeps_its_form_and_is_known_to_be_cut() -> None:
    cell = Forms(Exact()).cell(exact(WIDE))
    assert cell.form == Number(WIDE)
    assert cell.cut


@pytest.mark.parametrize("manner", MANNERS)
def test_in_every_manner_its_decimals_are_approximate(manner: object) -> None:
    cell = Forms(Exact()).cell(exact(WIDE))
    assert cell_lines(cell, manner) == [("≈", cell.decimal)]  # type: ignore[arg-type]


@pytest.mark.parametrize("manner", MANNERS)
def test_a_fraction_too_wide_for_a_line_is_approximate_too(manner: object) -> None:
    cell = Forms(Exact()).cell(exact(WIDEST))
    assert (cell.form, cell.cut) == (None, True)
    assert cell_lines(cell, manner) == [("≈", "2.0000")]  # type: ignore[arg-type]
    assert list(forms_of(cell)) == [("≈", "2.0000")]
    assert one_line(cell) == "≈ 2.0000"
    assert exact_text(cell) is None


def test_what_a_small_letter_stands_for_has_a_digit() -> None:
    numbers = Exact()
    forms = Forms(numbers)
    small = numbers.scalar(parse(f"exp(1/100000 + 1/{3**400})"))
    (letter,) = forms.letters([forms.full(small).form])
    assert letter.decimal == "0.00001"


@pytest.mark.parametrize("manner", MANNERS)
def test_a_whole_number_of_any_length_is_not_approximate(manner: object) -> None:
    cell = Forms(Exact()).cell(exact(Fraction(10**18)))
    assert cell_lines(cell, manner) == [("", str(10**18))]  # type: ignore[arg-type]


def test_decimals_that_say_all_of_it_are_not_cut() -> None:
    cell = Forms(Exact()).cell(exact(Fraction(12345678, 10000)))
    assert (cell.decimal, cell.cut) == ("1234.5678", False)


def test_a_table_with_such_a_number_shows_it_as_approximate() -> None:
    text = (Path(byhand.__file__).parent / "models" / "tiny.yaml").read_text("utf-8")
    model = parse_model(text.replace("- [1, 0]  # a", f"- [{LONG}, 0]  # a"))
    shown = "\n".join(Terminal(80).lines(document(byhand.trace(model, "a b"))))
    assert "≈ 0.1235" in shown
    (line,) = workings(byhand.trace(model, "a b"), "block.0.attn.scores[0,0,0]")
    assert isinstance(line, WorkingLine)
    assert line.decimals  # so what is written in stands behind ≈


# ------------------------------------------------------------------ floats


def test_four_decimals_of_a_float_are_not_all_of_it_but_those_of_a_pencil_are() -> None:
    floats = Forms(Floats("float32"))
    assert floats.cell(np.float32(0.1)).cut
    assert not floats.cell(np.float32(0.5)).cut
    assert not floats.cell(np.float32("inf")).cut
    assert not Forms(Pencil(2)).cell(Fraction(33, 100)).cut


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64, float])
def test_a_weight_of_any_float_format_is_the_number_that_it_is(kind: type) -> None:
    entry = np.array([0.1], kind)[0] if kind is not float else 0.1
    cell = weight_cell(entry)
    assert cell.register == "exact"
    assert cell.form == Number(Fraction(float(entry)))
    assert cell.decimal == f"{float(entry):.4f}"
    assert cell.cut


def test_a_weight_that_is_no_finite_number_is_shown_as_it_is() -> None:
    assert weight_cell(np.float32("inf")).decimal == "inf"


def test_a_weight_of_many_digits_is_shown_by_its_decimals() -> None:
    assert weight_cell(Fraction(1, 10**300)).decimal == "1e-300"
    assert weight_cell(np.float32(3e-9)).decimal == "3e-9"
    assert weight_cell(np.float32(0)).decimal == "0.0000"
    assert weight_cell(Fraction(1, 3)).decimal is None
    assert cell_lines(weight_cell(Fraction(1, 10**300)), MANNERS[0]) == [("≈", "1e-300")]
