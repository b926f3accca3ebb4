"""Experiments of every built-in model, and what is told of a change: computed, never assumed."""

from __future__ import annotations

from typing import Any

import pytest
from asking import asked, looked

from byhand.models import builtin_names
from byhand.serving.experiments import EXPERIMENTS, Experiment

ALL = [(model, one) for model, found in EXPERIMENTS.items() for one in found]
NAMES = [f"{model}-{one.name}" for model, one in ALL]


def came(model: str, one: Experiment) -> dict[str, Any]:
    """What the page shows after an experiment, turned as far as the page turns it."""
    name = {"model": {"name": model}}
    start = {**name, **one.start}
    if not one.turns:
        return asked("look", state={**name, **one.change}, before=start, passage=one.passage)
    for value in one.turns:
        state = {**start, "weights": {one.weight: value}}
        found = asked("look", state=state, before=start, passage=one.passage)
        if found["changed"]["next"]["before"] != found["changed"]["next"]["after"]:
            return found
    raise AssertionError("the prediction never flips")


def test_every_built_in_model_has_two_to_four_experiments() -> None:
    assert set(EXPERIMENTS) == set(builtin_names())
    assert {2, 3, 4} >= {len(found) for found in EXPERIMENTS.values()}


@pytest.mark.parametrize(("model", "one"), ALL, ids=NAMES)
def test_an_experiment_changes_numbers_and_lights_one_of_them(model: str, one: Experiment) -> None:
    found = came(model, one)
    told = found["changed"]["told"]
    assert found["changed"]["count"] > 0
    assert found["passage"]["id"] == one.passage
    assert told["sentences"]
    assert told["star"]["before"] != told["star"]["after"]
    assert (
        told["star"]["after"] in " ".join(told["sentences"])
        or one.name in ("mask", "they")
        or (found["changed"]["next"]["before"] != found["changed"]["next"]["after"])
    )
    assert all(len(sentence.split()) <= 25 for sentence in told["sentences"])


def test_the_norm_is_said_to_give_back_an_exact_number_only_where_it_does() -> None:
    bare, known = {"norm.kind": "none"}, "gives back exactly"
    told = looked(before={"model": {"name": "tiny"}, "architecture": bare})["changed"]["told"]
    assert told["sentences"][0] == "The norm reads (1 + 2e)/(1 + e) and gives back exactly −1."
    journey = {"model": {"name": "journey"}, "architecture": bare}
    other = looked("journey", before=journey)["changed"]["told"]
    assert not [sentence for sentence in other["sentences"] if known in sentence]
    floats = looked(
        numbers="float32",
        before={"model": {"name": "tiny"}, "architecture": bare, "numbers": "float32"},
    )
    assert not [said for said in floats["changed"]["told"]["sentences"] if known in said]


def test_a_mask_that_is_broken_and_mended_is_told_both_ways() -> None:
    open_, shut = {"causal": "false"}, {"model": {"name": "journey"}}
    broken = looked("journey", architecture=open_, before=shut)["changed"]["told"]
    assert broken["star"]["address"] == "block.0.attn.weights[0,0,2]"
    assert broken["star"]["before"] == "masked"
    mended = looked("journey", before={**shut, "architecture": open_})["changed"]["told"]
    assert mended["sentences"][0] == (
        "Position 0 (the) no longer sees position 2 (sat), which comes after it."
    )
    assert broken["sentences"][1] == "What the model expects after position 3 (on) stays the same."


def test_a_probability_is_said_to_rise_or_fall_as_it_does() -> None:
    same = {"model": {"name": "journey"}}
    up = looked("journey", weights={"head[2,1]": "0.6"}, before=same)["changed"]["told"]
    down = looked("journey", weights={"head[2,1]": "0.45"}, before=same)["changed"]["told"]
    assert up["sentences"] == [
        "After position 3 (on) the probability of `cat` rises from 0.2058 to 0.2182."
    ]
    assert "`cat` falls from 0.2058 to 0.1998" in down["sentences"][0]
    still = looked("journey", weights={"embed.token[5,0]": "0.9"}, before=same)["changed"]["told"]
    assert still == {"sentences": ["No number of the pass has changed."], "star": None}
