"""QK and OV against real traces and against torch, at every pair of places that a text has."""

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

from byhand.document.compose.explanation.wording import head_sentences
from byhand.errors import AddressError, InputError, TextError
from byhand.evaluate import trace
from byhand.explaining import circuits as circuits_module
from byhand.explaining.circuit_plans import norms_passed
from byhand.explaining.circuits import circuits
from byhand.explaining.foremost import clearest, strongest_of
from byhand.files import parse_model
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.spec import BlockSpec, MlpSpec, ModelSpec
from oracles.architectures import Case
from oracles.torch_pass import float_tensors

PENCIL_MODELS = ("tiny", "journey", "abc")
EXACT = [
    (name, query, key) for name in PENCIL_MODELS for query in range(2) for key in range(query + 1)
]


def floats(table: Any) -> Any:
    return np.array([[float(x) for x in row] for row in table])


# ------------------------------------------------------------------ in block 0, the text's own


@pytest.mark.parametrize(("name", "query", "key"), EXACT)
def test_qk_of_the_first_block_are_the_scores_of_the_text(name: str, query: int, key: int) -> None:
    whole = trace(open_model(name))
    found = circuits(whole, 0, positions=(query, key))
    scores = whole["block.0.attn.scores"]
    for head in found:
        asks, asked = whole.tokens[query], whole.tokens[key]
        assert head.qk.at(asks, asked) == scores.at((head.head, query, key))


@pytest.mark.parametrize("name", PENCIL_MODELS)
def test_the_shares_of_ov_sum_up_to_what_the_head_writes(name: str) -> None:
    model = open_model(name)
    whole = trace(model, head_outputs=True)
    head = model.weights["embed.token" if model.spec.tied else "head"].data
    head = head.T if model.spec.tied or model.spec.layout == "out_in" else head
    for query in range(len(whole.tokens)):
        total: Any = [Fraction(0)] * model.spec.vocab
        for key in range(query + 1):
            (found,) = circuits(whole, 0, positions=(query, key))
            share = whole["block.0.attn.weights"].at((0, query, key))
            row = found.ov.entries[found.ov.rows.index(whole.tokens[key])]
            total = [have + share * more for have, more in zip(total, row, strict=True)]
        written = whole["block.0.attn.head_out"].array[0, query]
        if name == "tiny":  # its norms come after the add; centred twice is centred once
            written = written - sum(written) * Fraction(1, len(written))
        by_hand = [sum((written * column)[1:], written[0] * column[0]) for column in head.T]
        assert all(bool(one == other) for one, other in zip(total, by_hand, strict=True))


@given(cases())
@settings(max_examples=20)
def test_of_any_architecture_qk_are_the_scores_and_ov_is_what_is_written(case: Case) -> None:
    if not case.spec.blocks or case.spec.blocks[0].attention is None:
        return
    whole = trace_of(case, Floats("float64"))
    scores, shares = (whole[f"block.0.attn.{name}"] for name in ("scores", "weights"))
    written = np.asarray(whole["block.0.attn.head_out"].array)
    for query, place in enumerate(case.positions):
        total = np.zeros((len(written), case.spec.vocab))
        for key, other in enumerate(case.positions):
            found = circuits(whole, 0, positions=(place, other))
            for head in found:
                score = scores.at((head.head, query, key))
                mine = head.qk.at(case.tokens[query], case.tokens[key])
                if score is not ABSENT:  # what the case's own mask hides is open here
                    assert np.isclose(float(mine), score, rtol=1e-9, atol=1e-9)
                    row = head.ov.rows.index(case.tokens[key])
                    share = shares.at((head.head, query, key))
                    total[head.head] += share * floats(head.ov.entries)[row]
        assert np.allclose(total, _read(case, written[:, query]), rtol=1e-8, atol=1e-8)


def _read(case: Case, x: Any) -> Any:
    """(head, d) → logits, past every norm there is: centred, times gain."""
    w = {name: tensor.numpy() for name, tensor in float_tensors(case.weights).items()}
    for at in norms_passed(case.spec, 0):
        part = case.spec.final_norm
        if at != "final.norm":
            block = case.spec.blocks[int(at.split(".")[1])]
            part = block.attn_norm if ".attn." in at else block.mlp_norm
        if part.kind == "layernorm":
            x = x - x.mean(axis=-1, keepdims=True)
        x = x * w.get(f"{at}.gain", 1.0)
    head = w["embed.token"].T if case.spec.tied else w["head"]
    return x @ (head if case.spec.tied or case.spec.layout == "in_out" else head.T)


