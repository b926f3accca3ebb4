"""A newcomer at the page: the greeting, its three presses, the tour, the glossary, the way back."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from person import Page

sys.path.append(str(Path(__file__).parents[1] / "document"))

from browser import CONTRASTS, DESKTOP, FAULTS, PHONE, axe_core

STOPS = 6
TABLETS = (1280, 1024, 820)
OBJECTIONS = """axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, nodes[0].html]))"""
FOCUSED = "document.activeElement.dataset.do"


def try_first(person: Page, name: str) -> None:
    """One press on what the greeting offers, and nothing else."""
    person.page.click(f".offer[data-name={name}]")
    person.see("#trials .star-of")


# ------------------------------------------------------------------ three presses


def test_a_newcomer_sees_a_changed_number_and_a_sentence_about_it_after_one_press(
    person: Page,
) -> None:
    page = person.open("/?language=en")
    page.evaluate(
        "for (const kind of ['keydown', 'input', 'click']) document.addEventListener(kind,"
        " () => { window.done = [...(window.done ?? []), kind]; }, true)"
    )
    assert "can take apart" in page.inner_text("#greeting-title")
    assert page.locator(".offer").count() == 3
    try_first(person, "exact")
    assert page.evaluate("window.done") == ["click"]  # one press, and nothing typed
    told = page.inner_text("#greeting-title")
    assert told == "The norm reads (1 + 2e)/(1 + e) and gives back exactly −1."
    assert page.inner_text(".star-of .plain") == "−1"
    lit = page.locator("#main .star").first
    assert lit.get_attribute("data-a") == "block.0.attn.norm.out[1,1]"
    assert page.evaluate("document.activeElement.id") == "greeting-title"


def test_the_broken_mask_lights_the_share_that_leaks_and_is_taken_back(person: Page) -> None:
    page = person.open("/?language=en")
    try_first(person, "mask")
    told = page.inner_text("#greeting-title")
    assert told.startswith("Position 0 (the) now gives 30 % of its attention to position 2 (sat)")
    assert page.inner_text(".star-of s") == "masked"
    assert page.locator("#main td.star").inner_text().startswith("≈ 0.3042")
    page.click("#trials [data-do=undo]")
    person.see(".offer")
    assert page.locator("#main .star").count() == 0
    page.click("[data-do=redo]")
    person.see("#trials .star-of")


def test_one_weight_is_turned_until_another_word_is_expected_and_is_one_edit(person: Page) -> None:
    page = person.open("/?language=en")
    assert person.foretold() == "cat"
    try_first(person, "flip")
    person.see(".tokens .guess .token", re.compile("^mat$"))
    assert '"head[2,4]":"0.6"' in page.evaluate("decodeURIComponent(location.hash)")
    page.click(".history summary")
    assert page.locator("[data-do=back-to]").all_inner_texts() == ["head[2,4] = 0.6"]
    page.click("[data-do=back-to]")
    person.see(".tokens .guess .token", re.compile("^cat$"))


def test_a_link_greets_nobody_and_a_closed_greeting_stays_closed(person: Page) -> None:
    page = person.open("/#model=abc&language=en")
    assert page.locator("#trials").is_hidden()
    page.click("[data-do=trials]")
    person.see(".offer", "bfloat16")
    assert "Experiments with abc" in page.inner_text("#greeting-title")
    page.click("[data-do=trials]")
    page.goto(person.origin + "/?language=en")
    person.see(".offer", "Break the mask")
    page.click("[data-do=trials-close]")
    person.gone(".offer")
    page.goto(person.origin + "/?model=tiny&language=en")
    person.see("#main .view")
    assert page.locator("#trials").is_hidden()


# ------------------------------------------------------------------ the tour


def test_the_tour_is_taken_to_its_end_by_keyboard_and_remembered(person: Page) -> None:
    page = person.open("/?language=en")
    page.focus("[data-do=tour]")
    page.keyboard.press("Enter")
    titles = []
    for stop in range(1, STOPS + 1):
        person.see("#tour .kicker", f"stop {stop} of {STOPS}")
        titles.append(page.inner_text("#tour-title"))
        assert page.evaluate(FOCUSED) == "tour-on"
        assert page.locator("#spot").bounding_box()["width"] > 20
        page.keyboard.press("Enter" if stop % 2 else "ArrowRight")
    assert len(set(titles)) == STOPS
    person.gone("#tour")
    assert page.evaluate(FOCUSED) == "tour"  # where it began
    page.goto(person.origin + "/?language=es")
    person.see("[data-do=tour]", "Repetir")


def test_the_tour_is_left_with_escape_and_goes_back_with_the_arrow(person: Page) -> None:
    page = person.open("/?language=en")
    page.click("[data-do=tour]")
    person.see("#tour .kicker", "stop 1")
    page.keyboard.press("ArrowRight")
    person.see("#tour .kicker", "stop 2")
    page.keyboard.press("ArrowLeft")
    person.see("#tour .kicker", "stop 1")
    page.keyboard.press("Escape")
    person.gone("#tour")
    assert page.inner_text(".count-of").startswith("2 /")  # the arrows did not leave the step


# ------------------------------------------------------------------ words


def test_words_and_numbers_say_what_they_mean(person: Page) -> None:
    page = person.open("/#model=tiny&passage=attention-0-attn-weights&language=en")
    page.focus("#main a.term[data-term=softmax]")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert "add up to 1" in person.see("#gloss").inner_text()
    page.keyboard.press("Enter")
    assert "add up to 1" in person.see("#glossary .wanted").inner_text()
    page.keyboard.press("Escape")
    page.hover('#main td[data-a="block.0.attn.weights[0,1,0]"] button')
    meaning = person.see("#working .meaning").inner_text()
    assert meaning == "How much position 1 (b) attends to position 0 (a) in head 0."


def test_spanish_takes_and_shows_decimal_commas_and_translates_options(person: Page) -> None:
    page = person.open("/#model=journey&view=weights&language=es")
    assert page.inner_text('#main td[data-a="weight.embed.token[1,0]"]').strip() == "0,1"
    person.change_weight("weight.embed.token[1,0]", "0,25")
    person.see("#rail .changes")
    page.keyboard.press("Enter")
    assert page.inner_text('#main td[data-a="weight.embed.token[1,0]"]').strip() == "0,25"
    assert page.inner_text("#setting-norm-place option:checked") == "antes (pre)"
    page.select_option("#setting-norm-place", "post")
    person.see(".setting.moved")
    page.keyboard.press("Control+z")
    person.gone(".setting.moved")
    page.keyboard.press("Control+z")
    person.see('#main td[data-a="weight.embed.token[1,0]"]', re.compile("0,1"))
    points = re.findall(r"(?<![\w.])\d+\.\d+", page.inner_text("#main") + page.inner_text("#rail"))
    assert points == []


def test_what_is_compared_is_taken_back_too(person: Page) -> None:
    page = person.open("/#model=tiny&view=compare&language=en")
    page.select_option("#b-numbers", "bfloat16")
    page.keyboard.press("Control+z")
    person.see("[data-do=redo]:enabled")
    assert page.input_value("#b-numbers") == "float32"
    page.keyboard.press("Control+y")
    person.see("[data-do=redo]:disabled")
    assert page.input_value("#b-numbers") == "bfloat16"


# ------------------------------------------------------------------ for everyone


def test_the_greeting_what_it_told_and_the_tour_are_accessible(person: Page) -> None:
    page, axe = person.open("/?language=en"), axe_core()
    if axe is not None:
        page.evaluate(axe)

    def examine(where: str) -> None:
        assert page.evaluate(CONTRASTS) == [], where
        assert page.evaluate(FAULTS) == [], where
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
        assert axe is None or page.evaluate(OBJECTIONS) == [], where

    examine("greeting")
    for wide in TABLETS:
        page.set_viewport_size({"width": wide, "height": 768})
        examine(f"greeting, {wide} wide")
    page.set_viewport_size(DESKTOP)
    try_first(person, "mask")
    examine("told")
    page.emulate_media(color_scheme="dark")
    examine("told in the dark")
    page.emulate_media(color_scheme="light")
    page.click("[data-do=language]")
    person.see("#greeting-title", "La posición 0 (the)")
    page.set_viewport_size({"width": 1024, "height": 768})
    examine("told on a tablet in Spanish")
    page.set_viewport_size(PHONE)
    examine("told on a phone in Spanish")
    page.click("[data-do=help]")
    page.click("[data-do=help-tour]")
    person.see("#tour .kicker", "parada 1")
    examine("tour on a phone in Spanish")
