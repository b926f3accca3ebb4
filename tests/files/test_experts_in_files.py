"""Sinks, experts and magnitudes in model files: read, refused and written again."""

from __future__ import annotations

from fractions import Fraction

import pytest

from byhand.counting import count
from byhand.errors import InputError
from byhand.expression import parse
from byhand.files import parse_model
from byhand.files.writing import write_model

FILE = """
vocabulary: [a, b]
text: a b
model:
  d_model: 2
  layers: 2
  layout: out_in
  position: {kind: rope, base: 100, magnitude: ln(32)/10 + 1}
  attention: {heads: 2, d_head: 2, sinks: true, cap: 5/2}
  mlp: {d_ff: 3, gated: true, bias: true, experts: 4, chosen: 2, normalised: false}
  blocks:
    1: {attention: {sinks: false}, mlp: none, position: none}
weights:
  embed.token: identity
  block.*.attn.q: {normal: {std: 1, seed: 1}}
  block.*.attn.k: {normal: {std: 1, seed: 1}}
  block.*.attn.v: {normal: {std: 1, seed: 1}}
  block.*.attn.out: {normal: {std: 1, seed: 1}}
  block.0.attn.sinks: [1/2, "sqrt(2)"]
  block.0.mlp.router: {normal: {std: 1, seed: 1}}
  block.0.mlp.router_bias: [0, 1, 2, 3]
  block.0.mlp.gate: {normal: {std: 1, seed: 1}}
  block.0.mlp.gate_bias: zeros
  block.0.mlp.hidden: ones
  block.0.mlp.hidden_bias: zeros
  block.0.mlp.out: {entries: {"3,1,2": 5}}
  block.0.mlp.out_bias: zeros
"""


def test_every_key_is_read() -> None:
    model = parse_model(FILE, "file.yaml")
    first, second = model.spec.blocks
    assert first.attention is not None
    assert first.attention.rotary is not None
    assert second.attention is not None
    assert (first.attention.sinks, second.attention.sinks) == (True, False)
    assert first.attention.cap == Fraction(5, 2)
    assert first.attention.rotary.magnitude == parse("ln(32)/10 + 1")
    assert first.mlp is not None
    assert (first.mlp.experts, first.mlp.chosen, first.mlp.normalised) == (4, 2, False)
    assert first.mlp.router_bias
    assert model.weights["block.0.mlp.out"].data[3, 1, 2] == Fraction(5)
    assert model.weights["block.0.mlp.out"].shape == (4, 2, 3)


def test_what_is_written_reads_back_the_same() -> None:
    model = parse_model(FILE, "file.yaml")
    again = parse_model(write_model(model), "again.yaml")
    assert again.spec.blocks == model.spec.blocks
    for name, tensor in model.weights.items():
        assert (again.weights[name].data == tensor.data).all(), name


def test_the_inventory_counts_every_expert_and_sink() -> None:
    found = count(parse_model(FILE, "file.yaml").spec)
    assert found["count.block.0.mlp"] == 4 * (2 + 3 * 2 * 3)
    assert found["count.block.0.mlp.bias"] == 4 * (1 + 3 + 3 + 2)
    assert found["count.block.0.attention.bias"] == 2


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("chosen: 2", "chosen: 5", "a whole number from 1 to the 4 experts"),
        ("experts: 4, chosen: 2", "experts: 4", "a whole number from 1 to the 4 experts"),
        ("experts: 4, chosen: 2, normalised: false", "chosen: 2", "there are no experts"),
        ("experts: 4, chosen: 2", "chosen: 1", "there are no experts"),
        ("sinks: true", "sinks: 3", "true, false"),
        ("cap: 5/2", "cap: 0", "a number above 0"),
        ("sinks: true, cap", "queries: false, scale: none, cap", "no queries and keys"),
        ("block.0.attn.sinks: [1/2", "block.1.attn.sinks: [1/2", "block.1.attn.sinks"),
        ("[0, 1, 2, 3]", "[0, 1, 2]", "4"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_line(written: str, instead: str, said: str) -> None:
    assert written in FILE
    with pytest.raises(InputError) as caught:
        parse_model(FILE.replace(written, instead), "file.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("file.yaml:")
