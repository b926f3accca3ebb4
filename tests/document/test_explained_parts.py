"""How an explanation is shown: bars, grids and pages from parts; what stands in the data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest

import byhand
from byhand.document.compose.explanation import USUAL
from byhand.document.compose.explanation.numerals import Numerals, short_float
from byhand.document.compose.explanation.sections import sections, title
from byhand.document.compose.working import workings
from byhand.document.explanation import page
from byhand.document.media.html.explanation_page import section_lines
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.json.explanation import document_of
from byhand.document.media.json.records import write_document
from byhand.document.media.terminal.ink import Ink, width_of
from byhand.document.media.terminal.parts import Terminal
from byhand.document.media.terminal.wrapping import broken
from byhand.document.parts import (
    Cell,
    Column,
    Finding,
    Grid,
    Number,
    Part,
    Section,
    TermLine,
    Terms,
    Title,
)
from byhand.document.words import together
from byhand.explaining import Explanation
from byhand.language import speak

VOID = {"br", "link", "meta"}
TITLE = Title("model", "", (), (), masked=False)


@pytest.fixture(autouse=True)
def english_afterwards() -> Iterator[None]:
    yield
    speak("en")


@pytest.fixture(scope="module")
def abc() -> Explanation:
    return byhand.explain("abc")


@pytest.fixture(scope="module")
def minigpt() -> Explanation:
    return byhand.explain("minigpt")


@cache
def by_key(name: str) -> Explanation:
    return byhand.explain(name, keys=True)


def shown(*parts: Part, width: int = 60) -> list[str]:
    section = Section("lens", "Lens", "", parts)
    return list(Terminal(width).lines([TITLE, section]))[4:]


def term(name: str, value: str, size: float, kind: str = "term", **more: Any) -> TermLine:
    number = Number("", Cell("exact"), short=value)
    return TermLine(name, "", more.pop("token", ""), (), number, size, kind, **more)


def summed(*found: TermLine, closing: str = "") -> Terms:
    return Terms("", ("A", "B"), "A − B", found, "exact", closing)


def table(heads: Sequence[str], row: Sequence[str], kind: str = "words", **more: Any) -> Grid:
    columns = (Column(heads[0]), *(Column(head, kind) for head in heads[1:]))
    return Grid("", columns, (tuple(row),), **more)


# ------------------------------------------------------------------ the terminal


def test_bars_grow_from_one_axis_by_their_sign() -> None:
    bars = (
        term("a", "+2", 1.0, largest=True),
        term("b", "-1", -0.5),
        term("c", "0", 0.0),
        term("sum", "+1", 0.0, "sum"),
    )
    found = shown(summed(*bars, closing="remainder: exactly 0"))
    assert found[1].split("│")[1] == "████████████████████████ ◂"
    assert found[2].split("│")[0].endswith("██████")
    assert len({line.index("│") for line in found if "│" in line}) == 1
    assert found[4].strip() == "──"
    assert found[-1] == "  = remainder: exactly 0"


def test_without_room_there_are_numbers_and_no_bars() -> None:
    bar = term("block.0.attn.head_out[0]", "+2", 1.0)
    assert shown(summed(bar), width=34)[1] == "  block.0.attn.head_out[0]  +2"


def test_a_name_and_a_number_that_do_not_fit_side_by_side_stand_one_below_the_other() -> None:
    bars = (
        term("block.0.attn.head_out.key[0,0]", "+2.0000", 1.0, token="word"),
        term("sum", "+2.0000", 0.0, "sum"),
    )
    assert shown(summed(*bars), width=40)[1:] == [
        "  block.0.attn.head_out.key[0,0]  word",
        "    +2.0000",
        "    ───────",
        "  sum",
        "    +2.0000",
    ]


@pytest.mark.parametrize("width", [40, 44, 60, 80])
@pytest.mark.parametrize("name", ["abc", "minigpt", "abc-walkthrough"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    found = by_key(name)
    parts = tuple(sections(found, [*USUAL, "stream", "norms"]))
    told = Terminal(width).lines([title(found), *parts])
    assert [line for line in told if width_of(line) > width] == []


def test_wide_signs_count_twice_where_lines_are_broken() -> None:
    wide = "日本語 " * 9
    told = list(broken(wide + "x" * 30, 20, "• ", "  "))
    assert all(width_of(line) <= 20 for line in told)
    assert told[:2] == ["• 日本語 日本語", "  日本語 日本語"]
    assert "".join(told).replace(" ", "").replace("•", "") == "日本語" * 9 + "x" * 30
    assert list(broken("a  b   c", 5)) == ["a  b", "c"]
    assert list(broken(" ", 5)) == []
    assert list(broken("abcde " + "x" * 8, 5)) == ["abcde", "xxxxx", "xxx"]
    assert list(broken(together("one word") + " more", 9)) == ["one word", "more"]


def test_a_grid_that_is_too_wide_goes_on_below_with_its_first_column() -> None:
    heads = ("after", *(f"column{i}" for i in range(8)))
    found = shown(table(heads, ("x", *map(str, range(8))), "number"))
    assert all(width_of(line) <= 60 for line in found)
    assert [line.split()[0] for line in found if line] == ["after", "x"] * 2
    assert " ".join(found).count("column") == 8


def test_words_in_a_grid_are_broken_and_what_belongs_together_is_not() -> None:
    items = ", ".join(together(f"{i} word") for i in range(12))
    found = shown(table(("head", "looks"), ("h", items)))
    assert all(width_of(line) <= 60 for line in found)
    assert not any(line.rstrip().endswith(tuple("0123456789")) for line in found)
    assert "\u00a0" not in "".join(found)


def test_a_number_wider_than_its_column_begins_a_line_of_its_own() -> None:
    items = f"1 a 1.0, {together('0 b 0.' + '123456789' * 9)}"
    cells = [line[5:] for line in shown(table(("head", "looks"), ("h", items)))[2:]]
    assert [cells[0].strip(), cells[1].strip()[:6]] == ["1 a 1.0,", "0 b 0."]


def test_where_formulas_do_not_fit_every_cell_has_a_line() -> None:
    columns = (Column("component"), Column("formula", "formula"), Column("count", "number"))
    rows = (("block 0 · MLP", "2·d·d_ff = 2·64·256 = 32,768", "32,768"),)
    grid = Grid("", columns, rows, (("total", "", "103,680"),))
    assert list(Terminal(42).lines([grid])) == [
        "  block 0 · MLP",
        "    formula  2·d·d_ff = 2·64·256 = 32,768",
        "    count    32,768",
        "  " + "─" * 38,
        "  total",
        "    count    103,680",
    ]


def test_the_first_sentence_of_a_finding_is_strong_in_a_section_even_by_itself() -> None:
    section = Section("facts", "Facts", "", (Finding("Nothing is decided."),))
    shown = list(Terminal(60, Ink(True)).lines([section]))
    assert "\x1b[1m  Nothing is decided.\x1b[0m" in shown


def test_what_a_number_stands_for_is_no_aside() -> None:
    shown = list(Terminal(60, Ink(True)).lines(workings(byhand.trace("tiny"), "tokens[0]")))
    assert shown[-1] == "  the token a"


def test_a_cell_that_matters_most_has_a_sign_that_is_explained() -> None:
    grid = table(("", "x"), ("a", "1"), "number", strong=frozenset({(0, 1)}), note="so")
    assert shown(grid)[2:] == ["  a  1*", "  * so"]


def test_floats_are_short_and_exact_numbers_are_exact_where_all_of_a_column_are() -> None:
    assert [short_float(x) for x in (0.0, 14.20312, 0.01234567, 1e-7, 123456.0, float("inf"))] == [
        "0",
        "14.203",
        "0.0123",
        "1.00e-7",
        "123456",
        "inf",
    ]
    trace = byhand.trace("tiny")
    numerals = Numerals.of(trace)
    exact, named = trace["logits[1,0]"], trace["block.0.attn.weights[0,1,1]"]
    assert [n.short for n in numerals.column([exact, exact])] == ["+1", "+1"]
    assert [n.short for n in numerals.column([exact, named])] == ["+1.0000", "+0.7311"]


# ------------------------------------------------------------------ the page


class Page(HTMLParser):
    """A page's ids, links and what it loads; every tag that opens is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.links += [found["href"] or ""] if "href" in found and tag != "link" else []
        self.loaded += [str(found[key]) for key in ("src", "srcset", "action") if key in found]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for key, value in attrs if key == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("name", ["abc", "minigpt"])
