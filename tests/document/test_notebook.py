"""A trace below a cell of a notebook: a passage of the book that stands by itself."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, Windows

import byhand
from byhand.document.media.html.notebook import style
from byhand.language import speaking

VOID = {"br", "mspace"}


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
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def text_of(html: str) -> str:
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return checker.text


# ------------------------------------------------------------------ what it tells


@pytest.mark.parametrize("name", ["tiny", "journey", "abc", "abc-walkthrough", "minigpt"])
def test_a_trace_of_any_size_shows_the_pass_and_how_to_go_on(name: str) -> None:
    html = byhand.trace(name)._repr_html_()
    text = text_of(html)
    assert f"{name}, by hand" in text
    assert html.count('<svg class="pass"') == 1
    assert f'byhand.book(trace.model, trace.text, out="{name}-book")' in text


def test_the_figure_holds_the_values_and_the_table_the_predictions() -> None:
    html = byhand.trace("tiny", "a b")._repr_html_()
    assert '<text class="v named"' in html
    assert "(0.2689, 0.7311) √</text>" in html
    assert "After position 1 (b) comes a, 1 ahead of the second; this is proven" in text_of(html)


def test_the_loss_is_shown_where_there_is_a_target() -> None:
    assert '<data value="1.8313">' in byhand.trace("journey")._repr_html_()
    assert "loss = " not in text_of(byhand.trace("tiny", "a b")._repr_html_())


def test_boundaries_and_returns_are_told_at_their_steps() -> None:
    text = text_of(byhand.trace("tiny", "a b")._repr_html_())
    assert "Position 1 (b) leaves the exact numbers here" in text
    assert "Position 1 (b) is back in the exact numbers here" in text


def test_what_is_unknown_is_said() -> None:
    text = text_of(byhand.trace("abc-walkthrough")._repr_html_())
    assert "weight.block.0.attn.qkv is unknown" in text


def test_of_a_part_of_the_pass_the_steps_asked_for_are_marked_and_shown() -> None:
    html = byhand.trace("journey", only=["block.0.attn.weights"])._repr_html_()
    marked = re.findall(r'<g class="lit" data-node="([^"]*)"', html)
    assert marked == ["block-0-attn-weights"]
    assert "0.6740" in text_of(html)
    assert html.count("<table>") == 1


def test_enclosures_have_the_digits_that_were_proven() -> None:
    text = text_of(byhand.trace("journey", digits=8)._repr_html_())
    assert "8 significant digits, proven" in text
    assert "−0.095890721" in text


def test_it_speaks_the_language_spoken_with_its_decimal_comma() -> None:
    with speaking("es"):
        html = byhand.trace("journey")._repr_html_()
    assert '<div class="byhand" lang="es">' in html
    assert "1,8313" in text_of(html)


def test_what_a_model_says_of_itself_is_escaped() -> None:
    model = replace(byhand.open_model("tiny"), about="<script>alert(1)</script>")
    assert "<script>" not in byhand.trace(model, "a")._repr_html_()


# ------------------------------------------------------------------ beside other cells


def test_nothing_in_it_has_an_id_so_that_many_may_stand_on_one_page() -> None:
    assert not re.search(r"\s(id|for|popovertarget|href)=", byhand.trace("journey")._repr_html_())


def test_every_rule_of_its_style_is_inside_its_own_element() -> None:
    depth, outer = 0, []
    for piece in re.split(r"([{}])", re.sub(r"/\*.*?\*/", "", style(), flags=re.S)):
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth -= 1
        elif depth == 0 and piece.strip():
            outer.append(piece.strip())
    assert depth == 0
    assert len(outer) == 5
    for rule in outer:
        assert rule.startswith("@media") or all(
            ".byhand.byhand" in selector for selector in rule.split(", ")
        )


@pytest.fixture(scope="module")
def browser(windows: Windows) -> Any:
    return windows.browser


NOTEBOOK = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>cells</title>
<style>
.jp-RenderedHTMLCommon {{ font: 14px sans-serif }}
.jp-RenderedHTMLCommon table {{ table-layout: fixed; margin: 0 auto; font-size: 12px }}
.jp-RenderedHTMLCommon tbody tr:nth-child(odd) {{ background: #f5f5f5 }}
.jp-RenderedHTMLCommon td {{ padding: .5em; text-align: right }}
</style></head><body data-jp-theme-light="{light}"><table id="other"><caption>c</caption>
<tr><td class="n">1</td></tr></table><p id="prose" class="remark text">prose</p>
<div class="jp-RenderedHTMLCommon">{cell}</div></body></html>"""
LOOKS = """() => ["other", "prose"].map((id) => {
  const node = document.getElementById(id).querySelector("td") ?? document.getElementById(id);
  const { color, backgroundColor, padding, margin, font, display } = getComputedStyle(node);
  return [color, backgroundColor, padding, margin, font, display].join();
})"""


@pytest.mark.parametrize("light", ["true", "false"])
def test_in_a_notebook_it_can_be_read_and_changes_nothing_around_it(
    browser: Any, tmp_path: Path, light: str
) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    looks = []
    for name, cell in (("without", ""), ("with", byhand.trace("tiny", "a b")._repr_html_())):
        file = tmp_path / f"{name}.html"
        file.write_text(NOTEBOOK.format(cell=cell, light=light), "utf-8")
        page.goto(file.as_uri())
        looks.append(page.evaluate(LOOKS))
    assert looks[0] == looks[1]
    page.locator("summary").click()
    assert page.evaluate(CONTRASTS) == []
    striped = (
        "[...document.querySelectorAll('.byhand tr')].map(r => getComputedStyle(r).backgroundColor)"
    )
    assert set(page.locator(".byhand tr").evaluate_all(striped)) == {"rgba(0, 0, 0, 0)"}
    paper = page.locator(".byhand").evaluate("node => getComputedStyle(node).backgroundColor")
    assert paper == ("rgb(252, 252, 250)" if light == "true" else "rgb(20, 23, 27)")
    page.close()


PLAIN = {  # public classes that a notebook shows as they print, and why
    "ByhandError": "raised, not shown",
    "Float": "a number",
    "MiniGPT": "a torch module",
    "Numbers": "a number system",
    "Rational": "a number",
    "Undecided": "raised, not shown",
}


def test_a_notebook_shows_every_public_object() -> None:
    classes = {name: getattr(byhand, name) for name in byhand.__all__}
    shown = {name for name, kind in classes.items() if hasattr(kind, "_repr_html_")}
    assert {name for name, kind in classes.items() if isinstance(kind, type)} - shown == set(PLAIN)


def test_small_objects_are_shown_by_their_fields_and_a_model_by_its_parameters() -> None:
    trace = byhand.trace("tiny", "a b")
    following = trace.next[-1]._repr_html_() or ""
    assert [word for word in ("margin", "proven", "candidates") if word not in following] == []
    model = trace.model._repr_html_() or ""
    assert "token embedding" in model
    assert "vocab·d" in model
    with speaking("es"):
        assert "Tres palabras" in (trace.model._repr_html_() or "")
    (line,) = byhand.check("tiny", {"logits[1]": ["1", "-1", "1/2"]}, text="a b")
    marked = line._repr_html_() or ""
    assert [said for said in ("logits[1]", "error here", "claimed") if said not in marked] == []
    assert "Claim(" not in marked
    (scores,) = byhand.score("tiny", "a b", digits=4).scores
    assert "logprobs" in (scores._repr_html_() or "")
