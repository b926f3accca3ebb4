"""The page of a notebook: whole, well-formed, and with nothing in it that was not escaped."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

import byhand
from byhand.render.at import workings
from byhand.render.html import page

VOID = {"br"}


class Checker(HTMLParser):
    """Every tag that opens is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str) -> str:
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return checker.text


@pytest.mark.parametrize("name", ["tiny", "journey", "abc-walkthrough"])
def test_a_trace_shows_itself_in_a_notebook(name: str) -> None:
    text = text_of(byhand.trace(name)._repr_html_())
    assert name in text
    assert "embed.token = E[token]" in text


def test_the_forms_and_the_marks_are_on_the_page() -> None:
    text = text_of(byhand.trace("tiny", "a b")._repr_html_())
    assert "e^1/(e^1 + e^2)= 1/(1 + e)≈ 0.2689" in text
    assert "↗ position 1 (b) leaves the exact numbers here" in text
    assert "ahead by 1, proven" in text


def test_the_working_of_a_number_can_be_a_page_too() -> None:
    trace = byhand.trace("journey")
    text = text_of(page(workings(trace, "loss[0]")))
    assert "= -ln(probs[3,4])" in text
    assert "≈ 1.8313" in text


def test_what_a_model_says_of_itself_is_escaped() -> None:
    model = replace(byhand.open_model("tiny"), about="<script>alert(1)</script>")
    assert "<script>" not in byhand.trace(model, "a")._repr_html_()