# ------------------------------------------------------------------ against torch


def turned(x: torch.Tensor, place: int) -> torch.Tensor:
    """RoPE on the last axis, halves paired, base 10,000."""
    half = x.shape[-1] // 2
    angles = place * 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    one, other = x[..., :half], x[..., half:]
    sin, cos = angles.sin(), angles.cos()
    return torch.cat([one * cos - other * sin, one * sin + other * cos], dim=-1)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("places", [(4, 4), (3, 1)])
def test_a_gpt2_like_block_is_what_torch_says(layer: int, places: tuple[int, int]) -> None:
    model = random_model(gpt2_like())
    w, at = float_tensors(model.weights), f"block.{layer}.attn"
    norm = (w[f"{at}.norm.gain"], w[f"{at}.norm.bias"], 1e-5)

    def packed(place: int) -> torch.Tensor:  # (vocab, 3, head, d_head)
        x = F.layer_norm(w["embed.token"] + w["embed.position"][place], (8,), *norm)
        return torch.addmm(w[f"{at}.qkv_bias"], x, w[f"{at}.qkv"]).reshape(11, 3, 2, 4)

    query, key = places
    q, k, v = packed(query)[:, 0], packed(key)[:, 1], packed(key)[:, 2]
    scores = torch.einsum("ahd,bhd->hab", q, k) / 2
    out = torch.einsum("ahd,hde->hae", v, w[f"{at}.out"].reshape(2, 4, 8))
    out = (out - out.mean(-1, keepdim=True)) * w["final.norm.gain"]
    written = out @ w["embed.token"].T
    found = circuits(trace(model, TEXT, Floats("float64")), layer, positions=places)
    assert found.stands_in == (layer > 0)
    assert found.norms == ("final.norm",)
    for head in found:
        assert np.allclose(floats(head.qk.entries), scores[head.head], rtol=0, atol=1e-12)
        assert np.allclose(floats(head.ov.entries), written[head.head], rtol=0, atol=1e-12)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("places", [(4, 4), (3, 1)])
def test_a_llama_like_block_is_what_torch_says(layer: int, places: tuple[int, int]) -> None:
    model = random_model(llama_like())
    w, at = float_tensors(model.weights), f"block.{layer}.attn"
    x = w["embed.token"]
    x = x / ((x**2).mean(-1, keepdim=True) + 1e-5).sqrt() * w[f"{at}.norm.gain"]
    q = turned((x @ w[f"{at}.q"].T).reshape(11, 4, 4), places[0])
    k = turned((x @ w[f"{at}.k"].T).reshape(11, 2, 4), places[1]).repeat_interleave(2, dim=1)
    v = (x @ w[f"{at}.v"].T).reshape(11, 2, 4).repeat_interleave(2, dim=1)
    scores = torch.einsum("ahd,bhd->hab", q, k) / 2
    out = torch.einsum("ahd,ehd->hae", v, w[f"{at}.out"].reshape(8, 4, 4))
    written = (out * w["final.norm.gain"]) @ w["head"].T
    for head in circuits(trace(model, TEXT, Floats("float64")), layer, positions=places):
        assert np.allclose(floats(head.qk.entries), scores[head.head], rtol=0, atol=1e-12)
        assert np.allclose(floats(head.ov.entries), written[head.head], rtol=0, atol=1e-12)


@pytest.mark.parametrize("system", [lambda: Balls(100), lambda: Limbs(100), Tensors])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_system_says_the_same(family: Any, system: Any) -> None:
    model, numbers = random_model(family()), system()
    near = circuits(trace(model, TEXT, Floats("float64")), 1, positions=(3, 1))
    room = 1e-12 if numbers.uniform == "enclosed" else 1e-4
    found = circuits(trace(model, TEXT, numbers), 1, positions=(3, 1))
    for head, other in zip(found, near, strict=True):
        for one, two in ((head.qk, other.qk), (head.ov, other.ov)):
            assert np.allclose(floats(one.entries), floats(two.entries), rtol=0, atol=room)
            if numbers.uniform == "enclosed":
                assert max(x.rad for row in one.entries for x in row) < 1e-20


