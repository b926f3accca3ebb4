"""The chapter on what the numbers say: its numbers, how its sums close, its looks on both media."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pytest
from books import checkpoint_sized

import byhand
from byhand.document.book import Book, Page
from byhand.document.compose.book import bind
from byhand.document.compose.forms import Forms
from byhand.document.media.html.page import pages as html_pages
from byhand.document.media.html.plane import figure
from byhand.document.media.html.rechecking import numbers_in
from byhand.document.media.typst import typst_source
from byhand.document.media.typst.explained import on_paper
from byhand.document.media.typst.writing import typeset
from byhand.document.parts import (
    Cell,
    Drawing,
    Finding,
    Grid,
    LeftOut,
    LensTable,
    NumberTable,
    Terms,
)
from byhand.editions import edition_of, make_edition
from byhand.explaining.attribution import attribute
from byhand.explaining.circuits import circuits
from byhand.language import speaking
from byhand.numbers.base import ABSENT

T = TypeVar("T")
MODELS = ("tiny", "abc", "journey", "minigpt")


@cache
def book_of(model: str, language: str = "en") -> Book:
    with speaking(language):
        return bind(make_edition(model, claims=()), language)


def chapter(model: str, language: str = "en") -> Page:
    return book_of(model, language).page("explained")


def shown(page: Page, kind: type[T]) -> list[T]:
    return [part for passage in page.passages for part in passage.show if isinstance(part, kind)]


def html(model: str, language: str = "en") -> str:
    return html_pages(book_of(model, language))["explained.html"]


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize("model", MODELS)
def test_every_term_on_the_page_is_the_attributions(model: str) -> None:
    trace = byhand.trace(model)
    forms = Forms(trace.numbers)
    numbers = {
        number.address: number.cell for number in numbers_in(tuple(shown(chapter(model), Terms)))
    }
    found = attribute(trace)
    expected = {
        term.source.at("logits", position, token): forms.cell(found.entry(term, position, token))
        for term in found.terms
        for position in found.positions
        for token in found.columns
    }
    terms = {at: cell for at, cell in numbers.items() if not at.startswith("explain.logits.total")}
    assert len(terms) > 6
    for address, cell in terms.items():
        assert cell == expected[address], address


@pytest.mark.parametrize("model", ["tiny", "abc", "journey"])
def test_the_sum_is_the_trace_s_own_logit(model: str) -> None:
    trace = byhand.trace(model)
    forms = Forms(trace.numbers)
    for part in shown(chapter(model), Terms):
        for number in part.lines[-1].numbers:
            position, token = map(int, re.findall(r"\d+", number.address))
            own = forms.cell(trace["logits"].at((position, token)))
            assert number.cell.decimal == own.decimal
            assert number.working is not None


@pytest.mark.parametrize(
    ("model", "closes", "line"),
    [("tiny", "exact", "remainder: exactly 0"), ("abc", "exact", "remainder: exactly 0"),
     ("journey", "exact", "remainder: exactly 0"), ("minigpt", "rounded", "remainder: rounded, ")],
)  # fmt: skip
def test_a_page_says_how_its_sums_close(model: str, closes: str, line: str) -> None:
    parts = shown(chapter(model), Terms)
    assert {part.closes for part in parts} == {closes}
    assert all(part.closing.startswith(line) for part in parts)
    assert html(model).count("Remainder:") == len(parts)


def test_of_a_few_positions_every_one_is_told_of_more_the_last() -> None:
    assert len(shown(chapter("abc"), Terms)) == 3
    assert len(shown(chapter("minigpt"), Terms)) == 1
    assert any("--position 0" in part.command for part in shown(chapter("minigpt"), LeftOut))


def test_bars_are_as_long_as_their_differences_and_to_the_side_of_their_sign() -> None:
    for part in shown(chapter("abc"), Terms):
        lines = [line for line in part.lines if line.kind == "term"]
        values = [float(line.difference.cell.decimal or 0) for line in lines if line.difference]
        largest = max(map(abs, values))
        for line, value in zip(lines, values, strict=True):
            assert line.size == pytest.approx(value / largest, abs=1e-4)
            assert line.largest == (abs(value) == largest)


def test_the_lens_ends_with_the_prediction_and_marks_where_it_is_settled() -> None:
    (part,) = shown(chapter("abc"), LensTable)
    assert [line.leader for line in part.lines] == ["B", "B", "A"]
    assert [line.settled for line in part.lines] == [False, False, True]
    assert part.lines[-1].logits[0].cell.decimal == "14.9363"


def test_qk_and_ov_have_an_address_for_each_pair_of_tokens() -> None:
    trace = byhand.trace("abc")
    forms = Forms(trace.numbers)
    tables = [t for t in shown(chapter("abc"), NumberTable) if t.address.startswith("explain.")]
    (head,) = circuits(trace, 0)
    for table, own in zip(tables, (head.qk, head.ov), strict=True):
        for i, row in enumerate(own.rows):
            for j, column in enumerate(own.columns):
                number, entry = table.rows[i].numbers[j], own.at(row, column)
                assert number.address == own.address_of(row, column)
                assert number.cell == (Cell(None) if entry is ABSENT else forms.cell(entry))


# ------------------------------------------------------------------ words


def test_the_three_facts_of_abc_are_told_with_their_checks() -> None:
    told = shown(chapter("abc"), Finding)
    leads = [part.lead for part in told if part.lead.startswith("After ")]
    assert [lead.split(",")[0] for lead in leads] == [
        "After A (position 0) comes B",
        "After B (position 1) comes C",
        "After C (position 2) comes A",
    ]
    facts = [part for part in told if part.lead.startswith("After ")]
    checks = [text for part in facts for text in part.told if text.startswith("Checked:")]
    assert len(checks) == 3
    assert all("without the MLP" in text for text in checks)


def test_every_text_of_abc_stands_in_a_table() -> None:
    (table,) = (t for t in shown(chapter("abc"), Grid) if t.rows[0][0] == "A")
    assert len(table.rows) == 39
    assert not any(p.id.endswith("-inputs") for p in chapter("journey").passages)


def test_a_passage_lights_the_steps_it_speaks_of_and_works_none_of_them_out() -> None:
    page = chapter("minigpt")
    lit = {passage.id: passage.lit for passage in page.passages}
    assert "block.1.mlp.out" in lit["explained-attribution"]
    assert "block.0.attn.scores" in lit["explained-attention"]
    assert "block.0.attn.scores" not in lit["explained-lens"]
    assert all(passage.looks_back for passage in page.passages)
    assert "explained.html#" not in html_pages(book_of("minigpt"))["index.html"]


def test_spanish_pages_have_decimal_commas_and_minus_signs() -> None:
    page = html("abc", "es")
    sentences = re.findall(r'(?s)<div class="finding.*?</div>', page)
    assert any("10,9619" in text for text in sentences)
    assert any("(−2,4926)" in text for text in sentences)
    assert not any(re.search(r"\d\.\d", text) for text in sentences)
    assert page.count("Resto: exactamente 0.") == len(shown(chapter("abc", "es"), Terms))
    assert '<data value="14.9363">14,9363</data>' in html("abc", "es")


def test_where_a_weight_is_unknown_the_chapter_says_so() -> None:
    page = chapter("abc-walkthrough")
    assert page.passages[0].id == "explained-open"
    assert not shown(page, Terms)


def test_of_a_large_model_little_is_worked_out_and_what_is_left_out_is_said() -> None:
    page = bind(edition_of(byhand.trace(checkpoint_sized()), "large"), "en").page("explained")
    (facts,) = (passage for passage in page.passages if passage.id == "explained-facts")
    checked = " ".join(text for part in facts.show if isinstance(part, Finding)
                       for text in part.told)  # fmt: skip
    assert "other" not in checked  # no more parts than those named were taken away
    assert len([part for part in shown(page, LeftOut) if part.command]) == 4
    (part,) = shown(page, Terms)
    assert part.lines[-2].kind == "rest"
    assert part.closes == "rounded"


# ------------------------------------------------------------------ pages and paper


@pytest.mark.parametrize("model", ["tiny", "minigpt"])
def test_a_page_has_no_external_reference_and_no_id_twice(model: str) -> None:
    text = html(model)
    outside = re.findall(r'(?:src|href)="(?!#|[a-z]+\.html|data:)([^"]*)"|url\((?!#)', text)
    assert outside == []
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_the_drawing_is_settled_for_paper() -> None:
    (drawn, *_others) = shown(chapter("abc"), Drawing)
    svg = figure(drawn)
    paper = on_paper(svg)
    assert "var(" in svg
    assert not re.search(
        r"var\(|@media|--\w", paper.partition("<style>")[2].partition("</style>")[0]
    )
    assert drawn.about.startswith("A at position 0: ")


def test_the_source_compiles() -> None:
    pytest.importorskip("typst")
    whole = book_of("abc")
    alone = replace(whole, pages=(whole.page("explained"),))
    assert typeset(typst_source(alone)).startswith(b"%PDF")
