"""A worksheet does not say what it asks for: the whole sheet is searched, in every form it has."""

from __future__ import annotations

import json
import re
from functools import cache
from html import unescape
from typing import Any

import pytest
import yaml
from worksheet_samples import make_worksheet

from byhand.document.compose.worksheet import Worksheet
from byhand.document.compose.worksheet.claims import claims_text
from byhand.document.media.html.worksheet import worksheet_page
from byhand.document.media.typst.worksheet import worksheet_source
from byhand.document.parts import NumberTable

USUAL, LEARNING = ("values", "shapes", "counts"), ("values", "shapes", "gradients", "step")
SHEETS = [
    *(("tiny", 0), ("tiny", 1), ("journey", 0), ("journey", 2), ("abc", 1), ("minigpt", 0)),
    *(("tiny", 0, LEARNING), ("journey", 1, LEARNING), ("abc", 2, LEARNING)),
]


@cache
def sheet_of(model: str, seed: int, which: tuple[str, ...] = USUAL, blanks: int = 26) -> Worksheet:
    return make_worksheet(model, blanks=blanks, seed=seed, which=which)


@pytest.fixture(params=SHEETS, ids=lambda each: "-".join(map(str, each[:2])))
def sheet(request: pytest.FixtureRequest) -> Worksheet:
    return sheet_of(*request.param)


def page_of(sheet: Worksheet) -> str:
    """The page without what only makes it look as it does."""
    page = worksheet_page(sheet)
    return unescape(re.sub(r"<style>.*?</style>|<script>.*?</script>", "", page, flags=re.DOTALL))


def decimals(sheet: Worksheet) -> re.Pattern[str]:
    return re.compile(rf"(?<!\d)\d+\.\d{{{sheet.decimals}}}(?!\d)")


def shown(sheet: Worksheet) -> dict[str, str]:
    """Address → decimals of every number of the tables."""
    return {
        number.address: number.cell.decimal or ""
        for passage in sheet.book.passages
        for table in passage.show
        if isinstance(table, NumberTable) and table.kind == "step"
        for row in table.rows
        for number in row.numbers
    }


# ------------------------------------------------------------------ values


def test_results_stand_in_tables_alone(sheet: Worksheet) -> None:
    page = re.sub(r"<table>.*?</table>", "", page_of(sheet), flags=re.DOTALL)
    prose = re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    assert decimals(sheet).findall(prose) == []
    typeset = re.sub(r"number\((formula\(.*?\)|.*?)\)", "", worksheet_source(sheet))
    assert decimals(sheet).findall(typeset) == []


def test_every_number_that_is_asked_for_is_a_field_and_nothing_else(sheet: Worksheet) -> None:
    page = page_of(sheet)
    source = worksheet_source(sheet)
    for address in sheet.answers:
        fields = rf'<input [a-z]+="\w+" data-a="{re.escape(address)}"'
        assert len(re.findall(fields, page)) == 1, address
        assert f'<td class="n" data-a="{address}"' not in page
    assert source.count("blank(") == len(sheet.answers)


def test_the_claims_give_what_the_tables_show_and_leave_the_rest_blank(sheet: Worksheet) -> None:
    printed = shown(sheet)
    data = yaml.load(claims_text(sheet), Loader=yaml.BaseLoader)
    saved = json.loads(page_of(sheet).partition('id="sheet">')[2].partition("</script>")[0])
    foot = yaml.load(saved["foot"], Loader=yaml.BaseLoader)
    assert data["given"] == foot["given"]
    for address, value in data["given"].items():
        for place, text in entries(address, value):
            assert text in ("_", "masked") or text == printed[place], place
            learned = place.startswith(("grad.", "losses"))
            masked = learned and not printed.get(place)  # it has no gradient, or does not count
            assert (text == "_") == (place in sheet.answers or masked), place
    assert all(text == "_" for text in leaves(list(data["claims"].values())))


def test_no_later_line_repeats_a_blank(sheet: Worksheet) -> None:
    """Where a step hands its numbers on unchanged, what it hands on is blank too."""
    printed = {a: text for a, text in shown(sheet).items() if a not in sheet.answers}
    plan = plan_of(sheet)
    for blank in sheet.blanks:
        name, bracket, _index = blank.places[0].partition("[")
        if blank.kind != "values" or bracket == "":
            continue
        for reader in (step for step in plan if plan[name].address in step.reads):
            if reader.shape != plan[name].shape:
                continue
            same = [f"{reader.address}[{place.partition('[')[2]}" for place in blank.places]
            assert [printed.get(place) for place in same] != list(blank.answers), blank.address


def test_a_value_that_one_share_of_1_hands_on_is_not_printed_behind_it() -> None:
    """Position 0 sees itself alone: what it mixes is its own value."""
    sheet = sheet_of("journey", 0, USUAL, 400)
    asked = {blank.address for blank in sheet.blanks}
    assert {"block.0.attn.v[0,0]", "block.0.attn.mixed[0,0]"} <= asked
    for seed in range(4):
        asked = {blank.address for blank in sheet_of("journey", seed).blanks}
        assert "block.0.attn.v[0,0]" not in asked or "block.0.attn.mixed[0,0]" in asked


# ------------------------------------------------------------------ counts and sizes


def test_no_other_count_says_the_number_that_is_asked_for(sheet: Worksheet) -> None:
    for questions in sheet.questions:
        asked = {line.value for line in questions.lines if line.address in sheet.answers}
        printed = {line.value for line in questions.lines if line.address not in sheet.answers}
        assert not asked & printed or questions.id == "shapes"


def test_a_size_that_is_asked_for_stands_nowhere(sheet: Worksheet) -> None:
    assert sheet.sizes
    said = [s for passage in sheet.book.passages for s in passage.sentences]
    for size in sheet.sizes:
        told = re.compile(rf"\b{size.axis} {size.length}\b")
        assert not told.search(re.sub(r"<[^>]+>", "", page_of(sheet)))
        assert not told.search(worksheet_source(sheet))
        assert not [s for s in said if re.search(rf"(?<![\d.,]){size.length}(?![\d.,])", s)]


def test_of_several_sizes_none_is_told_by_the_line_of_another() -> None:
    sheet = make_worksheet("journey", blanks=6, which=["shapes"])
    (questions,) = sheet.questions
    asked = {line.label for line in questions.lines}
    assert {"d", "head", "d_head"} <= asked
    for line in questions.lines:
        assert re.findall(r"(\w+) \?", line.detail) == [line.label]
        assert not asked & set(re.findall(r"(\w+) \d", line.detail))


def test_the_key_says_all_of_it() -> None:
    sheet = sheet_of("journey", 0)
    key = worksheet_page(sheet, key=True)
    assert "d_ff 4" in key
    assert "d_ff ?" not in key.partition('id="shapes"')[0]


# ------------------------------------------------------------------ reading a sheet


def entries(address: str, value: Any, index: tuple[int, ...] = ()) -> Any:
    """The places of nested lists, each with what stands there."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from entries(address, item, (*index, place))
    else:
        yield (f"{address}[{','.join(map(str, index))}]" if index else address), value


def leaves(value: Any) -> Any:
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


@cache
def plan_named(model: str, text: str, target: str | None) -> Any:
    from byhand.evaluate import prepare
    from byhand.models import open_model
    from byhand.numbers.pencil import Pencil

    return prepare(open_model(model), text, Pencil(3), target=target).plan


def plan_of(sheet: Worksheet) -> Any:
    return plan_named(sheet.book.model, sheet.text, sheet.target)
