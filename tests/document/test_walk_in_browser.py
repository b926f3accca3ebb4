"""The walk through the pass on a book's first page: on request, by keyboard, with less motion."""

from __future__ import annotations

from typing import Any

from books import Shelf
from browser import DESKTOP, Windows, run_axe

NOW = "[...document.querySelectorAll('.pass a.now text')].map(text => text.textContent)"


def first_page(opened: Windows, shelf: Shelf, **settings: Any) -> Any:
    return opened(shelf["tiny"].folder / "index.html", **settings)


def test_nothing_moves_until_the_button_is_pressed(opened: Windows, shelf: Shelf) -> None:
    page = first_page(opened, shelf)
    button = page.locator(".walk button")
    assert button.inner_text() == "Walk through the pass"
    assert page.evaluate(NOW) == []
    button.click()
    assert button.inner_text() == "Pause"
    assert page.evaluate(NOW) == ["tokens"]
    button.click()
    assert button.inner_text() == "Walk through the pass"
    assert page.locator(".walker").count() == 1


def test_the_keyboard_goes_there_and_back_and_ends_it(opened: Windows, shelf: Shelf) -> None:
    page = first_page(opened, shelf)
    page.locator(".walk button").focus()
    for _station in range(7):
        page.keyboard.press("ArrowRight")
    told = page.locator(".walk p").inner_text()
    count = page.locator(".pass a[data-station]").count()
    assert told.startswith(f"Station 7 of {count}: ")
    assert "√" in told  # the numbers of the station, with their sign
    page.keyboard.press("ArrowLeft")
    assert page.locator(".walk p").inner_text().startswith(f"Station 6 of {count}: ")
    assert run_axe(page) == []
    page.keyboard.press("Escape")
    assert page.evaluate(NOW) == []
    assert page.locator(".walk p").inner_text() == ""


def test_with_less_motion_each_press_is_one_station(opened: Windows, shelf: Shelf) -> None:
    page = first_page(opened, shelf, viewport=DESKTOP, reduced_motion="reduce")
    button = page.locator(".walk button")
    for _press in range(3):
        assert button.inner_text() == "Next station"
        button.click()
    assert page.locator(".walk p").inner_text().startswith("Station 3 of ")
    walker = page.locator(".walker").evaluate("it => getComputedStyle(it).transitionDuration")
    assert walker in ("0s", "1e-05s")


def test_every_title_is_written_in_full_on_a_desktop(opened: Windows, shelf: Shelf) -> None:
    page = first_page(opened, shelf, viewport={"width": 1440, "height": 900})
    cut = page.evaluate(
        "[...document.querySelectorAll('.top .title')].filter(it => it.offsetWidth < 20)"
        ".map(it => it.textContent)"
    )
    assert cut == []
    assert page.evaluate("getComputedStyle(document.querySelector('.top .title')).position") == (
        "static"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
