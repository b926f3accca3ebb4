"""The pages of a book in a real Chromium, opened from disk: what a reader sees and does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from gettext import NullTranslations
from pathlib import Path
from typing import Any

import pytest
from browser import CONTRASTS, FAULTS, axe_core, launched

import byhand
from byhand import language
from byhand.publishing.book import Book
from byhand.publishing.html import write_book
from byhand.publishing.making import make_book

DESKTOP = {"width": 1360, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def book() -> Book:
    return make_book("tiny")


@pytest.fixture(scope="module")
def folder(book: Book, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tiny")
    write_book(book, target)
    return target


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as found:
        yield found


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Any]:
    """Opens a page of the book and, at the end, asks whether it was quiet."""
    contexts, requests, complaints = [], [], []

    def open_page(name: str, path: Path | None = None, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": DESKTOP, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(((path or folder) / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert complaints == []


def slugs(book: Book) -> list[str]:
    return [page.slug for page in book.pages]


# ------------------------------------------------------------------ what is on the page


def test_every_page_opens_from_disk_asking_no_network_and_without_complaint(
    opened: Any, book: Book
) -> None:
    for name in ("index", *slugs(book)):
        page = opened(f"{name}.html")
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.compatMode") == "CSS1Compat"


def test_every_passage_marks_the_stations_that_compute_its_steps(opened: Any, book: Book) -> None:
    for each in book.pages:
        page = opened(f"{each.slug}.html")
        for passage in each.passages:
            marked = page.locator(f'[id="{passage.id}"] .pass .lit').evaluate_all(
                "nodes => nodes.flatMap(node => node.dataset.node.split(' '))"
            )
            computed = [n.id for n in book.spine.nodes if set(n.steps) & set(passage.lit)]
            assert marked == computed


def test_every_number_on_the_pages_is_the_traces(opened: Any, book: Book) -> None:
    trace = byhand.trace("tiny")
    seen = 0
    for slug in slugs(book):
        for address, shown, decimals in opened(f"{slug}.html").evaluate(READ):
            step, _bracket, index = address.rstrip("]").partition("[")
            if step.startswith("weight.") or step in ("tokens", "next", "target"):
                continue
            place = tuple(map(int, index.split(","))) if index else ()
            entry = trace.steps[trace.plan[step].address].at(place)
            if decimals:
                error = abs(Fraction(decimals) - Fraction(entry.decimal(12)))
                assert error <= Fraction(1, 10**4), address
            if shown:
                assert Fraction(shown) == entry.fraction, address
            seen += bool(shown or decimals)
    assert seen > 150


READ = """
() => [...document.querySelectorAll(".n[data-a]")].map((node) => {
  const face = node.querySelector(".face"), maths = face.querySelector("math");
  const decimals = face.querySelector("data")?.textContent.replace("−", "-") ?? "";
  const plain = maths && !maths.querySelector("mi, msqrt, msup");
  const written = (part) => part.localName === "mfrac"
    ? [...part.children].map(written).join("/") : part.children.length
    ? [...part.children].map(written).join("") : part.textContent.replace("−", "-");
  return [node.dataset.a, plain ? written(maths) : "", decimals];
})
"""


# ------------------------------------------------------------------ what a reader does


def test_keys_step_through_the_passages_and_on_to_the_next_page(opened: Any, book: Book) -> None:
    first, second = book.pages[1], book.pages[2]
    page = opened(f"{first.slug}.html")
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


def test_the_stepped_to_passage_is_seen_and_has_a_visible_focus(opened: Any) -> None:
    page = opened("attention.html", reduced_motion="reduce")
    page.keyboard.press("j")
    page.keyboard.press("j")
    top = page.evaluate("document.activeElement.getBoundingClientRect().top")
    assert 0 <= top < 200
    bar = "getComputedStyle(document.activeElement, '::before').backgroundColor"
    assert page.evaluate(bar) != "rgba(0, 0, 0, 0)"


def test_a_number_opens_its_working_with_the_keyboard_and_escape_closes_it(opened: Any) -> None:
    page = opened("attention.html")
    number = page.locator('.n[data-a="block.0.attn.weights[0,1,1]"]').first
    number.locator("button").first.focus()
    page.keyboard.press("Enter")
    working = number.locator(".working")
    assert working.is_visible()
    assert "block.0.attn.weights[0,1,1]" in working.inner_text()
    assert "0.7311" in working.inner_text()
    page.keyboard.press("Escape")
    assert not working.is_visible()


def test_the_link_of_a_number_is_copied_and_leads_to_it(opened: Any, folder: Path) -> None:
    page = opened("attention.html", permissions=["clipboard-read", "clipboard-write"])
    number = page.locator('.n[data-a="block.0.attn.scores[0,1,1]"]').first
    number.locator("button").first.click()
    number.locator(".copy").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == (folder / "attention.html").as_uri() + "#block.0.attn.scores[0,1,1]"
    page.goto(link)
    assert page.evaluate("document.querySelector(':target').dataset.a") == (
        "block.0.attn.scores[0,1,1]"
    )


def test_without_the_script_figures_are_marked_and_workings_open(opened: Any) -> None:
    page = opened("attention.html", java_script_enabled=False)
    assert page.locator(".passage .pass .lit").first.is_visible()
    number = page.locator('.n[data-a="block.0.attn.scores[0,1,1]"]').first
    number.locator("button").first.click()
    assert number.locator(".working").is_visible()


# ------------------------------------------------------------------ the badge


def test_the_badge_works_the_numbers_out_again_and_all_agree(opened: Any, book: Book) -> None:
    checked = 0
    for each in book.pages:
        page = opened(f"{each.slug}.html")
        if page.locator("#badge").count():
            page.wait_for_selector("#badge[data-checked]")
            assert page.locator("#badge").get_attribute("data-wrong") == "0"
            assert "differ" not in (page.locator("#badge").get_attribute("class") or "")
            checked += int(page.locator("#badge").get_attribute("data-checked") or 0)
    assert checked > 150


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
    opened: Any, folder: Path, tmp_path: Path, printed: str, instead: str
) -> None:
    text = (folder / "attention.html").read_text("utf-8")
    start = text.index('id="block.0.attn.weights[0,1,1]"') if "1 1 *" not in printed else 0
    assert printed in text[start:]
    changed = text[:start] + text[start:].replace(printed, instead, 1)
    (tmp_path / "attention.html").write_text(changed, "utf-8")
    page = opened("attention.html", tmp_path)
    page.wait_for_selector("#badge[data-checked]")
    assert page.locator("#badge").get_attribute("class") == "differ"
    assert int(page.locator("#badge").get_attribute("data-wrong") or 0) >= 1
    assert page.locator(".n.wrong").count() >= 1


def test_numbers_with_a_decimal_comma_are_read_and_agree_too(
    opened: Any, book: Book, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Comma(NullTranslations):
        def gettext(self, message: str) -> str:
            return "," if message == "." else message

    monkeypatch.setattr(language, "speak", lambda _name: setattr(language, "_catalogue", Comma()))
    write_book(replace(book, language="es"), tmp_path)
    page = opened("attention.html", tmp_path)
    page.wait_for_selector("#badge[data-checked]")
    assert page.locator("data", has_text="0,7311").count() >= 1
    assert page.locator("#badge").get_attribute("data-wrong") == "0"


# ------------------------------------------------------------------ everyone, everywhere


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_bars_the_way_of_anyone(
    opened: Any, book: Book, scheme: str, viewport: dict[str, int]
) -> None:
    axe = axe_core()
    plain = scheme == "light" and viewport == DESKTOP  # elsewhere, what the other pages share
    for name in ("index", *slugs(book)) if plain else ("index", "whole", "attention", "exact"):
        page = opened(f"{name}.html", color_scheme=scheme, viewport=viewport)
        assert page.evaluate(CONTRASTS) == []
        assert page.evaluate(FAULTS) == []
        if axe is not None:
            page.evaluate(axe)
            found = page.evaluate("axe.run()")["violations"]
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_no_page_is_wider_than_its_screen(opened: Any, book: Book) -> None:
    for name in ("index", *slugs(book)):
        page = opened(f"{name}.html")
        for width in (320, 390, 820, 1360, 1800):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)


def test_a_phone_shows_the_strip_and_a_desktop_the_whole_figure(opened: Any) -> None:
    wide = opened("attention.html")
    assert wide.locator(".passage .pass").first.is_visible()
    assert not wide.locator(".passage .dots").first.is_visible()
    narrow = opened("attention.html", viewport=PHONE)
    assert narrow.locator(".passage .dots").first.is_visible()
    assert not narrow.locator(".passage .pass").first.is_visible()


def test_paper_has_the_figures_and_none_of_the_machinery(opened: Any) -> None:
    page = opened("attention.html")
    page.emulate_media(media="print")
    assert page.locator(".passage .pass").first.is_visible()
    for gone in (".top", ".turn", ".keys", "#badge"):
        assert not page.locator(gone).first.is_visible()


def test_whoever_wants_no_motion_gets_none(opened: Any) -> None:
    page = opened("attention.html", reduced_motion="reduce")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