def test_a_page_is_whole_and_needs_nothing_else(
    name: str, language: str, request: pytest.FixtureRequest
) -> None:
    speak(language)
    html = page(request.getfixturevalue(name))
    found = Page(html)
    assert f'<html lang="{language}" class="no-script">' in html
    assert len(found.ids) == len(set(found.ids))
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)
    assert found.loaded == []
    assert "<script" not in html
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)", html)


def test_a_page_has_the_plane_and_the_bars_and_says_how_the_sum_closes(abc: Explanation) -> None:
    html = page(abc)
    assert html.count("<svg") >= 1
    assert 'class="plus"' in html
    assert 'class="minus"' in html
    assert "Remainder: exactly 0." in html
    assert 'title="explain.logits.block.0.mlp.out[2,0]"' in html


def test_what_tokens_say_is_no_markup() -> None:
    told = Section("lens", "L", "", (Finding("", ("<b>&",)), table(("<i>",), ("<u>",))))
    html = "".join(section_lines(told, Inscriber(Mathml("."))))
    assert not re.search("<[biu]>", html)


def test_below_a_notebook_cell_it_says_what_comes_and_why_without_ids(abc: Explanation) -> None:
    html = abc._repr_html_()
    assert html is not None
    assert 'id="' not in html
    assert "After C (position 2) comes A" in html
    assert "Remainder: exactly 0." in html
    assert repr(abc) == "<Explanation of abc at position 2: 'A' against 'C'>"


