"""What a reader sees and does on the pages of a book, in a real Chromium: mostly on `tiny`'s.

That every page of every book opens, steps and agrees with the trace is in test_books_in_browser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from books import Shelf
from browser import CONTRASTS, DESKTOP, FAULTS, PHONE, Windows, run_axe


@pytest.fixture
def tiny_page(opened: Windows, shelf: Shelf) -> Any:
    """Opens a page of the book of `tiny`."""
    return lambda name, **settings: opened(shelf["tiny"].folder / f"{name}.html", **settings)


# ------------------------------------------------------------------ what a reader does


def test_keys_step_through_the_passages_and_on_to_the_next_page(
    tiny_page: Any, shelf: Shelf
) -> None:
    first, second = shelf["tiny"].book.pages[1:3]
    page = tiny_page(first.slug)
    page.keyboard.press("j")  # a page opens at its head: the first passage is a step away, or here
    begun = page.evaluate("document.activeElement.id")
    ids = [passage.id for passage in first.passages]
    assert begun in ids[:2]
    for expected in ids[ids.index(begun) + 1 :]:
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == expected
        assert page.url.endswith(f"#{expected}")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == ids[-2]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.wait_for_url(f"**/{second.slug}.html")
    page.keyboard.press("ArrowLeft")
    if not page.url.endswith(f"{first.slug}.html#{ids[-1]}"):
        page.wait_for_url(f"**/{first.slug}.html#{ids[-1]}")


def test_the_stepped_to_passage_is_seen_and_has_a_visible_focus(tiny_page: Any) -> None:
    page = tiny_page("attention", reduced_motion="reduce")
    page.keyboard.press("j")
    page.keyboard.press("j")
    top = page.evaluate("document.activeElement.getBoundingClientRect().top")
    assert 0 <= top < 200
    bar = "getComputedStyle(document.activeElement, '::before').backgroundColor"
    assert page.evaluate(bar) != "rgba(0, 0, 0, 0)"


def test_a_number_opens_its_working_with_the_keyboard_and_escape_closes_it(tiny_page: Any) -> None:
    page = tiny_page("attention")
    number = page.locator('.n[data-a="block.0.attn.weights[0,1,1]"]').first
    number.locator("button").first.focus()
    page.keyboard.press("Enter")
    working = number.locator(".working")
    assert working.is_visible()
    assert "block.0.attn.weights[0,1,1]" in working.inner_text()
    assert "0.7311" in working.inner_text()
    page.keyboard.press("Escape")
    assert not working.is_visible()


def test_the_link_of_a_number_is_copied_and_leads_to_it(tiny_page: Any, shelf: Shelf) -> None:
    page = tiny_page("attention", permissions=["clipboard-read", "clipboard-write"])
    number = page.locator('.n[data-a="block.0.attn.scores[0,1,1]"]').first
    number.locator("button").first.click()
    number.locator(".copy").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert (
        link == (shelf["tiny"].folder / "attention.html").as_uri() + "#block.0.attn.scores[0,1,1]"
    )
    page.goto(link)
    assert page.evaluate("document.querySelector(':target').dataset.a") == (
        "block.0.attn.scores[0,1,1]"
    )


def test_a_link_to_a_passage_far_down_leads_to_it(opened: Windows, shelf: Shelf) -> None:
    last = shelf["minigpt"].book.pages[2].passages[-1].id
    page = opened(shelf["minigpt"].folder / "attention.html")
    page.evaluate("id => document.querySelector(`a.number[href='#${id}']`).click()", last)
    page.wait_for_function(  # the last one may end the page before it reaches the head
        """id => {
          const { top } = document.getElementById(id).getBoundingClientRect();
          return 0 <= top && top < 500;
        }""",
        arg=last,
    )


def test_without_the_script_figures_are_marked_and_workings_open(tiny_page: Any) -> None:
    page = tiny_page("attention", java_script_enabled=False)
    assert page.locator(".passage .pass .lit").first.is_visible()
    number = page.locator('.n[data-a="block.0.attn.scores[0,1,1]"]').first
    number.locator("button").first.click()
    assert number.locator(".working").is_visible()


# ------------------------------------------------------------------ the badge


@pytest.mark.parametrize(
    ("printed", "instead"),
    [
        ('<data value="0.7311">0.7311</data>', '<data value="0.7311">0.7313</data>'),
        ('<data value="0.7311">0.7311</data>', '<data value="0.7311">0.8311</data>'),
        ("<mfrac><mi>e</mi>", "<mfrac><mn>2</mn>"),
        ('"1 1 * 1 1 * +"', '"1 1 * 1 2 * +"'),
    ],
    ids=["a last digit", "a first digit", "a form", "a working"],
)
def test_a_number_tampered_with_turns_the_badge_red(
    opened: Windows, shelf: Shelf, tmp_path: Path, printed: str, instead: str
) -> None:
    text = (shelf["tiny"].folder / "attention.html").read_text("utf-8")
    start = text.index('id="block.0.attn.weights[0,1,1]"') if "1 1 *" not in printed else 0
    assert printed in text[start:]
    changed = text[:start] + text[start:].replace(printed, instead, 1)
    (tmp_path / "attention.html").write_text(changed, "utf-8")
    page = opened(tmp_path / "attention.html")
    page.wait_for_selector("#badge[data-checked]")
    assert page.locator("#badge").get_attribute("class") == "differ"
    assert int(page.locator("#badge").get_attribute("data-wrong") or 0) >= 1
    assert page.locator(".n.wrong").count() >= 1


# ------------------------------------------------------------------ everyone, everywhere


# Desktop and light first; dark changes colours alone, a phone the layout.  Of the other books, the
# pages that have parts which tiny's have not: claims, strips, statistics.
LOOKED_AT = [
    *(("tiny", page, "desktop light") for page in ("index", "whole", "attention", "next", "exact")),
    ("tiny", "parameters", "desktop light"),
    ("tiny", "attention", "desktop dark"),
    ("tiny", "exact", "desktop dark"),
    ("tiny", "whole", "phone light"),
    ("tiny", "parameters", "phone dark"),
    ("abc", "attention", "desktop light"),
    ("journey-es", "exact", "desktop light"),
    ("minigpt", "next", "desktop light"),
    ("large", "tokens", "phone light"),
    ("large", "block", "desktop dark"),
]


@pytest.mark.parametrize(("book", "name", "look"), LOOKED_AT)
def test_nothing_bars_the_way_of_anyone(
    opened: Windows, shelf: Shelf, book: str, name: str, look: str
) -> None:
    screen, scheme = look.split()
    size = DESKTOP if screen == "desktop" else PHONE
    page = opened(shelf[book].folder / f"{name}.html", color_scheme=scheme, viewport=size)
    assert page.evaluate(CONTRASTS) == []
    assert page.evaluate(FAULTS) == []
    assert run_axe(page) == []


@pytest.mark.parametrize("book", ["tiny", "journey", "minigpt"])
def test_no_page_is_wider_than_its_screen(opened: Windows, shelf: Shelf, book: str) -> None:
    for each in shelf[book].texts:
        page = opened(shelf[book].folder / each)
        for width in (320, 390, 820, 1360, 1800) if book == "tiny" else (320, 820):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (each, width)


@pytest.mark.parametrize("book", ["tiny", "journey"])
def test_nothing_on_a_phone_is_out_of_reach(opened: Windows, shelf: Shelf, book: str) -> None:
    """What is too wide can be scrolled to the right; what begins left of its box is lost."""
    for each in shelf[book].texts:
        page = opened(shelf[book].folder / each, viewport=PHONE)
        assert page.evaluate(LOST) == [], each


LOST = """
() => [...document.querySelectorAll("math, table, svg, code")].filter((node) => {
  if (!node.checkVisibility()) return false;
  for (let box = node.parentElement; box; box = box.parentElement)
    if (getComputedStyle(box).overflowX !== "visible")
      return node.getBoundingClientRect().left < box.getBoundingClientRect().left - 2;
  return node.getBoundingClientRect().left < -2;
}).map((node) => node.closest("[id]")?.id + ": " + node.textContent.slice(0, 60))
"""


def test_a_phone_shows_the_strip_and_a_desktop_the_whole_figure(tiny_page: Any) -> None:
    wide = tiny_page("attention")
    assert wide.locator(".passage .pass").first.is_visible()
    assert not wide.locator(".passage .dots").first.is_visible()
    narrow = tiny_page("attention", viewport=PHONE)
    assert narrow.locator(".passage .dots").first.is_visible()
    assert not narrow.locator(".passage .pass").first.is_visible()


def test_paper_has_the_figures_and_none_of_the_machinery(tiny_page: Any) -> None:
    page = tiny_page("attention")
    page.emulate_media(media="print")
    assert page.locator(".passage .pass").first.is_visible()
    for gone in (".top", ".turn", ".keys", "#badge"):
        assert not page.locator(gone).first.is_visible()


def test_whoever_wants_no_motion_gets_none(tiny_page: Any) -> None:
    page = tiny_page("attention", reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
