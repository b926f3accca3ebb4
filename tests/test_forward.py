"""The forward pass is right: the plan, its working and its exact values against two oracles.

The formulas of `byhand.working` in Arb, and the same architectures in torch float64, agree with
each other; the exact values agree with both, at every entry of every step.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from byhand import forward
from byhand.evaluate import Admitted, work_out
from byhand.numbers.exact import Exact
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root
from byhand.weights import Tensor, Weights
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, given_answers, make_case, nasty, spread
from oracles.comparing import assert_arb_is_torch, assert_exact_is_arb, assert_exact_is_torch
from oracles.torch_pass import TorchPass

WIDE, SMALL, NASTY = 40, 15, 25


@cache
def wide_cases() -> tuple[Case, ...]:
    return tuple(spread(WIDE, seed=1))


@cache
def small_cases() -> tuple[Case, ...]:
    return tuple(spread(SMALL, seed=2, wishes={"d_model": 2, "layers": 1, "length": 2}))


@cache
def nasty_cases() -> tuple[Case, ...]:
    wishes = {"vocab": 3, "attn eps": "0", "mlp eps": "0", "final eps": "0"}
    return tuple(spread(NASTY, seed=8, among=2, wishes=wishes, entry=nasty))


def in_torch(case: Case) -> TorchPass:
    return TorchPass(case.spec, case.weights, case.tokens, case.target, case.positions, case.mask)


def in_arb(case: Case) -> ArbPass:
    return ArbPass(case.plan(), case.weights, case.tokens, case.target)


def exactly(case: Case) -> dict[str, Any]:
    return work_out(case.plan(), case.weights, case.tokens, Exact(), target=case.target)


def test_a_text_after_its_past_is_worked_out_as_the_whole_text_at_once() -> None:
    cases = spread(25, seed=5, wishes={"length": 3, "first position": 0, "extra mask": False})
    for case in cases:
        if not all(b.attention is None or b.attention.causal for b in case.spec.blocks):
            continue
        weights = Admitted(case.weights, Exact())
        whole = work_out(forward.plan(case.spec, 3), weights, case.tokens, weights.numbers)
        first = work_out(forward.plan(case.spec, 2), weights, case.tokens[:2], weights.numbers)
        later = forward.plan(case.spec, 1, past=2)
        past = {}
        for step in later:
            if step.op == "join":
                past[step.inputs["x"]] = first[step.inputs["y"]]
        last = work_out(later, weights, case.tokens[2:], weights.numbers, given=past)
        for address, worked in last.items():
            if worked.step.op in ("given", "join", "argmax"):
                continue
            at = worked.step.position_axis
            assert at is not None
            rows = np.take(whole[address].value, [2], axis=at)
            assert worked.value.tolist() == rows.tolist(), (address, str(case))


def test_the_wide_cases_give_every_answer_to_every_question() -> None:
    possible = set[tuple[str, Any]]().union(*map(given_answers, spread(300, seed=5, among=1)))
    given = set[tuple[str, Any]]().union(*map(given_answers, wide_cases()))
    assert given >= possible


@pytest.mark.parametrize("number", range(WIDE))
def test_the_formulas_of_the_working_compute_what_torch_computes(number: int) -> None:
    case = wide_cases()[number]
    assert_arb_is_torch(in_arb(case), in_torch(case))


@pytest.mark.parametrize("number", range(WIDE))
def test_the_exact_pass_computes_what_torch_computes(number: int) -> None:
    case = wide_cases()[number]
    assert_exact_is_torch(case.plan(), exactly(case), in_torch(case))


@pytest.mark.parametrize("number", range(WIDE + SMALL))
def test_every_exact_entry_lies_in_the_ball_of_its_formula(number: int) -> None:
    case = (wide_cases() + small_cases())[number]
    oracle = in_arb(case)
    entries = sum(ball is not None for step in oracle.values.values() for ball in step.values())
    assert assert_exact_is_arb(exactly(case), oracle) == entries


@pytest.mark.parametrize("number", range(NASTY))
def test_weights_as_people_set_them_by_hand_agree_entry_by_entry(number: int) -> None:
    case = nasty_cases()[number]
    assert_exact_is_arb(exactly(case), in_arb(case))


def test_those_weights_do_meet_zero_variances_and_ties() -> None:
    notes, ties = 0, 0
    for case in nasty_cases():
        steps = exactly(case)
        notes += sum(len(worked.notes) for worked in steps.values())
        ties += sum(bool(prediction.tied) for prediction in steps["next"].value)
    assert notes >= 5
    assert ties >= 5


@settings(max_examples=60)
@given(st.data(), st.integers(0, 10**6))
def test_any_architecture_agrees_with_both_oracles(data: st.DataObject, seed: int) -> None:
    case = make_case(
        lambda question, options: data.draw(st.sampled_from(list(options)), question),
        seed,
        largest=3,
    )
    oracle, steps = in_arb(case), exactly(case)
    assert_arb_is_torch(oracle, in_torch(case))
    assert_exact_is_arb(steps, oracle)


# ------------------------------------------------------------------ torch's own modules


def rational(tensor: torch.Tensor) -> Tensor:
    """A float tensor as the dyadic rationals it holds."""
    data = np.empty(tuple(tensor.shape), dtype=object)
    for index in np.ndindex(*data.shape):
        data[index] = Fraction(float(tensor.detach()[index]))
    return Tensor("", data)


def coarse(module: nn.Module, seed: int) -> nn.Module:
    """The module with weights of a few binary digits, so that exact values stay short."""
    torch.manual_seed(seed)
    module = module.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randint(-8, 9, parameter.shape) / 8.0)
    return module


def layer_weights(layer: nn.TransformerEncoderLayer) -> dict[str, Tensor]:
    attention = layer.self_attn
    assert attention.in_proj_weight is not None
    return {
        "block.0.attn.norm.gain": rational(layer.norm1.weight),
        "block.0.attn.norm.bias": rational(layer.norm1.bias),
        "block.0.attn.qkv": rational(attention.in_proj_weight),
        "block.0.attn.qkv_bias": rational(attention.in_proj_bias),
        "block.0.attn.out": rational(attention.out_proj.weight),
        "block.0.attn.out_bias": rational(attention.out_proj.bias),
        "block.0.mlp.norm.gain": rational(layer.norm2.weight),
        "block.0.mlp.norm.bias": rational(layer.norm2.bias),
        "block.0.mlp.hidden": rational(layer.linear1.weight),
        "block.0.mlp.hidden_bias": rational(layer.linear1.bias),
        "block.0.mlp.out": rational(layer.linear2.weight),
        "block.0.mlp.out_bias": rational(layer.linear2.bias),
    }


def encoder(place: str, activation: str, heads: int, causal: bool) -> ModelSpec:
    norm = NormSpec("layernorm", eps=Fraction(1e-5))
    return ModelSpec(
        name="encoder",
        vocab=3,
        d_model=4,
        context=None,
        blocks=(
            BlockSpec(
                AttentionSpec(
                    heads=heads, d_head=4 // heads, kv_heads=heads, scale=over_root(4 // heads),
                    causal=causal, q_bias=True, k_bias=True, v_bias=True, packed="concatenated",
                    out_bias=True,
                ),
                MlpSpec(3, activation, hidden_bias=True, out_bias=True),
                attn_norm=norm,
                mlp_norm=norm,
                norm_place=place,
            ),
        ),
        layout="out_in",
    )  # fmt: skip


def same(steps: dict[str, Any], address: str, expected: torch.Tensor) -> None:
    for index, value in steps[address].entries():
        assert float(value.ball(64)) == pytest.approx(float(expected[index]), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize(("activation", "heads", "causal"), [("relu", 2, True), ("gelu", 1, False)])
def test_a_block_is_torch_s_own_transformer_encoder_layer(
    place: str, activation: str, heads: int, causal: bool
) -> None:
    layer = nn.TransformerEncoderLayer(
        4, heads, 3, dropout=0.0, activation=activation, batch_first=True, norm_first=place == "pre"
    )
    layer = coarse(layer, seed=heads)  # type: ignore[assignment]
    table = torch.tensor([[1, -0.5, 0, 2], [0.5, 1, -1, 0], [0, 0.25, 1, -1]], dtype=torch.float64)
    weights = Weights({"embed.token": rational(table), **layer_weights(layer)})
    tokens = (2, 0, 1)
    future = torch.full((3, 3), float("-inf"), dtype=torch.float64).triu(1) if causal else None
    with torch.no_grad():
        expected = layer(table[list(tokens)][None], src_mask=future)[0]
    spec = encoder(place, activation, heads, causal)
    case = Case(spec, weights, tokens, 0, (0, 1, 2), None)
    steps = exactly(case)
    same(steps, case.plan()["stream.1"].address, expected)
    same(steps, "logits", expected @ table.T)


def test_attention_is_torch_s_own_multihead_attention_with_its_weights_averaged() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 3, dropout=0.0, batch_first=True)
    layer = coarse(layer, seed=9)  # type: ignore[assignment]
    table = torch.tensor([[1, -0.5, 0, 2], [0.5, 1, -1, 0]], dtype=torch.float64)
    weights = Weights({"embed.token": rational(table), **layer_weights(layer)})
    with torch.no_grad():
        out, shares = layer.self_attn(
            table[None], table[None], table[None], average_attn_weights=False
        )
    spec = encoder("post", "relu", 2, causal=False)
    steps = exactly(Case(spec, weights, (0, 1), 0, (0, 1), None))
    same(steps, "block.0.attn.weights", shares[0])
    same(steps, "block.0.attn.out", out[0])


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_a_norm_is_torch_s_own(kind: str) -> None:
    eps = Fraction(1, 8)
    module: nn.Module
    if kind == "layernorm":
        module = coarse(nn.LayerNorm(4, eps=0.125), seed=3)
    else:
        module = coarse(nn.RMSNorm(4, eps=0.125), seed=3)
    table = torch.tensor([[1, -0.5, 0, 2], [3, 1, -1, 0]], dtype=torch.float64)
    named = {f"final.norm.{'gain' if name == 'weight' else 'bias'}": rational(parameter)
             for name, parameter in module.named_parameters()}  # fmt: skip
    norm = NormSpec(kind, eps=eps, bias=kind == "layernorm")
    spec = ModelSpec("norm", 2, 4, None, (), final_norm=norm)
    weights = Weights({"embed.token": rational(table), **named})
    steps = exactly(Case(spec, weights, (1, 0), 0, (0, 1), None))
    with torch.no_grad():
        same(steps, "final.norm.out", module(table[[1, 0]]))
