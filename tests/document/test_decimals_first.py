"""Decimals first: tables show what a person would write, and the exact form on demand."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from books import Shelf

from byhand.document.mathematics import in_a_table
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber, hidden_forms
from byhand.document.media.html.rechecking import numbers_in
from byhand.document.media.typst.pages import typst_source
from byhand.document.media.wording import exact_forms
from byhand.document.parts import NumberTable
from byhand.document.short_forms import short_form
from byhand.document.step_names import captioned, step_name
from byhand.expression import Number, parse, write
from byhand.language import speaking

SHORT = ("3/4", "√2/2", "e/(1 + e)", "(3 + 4e)/(2(1 + e))", "ln(1 + e + e^2)")
LONG = ("115√532967754/88827959", "√1365/42", "√(2 + √3)", "10735/107016", "e^(1001/2)")


@pytest.mark.parametrize("text", SHORT)
def test_what_a_person_would_write_is_short(text: str) -> None:
    assert short_form(parse(text))


def test_a_fraction_is_short_up_to_nine_characters() -> None:
    assert short_form(Number(Fraction(107, 1600)))
    assert not short_form(Number(Fraction(10735, 107016)))


@pytest.mark.parametrize("text", LONG)
def test_large_numbers_and_roots_in_roots_are_long(text: str) -> None:
    assert not short_form(parse(text))


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_no_table_shows_a_long_form_and_every_shortened_number_opens(
    name: str, shelf: Shelf
) -> None:
    book = shelf[name].book
    pen, shortened = Inscriber(Mathml(finite=book.decimals)), 0
    for number in numbers_in(book):
        cell = number.cell
        if cell.masked or cell.form is None or cell.decimal is None or cell.radius is not None:
            continue
        face = pen.face(cell)
        if in_a_table(cell):
            assert len(write(cell.form)) <= 20, number.address
        elif cell.register == "named":
            shortened += 1
            assert "≈" in face, number.address
            assert "<math" not in face, number.address
            assert hidden_forms(cell), number.address
    assert shortened >= (0 if name == "tiny" else 30)


def test_a_card_folds_its_long_lines_but_on_the_page_about_them(shelf: Shelf) -> None:
    texts = shelf["journey"].texts
    card = re.search(r'data-a="block.0.attn.scores\[0,3,3\]".*?</details>', texts["attention.html"])
    assert card is not None
    before, _fold, inside = card[0].partition("<summary>exactly</summary>")
    assert "≈" in before
    assert "10735" not in before
    assert re.search(r'class="brief".*?<mn>0.7830</mn>', before)  # the dot product in decimals
    assert "10735" in inside
    assert "<summary>exactly</summary>" not in texts["exact.html"]
    logits = shelf["abc"].texts["next.html"].partition('data-a="logits[2,0]"')[2]
    assert ">0.3363</mn>" in logits.partition('class="where-names"')[0]  # of the model file: short


def test_on_paper_the_form_stands_below_the_table(shelf: Shelf) -> None:
    book = shelf["journey"].book
    tables = [p for passage in book.passages for p in passage.show if isinstance(p, NumberTable)]
    scores = next(table for table in tables if table.address == "block.0.attn.scores[0]")
    told = exact_forms(scores)
    assert told.startswith("exactly: [0,0,0] = ")
    assert "[0,2,0] = 115√532967754/88827959" in told
    assert told in typst_source(book)
    assert f'<p class="on-paper">{told}</p>' in shelf["journey"].texts["attention.html"]


@pytest.mark.parametrize(("name", "decimals"), [("tiny", False), ("journey", True), ("abc", True)])
def test_a_book_is_written_in_the_decimals_or_fractions_of_its_model(
    name: str, decimals: bool, shelf: Shelf
) -> None:
    made = shelf[name]
    assert made.book.decimals is decimals
    fractions = [page for page in made.texts.values() if "<mn>1</mn><mn>2</mn></mfrac>" in page]
    assert bool(fractions) is not decimals
    if not decimals:
        assert not any(re.search(r">0\.5<", page) for page in made.texts.values())


def test_a_name_stands_before_every_address(shelf: Shelf) -> None:
    assert captioned("head 1", "block.0.attn.scores[1]") == "scores, head 1"
    assert captioned("std", "block.0.mlp.norm.std") == "standard deviation"
    assert step_name("grad.block.0.attn.q.via.block.0.attn.scores") == "gradient: queries"
    with speaking("es"):
        assert step_name("block.0.attn.weights") == "pesos de atención"
    for page in ("attention", "block", "backward", "next"):
        captions = re.findall(r"<caption>(.*?)</caption>", shelf["journey"].texts[f"{page}.html"])
        steps = [each for each in captions if ">weight." not in each and "explain." not in each]
        assert steps
        for caption in steps:
            assert caption.startswith(('<span class="name">', "<math")), caption
