"""Lessons of a State: the weights after them, the losses on the way, and the next gradients."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from asking import LIBRARY, asked, looked, state

import byhand
from byhand import learning
from byhand.batch import read_batch
from byhand.errors import ByhandError
from byhand.files import parse_model
from byhand.models import open_model
from byhand.numbers.floats import Floats
from byhand.optimizer import OPTIMIZERS, Rule
from byhand.serving import read_state
from byhand.serving.edits import edited


def lesson(
    steps: int = 1, text: str = "a b", target: str | None = "c", **more: Any
) -> dict[str, Any]:
    return {"text": text, "target": target, "steps": steps, **more}


def tiny(*lessons: dict[str, Any], **more: Any) -> dict[str, Any]:
    return state("tiny", text="a b", target="c", lessons=list(lessons), **more)


def weights(of: dict[str, Any]) -> dict[str, Any]:
    found = edited(read_state(of), LIBRARY).model.weights
    return {name: tensor.data for name, tensor in found.items()}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_lessons_give_the_weights_and_losses_of_the_same_training_steps(optimizer: str) -> None:
    expected = byhand.step(
        "tiny", "a b", target="c", optimizer=optimizer, lr="0.1", steps=5, numbers="float64"
    )
    taught = tiny(lesson(5, optimizer=optimizer))
    assert asked("learn", state=taught)["losses"] == list(map(float, expected.losses))
    found = weights(taught)
    for name, worked in expected.new.items():
        assert np.array_equal(found[name], np.asarray(worked)), name


def test_steps_one_by_one_are_steps_at_once() -> None:
    before = [
        asked("learn", state=tiny(lesson(steps, rate="0.05")))["losses"] for steps in (1, 2, 3)
    ]
    assert [len(losses) for losses in before] == [2, 3, 4]
    assert before[2][:3] == before[1]
    assert (
        asked("learn", state=tiny(lesson(2, rate="0.05"), lesson(1, rate="0.05")))["losses"]
        == before[2]
    )


def test_moments_go_on_when_the_rate_changes_and_begin_anew_with_another_optimizer() -> None:
    rates = [Fraction(1, 10), Fraction(1, 10), Fraction(1, 20)]
    tiny_model = open_model("tiny")
    batch = read_batch(tiny_model, ("a b",), target=tiny_model.vocabulary.id("c"))
    rules = [Rule("adam", rate, step=at) for at, rate in enumerate(rates, 1)]
    expected = learning.Lesson(tiny_model, batch, last=True).learn(rules, Floats("float64"))
    both = tiny(lesson(2, optimizer="adam"), lesson(1, optimizer="adam", rate="0.05"))
    assert asked("learn", state=both)["losses"] == list(map(float, expected.losses))
    through = tiny(lesson(2, optimizer="adam"), lesson(1), lesson(1, optimizer="adam", rate="0.05"))
    anew = (
        weights(through)["embed.token"]
        - weights(tiny(lesson(2, optimizer="adam"), lesson(1)))["embed.token"]
    )
    assert np.abs(anew).max() == pytest.approx(0.05)  # Adam's first step is the rate itself


def test_a_weight_edited_between_lessons_is_learned_from_there() -> None:
    edit = {"embed.token[0,0]": "3/2"}
    first, second = tiny(weights=edit), tiny(lesson(1, weights=edit))
    step = weights(second)["embed.token"][0, 0]
    gradient = asked("learn", state=first, gradients=True)["weights"][0]["gradients"][0][0]
    assert step == pytest.approx(1.5 - 0.1 * gradient)
    after = tiny(lesson(1, weights=edit), weights={"embed.token[0,0]": "2"})
    assert weights(after)["embed.token"][0, 0] == 2


def test_the_loss_that_is_shown_falls_and_is_that_of_the_lessons() -> None:
    before, after = tiny(), tiny(lesson(3))
    found = looked("tiny", text="a b", target="c", lessons=[lesson(3)], before=before)
    losses = asked("learn", state=after)["losses"]
    assert losses == sorted(losses, reverse=True)
    assert found["loss"]["value"] == losses[-1]
    assert found["numbers"] == "float64"
    assert found["changed"]["loss"]["before"]["value"] == pytest.approx(losses[0])
    assert "embed.token" in found["changed"]["weights"]


def test_a_text_without_a_target_is_learned_at_every_position() -> None:
    answer = asked("learn", state=state("journey", text="the cat sat"), gradients=True)
    assert (answer["target"], answer["counted"]) == (None, 2)
    one = byhand.step("journey", "the cat sat", numbers="float64")
    assert answer["loss"] == float(one.losses[0])
    assert answer["norm"] == pytest.approx(float(one.steps[0].norm))
    (first, *_others) = answer["weights"]
    assert np.allclose(first["gradients"], one.steps[0].trace.grad["weight.embed.token"].array)
    assert answer["largest"] == max(each["largest"] for each in answer["weights"])


def test_the_first_gradients_of_a_very_small_model_are_exact() -> None:
    first = asked("learn", state=tiny(), gradients=True)
    assert first["numbers"] == "exact"
    embedding = first["weights"][0]
    assert embedding["forms"][0] == ["e^2/(1 + e + e^2)", "-e^2/(1 + e + e^2)"]
    assert embedding["gradients"][0][0] == pytest.approx(0.6652409557748219)
    zero = {form for one in first["weights"] for form in np.ravel(one["forms"])}
    assert "0" in zero  # and not what rounding leaves of it
    for other in (tiny(lesson(1)), tiny(numbers="float32"), state("journey")):
        later = asked("learn", state=other, gradients=True)
        assert (later["numbers"], later["weights"][0]["forms"]) == ("float64", None)


def test_of_a_large_model_the_gradients_come_as_sizes() -> None:
    answer = asked("learn", state=state("minigpt-init"), gradients=True)
    assert all(one["gradients"] is None and one["entries"] is None for one in answer["weights"])
    assert answer["norm"] ** 2 == pytest.approx(sum(one["norm"] ** 2 for one in answer["weights"]))


def test_what_was_learned_is_kept_as_a_model_file() -> None:
    taught = tiny(lesson(4))
    kept = asked("file", state=taught)
    assert kept["name"] == "tiny-edited.yaml"
    read = parse_model(kept["text"], "kept.yaml")
    for name, data in weights(taught).items():
        assert [float(x) for x in read.weights[name].data.flat] == data.ravel().tolist()
    assert "It has learned for 4 steps, in float64." in asked("share", state=taught)["html"]


@pytest.mark.parametrize(
    ("lessons", "told"),
    [
        ([lesson(rate="-1")], "-1 is not possible here"),
        ([lesson(rate="1e9")], "1e9 is not possible here"),
        ([lesson(optimizer="lion")], "lion is not possible here"),
        ([lesson(1001)], "too many lessons for one page"),
        ([lesson(target="z")], "'z' is not in the vocabulary"),
        ([{"steps": 3}], "the key 'text' is missing"),
        ("often", "often is not possible here"),
    ],
)
def test_a_lesson_that_cannot_be_is_refused(lessons: Any, told: str) -> None:
    with pytest.raises(ByhandError) as caught:
        asked("learn", state=state("tiny", lessons=lessons))
    assert told in caught.value.message


def test_a_model_with_unknown_weights_does_not_learn_and_is_still_shown() -> None:
    found = asked("look", state=state("abc-walkthrough"), gradients=True)
    assert found["learning"]["refused"]["message"] == "nothing can be learned from unknown weights"
    assert found["passage"]["html"]


def test_a_rate_that_breaks_the_weights_is_told() -> None:
    far = [lesson(1, text="ABC", target="B", rate="9999")]
    assert asked("learn", state=state("abc", lessons=far))["losses"][1] is None  # infinite
    far[0]["steps"] = 5
    with pytest.raises(ByhandError) as caught:
        asked("learn", state=state("abc", lessons=far))
    assert caught.value.hint == "take a smaller learning rate"