# ------------------------------------------------------------------ the data


def test_every_number_of_the_data_has_an_address_of_its_own(abc: Explanation) -> None:
    document = document_of(abc, ["attribution", "lens", "stream"])

    def numbers(part: object) -> Iterator[str]:
        if isinstance(part, dict):
            if "value" in part and "address" in part:
                assert part["decimal"] is not None
                if "less" not in part:  # a difference has those of both
                    yield part["address"]
            for value in part.values():
                yield from numbers(value)
        if isinstance(part, list):
            for value in part:
                yield from numbers(value)

    addresses = list(numbers(document))
    # terms, total and remainder of three logits; the lens at three positions; the stream
    assert len(addresses) == 9 * 3 + 3 * 3 * 3 + 8 * 2
    assert len(addresses) == len(set(addresses))
    assert all(address.startswith("explain.") for address in addresses)


def test_a_table_of_a_head_stands_as_a_step_does_in_the_data_of_a_trace(abc: Explanation) -> None:
    ((head,),) = (layer["heads"] for layer in document_of(abc, ["attention"])["attention"])
    scores = head["qk"]
    assert (scores["address"], scores["head"]) == ("explain.qk.block.0", 0)
    assert scores["rows"] == scores["columns"] == [0, 1, 2]
    assert scores["decimal"][2][2].startswith("1.5543")


def test_the_terms_of_the_data_add_up(minigpt: Explanation) -> None:
    found = document_of(minigpt, ["attribution"])["attribution"]["difference"]
    total = sum(term["numbers"][0]["value"] for term in found["terms"])
    assert total == pytest.approx(found["total"][0]["value"], rel=1e-6)
    assert (found["closes"], found["against"]["text"]) == ("rounded", "-í")


def test_the_data_are_json_without_names_for_no_numbers(minigpt: Explanation) -> None:
    to = StringIO()
    write_document(document_of(minigpt), to)
    assert json.loads(to.getvalue(), parse_constant=pytest.fail)["model"] == "minigpt"


def test_all_sections_can_be_data(abc: Explanation) -> None:
    names = ["attribution", "lens", "attention", "geometry", "facts", "health", "norms", "inputs"]
    document = document_of(abc, names)
    assert set(names) <= set(document)
    assert len(document["inputs"]["texts"]) == 39
    assert document["facts"]["facts"][0]["needed"] == ["block.0.mlp.out"]
