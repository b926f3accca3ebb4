"""A worksheet in a real Chromium: filled in, saved, and marked by `byhand check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, FAULTS, Windows
from worksheet_samples import make_worksheet, write_worksheet

import byhand
from byhand.checking.grading import Graded, grade
from byhand.document.compose.worksheet import Worksheet
from patience import PATIENCE

BLANKS, SEED = 16, 2


@pytest.fixture(scope="module")
def sheet() -> Worksheet:
    return make_worksheet("journey", blanks=BLANKS, seed=SEED, language="en")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("worksheet")
    write_worksheet("journey", target, blanks=BLANKS, seed=SEED)
    return target


@pytest.fixture(scope="module")
def browser(windows: Windows) -> Any:
    return windows.browser


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[Any]:
    """The sheet; at the end it is asked whether it was quiet."""
    said: list[str] = []
    context = browser.new_context(viewport={"width": 1200, "height": 900}, accept_downloads=True)
    found = context.new_page()
    found.set_default_timeout(1000 * PATIENCE)
    found.on("request", lambda request: said.append(request.url))
    found.on("console", lambda message: said.append(message.text))
    found.on("pageerror", lambda error: said.append(str(error)))
    found.goto((folder / "worksheet.html").as_uri())
    yield found
    context.close()
    assert [one for one in said if not one.startswith(("file:", "data:", "blob:"))] == []


def saved(page: Any, target: Path) -> Path:
    with page.expect_download() as download:
        page.locator(".save button").click()
    download.value.save_as(target)
    return target


def graded(path: Path) -> Graded:
    (only,) = byhand.check("journey", path).texts
    return grade(only)


def fill(page: Any, sheet: Worksheet) -> None:
    for address, answer in sheet.answers.items():
        page.locator(f'input[data-a="{address}"]').fill(answer)


def test_there_is_a_field_for_every_answer_and_none_is_given_away(
    page: Any, sheet: Worksheet
) -> None:
    fields = page.locator("input[data-a]").evaluate_all("all => all.map((one) => one.dataset.a)")
    assert sorted(fields) == sorted(sheet.answers)
    assert page.locator("input[data-a]").evaluate_all("all => all.map((one) => one.value)") == [
        "" for _field in fields
    ]


def test_what_is_typed_is_saved_as_claims_that_get_full_marks(
    page: Any, sheet: Worksheet, tmp_path: Path
) -> None:
    fill(page, sheet)
    status = page.locator(".save [role=status]")
    assert status.inner_text() == f"{len(sheet.answers)} of {len(sheet.answers)} fields filled in"
    page.locator("#student").fill('Ada "the first"')
    path = saved(page, tmp_path / "mine.yaml")
    assert 'student: "Ada \\"the first\\""' in path.read_text("utf-8")
    found = graded(path)
    assert (found.total, found.out_of) == (BLANKS, BLANKS)


def test_the_file_and_the_command_take_the_student_s_name(page: Any) -> None:
    assert page.locator(".intro code").last.inner_text() == "byhand check journey worksheet.yaml"
    page.locator("#student").fill("Ana María")
    command = "byhand check journey worksheet-ana-maria.yaml"
    assert page.locator(".intro code").last.inner_text() == command
    with page.expect_download() as download:
        page.locator(".save button").click()
    assert download.value.suggested_filename == "worksheet-ana-maria.yaml"


def test_one_wrong_answer_costs_its_mark_and_no_other(
    page: Any, sheet: Worksheet, tmp_path: Path
) -> None:
    fill(page, sheet)
    wrong = next(blank for blank in sheet.blanks if blank.kind == "counts")
    page.locator(f'input[data-a="{wrong.places[0]}"]').fill("7")
    assert graded(saved(page, tmp_path / "mine.yaml")).total == BLANKS - 1


def test_signs_and_commas_as_people_write_them_are_read(
    page: Any, sheet: Worksheet, tmp_path: Path
) -> None:
    fill(page, sheet)
    negative = next(a for a, text in sheet.answers.items() if text.startswith("-"))
    typed = sheet.answers[negative].replace("-", "−").replace(".", ",")
    page.locator(f'input[data-a="{negative}"]').fill(typed)
    assert graded(saved(page, tmp_path / "mine.yaml")).total == BLANKS


@pytest.mark.parametrize("typed", ["103,680", "103.680", "103 680", "103680"])
def test_a_count_with_its_thousands_apart_is_a_whole_number(
    page: Any, sheet: Worksheet, tmp_path: Path, typed: str
) -> None:
    count = next(blank for blank in sheet.blanks if blank.kind == "counts")
    page.locator(f'input[data-a="{count.places[0]}"]').fill(typed)
    text = saved(page, tmp_path / "mine.yaml").read_text("utf-8")
    assert f"  {count.address}: 103680\n" in text


def test_the_key_shows_every_answer_and_how_it_comes_about(
    browser: Any, folder: Path, sheet: Worksheet
) -> None:
    page = browser.new_page()
    page.goto((folder / "worksheet-key.html").as_uri())
    assert page.locator(".answer").count() == len(sheet.answers)
    assert page.locator(".solution math").count() > 0
    assert page.locator("input").count() == 0
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_bars_the_way_of_anyone_who_fills_it_in(
    browser: Any, folder: Path, scheme: str, width: int
) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    page.goto((folder / "worksheet.html").as_uri())
    assert page.evaluate(CONTRASTS) == []
    assert page.evaluate(FAULTS) == []
    unnamed = "all => all.filter((one) => !(one.labels?.length || one.ariaLabel)).length"
    assert page.locator("input").evaluate_all(unnamed) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
