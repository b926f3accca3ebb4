"""The view of learning, as a person uses it: steps, a dragged rate, undo, by keyboard too."""

from __future__ import annotations

import re

from person import Page

LEARNING = '/#model=tiny&view=learn&text=a+b&target="c"&language=en'
CURVE = "#main .falling path.line"
FALLING = (1.4076, 1.1406, 0.9541)  # the loss of tiny before each step of SGD, and after two


def told(steps: int, loss: float) -> re.Pattern[str]:
    return re.compile(
        rf"from 1\.4076 to {loss:.4f} in {'one step' if steps == 1 else f'{steps} steps'}\."
    )


def losses(person: Page) -> int:
    """How many losses the curve goes through."""
    return len(re.findall("[ML]", person.page.get_attribute(CURVE, "d")))


def test_steps_lower_the_loss_and_undo_takes_each_back(person: Page) -> None:
    page = person.open(LEARNING)
    person.see(".told", "The loss is 1.4076. One more step would make it 1.1406.")
    page.click("[data-do=learn-one]")
    person.see(".told", told(1, 1.1406))
    assert page.input_value("#the-numbers") == "float64"
    person.see("#rail .changes", "numbers have changed")
    page.click("[data-do=learn-one]")
    person.see(".told", told(2, 0.9541))
    assert losses(person) == 3
    page.click("[data-do=undo]")
    person.see(".told", told(1, 1.1406))
    page.click("[data-do=undo]")
    person.see(".told", "The loss is 1.4076")
    assert page.input_value("#the-numbers") == "exact"
    page.click("[data-do=redo]")
    person.see(".told", told(1, 1.1406))
    page.reload()
    person.see(".told", told(1, 1.1406))  # the address keeps the lesson
    page.click("[data-do=reset]")
    person.see(".told", "The loss is 1.4076")


def test_ten_steps_grow_the_curve_and_are_one_edit(person: Page) -> None:
    page = person.open("/#model=journey&view=learn&language=en")
    page.click("[data-do=learn-ten]")
    person.see(".told", "The loss went from 1.8313 to 0.2461 in 10 steps.")
    assert losses(person) == 11
    person.see(".tokens .guess", re.compile(r"mat\s*78 %"))
    page.keyboard.press("Control+z")
    person.see(".told", "The loss is 1.8313")


def test_the_rate_is_dragged_and_the_next_loss_follows(person: Page) -> None:
    page = person.open(LEARNING)
    person.see(".told", "One more step would make it 1.1406.")
    knob = page.locator("#the-rate").bounding_box()
    middle = knob["y"] + knob["height"] / 2
    page.mouse.move(knob["x"] + knob["width"] / 2, middle)
    page.mouse.down()
    page.mouse.move(knob["x"] + 8, middle, steps=6)
    person.see(".rate output", "0.001")
    person.see(".told", "One more step would make it 1.4047.")
    page.mouse.up()
    page.keyboard.press("End")
    person.see(".rate output", re.compile("^10$"))
    page.select_option("#the-optimizer", "adam")
    page.focus("#the-rate")
    page.keyboard.press("Home")
    page.click("[data-do=learn-one]")
    person.see(".told", re.compile("in one step"))
    assert "adam" in page.url
    assert "0.001" in page.url


def test_the_keys_learn_and_take_back_and_the_focus_stays(person: Page) -> None:
    page = person.open(LEARNING)
    page.focus("[data-do=learn-one]")
    page.keyboard.press("Enter")
    person.see(".told", told(1, 1.1406))
    page.keyboard.press("ArrowRight")
    person.see(".told", told(2, 0.9541))
    assert page.evaluate("document.activeElement.dataset.do") == "learn-one"
    page.keyboard.press("ArrowLeft")
    person.see(".told", told(1, 1.1406))


def test_gradients_colour_the_weights_and_an_edited_weight_is_learned_from(person: Page) -> None:
    page = person.open(LEARNING)
    cell = page.locator('#main td[data-a="weight.embed.token[0,0]"]')
    assert "+0.665" in cell.inner_text()
    assert {"p4"} <= set(cell.get_attribute("class").split())
    assert (
        page.locator("#main .heated td.z").count() > 10
    )  # most weights of tiny do not matter here
    person.change_weight("weight.embed.token[0,0]", "0.5")
    person.see(".told", re.compile("The loss is (?!1.4076)"))
    page.keyboard.press("Enter")
    page.click("[data-do=learn-one]")
    person.see(".told", "in one step")
    assert "embed.token%5B0%2C0%5D" in page.url  # the edit is part of the lesson
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    person.see(".told", "The loss is 1.4076")


def test_a_model_that_cannot_learn_says_why(person: Page) -> None:
    person.open("/#model=abc-walkthrough&view=learn&language=en")
    person.see("#main .refusal", "nothing can be learned from unknown weights")
