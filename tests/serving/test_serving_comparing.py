"""Two States side by side: where they part, and how far."""

from __future__ import annotations

from typing import Any

import pytest
from asking import asked, state


def compared(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return asked("compare", a=a, b=b)


def steps(found: dict[str, Any]) -> dict[str, Any]:
    return {step["address"]: step for step in found["steps"]}


def test_the_same_state_twice_is_the_same_everywhere() -> None:
    found = compared(state("journey"), state("journey"))
    assert found["first"] is None
    assert all(step["same"] for step in found["steps"])
    assert found["sentences"][0] == "Every number that both have is the same."


def test_floats_part_from_the_proven_numbers_by_little() -> None:
    found = compared(state("journey", numbers="float32"), state("journey", numbers="digits 12"))
    lines = steps(found)
    assert found["first"] == "embed.token"
    assert 0 < lines["logits"]["largest"] < 1e-6
    assert len(lines["logits"]["places"]) == 4
    assert lines["block.0.attn.weights"]["name"] == "attention weights"
    assert max(lines["logits"]["places"]) == lines["logits"]["largest"]
    assert "Both say `cat` next." in found["sentences"]


def test_pre_and_post_norm_part_where_the_norm_is() -> None:
    found = compared(state(), state(architecture={"norm.place": "pre"}))
    assert found["first"] == "block.0.attn.q"
    assert steps(found)["stream.0"]["same"] is True
    assert "The first says `a` next, the second `c`." in found["sentences"]
    assert {word["token"] for word in found["words"]} == {"a", "b", "c"}


def test_steps_of_one_of_them_stand_where_they_come() -> None:
    found = compared(state(), state(architecture={"position": "rope"}))
    lines = steps(found)
    assert lines["embed.position"]["in"] == "a"
    assert lines["block.0.attn.q_rotated"]["in"] == "b"
    order = [step["address"] for step in found["steps"]]
    assert order.index("block.0.attn.v") < order.index("block.0.attn.scores")
    assert order.index("block.0.attn.q_rotated") < order.index("block.0.attn.scores")


def test_a_text_and_its_beginning_are_the_same_where_both_are() -> None:
    found = compared(state("journey", text="the cat sat"), state("journey", text="the cat"))
    assert found["first"] is None
    other = compared(state("journey", text="the cat sat"), state("journey", text="the dog"))
    assert other["first"] == "tokens"
    assert steps(other)["stream.0"]["places"][0] == 0
    assert steps(other)["stream.0"]["places"][1] > 0


def test_the_largest_difference_is_where_it_is_said_to_be() -> None:
    found = compared(state("journey"), state("journey", weights={"head[0,2]": "0.7"}))
    line = steps(found)["logits"]
    assert found["first"] == "logits"
    assert line["at"][1] == 2
    assert abs(line["a"] - line["b"]) == pytest.approx(line["largest"])


def test_two_models_can_be_compared() -> None:
    found = compared(state("tiny"), state("abc"))
    assert found["a"]["model"] == "tiny"
    assert found["b"]["model"] == "abc"
    assert steps(found)["tokens"]["in"] == "both"


def test_what_is_missing_is_not_judged() -> None:
    found = compared(state("abc"), state("abc-walkthrough"))
    assert steps(found)["logits"]["same"] is None
    assert found["words"] is None
