"""Ablation: a part taken out of the plan does what zeros in the weights do, in any numbers."""

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
from byhand.explaining.ablation import Part, ablate, heads, part_at, side_trips, usual_parts
from byhand.explaining.approximations import floats_near
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.parameters import parameters
from byhand.spec import ModelSpec
from byhand.weights import Tensor, Weights
from oracles.architectures import Case


def every_part(spec: ModelSpec) -> list[Part]:
    """Parts of every kind that the model has; of neurons the first of each MLP."""
    parts = [*side_trips(spec)]
    parts += [Part("position")] * (spec.position != "none")
    parts += [Part("token")] * (spec.position != "none" and not spec.tied)
    for layer, block in enumerate(spec.blocks):
        if block.attention:
            parts += [Part("head", layer, h) for h in range(block.attention.heads)]
        if block.mlp:
            parts.append(Part("neuron", layer, 0))
    return parts + [Part("bias", name=p.name) for p in parameters(spec) if p.kind == "bias"]


def zeroed(case: Case, part: Part) -> Case | None:
    """The case with zeros among its weights where the part writes; None: weights cannot say it."""
    spec, at = case.spec, f"block.{part.layer}"
    if part.kind == "position" and spec.position == "sinusoidal":
        return replace(case, spec=replace(spec, position="none"))
    data = {name: np.array(tensor.data) for name, tensor in case.weights.items()}

    def rows(name: str, which: slice) -> None:
        """Zeros in a matrix, at these entries of what it reads."""
        data[name][which if spec.layout == "in_out" else (slice(None), which)] = Fraction(0)

    match part.kind:
        case "position" | "token":
            data[f"embed.{part.kind}"][:] = Fraction(0)
        case "bias":
            data[part.name][:] = Fraction(0)
        case "neuron":
            rows(f"{at}.mlp.out", slice(part.index, part.index + 1))
        case "attn" | "head" if f"{at}.attn.out" not in data:
            return None
        case "head":
            width = spec.blocks[part.layer].attention.d_head
            rows(f"{at}.attn.out", slice(part.index * width, (part.index + 1) * width))
        case _:
            for name in (f"{at}.{part.kind}.out", f"{at}.{part.kind}.out_bias"):
                if name in data:
                    data[name][:] = Fraction(0)
    return replace(case, weights=Weights({n: Tensor(n, values) for n, values in data.items()}))


@settings(max_examples=20)
@given(cases())
def test_a_part_taken_out_is_as_if_its_weights_were_zeros(case: Case) -> None:
    whole = trace_of(case, Floats("float64"))
    for part in every_part(case.spec):
        other = zeroed(case, part)
        if other is not None:
            found = ablate(whole, part)["logits"].array
            expected = trace_of(other, Floats("float64"))["logits"].array
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=str(part))


@pytest.mark.parametrize("address", ["block.0.attn.mixed[0]", "block.0.mlp.act[:,3]"])
def test_in_exact_numbers_it_is_exactly_that(address: str) -> None:
    model = byhand.trace("abc").model
    case = Case(model.spec, model.weights, (0, 1, 2), 0, (0, 1, 2), None)
    whole = trace_of(case, Exact())
    part = part_at(model.spec, address)
    other = zeroed(case, part)
    assert other is not None
    expected = trace_of(other, whole.numbers)["logits"].array
    assert (ablate(whole, part)["logits"].array == expected).all()
    assert not (whole["logits"].array == expected).all()


def test_without_its_mlp_abc_predicts_otherwise_in_every_number_system() -> None:
    model = byhand.trace("abc").model
    for numbers in (Exact(), Floats("float32"), Pencil(3), Tensors("float64", "cpu")):
        without = ablate(trace(model, "ABC", numbers), "block.0.mlp")
        assert [without.token(found.id) for found in without.next] == ["C", "B", "B"]
    proven = ablate(byhand.trace("abc", "ABC", digits=5), "block.0.mlp")
    assert [(found.id, found.proven) for found in proven.next] == [(2, True), (1, True), (1, True)]


