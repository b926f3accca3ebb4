"""The page in a real browser: a person plays with it, by pointer, by keyboard alone, on a phone."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from person import Page
from serving_server import served

from byhand.serving.limits import Limits

sys.path.append(str(Path(__file__).parents[1] / "document"))

from browser import CONTRASTS, FAULTS, PHONE, axe_core

WEIGHT = "weight.embed.token[2,0]"  # of tiny's third word, which a larger first number brings about
STATIONS = "all => all.map((one) => one.dataset.station)"
CLOCK = Path(__file__).parents[2] / "docs" / "examples" / "clock.yaml"
VIEWS = ("steps", "weights", "learn", "pictures", "compare", "prove", "practice")


# ------------------------------------------------------------------ a person plays


def test_text_becomes_tokens_as_it_is_typed(person: Page) -> None:
    page = person.open()
    page.fill("#the-text", "c a")
    person.see(".tokens .chip", re.compile(r"^0\s*c$"))
    page.fill("#the-text", "c z")
    told = person.see("#text-trouble").inner_text()
    assert "'z' is not in the vocabulary" in told
    assert "expected a, b, c" in told
    page.fill("#the-text", "b c")
    person.gone("#text-trouble")
    person.see(".tokens .chip", re.compile(r"^1\s*c$"))
    page.click('.tokens [data-place="0"]')
    person.see('.tokens [data-place="0"][aria-pressed=true]')
    person.see("#rail h2", "The residual stream at position 0 b")


def test_an_edited_weight_changes_the_prediction_and_undo_takes_it_back(person: Page) -> None:
    page = person.open()
    assert person.foretold() == "a"
    person.view("weights")
    person.change_weight(WEIGHT, "5/2")
    person.see("#rail .changes", "10 numbers have changed")
    assert page.inner_text(".turned").split() == ["a", "→", "c"]
    assert page.locator("#map svg a.moved").evaluate_all(STATIONS) == [
        "node-logits",
        "node-probs",
        "node-next",
    ]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.a") == WEIGHT
    page.keyboard.press("Control+z")
    person.see(".tokens .guess .token", re.compile("^a$"))
    page.click("[data-do=redo]")
    person.see(".tokens .guess .token", re.compile("^c$"))
    page.reload()
    person.see(".tokens .guess .token", re.compile("^c$"))  # the address keeps the edit
    page.click("[data-do=reset]")
    person.see(".tokens .guess .token", re.compile("^a$"))


def test_what_cannot_be_is_told_where_it_was_said(person: Page) -> None:
    page = person.open("/#model=tiny&view=weights")
    person.change_weight(WEIGHT, "1/0")
    assert "division by zero" in person.see("#editor .refusal").inner_text()
    page.keyboard.press("Escape")
    person.gone("#editor")
    assert person.foretold() == "a"
    page.fill("#setting-heads", "3")
    page.keyboard.press("Enter")
    assert "among 3 heads" in person.see(".settings .refusal").inner_text()
    page.select_option("#setting-activation", "gelu")
    person.see(".setting.moved", "Activation")
    person.gone(".settings .refusal")


def test_a_number_shows_its_working_and_what_it_comes_from(person: Page) -> None:
    page = person.open("/#model=tiny&passage=attention-0-attn-weights")
    page.hover('#main td[data-a="block.0.attn.weights[0,1,1]"] button')
    assert "comes from 36 numbers" in person.see("#working").inner_text()
    assert page.locator("#map a.from").count() == 6
    page.click('#main td[data-a="block.0.attn.weights[0,1,1]"] button')
    page.click("#working [data-do=go-reader]")
    person.see(".step-title", "The mix")
    person.gone("#working")


def test_numbers_and_languages_are_switched_and_differences_shown(person: Page) -> None:
    page = person.open()
    page.select_option("#the-numbers", "bfloat16")
    person.see("#rail .changes", "numbers have changed")
    page.click("[data-do=compare-before]")
    person.see(".verdicts", "They first differ at block.0.attn.weights")
    assert page.locator(".along tr.first code").inner_text() == "block.0.attn.weights"
    page.click("[data-do=language]")
    person.see("label", "Texto")
    assert page.evaluate("document.documentElement.lang") == "es"
    person.view("steps")
    person.see(".step-title", "El texto")


def test_two_texts_and_two_models_are_compared(person: Page) -> None:
    page = person.open("/#model=tiny&view=compare")
    page.fill("#b-text", "b b")
    page.keyboard.press("Enter")
    person.see(".verdicts", "They first differ at tokens")
    page.click("[data-do=preset][data-name=pre]")
    person.see(".side.b .edits", "norm.place = pre")
    page.select_option("#b-model", "abc")
    person.see(".side.b #b-model")
    person.see(".outcome")


def test_a_step_is_practised_wrongly_and_rightly(person: Page) -> None:
    page = person.open("/#model=tiny&passage=tokens-stream")
    page.click('#main td[data-a="stream.0[1,0]"] button')
    page.click("#working [data-do=practise]")
    person.see(".asked", "position 1 (b)")  # in words, then by its address
    person.see(".asked-for", "stream.0[1,0]")
    page.fill("#the-answer", "0.731")
    page.keyboard.press("Enter")
    person.see(".verdict-of.wrong", "Put the numbers given below into the line")
    page.fill("#the-answer", "a half")
    page.keyboard.press("Enter")
    person.see(".verdict-of.unread", "Write a number, such as 0.25")
    person.see(".score", "0 of 1 right")  # words are no attempt
    page.fill("#the-answer", "1")
    page.keyboard.press("Enter")
    person.see(".verdict-of.right")
    person.see(".score", "1 of 2 right")


def test_a_model_is_kept_as_a_file_dropped_again_and_shared_as_a_page(
    person: Page, tmp_path: Path
) -> None:
    page = person.open('/#model=tiny&weights={"embed.token[2,0]":"5/2"}')
    with page.expect_download() as kept:
        page.click(".menu summary")
        page.click("[data-do=keep-file]")
    text = Path(kept.value.path()).read_text("utf-8")
    with page.expect_download() as shared:
        page.click(".menu summary")
        page.click("[data-do=keep-page]")
    assert Path(shared.value.path()).read_text("utf-8").startswith("<!doctype html>")
    page.select_option("#the-model", "journey")
    page.keyboard.press("Control+z")  # at once: what is under way is waited for, then taken back
    person.see("[data-do=redo]:enabled")
    assert (page.input_value("#the-model"), person.foretold()) == ("tiny", "c")
    page.click("[data-do=redo]")
    person.see(".tokens .chip", "sat")
    page.evaluate(DROP, [text, "mine.yaml"])
    person.see(".tokens .guess .token", re.compile("^c$"))
    assert page.locator("#the-model option:checked").inner_text() == "mine.yaml"
    page.evaluate(DROP, ["format: 99", "broken.yaml"])
    assert "broken.yaml:1" in person.see(".notice.error .refusal").inner_text()
    person.see(".tokens .guess .token", re.compile("^c$"))  # what was there is still there
    page.evaluate(DROP, ["x" * 5_000_000, "large.yaml"])
    person.see(".notice.error .refusal", "large.yaml is too large to be opened here")


DROP = """([text, name]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name, { type: "application/yaml" }));
  document.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true }));
}"""


def test_a_weight_with_thousands_of_entries_is_edited_through_a_window(person: Page) -> None:
    page = person.open("/#model=minigpt&view=weights")
    name = "block.0.mlp.hidden"
    page.click(f'details[data-key="{name}"] summary')
    person.see(f'button[data-a="weight.{name}[9,9]"]', re.compile(r"\d"))
    page.fill(f'.pan-to[data-name="{name}"]', "60,250")
    page.keyboard.press("Enter")
    person.see(f'button[data-a="weight.{name}[63,255]"]', re.compile(r"\d"))
    person.change_weight(f"weight.{name}[63,255]", "9")
    person.see("#rail .changes", "numbers have changed")
    person.see(f'td.moved[data-a="weight.{name}[63,255]"]', "9")
    person.view("pictures")
    assert page.locator(".rows-of svg").first.locator("rect").count() == 64


def test_a_long_computation_tells_its_progress_and_is_cancelled(person: Page) -> None:
    page = person.open("/#model=minigpt&passage=next-probs")
    page.select_option("#the-numbers", "exact")
    person.see("#waiting code", re.compile("block|embed"))
    with page.expect_event("requestfailed") as stopped:
        page.click("#waiting [data-do=cancel]")
    assert stopped.value.url.endswith("/api/look")
    person.gone("#waiting")
    page.click('.tokens [data-place="1"]')
    person.see("#rail h2", "The residual stream at position 1 yesterday")
    assert page.input_value("#the-numbers") == "float32"


# ------------------------------------------------------------------ by keyboard, by ear, by phone


def test_the_keyboard_alone_is_enough(person: Page) -> None:
    page = person.open()
    count = int(page.inner_text(".count-of").split("/")[1])
    titles = [person.title]
    for place in range(2, count + 1):
        page.keyboard.press("ArrowRight")
        person.see(".count-of", f"{place} / {count}")
        titles.append(person.title)
    assert len(set(titles)) >= count - 1  # two norms may be called alike
    page.keyboard.press("Home")
    person.see(".count-of", f"1 / {count}")
    page.keyboard.press("Space")
    person.see(".play[aria-pressed=true]")
    page.keyboard.press("Space")
    person.see(".play[aria-pressed=false]")
    page.keyboard.press("?")
    person.see("#help kbd", "Home")
    page.keyboard.press("Escape")
    page.focus('#main button[data-a="tokens[0]"]')
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.a") == "tokens[1]"
    person.see("#working", "tokens[1]")
    page.keyboard.press("Escape")
    person.gone("#working")
    page.go_back()
    person.see(".count-of", f"{count} / {count}")
    page.focus(".views a[data-view=weights]")
    page.keyboard.press("Enter")
    person.see(".view.weights")
    page.focus('#main button[data-a="weight.embed.token[0,0]"]')
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.type("5/2")
    page.keyboard.press("Enter")
    person.see(".tokens .guess .token", re.compile("^c$"))
    assert page.evaluate("document.activeElement.dataset.a") == WEIGHT


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_view_can_be_read_and_heard(browser: Any, origin: str, colours: str) -> None:
    person = Page(browser, origin, color_scheme=colours)
    page, axe = person.open(), axe_core()
    for view in VIEWS:
        person.view(view)
        person.gone(".view p.quiet", "…")
        assert page.evaluate(CONTRASTS) == [], view
        assert page.evaluate(FAULTS) == [], view
        if axe is not None and colours == "light":
            page.evaluate(axe)
            assert page.evaluate(OBJECTIONS) == [], view
    person.context.close()
    assert person.complaints == []


OBJECTIONS = """axe.run({ resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, nodes[0].html]))"""


def test_a_phone_shows_it_all_without_scrolling_sideways(browser: Any, origin: str) -> None:
    person = Page(browser, origin, viewport=PHONE, has_touch=True)
    page = person.open("/#model=journey&passage=attention-0-attn-scores")
    for view in VIEWS:
        person.view(view)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], view
    person.view("steps")
    page.tap('.beads a[href="#next-probs"]')
    person.see(".step-title", "Probabilities")
    page.tap('#main td[data-a="probs[3,0]"] button')
    assert "probs[3,0]" in person.see("#working").inner_text()
    person.context.close()
    assert person.complaints == []


# ------------------------------------------------------------------ all texts


def test_a_claim_is_made_refuted_and_its_text_opened(person: Page) -> None:
    page = person.open("/#model=tiny&view=prove&language=en")
    person.see("#the-proof .cases td")
    assert page.locator("#the-proof .cases td").count() == 9
    page.select_option("#the-claim", "next")
    page.select_option("#the-next", "b")
    page.click("#main [type=submit]")
    person.see(".conclusion", "Refuted")
    opens = person.see(".conclusion [data-do=open-text]").get_attribute("data-text")
    page.click(".conclusion [data-do=open-text]")
    person.see(".view.steps")
    assert page.input_value("#the-text") == opens


def test_a_rule_is_proven_and_every_square_opens_its_text(person: Page) -> None:
    page = person.open("/#model=tiny&language=en")
    page.set_input_files("#the-file", CLOCK)
    person.see(".tokens .guess .token", re.compile("^2$"))
    person.view("prove")
    page.select_option("#the-claim", "function")
    page.fill("#the-function", "(a + b) % 7")
    page.keyboard.press("Enter")
    person.see(".conclusion .said", "It holds for all 49 texts.")
    page.click("#the-proof .cases tbody tr:nth-child(4) td:nth-of-type(6) button")
    person.see(".tokens .guess .token", re.compile("^1$"))
    assert page.input_value("#the-text") == "3 5"


# ------------------------------------------------------------------ what is open or not there


def test_a_word_that_is_open_is_a_question_and_a_model_without_attention_has_no_pattern(
    browser: Any, tmp_path: Path
) -> None:
    model = tmp_path / "open.yaml"
    model.write_text(
        "name: open\nvocabulary: [a, b]\ntext: a\nmodel: {d_model: 1, layers: 0}\n"
        "weights: {embed.token: {printed: 1, values: [[0.0], [0.1]]}}\n",
        encoding="utf-8",
    )
    with served({"open": model}, Limits(workers=1)) as address:
        person = Page(browser, f"http://127.0.0.1:{address.port}")
        page = person.open("/?model=open&language=en")
        person.see("#rail", "undecided between a and b")
        assert page.inner_text(".tokens .guess") == "?"
        assert page.locator(".tokens button.guess").count() == 0
        person.view("pictures")
        assert page.locator("h3", has_text="Attention").count() == 0
        person.context.close()
    assert person.complaints == []
