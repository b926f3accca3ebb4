"""The terms of the logits: exactly what each part wrote, and nothing left over."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import byhand
from byhand.errors import AddressError, InputError, Undecided
from byhand.evaluate import trace as work
from byhand.explaining.attribution import Attribution, attribute
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import Printed
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.tracing import Trace
from byhand.weights import Tensor, Weights

TINY_TEXTS = [" ".join(words) for n in (1, 2) for words in product("abc", repeat=n)]
ABC_TEXTS = ["".join(letters) for n in (1, 2, 3) for letters in product("ABC", repeat=n)]
JOURNEY_TEXTS = ["the cat sat on", "mat", "on mat the cat", "sat sat"]


def terms_of(attribution: Attribution) -> dict[str, list[list[str]]]:
    return {t.source.name: [[str(x) for x in row] for row in t.array] for t in attribution}


# ------------------------------------------------------------------ by hand


def test_every_term_of_tiny_is_the_one_found_with_a_pencil() -> None:
    """h = LN(x + attn), out = LN(h + mlp(h)), logits = out·Eᵀ, P0 = (0, 0), P1 = (1, 0).

    Position 0, token a: x = (1, 0), its head adds (1, 0).  2·(1, 0) centred is (1, -1), std 1, so
    each half gives (1/2, -1/2); h = (1, -1), relu gives (1, 0); (2, -1) centred is (3/2, -3/2) with
    std 3/2: (1/2, -1/2) becomes (1/3, -1/3), and the MLP's (1, 0), centred (1/2, -1/2), too.

    Position 1, token b: x = (0, 1) + (1, 0); the head looks at a with 1 = e^0·…: scores are 1 and
    2, so it mixes 1/(1 + e) of (1, 0) and e/(1 + e) of (1, 1).  The sum is (2, 1 + e/(1 + e)):
    centred ±1/(2(1 + e)), which is also the std.  So b's (-1/2, 1/2) becomes -(1 + e), the
    position's as much the other way, the head's 1; the second norm takes 2/3 of each.
    """
    attribution = attribute(byhand.trace("tiny", "a b"))
    assert attribution.closes == "exact"
    assert terms_of(attribution) == {
        "embed.token": [["1/3", "-1/3", "0"], ["2(-1 - e)/3", "2(1 + e)/3", "0"]],
        "embed.position": [["0", "0", "0"], ["2(1 + e)/3", "2(-1 - e)/3", "0"]],
        "block.0.attn.head_out[0]": [["1/3", "-1/3", "0"], ["2/3", "-2/3", "0"]],
        "weight.block.0.attn.norm.bias": [["0", "0", "0"], ["0", "0", "0"]],
        "block.0.mlp.out": [["1/3", "-1/3", "0"], ["1/3", "-1/3", "0"]],
        "weight.block.0.mlp.norm.bias": [["0", "0", "0"], ["0", "0", "0"]],
    }
    assert [[str(x) for x in row] for row in attribution.totals] == [["1", "-1", "0"]] * 2


def test_the_embedding_of_journey_writes_its_rows_times_the_head(journey: Model) -> None:
    attribution = attribute(byhand.trace(journey))
    tables = {
        name: journey.weights[name].data for name in ("embed.token", "embed.position", "head")
    }
    ids = journey.vocabulary.encode("the cat sat on")
    for position, id in enumerate(ids):
        for token in range(6):
            column = tables["head"][:, token]
            for name, row in (
                ("embed.token", tables["embed.token"][id]),
                ("embed.position", tables["embed.position"][position]),
            ):
                by_hand = sum((x * w for x, w in zip(row, column, strict=True)), Fraction(0))
                assert attribution[name].array[position, token] == by_hand


def test_heads_neurons_and_biases_are_what_numpy_makes_of_the_same_weights() -> None:
    """The walk of each source through final norm and head, written out in float64."""
    model = open_model("minigpt")
    trace = work(model, None, Floats("float64"), head_outputs=True)
    w = {name: tensor.data.astype(np.float64) for name, tensor in model.weights.items()}
    at = {worked.address: worked.value for worked in trace.values()}
    std = at["final.norm.std"][-1]

    def to_logits(row: Any) -> Any:
        return ((row - row.mean()) / std * w["final.norm.gain"]) @ w["embed.token"].T

    out_in = model.spec.layout == "out_in"
    attribution = attribute(trace, positions=[-1], neurons=True, keys=True)
    d_head = model.spec.blocks[0].attention.d_head  # type: ignore[union-attr]
    for layer, head, key in product((0, 1), range(4), (0, trace.plan.length - 1)):
        of = f"block.{layer}.attn"
        value = at[f"{of}.weights"][head, -1, key] * at[f"{of}.v"][head, key]
        matrix = w[f"{of}.out"].T if out_in else w[f"{of}.out"]
        row = value @ matrix[head * d_head : (head + 1) * d_head]
        found = attribution[f"{of}.head_out.key[{head},{key}]"].array[0]
        np.testing.assert_allclose(found, to_logits(row), rtol=1e-9, atol=1e-12)
    for layer, unit in product((0, 1), (0, 17, 255)):
        of = f"block.{layer}.mlp"
        matrix = w[f"{of}.out"].T if out_in else w[f"{of}.out"]
        row = at[f"{of}.act"][-1, unit] * matrix[unit]
        found = attribution[f"{of}.act[{unit}]"].array[0]
        np.testing.assert_allclose(found, to_logits(row), rtol=1e-9, atol=1e-12)
    bias = attribution["weight.block.1.mlp.out_bias"].array[0]
    np.testing.assert_allclose(bias, to_logits(w["block.1.mlp.out_bias"]), rtol=1e-9, atol=1e-12)
    own = attribution["weight.final.norm.bias"].array[0]
    np.testing.assert_allclose(own, w["final.norm.bias"] @ w["embed.token"].T, rtol=1e-9)


# ------------------------------------------------------------------ nothing is left


@pytest.mark.parametrize("text", TINY_TEXTS)
@pytest.mark.parametrize("split", [False, True])
def test_nothing_is_left_of_tiny_by_algebra(tiny: Model, text: str, split: bool) -> None:
    attribution = attribute(work(tiny, text), neurons=split, keys=split)
    assert attribution.closes == "exact"
    assert all(entry.fraction == 0 for entry in attribution.remainders.flat)


@pytest.mark.parametrize("text", JOURNEY_TEXTS)
@pytest.mark.parametrize("split", [False, True])
def test_nothing_is_left_of_journey_by_algebra(journey: Model, text: str, split: bool) -> None:
    trace = work(journey, text)
    assert attribute(trace, neurons=split, keys=split).closes == "exact"
    assert attribute(trace, neurons=split, keys=split, of="stream").closes == "exact"


@pytest.mark.parametrize("split", [False, True])
def test_nothing_is_left_of_abc_by_algebra_on_any_text(split: bool) -> None:
    model = open_model("abc")
    for text in ABC_TEXTS:
        assert attribute(work(model, text), neurons=split, keys=split).closes == "exact", text


def test_a_remainder_is_what_the_trace_has_and_the_terms_have_not(journey: Model) -> None:
    """A logit that was tampered with is not explained: the remainder says by how much."""
    trace = work(journey)
    logits = trace.steps["logits"]
    wrong = logits.value.copy()
    wrong[3, 4] = wrong[3, 4] + Fraction(1, 1000)
    tampered = replace(trace, steps={**trace.steps, "logits": replace(logits, value=wrong)})
    attribution = attribute(tampered)
    assert attribution.closes == "open"
    assert attribution.remainders[3, 4] == Fraction(1, 1000)
    assert attribution.remainders[3, 3] == 0


def test_keys_add_up_to_their_head_and_neurons_to_their_mlp(journey: Model) -> None:
    trace = work(journey)
    whole, split = attribute(trace), attribute(trace, neurons=True, keys=True)
    keys = sum(split[f"block.0.attn.head_out.key[0,{k}]"].array for k in range(4))
    units = sum(split[f"block.0.mlp.act[{unit}]"].array for unit in range(4))
    assert (keys == whole["block.0.attn.head_out[0]"].array).all()
    assert (units == whole["block.0.mlp.out"].array).all()


def test_a_key_that_is_hidden_adds_nothing(journey: Model) -> None:
    attribution = attribute(work(journey), keys=True)
    later = attribution["block.0.attn.head_out.key[0,3]"].array
    assert all(entry.fraction == 0 for entry in later[:3].flat)


# ------------------------------------------------------------------ limits and what is not known


def test_where_a_norm_took_the_limit_its_terms_are_zero_and_that_is_said(tiny: Model) -> None:
    attribution = attribute(work(tiny, "c"))  # c is (1, 1): no variance, at eps 0
    assert attribution.limits == (
        ("block.0.attn.norm.normalized", 0),
        ("block.0.mlp.norm.normalized", 0),
    )
    assert attribution.closes == "exact"
    assert all(entry.fraction == 0 for term in attribution for entry in term.array.flat)


@pytest.mark.parametrize("numbers", [{"digits": 5}, {"float": "float32"}, {"decimals": 3}])
def test_the_limit_is_taken_in_every_number_system(numbers: dict[str, Any]) -> None:
    attribution = attribute(byhand.trace("tiny", "c", **numbers))
    assert len(attribution.limits) == 2
    assert attribution.closes in ("proven", "rounded")
    assert attribution.relative == 0


def test_what_depends_on_an_unknown_weight_is_missing_and_the_rest_is_there() -> None:
    attribution = attribute(byhand.trace("abc-walkthrough"))
    missing = {term.source.name for term in attribution if term.missing is not None}
    assert missing == {
        "block.0.attn.head_out[0]",
        "weight.block.0.attn.out_bias",
        "block.0.mlp.out",
        "weight.block.0.mlp.out_bias",
        "weight.head_bias",
    }
    assert attribution.closes == "open"
    assert attribution.total is None
    assert attribution.remainder is None
    assert attribution["embed.token"].array.shape == (3, 3)
    with pytest.raises(InputError, match="cannot be worked out"):
        attribution["block.0.mlp.out"].array  # noqa: B018


# ------------------------------------------------------------------ parts of it


def test_some_positions_and_tokens_are_those_of_all(journey: Model) -> None:
    trace = work(journey)
    whole, part = attribute(trace), attribute(trace, positions=[-1, 1], tokens=[4, 0])
    assert (part.positions, part.columns) == ((3, 1), (4, 0))
    assert part.closes == "exact"
    for term in part:
        full = whole[term.source.name].array
        assert (term.array == full[np.ix_([3, 1], [4, 0])]).all()
        assert part.entry(term, 3, 4) == whole.entry(whole[term.source.name], 3, 4)


def test_some_tokens_take_their_own_biases() -> None:
    trace = byhand.trace("abc")
    whole, part = attribute(trace), attribute(trace, tokens=[2, 0])
    assert part.closes == "exact"
    bias = whole["weight.head_bias"].array
    assert (part["weight.head_bias"].array == bias[:, [2, 0]]).all()
    assert (bias[0] == trace.model.weights["head_bias"].data).all()


def test_a_difference_tells_one_token_from_another(journey: Model) -> None:
    trace = work(journey)
    attribution = attribute(trace)
    margin = attribution.difference(4, 0)
    assert (margin.columns, margin.against, margin.closes) == ((4,), (0,), "exact")
    logits = trace["logits"].value
    assert (margin.totals[:, 0] == logits[:, 4] - logits[:, 0]).all()
    for term, full in zip(margin, attribution, strict=True):
        assert (term.array[:, 0] == full.array[:, 4] - full.array[:, 0]).all()
    assert margin.of_position(3).totals.shape == (1, 1)


def test_one_position_is_cut_out_with_what_is_known_of_it(tiny: Model) -> None:
    whole = attribute(work(tiny, "a b"))
    last = whole.of_position(1)
    assert (last.positions, last.closes, last.limits) == ((1,), "exact", ())
    assert (last["embed.token"].array[0] == whole["embed.token"].array[1]).all()


def test_the_stream_is_attributed_like_the_logits(tiny: Model) -> None:
    attribution = attribute(work(tiny, "a b"), of="stream", tokens=[1])
    assert attribution.closes == "exact"
    assert [str(row[0]) for row in attribution.totals] == ["-1", "-1"]
    term = attribution["block.0.mlp.out"]
    assert [str(row[0]) for row in term.array] == ["-1/3", "-1/3"]
    assert term.source.at("stream", 1, 1) == "explain.stream.block.0.mlp.out[1,1]"


def test_addresses_name_the_source_its_index_the_position_and_the_token(journey: Model) -> None:
    attribution = attribute(work(journey), neurons=True, keys=True)
    addresses = [term.source.at("logits", 3, 5) for term in attribution]
    assert addresses[0] == "explain.logits.embed.token[3,5]"
    assert "explain.logits.block.0.attn.head_out.key[0,2,3,5]" in addresses
    assert "explain.logits.block.0.mlp.act[3,3,5]" in addresses
    kinds = [term.source.kind for term in attribution]
    assert kinds == ["token", "position", *["key"] * 4, *["neuron"] * 4]


@pytest.mark.parametrize("asked", [{"positions": [4]}, {"tokens": [6]}, {"tokens": [-7]}])
def test_what_lies_outside_is_refused(journey: Model, asked: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="outside"):
        attribute(work(journey), **asked)


def test_a_table_too_large_to_hold_is_refused(
    journey: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("byhand.explaining.attribution.MOST", 100)
    with pytest.raises(InputError, match="fewer positions or tokens"):
        attribute(work(journey))
    assert attribute(work(journey), positions=[3], tokens=[4]).closes == "exact"


def test_what_was_not_attributed_is_refused(journey: Model) -> None:
    attribution = attribute(work(journey), positions=[3], tokens=[0, 1])
    with pytest.raises(AddressError, match="token 5 was not attributed"):
        attribution.difference(0, 5)
    with pytest.raises(AddressError, match="position 0 was not attributed"):
        attribution.of_position(0)
    with pytest.raises(AddressError, match="no source"):
        attribution["block.9"]


def test_steps_that_were_not_worked_out_are_asked_for(journey: Model) -> None:
    pruned: Trace = work(journey, None, Floats("float64"), only=["logits"])
    with pytest.raises(AddressError, match="not worked out"):
        attribute(pruned)


def as_printed(model: Model, places: int) -> Model:
    """The model, of whose embedding just so many decimals are known."""
    table = model.weights["embed.token"].data
    rows = [[Printed(round(Fraction(x), places), places) for x in row] for row in table]
    tensor = Tensor("embed.token", np.array(rows, dtype=object))
    return replace(model, weights=Weights({**model.weights, "embed.token": tensor}))


def test_numbers_known_only_as_printed_still_leave_nothing() -> None:
    """Their enclosures stay wide, so only algebra can tell that the terms add up."""
    trace = work(as_printed(open_model("abc"), 4), "AB")
    assert trace["logits"].register == "enclosed"
    assert attribute(trace).closes == "exact"


def test_a_norm_whose_scale_is_hardly_known_leaves_nothing_either(journey: Model) -> None:
    trace = work(as_printed(journey, 2), "cat sat")
    assert trace["logits"].register == "enclosed"
    assert attribute(trace).closes == "exact"


class Doubtful(Exact):
    """Numbers whose signs nobody knows."""

    def activate(self, x: Any, *, kind: str) -> Any:
        raise Undecided("the sign is open")


def test_a_trace_that_stopped_undecided_is_attributed_as_far_as_it_goes(journey: Model) -> None:
    trace = work(journey, "cat sat", Doubtful())
    assert trace["logits"].missing is not None
    attribution = attribute(trace)
    assert attribution.closes == "open"
    assert attribution["embed.token"].missing is None
    assert attribution["block.0.mlp.out"].missing.kind == "undecided"  # type: ignore[union-attr]
    assert attribution.difference(0, 1).of_position(0).closes == "open"
