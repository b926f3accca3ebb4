"""Facts: the numbers they are made of, by hand; and what happens without a step, by weights."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from lens_models import FAMILIES, cases, random_model, trace_of

import byhand
from byhand.errors import AddressError
from byhand.evaluate import trace
from byhand.explaining.ablation import Part, ablate, usual_parts
from byhand.explaining.facts import Check, Fact, facts
from byhand.explaining.turning import Turns
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Prediction, Printed
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.spec import BlockSpec, MlpSpec, ModelSpec
from byhand.tokens import Vocabulary
from byhand.weights import Tensor, Weights
from oracles.architectures import Case

ATTENTION, MLP = Part("attn", 0), Part("mlp", 0)


def abc_streams() -> dict[str, np.ndarray[Any, Any]]:
    """What flows through abc on ABC, written out in float64."""
    w = {name: tensor.data.astype(float) for name, tensor in open_model("abc").weights.items()}
    token, place = w["embed.token"], w["embed.position"]
    x = token + place
    q, k, v = np.split(x @ w["block.0.attn.qkv"].T + w["block.0.attn.qkv_bias"], 3, axis=1)
    scores = q @ k.T / np.sqrt(2) + np.triu(np.full((3, 3), -np.inf), 1)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    attended = shares @ v @ w["block.0.attn.out"].T + w["block.0.attn.out_bias"]
    hidden = np.maximum(
        (x + attended) @ w["block.0.mlp.hidden"].T + w["block.0.mlp.hidden_bias"], 0
    )
    written = hidden @ w["block.0.mlp.out"].T + w["block.0.mlp.out_bias"]
    head, bias = w["head"].T, w["head_bias"]
    return {
        "embed.token": token @ head, "embed.position": place @ head,
        "block.0.attn.out": attended @ head, "block.0.mlp.out": written @ head,
        "weight.head_bias": np.tile(bias, (3, 1)),
        "reading 0": x @ head + bias, "reading 1": (x + attended) @ head + bias,
        "reading 2": (x + attended + written) @ head + bias,
    }  # fmt: skip


@pytest.fixture(scope="module")
def abc() -> tuple[Fact, ...]:
    return facts(byhand.trace("abc")).facts


def near(value: Any) -> float:
    return float(value.ball(64).mid()) if value.fraction is None else float(value.fraction)


def test_what_leads_after_each_step_of_abc_is_what_numpy_finds(abc: tuple[Fact, ...]) -> None:
    streams = abc_streams()
    for position, fact in enumerate(abc):
        turning = fact.turning
        for place, reading in enumerate(turning.readings):
            logits = streams[f"reading {place}"][position]
            assert reading.leader.id == logits.argmax()
            lead = logits[fact.prediction.id] - logits[turning.rival]
            assert near(reading.lead) == pytest.approx(lead, rel=1e-12)
        assert turning.rival == np.argsort(streams["reading 2"][position])[-2]


def test_the_mlp_of_abc_turns_each_vector_to_the_token_that_follows(abc: tuple[Fact, ...]) -> None:
    assert [fact.prediction.id for fact in abc] == [1, 2, 0]
    streams = abc_streams()
    for position, (fact, old) in enumerate(zip(abc, (2, 1, 1), strict=True)):
        assert fact.turning.turned == 2
        (change,) = fact.turning.changes
        assert (change.part, change.old, change.new) == (MLP, old, fact.prediction.id)
        for place, value in ((1, change.before), (2, change.after)):
            logits = streams[f"reading {place}"][position]
            assert near(value) == pytest.approx(logits[change.new] - logits[old], rel=1e-12)
        assert near(change.before) < 0 < near(change.after)


def test_what_each_part_of_abc_adds_to_the_lead_is_what_numpy_finds(abc: tuple[Fact, ...]) -> None:
    streams = abc_streams()
    for position, fact in enumerate(abc):
        turning = fact.turning
        assert [one.part.address for one in turning.contributions] == [
            "embed.token", "embed.position", "block.0.attn.out", "block.0.mlp.out",
            "weight.head_bias",
        ]  # fmt: skip
        for one in turning.contributions:
            logits = streams[one.part.address][position]
            expected = logits[turning.prediction.id] - logits[turning.rival]
            assert near(one.value) == pytest.approx(expected, rel=1e-9)
            assert one.near == pytest.approx(expected, rel=1e-9)
        assert turning.foremost.part == MLP


def test_what_is_said_of_abc_happens(abc: tuple[Fact, ...]) -> None:
    streams = abc_streams()
    whole = byhand.trace("abc")
    for position, (fact, instead) in enumerate(zip(abc, (2, 1, 1), strict=True)):
        assert [check.part for check in fact.checks] == [Part("position"), ATTENTION, MLP]
        for check in fact.checks:
            rest = streams["reading 2"] - streams[check.part.address]
            assert check.said.id == rest[position].argmax()
            assert check.found.id == ablate(whole, check.part).next[position].id
            assert check.as_said is True
            assert check.said.proven
            assert check.found.proven
        assert [(check.part, check.found.id) for check in fact.needed] == [(MLP, instead)]


@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_contributions_add_up_to_the_lead_exactly(name: str) -> None:
    for turning in Turns(byhand.trace(name)).found:
        values = [one.value for one in turning.contributions]
        assert sum(values[1:], values[0]) - turning.lead == 0


@settings(max_examples=20)
@given(cases())
def test_whatever_the_architecture_contributions_add_up_and_the_last_leader_is_the_prediction(
    case: Case,
) -> None:
    whole = trace_of(case, Floats("float64"))
    for fact in facts(whole).facts:
        turning = fact.turning
        assert turning.readings[-1].leader.id == turning.prediction.id
        if turning.rival is not None:
            total = sum(one.value for one in turning.contributions)
            logits = whole["logits"].array[turning.position]
            assert total == pytest.approx(
                float(turning.lead), abs=1e-8 * (1 + np.abs(logits).max())
            )


@pytest.mark.parametrize("family", FAMILIES)
def test_floats_tensors_and_enclosures_tell_the_same(family: Any) -> None:
    model = random_model(family())
    told = [
        [
            (fact.prediction.id, fact.turning.rival, fact.turning.turned,
             [(check.part, check.said.id, check.found.id) for check in fact.checks])
            for fact in facts(trace(model, None, numbers), [1, -1]).facts
        ]
        for numbers in (Floats("float64"), Tensors("float64", "cpu"), Limbs(80))
    ]  # fmt: skip
    assert told[0] == told[1] == told[2]
    assert any(part.kind == "head" for part, _said, _found in told[0][0][3])


def test_a_pencil_tells_its_own_roundings() -> None:
    model = open_model("abc")
    (fact, *_rest) = facts(trace(model, None, Pencil(2))).facts
    assert fact.turning.lead == Fraction(1101, 100)
    assert not fact.checks[-1].found.proven


def test_a_proven_trace_has_proven_facts() -> None:
    parts = ["block.0.attn", "block.0.mlp", "block.1.attn.mixed[3]"]
    found = facts(byhand.trace("minigpt", digits=4), parts=parts)
    checks = [check for fact in found.facts for check in fact.checks]
    assert all(check.found.proven and check.said.proven for check in checks)
    assert {check.as_said for check in checks} == {True, False}


# ----------------------------------------------------------------------- models set by hand


def two_mlps(first: list[list[int]], second: list[list[int]]) -> Model:
    """Two blocks of an MLP each over three numbers: out = relu(x)·W; x, y are the words' logits."""
    spec = ModelSpec(
        "hand", 2, 3, 2, (BlockSpec(None, MlpSpec(3)),) * 2, tied=False, layout="in_out"
    )
    data: dict[str, Any] = {"embed.token": [[2, 0, 0], [0, 2, 0]]}
    for layer, out in enumerate((first, second)):
        data |= {f"block.{layer}.mlp.hidden": np.eye(3), f"block.{layer}.mlp.out": out}
    data["head"] = [[1, 0], [0, 1], [0, 0]]
    tensors = {name: Tensor(name, np.array(one, dtype=float)) for name, one in data.items()}
    return Model(spec, Weights(tensors), Vocabulary(("x", "y")), "x")


