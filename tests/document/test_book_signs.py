"""What stands behind = is all of a number, and numbers are written as the language writes them."""

from __future__ import annotations

import re
from fractions import Fraction

from byhand.document.mathematics import form_lines, rounded_line, says_no_more
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.page import pages
from byhand.document.media.html.rechecking import numbers_in
from byhand.document.numerals import with_decimal_sign
from byhand.document.parts import Cell, Definitions, Matrix, Sign
from byhand.editions import make_book
from byhand.expression import Number, parse, write

LONG = Fraction(90971997, 10**8)


def test_an_exact_number_shown_by_some_of_its_decimals_is_shown_as_approximate() -> None:
    pen = Inscriber(Mathml())
    cut = Cell("exact", Number(LONG), decimal="0.9097", cut=True)
    full = Cell("exact", Number(Fraction(3251, 10000)), decimal="0.3251")
    near = '<span class="about">≈</span> <data value="0.9097">0.9097</data>'
    assert pen.face(cut) == f"<span>{near}</span>"
    assert pen.face(full) == '<data value="0.3251">0.3251</data>'
    assert '<div class="value">≈' in "".join(pen.lines(form_lines(cut), cut))


def test_a_line_of_matrices_has_no_equals_sign_before_shortened_numbers() -> None:
    def line(cell: Cell) -> tuple[Matrix, Sign, Matrix]:
        return Matrix(((cell,),), "q"), Sign("="), Matrix(((cell,),), "k")

    assert rounded_line(line(Cell("exact", Number(LONG), decimal="0.9097", cut=True)), False)
    assert rounded_line(line(Cell("rounded", decimal="0.4168", cut=True)), False)
    assert rounded_line(line(Cell("rounded", decimal="0.42")), False)  # every line is rounded
    assert not rounded_line(line(Cell("exact", Number(Fraction(1, 3)), decimal="0.3333")), False)


def test_no_exact_number_of_a_book_is_cut_without_saying_so() -> None:
    pen = Inscriber(Mathml(finite=True))
    seen = 0
    for number in numbers_in(make_book("abc")):
        form, decimal = number.cell.form, number.cell.decimal
        if number.cell.register != "exact" or not isinstance(form, Number) or decimal is None:
            continue
        if "<math" not in (face := pen.face(number.cell)):
            seen += "≈" in face
            assert ("≈" in face) == (Fraction(decimal) != form.value), number.address
    assert seen > 20


# ------------------------------------------------------------------ the language


def test_claims_in_a_spanish_book_have_decimal_commas_and_real_minus_signs() -> None:
    for model in ("journey", "abc-walkthrough"):
        for claim in make_book(model, language="es").claims:
            if claim.verdict == "ERROR":
                told = [text for _kind, text in claim.told[:2]]
                said = " ".join((*told, claim.expected, claim.claimed))
                assert not re.search(r"[0-9]\.[0-9]|(?<![\w.])-[0-9]", said)
                assert re.search(r"−[0-9],[0-9]", said)


def test_of_a_printed_row_the_row_that_follows_is_told() -> None:
    (error,) = [claim for claim in make_book("journey").claims if claim.verdict == "ERROR"]
    assert error.claimed == "(0.14, 0.19, 0.22, 0.24)"
    assert error.expected == "(−0.3321, 0.0475, 0.1666, −0.3077)"


def test_addresses_in_a_sentence_keep_their_points() -> None:
    assert with_decimal_sign("block.0.attn.out[3,3]: 0.24") == "block.0.attn.out[3,3]: 0.24"


def test_a_probability_that_is_not_1_does_not_say_it_is() -> None:
    loss = next(p for p in make_book("abc").passages if p.id == "next-loss")
    assert "Its probability is 0.99999, so the loss is 0.00001." in loss.sentences
    text = pages(make_book("abc"))["next.html"]
    assert not re.search(r"[>( ]1\.0000[<) ]", text)


def test_what_a_letter_stands_for_never_fills_a_page() -> None:
    text = pages(make_book("abc"))["next.html"]
    assert "a number of its own ≈ 19.2017" in text
    assert not re.search(r"[0-9]{20}", re.sub(r"<[^>]*>", "", text.partition("next-loss")[2]))


def test_a_number_in_letters_stands_before_what_they_mean() -> None:
    loss = next(p for p in make_book("journey").passages if p.id == "next-loss")
    (part,) = (part for part in loss.show if isinstance(part, Definitions))
    assert write(part.form) == "(10·ln(u1) - x4 - 2·x3 - x1)/10"
    assert [letter.name for letter in part.letters] == ["u1", "x1", "x2", "x3", "x4"]


def test_a_line_that_only_takes_the_root_of_a_square_is_left_out() -> None:
    line = "(-27√1365/1274 + 12√1365/637)/"
    assert says_no_more(parse(line + "2"), line + "√4")
    assert not says_no_more(parse(line + "3"), line + "√4")
    assert not says_no_more(parse("1/2"), "1/√4")  # in a short one it is worth its line
