"""The exercises of the course on its pages, in Chromium: told right or not, kept, and saved."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from byhand.courses import Course, course_files, make_course
from calling import Outcome

sys.path.append(str(Path(__file__).parents[1] / "document"))

from browser import CONTRASTS, FAULTS, PHONE, Windows, launched, run_axe

FIELDS = "boxes => boxes.map(box => box.dataset.answer)"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course in Spanish, where numbers have a comma."""
    folder = tmp_path_factory.mktemp("course")
    course: Course = make_course("es")
    for name, data in course_files(course).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def windows() -> Iterator[Windows]:
    with launched() as browser:
        found = Windows(browser)
        yield found
        found.close()


def answer(page: Any, place: int, texts: list[str]) -> tuple[set[str], str]:
    """Types an answer, presses the button, and gives what is said."""
    box = page.locator(".answering").nth(place)
    for at, text in enumerate(texts):
        box.locator("input").nth(at).fill(text)
    box.locator("button").click()
    # the text of a passage out of sight is not laid out
    return set(box.get_attribute("class").split()), box.locator("[role=status]").text_content()


def exercises(page: Any) -> list[dict[str, Any]]:
    return [json.loads(text) for text in page.eval_on_selector_all(".answering", FIELDS)]


ANSWERED = """key => [...document.querySelectorAll(".answering")].map(box => {
  const told = JSON.parse(box.dataset.answer);
  const typed = told[key].map(text => text.replace(".", ","));
  box.querySelectorAll("input").forEach((input, at) => { input.value = typed[at]; });
  box.querySelector("button").click();
  return [told.address, told.slip, box.className, box.querySelector("[role=status]").textContent];
})"""


def test_every_answer_is_told_right_and_every_slip_wrong_with_its_name(
    pages: Path, windows: Windows
) -> None:
    """The script of the page types and presses: 110 answers by hand would take long."""
    asked = 0
    for chapter in sorted(path.stem for path in pages.glob("*.html")):
        page = windows(pages / f"{chapter}.html")
        for address, _slip, kind, _said in page.evaluate(ANSWERED, "right"):
            assert kind == "answering right", (chapter, address)
        for address, slip, kind, said in page.evaluate(ANSWERED, "wrong"):
            assert kind == "answering wrong", (chapter, address)
            assert slip in said
            asked += 1
    assert asked == 55
    assert windows.complaints == []


@pytest.mark.parametrize(
    ("typed", "kind", "said"),
    [
        ("0,087", "right", "Correcto"),
        ("0.0872", "right", "Correcto"),
        ("0,09", "unsure", "3 decimales"),
        ("0,08", "wrong", "otra vez"),
        ("un poco", "unsure", "no se puede leer"),
        ("", "unsure", "antes"),
        ("1/0", "wrong", "otra vez"),
    ],
)
def test_an_answer_is_judged_by_the_digits_that_were_written(
    pages: Path, windows: Windows, typed: str, kind: str, said: str
) -> None:
    page = windows(pages / "attention.html")
    classes, told = answer(page, 0, [typed])
    assert kind in classes
    assert said in told


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("1/(e² + 1)", "unsure"),
        ("1/(e^2 + 1)", "right"),
        ("0,1192", "unsure"),
        ("e^2/(1+e^2)", "wrong"),
    ],
)
def test_an_exact_answer_may_be_written_in_any_form(
    pages: Path, windows: Windows, typed: str, kind: str
) -> None:
    page = windows(pages / "exact.html")
    assert kind in answer(page, 0, [typed])[0]


def test_answers_are_kept_and_saved_as_a_sheet_that_check_marks(
    pages: Path, windows: Windows, byhand: Callable[..., Outcome], tmp_path: Path
) -> None:
    page = windows(pages / "attention.html")
    told = exercises(page)
    for place, one in enumerate(told):
        answer(page, place, [text.replace(".", ",") for text in one["right"]])
    answer(page, 0, [told[0]["wrong"][0]])
    page.reload()
    assert page.locator(".answering.right").count() == 4
    assert page.text_content(".done") == "4 de 5 correctas"
    with page.expect_download() as download:
        page.click(".sheet button")
    sheet = tmp_path / download.value.suggested_filename
    download.value.save_as(sheet)
    assert sheet.name == "02-attention.yaml"
    marked = byhand("check", "journey", str(sheet))
    assert marked.status == 1
    assert "the scores are not scaled" in " ".join(marked.out.split())
    assert "1 error here" in marked.out


def test_a_chapter_is_accessible_and_fits_a_phone(pages: Path, windows: Windows) -> None:
    for settings in ({}, {"color_scheme": "dark"}, {"viewport": PHONE}):
        page = windows(pages / "floats.html", **settings)
        answer(page, 0, ["0,5"])
        assert page.evaluate(CONTRASTS) == []
        assert page.evaluate(FAULTS) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert run_axe(page) == []