def test_a_step_that_others_read_does_not_do_as_its_own_sum_says() -> None:
    # the first MLP writes what no logit reads; the second turns that into y
    model = two_mlps([[0, 0, 1], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 2, 0]])
    (fact,) = facts(trace(model, "x")).facts
    assert (fact.prediction.id, fact.turning.turned) == (1, 2)
    first, second = fact.checks
    assert (first.contribution.fraction, first.said.id, first.found.id) == (0, 1, 0)
    assert first.as_said is False
    assert (second.contribution.fraction, second.said.id, second.found.id) == (4, 0, 0)
    assert second.as_said is True
    assert fact.needed == (first, second)


def test_where_one_step_would_do_for_the_other_none_is_needed() -> None:
    # each MLP by itself is enough to turn x to y
    model = two_mlps([[0, 2, 0], [0, 0, 0], [0, 0, 0]], [[0, 2, 0], [0, 0, 0], [0, 0, 0]])
    (fact,) = facts(trace(model, "x")).facts
    assert fact.prediction.id == 1
    assert fact.needed == ()
    assert all(check.as_said for check in fact.checks)
    both = ablate(trace(model, "x"), "block.0.mlp", "block.1.mlp")
    assert both.next[0].id == 0


def test_leaders_that_come_and_go_are_all_told() -> None:
    # the first MLP turns x to y, the second back to x
    model = two_mlps([[0, 2, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [3, 0, 0], [0, 0, 0]])
    (fact,) = facts(trace(model, "x")).facts
    assert [(change.part.layer, change.old, change.new) for change in fact.turning.changes] == [
        (0, 0, 1), (1, 1, 0),
    ]  # fmt: skip
    assert fact.turning.turned == 2
    # without the first, the second has nothing to turn back: what it says of itself is wrong
    assert [(check.said.id, check.found.id) for check in fact.checks] == [(0, 0), (1, 1)]


def test_ties_are_facts_too(tiny: Model) -> None:
    (first, second) = facts(trace(tiny)).facts
    assert first.turning.readings[0].leader.tied == (0, 2)
    without_attention = second.checks[1]
    assert without_attention.found.tied == (0, 1, 2)
    assert without_attention.as_said is True


# ----------------------------------------------------------------------- what cannot be told


def test_unknown_weights_are_the_reason_why_nothing_is_told() -> None:
    found = facts(byhand.trace("abc-walkthrough"))
    assert found.facts == ()
    assert found.missing is not None
    assert found.missing.cause == "weight.block.0.attn.qkv"


def test_what_is_undecided_stays_undecided() -> None:
    model = two_mlps([[0, 0, 0]] * 3, [[0, 0, 0]] * 3)
    head = np.array([[Printed(Fraction(1), 0), Printed(Fraction(1), 0)], [Fraction(0), Fraction(0)],
                     [Fraction(0), Fraction(0)]], dtype=object)  # fmt: skip
    unsure = replace(model, weights=Weights({**model.weights, "head": Tensor("head", head)}))
    (fact,) = facts(trace(unsure, "x", Exact())).facts
    assert fact.prediction.id is None
    assert (fact.turning.rival, fact.turning.turned, fact.turning.changes) == (None, None, ())
    assert fact.needed == ()
    assert [check.as_said for check in fact.checks] == [None, None]


def test_a_check_with_one_side_undecided_is_neither_as_said_nor_not() -> None:
    sure, open_ = Prediction(1, None, True), Prediction(None, None, False)
    assert Check(MLP, None, sure, sure).as_said is True
    assert Check(MLP, None, sure, replace(sure, id=0)).as_said is False
    assert Check(MLP, None, sure, open_).as_said is None
    assert Check(MLP, None, open_, sure).as_said is None


# ----------------------------------------------------------------------- what is asked


def test_positions_and_parts_can_be_chosen() -> None:
    found = facts(byhand.trace("abc"), positions=[-1], parts=["block.0.mlp.act[:,1]", MLP])
    (fact,) = found.facts
    assert fact.position == 2
    assert [check.part.kind for check in fact.checks] == ["neuron", "mlp"]
    assert fact.checks[1].found.id == 1  # as at the last position; at the first it is 2
    streams, turning = abc_streams(), fact.turning
    w = {name: t.data.astype(float) for name, t in open_model("abc").weights.items()}
    act = near(byhand.trace("abc")["block.0.mlp.act[2,1]"])
    direct = act * (w["head"] @ w["block.0.mlp.out"][:, 1])
    expected = direct[turning.prediction.id] - direct[turning.rival]
    assert near(fact.checks[0].contribution) == pytest.approx(expected, abs=1e-9)
    rest = streams["reading 2"][2] - direct
    assert fact.checks[0].said.id == rest.argmax()


def test_a_bias_inside_a_side_trip_adds_nothing_directly() -> None:
    part = Part("bias", name="block.0.mlp.hidden_bias")
    (fact, *_rest) = facts(byhand.trace("abc"), parts=[part]).facts
    (check,) = fact.checks
    assert check.contribution == 0
    assert check.said.id == fact.prediction.id


def test_where_heads_are_many_only_side_trips_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    minigpt = byhand.trace("minigpt")
    assert len(facts(minigpt, [0]).facts[0].checks) == len(usual_parts(minigpt.model.spec))
    monkeypatch.setattr("byhand.explaining.facts.MOST_PARTS", 8)
    assert {check.part.kind for check in facts(minigpt, [0]).facts[0].checks} == {"attn", "mlp"}


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(AddressError, match="no part"):
        facts(byhand.trace("abc"), parts=["block.1.mlp"])
