"""The lens: every row against formulas written out here, the last against the trace itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from hypothesis import given, settings
from lens_models import (
    FAMILIES,
    TEXT,
    cases,
    gpt2_like,
    llama_like,
    random_model,
    trace_of,
    with_weight,
)

from byhand.errors import AddressError
from byhand.evaluate import trace
from byhand.explaining import lens as lens_module
from byhand.explaining.approximations import bounds
from byhand.explaining.lens import ENDING, look, rank, stops_of, tail_of
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.spec import NO_NORM, BlockSpec, MlpSpec, ModelSpec, NormSpec
from oracles.architectures import Case
from oracles.torch_pass import TorchPass

SYSTEMS = (Exact, lambda: Balls(100), Floats, lambda: Pencil(4), Tensors)
OF_FLOATS = (lambda: Balls(100), lambda: Limbs(100), Floats, Tensors)  # limbs hold no other weights


def fractions(model: Model, name: str) -> Any:
    return model.weights[name].data


def equal(one: Any, other: Any) -> bool:
    return all(bool(x == y) for x, y in zip(one, other, strict=True))


# ------------------------------------------------------------------ against what is written out


def test_after_the_embedding_tiny_says_what_a_pencil_says(tiny: Model) -> None:
    found = look(trace(tiny, "a b"))
    # a at 0 is (1, 0); b at 1 is (0, 1) + (1, 0) = (1, 1); the tokens are (1, 0), (0, 1), (1, 1)
    assert found["stream.0", 0].logits.tolist() == [1, 0, 1]
    assert found["stream.0", 1].logits.tolist() == [1, 1, 2]
    assert found["stream.0", 0].leader.tied == (0, 2)  # type: ignore[union-attr]
    assert found["stream.0", 1].leader.id == 2


def test_in_two_dimensions_a_norm_leaves_a_sign_and_the_lens_shows_it(tiny: Model) -> None:
    for row in look(trace(tiny, "a b")).of_step("block.0.attn.norm.out"):
        assert row.logits.tolist() == [1, -1, 0]
        assert row.proven


@pytest.mark.parametrize("name", ["abc", "journey"])
def test_after_the_embedding_the_logits_are_a_product_of_fractions(name: str) -> None:
    model = open_model(name)
    found = look(trace(model))
    head = fractions(model, "head")
    head = head if model.spec.layout == "in_out" else head.T
    bias = fractions(model, "head_bias") if model.spec.head_bias else [Fraction(0)] * len(head.T)
    for position, token in enumerate(found.trace.tokens):
        stream = (
            fractions(model, "embed.token")[token] + fractions(model, "embed.position")[position]
        )
        by_hand = stream @ head + bias
        assert equal(found["stream.0", position].logits, by_hand)
        best = max(range(len(by_hand)), key=lambda token: (by_hand[token], -token))
        assert found["stream.0", position].leader.id == best


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_what_torch_makes_of_the_stream(family: Any) -> None:
    model = random_model(family())
    found = look(trace(model, TEXT, Floats("float64")))
    torch_pass = TorchPass(model.spec, model.weights, found.trace.tokens, 0)
    norm, w = model.spec.final_norm, torch_pass.w
    head = w["embed.token"] if model.spec.tied else w["head"]
    for row in found:
        stream = torch.tensor(np.asarray(found.trace[row.step].array[row.position]))
        known = torch_pass.found.get(row.step)
        if known is not None:
            assert torch.allclose(stream, known[row.position], rtol=0, atol=1e-12)
        if norm.kind == "layernorm":
            gain, bias = w["final.norm.gain"], w["final.norm.bias"]
            stream = F.layer_norm(stream, stream.shape, gain, bias, float(norm.eps))
        if norm.kind == "rmsnorm":
            square = (stream**2).mean() + float(norm.eps)
            stream = stream / square.sqrt() * w["final.norm.gain"]
        logits = head @ stream
        assert np.allclose(row.logits, logits, rtol=0, atol=1e-12)
        assert np.allclose(row.probs, logits.softmax(0), rtol=0, atol=1e-12)
        assert row.leader is not None
        assert row.leader.id == int(logits.argmax())
    assert len(found.rows) == 5 * len(TEXT.split())


# ------------------------------------------------------------------ the last row is the end


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_the_last_row_is_the_trace_s_own_end(name: str, system: Any) -> None:
    whole = trace(open_model(name), None, system())
    rows = [row for row in look(whole) if row.last]
    assert [row.position for row in rows] == list(range(len(whole.tokens)))
    for row in rows:
        for found, own in ((row.logits, whole["logits"]), (row.probs, whole["probs"])):
            assert equal(found, own.array[row.position])
        assert row.leader is (whole.next or [])[row.position]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", ["tiny", "journey", "abc"])
def test_worked_out_again_the_last_stream_gives_the_trace_s_logits(name: str, system: Any) -> None:
    whole = trace(open_model(name), None, system())
    without = {address: step for address, step in whole.steps.items() if address not in ENDING}
    for row in look(replace(whole, steps=without)):
        if row.last:
            assert equal(row.logits, whole["logits"].array[row.position])


@pytest.mark.parametrize("system", OF_FLOATS)
@pytest.mark.parametrize("family", FAMILIES)
def test_positions_picked_out_say_what_they_say_among_all(family: Any, system: Any) -> None:
    whole = trace(random_model(family()), TEXT, system())
    everywhere = look(whole)
    for row in look(whole, positions=[3, 1]):
        same = everywhere[row.step, row.position]
        for one, other in zip(row.logits, same.logits, strict=True):
            assert abs(float(one) - float(other)) < 1e-5
        assert row.leader is not None
        assert same.leader is not None
        assert row.leader.id == same.leader.id


@given(cases())
@settings(max_examples=20)
def test_of_any_architecture_the_last_stop_is_what_enters_the_end(case: Case) -> None:
    whole = trace_of(case, Floats("float64"))
    stops = stops_of(whole.plan)
    assert stops[0].address == whole.plan["stream.0"].address
    assert stops[-1].address == whole.plan[f"stream.{len(case.spec.blocks)}"].address
    sides = sum(bool(block.attention) + bool(block.mlp) for block in case.spec.blocks)
    assert len(stops) == 1 + sides
    without = {address: step for address, step in whole.steps.items() if address not in ENDING}
    for row in look(replace(whole, steps=without)):
        if row.last:
            own = np.asarray(whole["logits"].array[row.position])
            assert np.allclose(row.logits, own, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("numbers", [Balls(100), Limbs(100)])
@pytest.mark.parametrize("family", FAMILIES)
def test_enclosures_hold_what_floats_are_near_and_prove_the_leader(
    family: Any, numbers: Any
) -> None:
    model = random_model(family())
    near = look(trace(model, TEXT, Floats("float64")))
    for row in look(trace(model, TEXT, numbers), positions=(1, 4)):
        floats = near[row.step, row.position]
        for enclosure, number in zip(row.logits, floats.logits, strict=True):
            assert abs(float(enclosure) - number) < 1e-12
            assert enclosure.rad < 1e-20
        assert row.proven
        assert row.leader is not None
        assert floats.leader is not None
        assert row.leader.id == floats.leader.id


@pytest.mark.parametrize("numbers", [Balls(30), Limbs(30)])
@pytest.mark.parametrize("family", FAMILIES)
def test_however_wide_enclosures_hold_the_true_numbers(family: Any, numbers: Any) -> None:
    model = random_model(family())
    true = look(trace(model, TEXT, Balls(400)))
    widest = 0
    for row in look(trace(model, TEXT, numbers), positions=(4, 2)):
        narrow = true[row.step, row.position]
        for wide, point in zip(row.logits, narrow.logits, strict=True):
            assert wide.contains(point)
            widest = max(widest, wide.rad)
    assert widest > 1e-9  # or nothing was tested


@pytest.mark.parametrize("numbers", [Balls(30), Limbs(30), Balls(400)])
def test_floats_below_and_above_an_enclosure_are_below_and_above_it(numbers: Any) -> None:
    logits = trace(random_model(llama_like()), "3 5", numbers)["logits"]
    ends = bounds(numbers, logits.value)
    assert ends is not None
    for index, enclosure in logits.entries():
        low, high = (Fraction(float(end[index])) for end in ends)
        assert low < enclosure.lower <= enclosure.upper < high
        assert high - low < 2.001 * enclosure.rad + 1e-12  # and not by much


def test_the_end_takes_more_rows_than_the_model_has_places(tiny: Model) -> None:
    assert tail_of(tiny.spec, 50)["logits"].shape == (50, 3)


# ------------------------------------------------------------------ ranks


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_rank_counts_the_tokens_ahead(system: Any) -> None:
    model, numbers = open_model("journey"), system()
    truth = look(trace(model), tokens=range(6))
    decided = 0
    for row in look(trace(model, None, numbers), tokens=range(6)):
        true = truth[row.step, row.position]
        for each in row.ranks:
            ahead = sum(true.logits[each.token] < other for other in true.logits)
            assert each.least is not None
            assert each.most is not None
            if numbers.uniform != "rounded":  # of which one may hide that two are not the same
                assert each.least <= 1 + ahead <= each.most
            assert each.proven == (numbers.uniform != "rounded" and each.least == each.most)
            decided += each.place == 1 + ahead
    assert decided >= 6 * 12 - 2  # two of them are the same number, which balls do not show


def test_tokens_with_the_same_logit_share_a_place(tiny: Model) -> None:
    for numbers in (Exact(), Balls(100), Limbs(100)):
        row = look(trace(tiny, "a b", numbers), tokens=range(3))["stream.0", 0]
        assert [each.place for each in row.ranks] == [1, 3, 1]  # logits 1, 0, 1
        assert all(each.proven for each in row.ranks)


def test_what_enclosures_do_not_tell_apart_has_a_place_between_two() -> None:
    numbers = Balls(60)
    wide = numbers.linear(
        numbers.admit(_column("1", "1")), numbers.admit(_thirds()), layout="in_out"
    )
    found = rank(numbers, wide, 0, 0)
    assert (found.least, found.most, found.place, found.proven) == (1, 2, None, False)


def _column(*entries: str) -> Any:
    return np.array([[Fraction(entry) for entry in entries]], dtype=object)


def _thirds() -> Any:
    """Two columns with the same sum, which binary numbers cannot hold."""
    table = [[Fraction(1, 3), Fraction(1, 7)], [Fraction(1, 7), Fraction(1, 3)]]
    return np.array(table, dtype=object)


def test_without_tokens_the_rank_is_that_of_the_prediction_and_of_the_target() -> None:
    whole = trace(open_model("journey"))
    rows = look(whole).of_position(3)
    assert whole.next is not None
    assert [each.token for each in rows[0].ranks] == [whole.next[3].id, whole.target]
    assert len(look(whole)["stream.0", 0].ranks) == 1


def test_among_logits_that_are_not_numbers_there_is_no_rank() -> None:
    model = random_model(gpt2_like())
    head = model.weights["embed.token"].data.copy()
    head[4, 0] = np.nan
    model = with_weight(model, "embed.token", head)
    rows = look(trace(model, "3 5", Floats("float64")), tokens=[1])
    assert [each.place for row in rows for each in row.ranks] == [None] * 10


# ------------------------------------------------------------------ what may be missing


def test_a_model_without_blocks_has_one_row_a_position_and_it_is_the_end() -> None:
    model = random_model(ModelSpec("bare", 5, 3, None, (), final_norm=NormSpec("layernorm")))
    rows = look(trace(model, "4", Floats("float64"))).rows
    assert [(row.step, row.stop.kind, row.last) for row in rows] == [
        ("embed.token", "embedding", True)
    ]


def test_a_model_without_attention_has_stops_after_its_mlps_alone() -> None:
    block = BlockSpec(None, MlpSpec(4), NO_NORM, NO_NORM)
    model = random_model(ModelSpec("mlps", 5, 3, None, (block, block)))
    rows = look(trace(model, "4 1", Floats("float64"))).of_position(1)
    assert [(row.stop.kind, row.stop.layer) for row in rows] == [
        ("embedding", None),
        ("mlp", 0),
        ("mlp", 1),
    ]


def test_what_unknown_weights_leave_open_is_told_row_by_row() -> None:
    rows = look(trace(open_model("abc-walkthrough"))).of_position(2)
    assert [row.missing and row.missing.cause for row in rows] == [
        "weight.head_bias",
        "weight.block.0.attn.qkv",
        "weight.block.0.attn.qkv",
    ]
    assert {(row.logits, row.leader, row.proven) for row in rows} == {(None, None, False)}


def test_positions_count_from_the_end_too_and_others_are_refused(tiny: Model) -> None:
    assert look(trace(open_model("journey")), positions=[-1, 0]).positions == (3, 0)
    whole = trace(tiny, "a b")
    with pytest.raises(AddressError, match="the position lies outside the text"):
        look(whole, positions=[2])
    with pytest.raises(AddressError, match="not applied at this place"):
        look(whole, positions=[1])["stream.0", 0]


def test_of_very_many_logits_only_those_of_the_last_position_are_worked_out(
    tiny: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lens_module, "MOST", 3 * 2 * 3 - 1)
    found = look(trace(tiny, "a b"))
    assert (found.positions, found.left_out) == ((1,), (0,))
    assert [row.leader and row.leader.id for row in found] == [2, 0, 0]
    assert look(trace(tiny, "a b"), positions=[0, 1]).left_out == ()


def test_a_row_has_the_address_of_its_logits(tiny: Model) -> None:
    row = look(trace(tiny, "a b"))["block.0.attn.norm.out", 1]
    assert row.address == "explain.lens.block.0.attn.norm.out[1]"