def test_with_a_pencil_every_line_is_rounded(tiny: Model) -> None:
    found = circuits(trace(tiny, "a b", Pencil(2)), 0)
    assert found.heads[0].ov.entries.tolist() == [[1, -1, 0], [0, 0, 0], [0.5, -0.5, 0]]


# ------------------------------------------------------------------ in words


def test_in_words_tiny_reads_a_and_writes_a(tiny: Model) -> None:
    (head,) = circuits(trace(tiny, "a b"), 0)
    assert head.qk.entries.tolist() == [[4, 2, 4], [2, 2, 3], [4, 3, 5]]
    assert head_sentences(head, tiny) == (  # from a, a and c score the same: nothing to tell
        "from b it looks most at c",
        "from c it looks most at c",
        "reads a, writes a",
        "reads c, writes a",
    )
    assert (head.looks, head.writes) == (((1, 2), (2, 2)), ((0, 0), (2, 0)))
    assert head.qk.strongest == ((0, 2, 1), (2, 0, 1), (2, 0, 1))
    assert head.qk.address_of(1, 2) == "explain.qk.block.0[0,1,2]"
    assert head.ov.address_of(1, 2) == "explain.ov.block.0[0,1,2]"


def test_words_are_quoted_so_that_nobody_takes_them_for_the_tellers(journey: Model) -> None:
    head = circuits(trace(journey), 0).heads[0]
    assert head_sentences(replace(head, looks=((0, 1),), writes=((3, 2),)), journey) == (
        "from “the” it looks most at “cat”",
        "reads “on”, writes “sat”",
    )


def test_a_row_whose_entries_are_all_alike_has_no_strongest() -> None:
    near = np.array([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0, np.nan]])
    assert strongest_of(near, 0 * near, (5, 6, 7)) == ((), (), (6, 5))
    near = np.array([[3.0, np.nan], [np.inf, np.inf]])
    assert strongest_of(near, np.zeros((2, 2)), (5, 6)) == ((5,), (5, 6))


def test_of_many_rows_those_are_told_whose_foremost_column_is_furthest_ahead() -> None:
    near = np.zeros((9, 4))
    near[range(9), 2] = [1, 9, 2, 8, 3, 7, 4, 6, 5]
    assert clearest(near, 0 * near) == [(row, 2) for row in (1, 3, 5, 6, 7, 8)]
    assert clearest(np.array([[1.0, np.inf], [np.nan, 1.0]]), np.zeros((2, 2))) == []


def test_what_printed_weights_leave_open_is_not_told() -> None:
    """b is 0.3, known to 0.05: that head reads b and writes b is proven, and nothing of a is."""
    model = parse_model("""\
vocabulary: [a, b, c]
text: a b
model: {d_model: 1, layers: 1, mlp: none, attention: {heads: 1}}
weights:
  embed.token: {printed: 1, values: [[0.0], [0.3], [-0.1]]}
  block.0.attn.q: ones
  block.0.attn.k: ones
  block.0.attn.v: ones
  block.0.attn.out: ones
""")
    for worked in (trace(model), trace(model, numbers=Balls(100))):
        (head,) = circuits(worked, 0)
        assert (head.looks, head.writes) == (((1, 1),), ((1, 1),))
        assert head.ov.strongest[0] == ()


def test_what_a_reader_has_to_know_is_said(tiny: Model) -> None:
    assert circuits(trace(tiny, "a b"), 0).said == (
        "the query stands at position 1, the key at position 1",
        "what is written passes block.0.attn.norm, block.0.mlp.norm: their centring and gain, "
        "not their scale",
    )
    said = circuits(trace(random_model(gpt2_like()), TEXT), 1, tokens=[4, 2]).said
    assert "block 1 reads the bare embedding here" in said[1]
    assert said[-1] == "9 tokens of the vocabulary are left out"


# ------------------------------------------------------------------ large vocabularies


