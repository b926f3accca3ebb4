"""Every field of an architecture can be written into a model file and read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from byhand.files import tree
from byhand.files.architecture import read_architecture
from byhand.files.tables import model_table
from byhand.files.writing import _dump
from byhand.rope_scaling import Scaling
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    HeadSpec,
    LatentSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RelativeSpec,
    RotarySpec,
    over_root,
)

F = Fraction
RMS = NormSpec("rmsnorm", F(1, 1000), bias=False, plus_one=True)
BARE = NormSpec("layernorm", F(1, 7), gain=False, bias=False)
LAYER = NormSpec("layernorm", F(1, 1000))
HALF = over_root(4)
YARN = Scaling("yarn", F(4), length=64, slow=F(2), fast=F(16), whole=False)
LONG = Scaling("longrope", length=64, short_factors=(F(1), F(3, 2)), long_factors=(F(2), F(3)))
WIDE = AttentionSpec(
    4, 4, 2, scale=HALF, rotary=RotarySpec(4, F(500), "interleaved", magnitude=HALF, scaling=YARN),
    q_norm=RMS, k_norm=RMS, normed="width", clip=F(1, 2), sinks=True, cap=F(5), window=3,
    q_bias=True, k_bias=True, v_bias=True, out_bias=True,
)  # fmt: skip
EACH = AttentionSpec(
    2, 4, 2, q_norm=RMS, k_norm=RMS, normed="each", relative=True, causal=False,
    rotary=RotarySpec(4, scaling=LONG),
)  # fmt: skip
LATENT = AttentionSpec(
    4, 6, 4, scale=HALF, rotary=RotarySpec(2, given=True), d_value=5,
    latent=LatentSpec(7, 5, RMS, RMS, down_bias=True),
)  # fmt: skip
TURNED = AttentionSpec(2, 4, 2, q_norm=RMS, k_norm=RMS, rotary=RotarySpec(4), turned_first=True)
PLAIN = AttentionSpec(2, 4, 2, queries=False, score_table=True, alibi=True, nothing=True, out=False)
PACKED = AttentionSpec(2, 4, 2, scale=HALF, packed="per_head")
EXPERTS = MlpSpec(
    6, "quick_gelu", gated=True, hidden_bias=True, gate_bias=True, out_bias=True, experts=8,
    chosen=2, router_bias=True, scoring="sigmoid", choice_bias=True, groups=4,
    groups_chosen=2, group_rule="top2", share_scale=F(5, 2), share_eps=F(1, 10**20), shared=9,
    shared_gate=True, shared_bias=False, limit=F(7), hidden_plus=F(1),
)  # fmt: skip
RELU = MlpSpec(6)
OF_ALL = MlpSpec(6, experts=3, chosen=1, normalised=False)
ENCODER = EncoderSpec(
    (BlockSpec(EACH, RELU, LAYER, LAYER, "post"),), vocab=9, context=12, position="sinusoidal",
    position_base=F(77), position_pairing="half", embed_scale=HALF, embed_norm=LAYER,
    final_norm=RMS, relative=RelativeSpec(8, 16, both=True),
)  # fmt: skip
SPECS = (
    ModelSpec(
        "one", 11, 8, 20,
        (
            BlockSpec(WIDE, RELU, RMS, RMS, attn_after=RMS, mlp_after=RMS, add_scale=HALF,
                      cross=AttentionSpec(2, 4, 2, scale=HALF, causal=False), cross_norm=LAYER),
            BlockSpec(LATENT, EXPERTS, LAYER, parallel=True, one_norm=True),
            BlockSpec(PLAIN, RELU, LAYER, BARE, from_norm=True),
            BlockSpec(TURNED, OF_ALL, LAYER),
        ),
        position="sinusoidal", position_base=F(9), position_pairing="half", embed_scale=HALF,
        segments=2, embed_norm=LAYER, relative=RelativeSpec(8, 16), final_norm=RMS, tied=False,
        head=HeadSpec("silu", LAYER, bias=False), head_scale=HALF, logit_scale=HALF,
        logit_cap=F(30), head_bias=True, encoder=ENCODER, layout="out_in", in_place=True,
    ),
    ModelSpec("two", 11, 8, 20, (BlockSpec(PACKED, None, LAYER),), embed_width=5, outputs=3,
              tied=False, head_bias=True, fixed_bias=True),
    ModelSpec("three", 11, 8, 20, (), position="learned", first_row=2,
              encoder=EncoderSpec((), context=9, position="learned", first_row=3)),
)  # fmt: skip
NOT_IN_THE_TABLE = {("ModelSpec", "family")}  # of a checkpoint alone


def parts(value: Any) -> Iterator[Any]:
    """A spec, and every spec inside it."""
    if isinstance(value, tuple):
        for each in value:
            yield from parts(each)
    elif is_dataclass(value) and type(value).__name__.endswith(("Spec", "Scaling")):
        yield value
        for each in fields(value):
            yield from parts(getattr(value, each.name))


def test_every_architecture_is_read_back_as_it_was_written() -> None:
    for spec in SPECS:
        text = _dump(model_table(spec))
        source = spec.encoder.vocab if spec.encoder else None
        back = read_architecture(
            tree.read(text, "x.yaml"), spec.name, spec.vocab, spec.outputs, source
        )
        assert back == spec


def test_between_them_they_have_every_field_at_another_value_than_its_default() -> None:
    kinds = {type(part) for spec in SPECS for part in parts(spec)}
    varied = {
        (type(part).__name__, each.name)
        for spec in SPECS
        for part in parts(spec)
        for each in fields(part)
        if getattr(part, each.name) != each.default
    }
    missing = {
        (kind.__name__, each.name) for kind in kinds for each in fields(kind)
    } - varied - NOT_IN_THE_TABLE  # fmt: skip
    assert missing == set()
