"""What the `model:` table of a good model file means: each key, read back."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from byhand.expression import Expression, Number, parse
from byhand.files import parse_spec
from byhand.spec import NO_NORM, BlockSpec, ModelSpec, NormSpec, RotarySpec, over_root

BASE: dict[str, Any] = {"d_model": 4, "layers": 1, "attention": {}, "mlp": {"d_ff": 3}}


def spec_of(**keys: Any) -> ModelSpec:
    """The spec of BASE with these keys of `model:`."""
    tree = {"vocabulary": ["a", "b"], "model": {**BASE, **keys}}
    return parse_spec(json.dumps(tree), "m.json")


def block_of(**keys: Any) -> BlockSpec:
    return spec_of(**keys).blocks[0]


def test_what_is_left_out_is_what_the_reference_says() -> None:
    spec = spec_of()
    assert spec == ModelSpec(
        name="m",
        vocab=2,
        d_model=4,
        context=None,
        blocks=spec.blocks,
        position="none",
        embed_scale=None,
        final_norm=NO_NORM,
        tied=True,
        head_bias=False,
        layout="in_out",
    )
    attention, mlp = spec.blocks[0].attention, spec.blocks[0].mlp
    assert attention is not None
    assert mlp is not None
    assert (attention.heads, attention.kv_heads, attention.d_head) == (1, 1, 4)
    assert attention.scale == over_root(4)
    assert attention.causal
    assert attention.out
    assert not attention.out_bias
    assert (mlp.d_ff, mlp.activation, mlp.gated) == (3, "relu", False)
    assert spec.blocks[0].attn_norm == spec.blocks[0].mlp_norm == NO_NORM


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("none", NO_NORM),
        ("layernorm", NormSpec("layernorm", Fraction(0), gain=True, bias=True)),
        ("rmsnorm", NormSpec("rmsnorm", Fraction(0), gain=True, bias=False)),
        ({"eps": "1e-5"}, NormSpec("layernorm", Fraction(1, 100_000))),
        ({"kind": "rmsnorm", "eps": "1/3", "gain": False},
         NormSpec("rmsnorm", Fraction(1, 3), gain=False, bias=False)),
        ({"bias": False}, NormSpec("layernorm", gain=True, bias=False)),
    ],
)  # fmt: skip
def test_norms(norm: object, expected: NormSpec) -> None:
    spec = spec_of(norm=norm)
    assert spec.blocks[0].attn_norm == spec.blocks[0].mlp_norm == expected
    assert spec.blocks[0].norm_place == "pre"
    assert spec.final_norm == expected  # where pre, and not given


def test_a_final_norm_is_none_after_post_norms_and_otherwise_what_it_says() -> None:
    assert spec_of(norm={"place": "post"}).final_norm == NO_NORM
    assert spec_of(norm={"place": "post"}).blocks[0].norm_place == "post"
    assert spec_of(norm={"place": "post"}, final_norm="rmsnorm").final_norm.kind == "rmsnorm"
    assert spec_of(norm="layernorm", final_norm="none").final_norm == NO_NORM


def test_a_sublayer_can_have_a_norm_of_its_own() -> None:
    block = block_of(
        norm={"eps": "1/2"},
        attention={"norm": {"gain": False}},
        mlp={"d_ff": 3, "norm": "none"},
    )
    assert block.attn_norm == NormSpec("layernorm", Fraction(1, 2), gain=False, bias=True)
    assert block.mlp_norm == NO_NORM


def test_q_and_k_norms() -> None:
    attention = block_of(attention={"q_norm": "rmsnorm", "k_norm": {"eps": "1/4"}}).attention
    assert attention is not None
    assert attention.q_norm == NormSpec("rmsnorm", bias=False)
    assert attention.k_norm == NormSpec("layernorm", Fraction(1, 4))


@pytest.mark.parametrize(
    ("position", "stream", "rotary", "alibi"),
    [
        ("none", "none", None, False),
        ("sinusoidal", "sinusoidal", None, False),
        ("learned", "learned", None, False),
        ("alibi", "none", None, True),
        ("rope", "none", RotarySpec(4), False),
        ({"kind": "rope", "base": "500000", "width": 2, "pairing": "interleaved"},
         "none", RotarySpec(2, Fraction(500_000), "interleaved"), False),
        ({"kind": "rope", "angles": "given"}, "none", RotarySpec(4, given=True), False),
        (["learned", "alibi"], "learned", None, True),
        (["rope", {"kind": "sinusoidal"}], "sinusoidal", RotarySpec(4), False),
    ],
)  # fmt: skip
def test_positions(position: Any, stream: str, rotary: RotarySpec | None, alibi: bool) -> None:
    spec = spec_of(position=position, context=5)
    attention = spec.blocks[0].attention
    assert attention is not None
    assert spec.position == stream
    assert attention.rotary == rotary
    assert attention.alibi == alibi


def test_the_base_of_sinusoidal_positions() -> None:
    assert spec_of(position={"kind": "sinusoidal", "base": "100"}).position_base == 100


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("none", None),
        ("1", None),
        ("1/8", Number(Fraction(1, 8))),
        ("1/sqrt(7)", parse("1/sqrt(7)")),
    ],
)
def test_scales(scale: str, expected: Expression | None) -> None:
    attention = block_of(attention={"scale": scale}).attention
    assert attention is not None
    assert attention.scale == expected
    assert spec_of(embed_scale=scale).embed_scale == expected


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        (False, (False, False, False, False)),
        (True, (True, True, True, True)),
        ({"q": True, "v": True}, (True, False, True, False)),
        ({"out": True}, (False, False, False, True)),
    ],
)
def test_attention_biases(bias: object, expected: tuple[bool, ...]) -> None:
    a = block_of(attention={"bias": bias}).attention
    assert a is not None
    assert (a.q_bias, a.k_bias, a.v_bias, a.out_bias) == expected


def test_all_biases_are_those_that_can_be() -> None:
    block = block_of(attention={"bias": True, "out": False}, mlp={"d_ff": 3, "bias": True})
    assert block.attention is not None
    assert not block.attention.out_bias
    assert block.mlp is not None
    assert (block.mlp.hidden_bias, block.mlp.gate_bias, block.mlp.out_bias) == (True, False, True)
    gated = block_of(mlp={"d_ff": 3, "bias": True, "gated": True}).mlp
    assert gated is not None
    assert gated.gate_bias


def test_grouped_heads_of_any_width_and_packing() -> None:
    attention = block_of(
        attention={"heads": 6, "kv_heads": 2, "d_head": 5, "packed": "concatenated"}
    )
    a = attention.attention
    assert a is not None
    assert (a.q_width, a.kv_width, a.packed) == (30, 10, "concatenated")


def test_sublayers_can_be_left_out_and_run_in_parallel() -> None:
    assert block_of(attention="none").attention is None
    assert block_of(mlp="none").mlp is None
    assert block_of(residual="parallel").parallel
    assert not block_of(residual="serial").parallel


def test_a_layer_can_differ_in_anything() -> None:
    spec = spec_of(
        layers=4,
        norm={"eps": "1/2"},
        position="rope",
        blocks={
            "1": {"mlp": {"activation": "gelu"}, "position": "none"},
            "2": {"mlp": "none", "norm": {"gain": False}, "attention": {"heads": 2}},
            "3": {"position": ["alibi", {"kind": "rope", "width": 2}], "residual": "parallel"},
        },
    )
    plain, first, second, third = spec.blocks
    assert plain.mlp is not None
    assert plain.attention is not None
    assert first.mlp is not None
    assert first.attention is not None
    assert (first.mlp.activation, first.mlp.d_ff) == ("gelu", 3)
    assert (plain.attention.rotary, first.attention.rotary) == (RotarySpec(4), None)
    assert second.mlp is None
    assert second.attention is not None
    assert second.attention.scale == over_root(2)
    assert second.attn_norm == NormSpec("layernorm", Fraction(1, 2), gain=False, bias=True)
    assert third.attention is not None
    assert third.attention.alibi
    assert third.attention.rotary == RotarySpec(2)
    assert third.parallel
    assert spec.final_norm == NormSpec("layernorm", Fraction(1, 2))


def test_the_head_and_the_layout() -> None:
    spec = spec_of(head={"tied": False, "bias": True}, layout="out_in")
    assert not spec.tied
    assert spec.head_bias
    assert spec.layout == "out_in"