@pytest.mark.parametrize("family", FAMILIES)
def test_large_enclosures_hold_what_floats_find(family: Any) -> None:
    model = random_model(family())
    floats = trace(model, None, Floats("float64"))
    enclosed = trace(model, None, Limbs(80))
    for part in (Part("head", 1, 1), Part("neuron", 0, 3), Part("mlp", 1), Part("attn", 0)):
        near = floats_near(Limbs(80), ablate(enclosed, part)["logits"].value)
        np.testing.assert_allclose(near, ablate(floats, part)["logits"].array, rtol=1e-9)


def test_nothing_of_a_side_trip_is_left_in_the_plan_and_names_still_lead_on() -> None:
    whole = byhand.trace("journey")
    without = ablate(whole, "block.0.attn")
    assert not [step.address for step in without.plan if step.address.startswith("block.0.attn")]
    assert without["block.0.attn.add"] is without["stream.0"]
    assert {step.address for step in without.plan} < {step.address for step in whole.plan}
    assert without["loss"].array.shape == (1,)


def test_parts_can_be_taken_out_together() -> None:
    whole = byhand.trace("abc")
    bare = ablate(whole, "block.0.attn", "block.0.mlp", "embed.position", "weight.head_bias")
    table, head = (whole.model.weights[name].data for name in ("embed.token", "head"))
    expected = table @ head.T
    assert (bare["logits"].array == bare.numbers.admit(expected)).all()
    assert len(bare.plan) == len(
        ["tokens", "embed.token", "logits", "probs", "next", "target", "loss"]
    )


@pytest.mark.parametrize("first", ["block.0.attn.mixed[1]", "block.0.mlp.act[:,2]"])
@pytest.mark.parametrize("then", ["block.0.attn.mixed[0]", "block.1.mlp", "weight.final.norm.bias"])
def test_what_is_taken_out_of_an_ablated_trace_is_taken_out_too(first: str, then: str) -> None:
    whole = byhand.trace("minigpt")
    one_by_one = ablate(ablate(whole, first), then)
    together = ablate(whole, first, then)
    assert (one_by_one["logits"].array == together["logits"].array).all()
    assert not (one_by_one["logits"].array == ablate(whole, then)["logits"].array).all()


def test_what_comes_before_is_taken_from_the_trace_and_not_worked_out_again() -> None:
    whole = byhand.trace("minigpt")
    without = ablate(whole, "block.1.mlp")
    assert without["block.1.attn.add"].value is whole["block.1.attn.add"].value
    silent = ablate(whole, "block.0.attn.mixed[1]")
    assert silent["block.0.attn.weights"].value is whole["block.0.attn.weights"].value
    assert not (silent["block.0.attn.mixed"].array == whole["block.0.attn.mixed"].array).all()
    assert not (silent["block.1.attn.q"].array == whole["block.1.attn.q"].array).all()


def test_only_the_steps_asked_for_are_worked_out() -> None:
    without = ablate(byhand.trace("minigpt"), "block.1.mlp", only=("next",))
    assert list(without.steps) == ["next"]


def test_the_usual_parts_are_positions_side_trips_and_heads_where_there_are_several() -> None:
    abc = byhand.trace("abc").model.spec
    assert [part.address for part in usual_parts(abc)] == [
        "embed.position", "block.0.attn.out", "block.0.mlp.out",
    ]  # fmt: skip
    assert heads(abc) == ()
    minigpt = byhand.trace("minigpt").model.spec
    assert [part.kind for part in usual_parts(minigpt)] == (["attn", *["head"] * 4, "mlp"]) * 2


def test_every_part_is_found_by_its_address() -> None:
    for name in ("abc", "minigpt"):
        spec = byhand.trace(name).model.spec
        for part in every_part(spec):
            assert part_at(spec, part.address) == part


@pytest.mark.parametrize(
    "wrong", ["block.0.attn.mixed[1]", "block.7.mlp", "block.0.mlp.act[:,8]", "weight.head", "mlp"]
)
def test_a_part_that_is_not_there_is_refused(wrong: str) -> None:
    with pytest.raises(AddressError, match="there is no part"):
        part_at(byhand.trace("abc").model.spec, wrong)


def test_the_token_table_stays_where_the_stream_would_have_nothing_else() -> None:
    with pytest.raises(AddressError):
        part_at(byhand.trace("minigpt").model.spec, "embed.token")
