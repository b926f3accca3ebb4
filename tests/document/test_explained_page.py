"""The page of an explanation in a real Chromium: it fits, it is legible, it asks for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CONTRASTS, DESKTOP, FAULTS, PHONE, Windows, run_axe

import byhand
from byhand.document.explanation import page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explained") / "abc.html"
    path.write_text(page(byhand.explain("abc")), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"]
)
def test_a_report_fits_is_legible_and_stands_by_itself(
    opened: Windows, report: Path, viewport: dict[str, int], scheme: str
) -> None:
    shown = opened(report, viewport=viewport, color_scheme=scheme)
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.evaluate(CONTRASTS) == []
    assert shown.evaluate(FAULTS) == []
    assert run_axe(shown) == []


def test_bars_reach_as_far_as_their_numbers_and_to_the_side_of_their_sign(
    opened: Windows, report: Path
) -> None:
    shown = opened(report)
    found = shown.evaluate(
        """() => [...document.querySelectorAll(".terms tbody tr:not(.sum)")].map((row) => {
          const bar = row.querySelector("i").getBoundingClientRect();
          const cell = row.querySelector(".signed").getBoundingClientRect();
          const face = row.querySelector(".difference .face");
          const told = face.querySelector("data")?.value ?? face.textContent.replace("−", "-");
          const value = Number(told);
          return [value, bar.left - cell.left, bar.width];
        })"""
    )
    largest = max(found, key=lambda each: abs(each[0]))
    axis = min(left for value, left, _width in found if value > 0)
    for value, left, width in found:
        assert width == pytest.approx(abs(value) / largest[0] * largest[2], abs=1.5)
        assert left == pytest.approx(axis if value > 0 else axis - width, abs=1.5)