def test_of_a_large_vocabulary_rows_are_the_text_and_columns_what_is_written_most_and_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = trace(random_model(gpt2_like()), "3 5 1 7 3", Floats("float64"))
    every = circuits(whole, 1)
    monkeypatch.setattr(circuits_module, "WHOLE_VOCABULARY", 8)
    monkeypatch.setattr(circuits_module, "MOST_ROWS", 3)
    monkeypatch.setattr(circuits_module, "SHOWN", 1)
    found = circuits(whole, 1)
    assert found.left_out == 8
    for head, all_of_it in zip(found, every, strict=True):
        assert head.qk.rows == head.qk.columns == head.ov.rows == (1, 7, 3)
        written = floats(all_of_it.ov.entries)[[1, 7, 3]]
        ends = {*written.argmax(axis=1).tolist(), *written.argmin(axis=1).tolist()}
        assert set(head.ov.columns) == ends
        for row in head.ov.rows:
            for column in head.ov.columns:
                assert np.isclose(head.ov.at(row, column), all_of_it.ov.at(row, column), atol=1e-12)
            for column in head.qk.columns:
                assert np.isclose(head.qk.at(row, column), all_of_it.qk.at(row, column), atol=1e-12)


@pytest.mark.parametrize("numbers", [Floats("float32"), Limbs(80)])
def test_columns_are_picked_in_enclosures_too(
    numbers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuits_module, "WHOLE_VOCABULARY", 8)
    monkeypatch.setattr(circuits_module, "SHOWN", 1)
    whole = trace(random_model(llama_like()), TEXT, numbers)
    monkeypatch.undo()
    every = circuits(whole, 0, tokens=whole.tokens)
    monkeypatch.setattr(circuits_module, "WHOLE_VOCABULARY", 8)
    monkeypatch.setattr(circuits_module, "SHOWN", 1)
    for head, other in zip(circuits(whole, 0), every, strict=True):
        assert len(head.ov.columns) < 11
        for column in head.ov.columns:
            assert float(head.ov.at(7, column)) == float(other.ov.at(7, column))


# ------------------------------------------------------------------ what may be missing


def test_a_key_that_the_mask_hides_has_no_score(tiny: Model) -> None:
    (head,) = circuits(trace(tiny, "a b"), 0, positions=(0, 1))
    assert all(entry is ABSENT for entry in head.qk.entries.ravel())
    assert head.qk.strongest == ((), (), ())
    assert head.ov.entries.tolist()[0] == [1, -1, 0]  # what would be written is told


def test_a_layer_without_attention_has_no_heads() -> None:
    model = random_model(ModelSpec("mlps", 5, 3, None, (BlockSpec(None, MlpSpec(4)),)))
    found = circuits(trace(model, "4 1", Floats("float64")), 0)
    assert (found.heads, found.missing) == ((), None)


def test_an_unknown_weight_is_told() -> None:
    found = circuits(trace(open_model("abc-walkthrough")), 0)
    assert found.heads == ()
    assert found.missing is not None
    assert found.missing.cause == "weight.block.0.attn.qkv"


def test_a_text_of_one_token_stands_at_place_0(tiny: Model) -> None:
    found = circuits(trace(tiny, "b"), 0)
    assert found.positions == (0, 0)
    assert found.heads[0].qk.entries.tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 2]]


def test_scores_that_are_not_numbers_say_nothing() -> None:
    model = random_model(gpt2_like())
    table = model.weights["embed.token"].data.copy()
    table[2] = np.inf
    with np.errstate(all="ignore"):
        broken = with_weight(model, "embed.token", table)
        found = circuits(trace(broken, TEXT, Floats("float64")), 0)
    for head in found:
        assert not any(row == 2 for row, _column in (*head.looks, *head.writes))


def test_places_tokens_and_layers_outside_the_model_are_refused(tiny: Model) -> None:
    whole = trace(tiny, "a b")
    with pytest.raises(AddressError, match="there is no such layer"):
        circuits(whole, 1)
    with pytest.raises(AddressError, match="there is no such token"):
        circuits(whole, 0, tokens=[3])
    with pytest.raises(InputError, match="no tokens were given"):
        circuits(whole, 0, tokens=[])
    with pytest.raises(TextError, match="too long"):
        circuits(whole, 0, positions=(2, 0))
