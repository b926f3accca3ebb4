"""Every page of every built-in model's book in a real Chromium, opened from disk.

A page is opened once and asked everything: whether keys lead through its passages, whether the
figure lights what each passage computes, whether its numbers are the trace's, whether the badge
agrees, whether everybody can read it.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from books import EDITIONS, LARGE, NAMES, Made, Shelf, checkpoint_sized
from browser import CONTRASTS, FAULTS, Windows

import byhand
from budgets import LONG
from byhand.document.book import LEARNED, Page
from byhand.tracing import Trace

LEAST = {"abc-walkthrough": 18, LARGE: 40, "humble": 60}  # numbers on the pages, where they are few
LIKE_ANOTHER = ("tiny-es", "journey-es", "minigpt-init")  # in all but words and numbers
PLACES = 20
ELSEWHERE = ("tokens", "source", "next", "target")  # ids, not numbers of the pass


@cache
def trace_of(name: str) -> Trace:
    return byhand.trace(checkpoint_sized() if name == LARGE else EDITIONS[name].place)


@cache
def learned_of(name: str) -> Trace:
    """The losses and gradients that a book tells of."""
    model = checkpoint_sized() if name == LARGE else EDITIONS[name].place
    return byhand.trace(model, losses=True, backward=True)


@cache
def step_of(name: str) -> Trace:
    """The training step that a book tells of."""
    model = checkpoint_sized() if name == LARGE else EDITIONS[name].place
    return byhand.step(model, loss="mean").steps[0].trace


@pytest.mark.parametrize("name", [*NAMES, LARGE] if LONG else NAMES[:1])
def test_a_book_can_be_stepped_through_and_says_what_the_trace_says(
    opened: Windows, shelf: Shelf, name: str
) -> None:
    made, seen, again = shelf[name], 0, 0
    opened(made.folder / "index.html")
    for page in made.book.pages:
        window = opened(made.folder / f"{page.slug}.html")
        assert window.evaluate("document.compatMode") == "CSS1Compat"
        keys_lead_through_the_passages(window, page)
        the_figures_light_what_is_computed(window, made, page)
        seen += agreeing_numbers(window, name)
        again += recomputed(window)
        if name not in LIKE_ANOTHER:
            assert window.evaluate(FAULTS) == []
            assert window.evaluate(CONTRASTS) == []
    assert seen >= LEAST.get(name, 100)
    assert again >= 18


def keys_lead_through_the_passages(window: Any, page: Page) -> None:
    """One key is pressed, the others are given to the page at once: a press waits for a frame."""
    ids = [passage.id for passage in page.passages]
    if len(ids) > 1:
        window.keyboard.press("j")  # a page opens at its head: the first passage is here, or next
        begun = window.evaluate("document.activeElement.id")
        assert begun in ids[:2], page.slug
        rest = ids[ids.index(begun) + 1 :]
        assert window.evaluate(KEYS, len(rest)) == rest


def the_figures_light_what_is_computed(window: Any, made: Made, page: Page) -> None:
    """A block may be drawn as one station: it is lit where any of it is computed."""
    drawn = window.evaluate(STATIONS)
    for passage in page.passages:
        lit = set(made.book.spine.lit(passage.lit))
        for marked, stations in drawn[passage.id]:
            assert marked == bool(lit & set(stations)), (passage.id, stations)
        assert lit <= {station for _marked, stations in drawn[passage.id] for station in stations}


def agreeing_numbers(window: Any, name: str) -> int:
    """How many numbers of the pass or of a training step stand on the page, all of them right."""
    seen = 0
    for address, form, decimals in window.evaluate(READ):
        step, _bracket, index = address.rstrip("]").partition("[")
        if step.startswith(("weight.", "count.", "explain.")) or step in ELSEWHERE:
            continue
        trace = learned_of(name) if step.startswith(LEARNED) else trace_of(name)
        trace = step_of(name) if step.startswith("update.") else trace
        entry = trace.steps[trace.plan[step].address].at(
            tuple(map(int, index.split(","))) if index else ()
        )
        if decimals:
            assert rounds_to(decimals, entry), f"{address} is not {decimals}"
        if form and trace.numbers.register(entry) == "exact":
            assert Fraction(form) == entry.fraction, address
        seen += bool(form or decimals)
    return seen


def rounds_to(shown: str, entry: Any) -> bool:
    """Whether the decimals are within one unit of their last place of the number; where they say
    how near they are, whether they are as near."""
    text, _sign, radius = shown.partition("±")
    decimal = Decimal(text.strip())
    if hasattr(entry, "interval"):
        middle, around = map(Fraction, entry.interval(PLACES))
    else:
        middle, around = Fraction(float(entry)), Fraction(0)
    off = abs(Fraction(decimal) - middle)
    if radius:
        return off + around <= Fraction(radius.strip()) + Fraction(1, 10**PLACES)
    return off <= Fraction(10) ** int(decimal.as_tuple().exponent) + around


@pytest.mark.parametrize(
    ("shown", "number", "right"),
    [
        ("0.7311", 0.73106, True),
        ("0.7313", 0.73106, False),
        ("-0.7311", 0.73106, False),
        ("5e-9", 5.2e-9, True),
        ("0.0000", 5.2e-9, True),
        ("7e-9", 5.2e-9, False),
        ("1.25 ± 0.01", 1.255, True),
        ("1.25 ± 0.01", 1.265, False),
    ],
)
def test_decimals_are_judged_by_their_last_place(shown: str, number: float, right: bool) -> None:
    assert rounds_to(shown, number) == right


def recomputed(window: Any) -> int:
    """How many numbers the badge has worked out again; none of them may differ."""
    badge = window.evaluate(BADGE)
    assert badge["wrong"] == 0
    return int(badge["checked"])


KEYS = """
(times) => Array.from({ length: times }, () => {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  return document.activeElement.id;
})
"""

STATIONS = """
() => Object.fromEntries([...document.querySelectorAll(".passage")].map((passage) => [passage.id,
  [...passage.querySelectorAll(".pass [data-node]")].map((node) =>
    [node.classList.contains("lit"), node.dataset.node.split(" ")])]))
"""

# The check runs when the page has been shown; what waits in line behind it comes after it.
BADGE = """
() => new Promise((done) => setTimeout(() => {
  const { checked = 0, wrong = 0 } = document.getElementById("badge")?.dataset ?? {};
  done({ checked: Number(checked), wrong: Number(wrong) });
}))
"""

# Each number as it is read: its address, its fraction where it has one, its decimals, all in the
# digits of data (a point, an ASCII minus, e for powers of ten).
READ = """
() => {
  const point = document.documentElement.lang === "es" ? "," : ".", high = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const power = (_all, sign, raised) =>
    `e${sign && "-"}${[...raised].map((digit) => high.indexOf(digit)).join("")}`;
  const digits = (text) => text.replaceAll("−", "-").replaceAll(point, ".")
    .replace(/·10(⁻?)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)/, power).trim();
  const written = (part) => part.localName === "mfrac"
    ? [...part.children].map(written).join("/") : part.children.length
    ? [...part.children].map(written).join("") : digits(part.textContent);
  return [...document.querySelectorAll(".n[data-a]")].map((node) => {
    const face = node.querySelector(".face"), maths = face.querySelector("math");
    const plain = maths && !maths.querySelector("mi, msqrt, msup");
    const decimals = face.querySelector("data") ? face.textContent.split("≈").at(-1) : "";
    return [node.dataset.a, plain ? written(maths) : "", digits(decimals)];
  });
}
"""
