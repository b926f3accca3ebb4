"""What a long passage folds away: it can be opened, it is on paper, and nothing of it is lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browser import Windows

from byhand.document.book import Book
from byhand.document.media.html import write_book
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.page import pages
from byhand.document.media.html.passages import passage_body
from byhand.document.parts import AttentionPattern, HeatStrip, NumberTable
from byhand.editions import make_book

TALLEST = 26_000  # pixels of the longest page of minigpt at 1280


@pytest.fixture(scope="module")
def book() -> Book:
    return make_book("minigpt", language="en")


@pytest.fixture(scope="module")
def folder(book: Book, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("minigpt")
    write_book(book, target)
    return target


@pytest.fixture(scope="module")
def browser(windows: Windows) -> Any:
    return windows.browser


def body(book: Book, id: str) -> str:
    passage = next(passage for passage in book.passages if passage.id == id)
    return "\n".join(passage_body(passage, Inscriber(Mathml())))


def test_the_lines_that_lead_to_a_norm_are_folded_and_its_last_line_is_not(book: Book) -> None:
    html = body(book, "attention-0-attn-norm")
    folded, _end, rest = html.partition("</details>")
    assert "the lines before: mean, centered, variance, std, normalized" in folded
    for step in ("mean", "variance", "normalized"):
        assert f'aria-label="block.0.attn.norm.{step}"' in folded
        assert f'<code class="address">block.0.attn.norm.{step}</code>' in folded
    assert 'aria-label="block.0.attn.norm.out"' in rest


def test_what_colours_say_is_folded_as_numbers(book: Book) -> None:
    html = body(book, "attention-0-attn-mixed")
    opened, _start, folded = html.partition('<details class="folded">')
    assert 'aria-label="block.0.attn.mixed[0]"' not in opened
    assert "numbers of head 0, head 1, head 2, head 3" in folded
    assert 'aria-label="block.0.attn.mixed[3]"' in folded


def test_of_lines_of_one_kind_the_first_stands_open(book: Book) -> None:
    html = body(book, "attention-0-attn-qkv")
    opened, _start, folded = html.partition('<details class="folded">')
    assert 'aria-label="block.0.attn.q"' in opened
    assert "the other lines: k, v" in folded
    assert 'class="formula" tabindex="0" role="group" aria-label="block.0.attn.v"' in folded


def test_nothing_is_folded_where_every_number_is_shown() -> None:
    book = pages(make_book("journey")).values()
    assert not any('<details class="folded"' in page for page in book)
    assert any('<details class="exactly"' in page for page in book)  # forms of numbers alone


def test_every_part_of_every_passage_is_on_its_page(book: Book) -> None:
    files = pages(book)
    for page in book.pages:
        text = files[f"{page.slug}.html"]
        for passage in page.passages:
            for part in passage.show:
                if isinstance(part, NumberTable | HeatStrip | AttentionPattern):
                    assert part.address in text


def test_each_step_is_shown_in_colours_once(book: Book) -> None:
    for passage in book.passages:
        strips = [part.address for part in passage.show if isinstance(part, HeatStrip)]
        patterns = [part.address for part in passage.show if isinstance(part, AttentionPattern)]
        assert len({*strips, *patterns}) == len(strips) + len(patterns)


def test_a_long_sum_may_end_its_line_between_any_two_terms(book: Book) -> None:
    html = body(book, "attention-0-attn-qkv")
    (symbols,) = re.findall(r'<div class="symbols">(.*?)</div>', html)[:1]
    assert symbols.count("<math>") == 7
    assert ' <math><mo form="infix">+</mo>' in symbols


# ------------------------------------------------------------------ in a browser


@pytest.mark.parametrize("name", ["whole", "attention", "block", "parameters"])
def test_no_page_of_minigpt_is_endless(browser: Any, folder: Path, name: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((folder / f"{name}.html").as_uri())
    page.add_style_tag(content=".passage { content-visibility: visible !important }")
    assert page.evaluate("document.documentElement.scrollHeight") < TALLEST
    page.close()


def test_heads_stand_beside_each_other(browser: Any, folder: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((folder / "attention.html").as_uri())
    strips = page.locator('[id="attention-0-attn-qkv"] .strips').first.locator(".heat")
    tops = strips.evaluate_all("all => all.map((one) => one.getBoundingClientRect().top)")
    assert len(tops) == 4
    assert len(set(map(round, tops))) == 1
    page.close()


def test_what_is_folded_opens_by_key_and_is_on_paper(browser: Any, folder: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((folder / "attention.html").as_uri())
    hidden = page.locator("details.folded").first.locator(".formula").first
    assert not hidden.is_visible()
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert hidden.is_visible()
    page.keyboard.press("Enter")
    assert not hidden.is_visible()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert hidden.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert not hidden.is_visible()
    page.close()


def test_on_paper_the_rule_above_a_passage_goes_with_its_heading(
    browser: Any, folder: Path
) -> None:
    page = browser.new_page()
    page.goto((folder / "block.html").as_uri())
    page.emulate_media(media="print")
    widths = "all => all.map((one) => getComputedStyle(one).borderTopWidth)"
    assert set(page.locator(".passage").evaluate_all(widths)) == {"0px"}
    assert set(page.locator(".passage > h2").evaluate_all(widths)) == {"1px"}
    page.close()
