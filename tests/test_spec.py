"""What a model is: impossible architectures are refused, and the inventory follows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from byhand.errors import SpecError
from byhand.expression import write
from byhand.parameters import parameters
from byhand.spec import (
    ACTIVATIONS,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)


def attention(**keys: Any) -> AttentionSpec:
    return AttentionSpec(**{"heads": 2, "d_head": 2, "kv_heads": 2, **keys})


def model(*blocks: BlockSpec, **keys: Any) -> ModelSpec:
    given = {"name": "m", "vocab": 3, "d_model": 4, "context": 5, "blocks": blocks, **keys}
    return ModelSpec(**given)


@pytest.mark.parametrize(
    ("make", "key", "expected", "found"),
    [
        (lambda: NormSpec("batchnorm"), "norm.kind", "layernorm, rmsnorm, none", "batchnorm"),
        (lambda: NormSpec(eps=Fraction(-1)), "norm.eps", "a number that is not negative", "-1"),
        (lambda: NormSpec("rmsnorm"), "norm.bias", "false, since rmsnorm has no bias", "true"),
        (lambda: RotarySpec(0), "rope.width", "a whole number of at least 1", "0"),
        (lambda: RotarySpec(3), "rope.width", "an even number", "3"),
        (lambda: RotarySpec(2, Fraction(0)), "rope.base", "a number above 0", "0"),
        (lambda: RotarySpec(2, pairing="both"), "rope.pairing", "half, interleaved", "both"),
        (lambda: attention(heads=0), "attention.heads", "a whole number of at least 1", "0"),
        (lambda: attention(d_head=0), "attention.d_head", "a whole number of at least 1", "0"),
        (lambda: attention(kv_heads=0), "attention.kv_heads", "a whole number of at least 1", "0"),
        (lambda: attention(kv_heads=4), "attention.kv_heads", "a divisor of the 2 heads", "4"),
        (lambda: attention(rotary=RotarySpec(4)), "rope.width", "at most the head width 2", "4"),
        (lambda: attention(packed="qkv"), "attention.packed", "concatenated, per_head", "qkv"),
        (lambda: attention(packed="concatenated", k_bias=True), "attention.bias",
         "the same for q, k and v, since they are packed into one matrix",
         "q false, k true, v false"),
        (lambda: attention(packed="per_head", kv_heads=1), "attention.packed",
         "concatenated, since there are fewer key heads than query heads", "per_head"),
        (lambda: attention(out=False, out_bias=True), "attention.bias.out",
         "false, since there is no output matrix", "true"),
        (lambda: MlpSpec(0), "mlp.d_ff", "a whole number of at least 1", "0"),
        (lambda: MlpSpec(1, "swish"), "mlp.activation",
         ", ".join(ACTIVATIONS), "swish"),
        (lambda: MlpSpec(1, gate_bias=True), "mlp.bias.gate",
         "false, since the MLP is not gated", "true"),
        (lambda: MlpSpec(1, experts=2, chosen=1, share_eps=Fraction(1, 2)), "mlp.share_eps",
         "nothing, unless sigmoids are normalised", "1/2"),
        (lambda: MlpSpec(1, experts=2, chosen=1, scoring="sigmoid", share_eps=Fraction(-1)),
         "mlp.share_eps", "a number that is not negative", "-1"),
        (lambda: BlockSpec(None, None, norm_place="between"), "norm.place", "pre, post", "between"),
        (lambda: BlockSpec(None, None, norm_place="post", parallel=True), "residual",
         "serial, since the norms come after the add", "parallel"),
        (lambda: model(vocab=0), "vocabulary", "a whole number of at least 1", "0"),
        (lambda: model(d_model=0), "d_model", "a whole number of at least 1", "0"),
        (lambda: model(context=0), "context", "a whole number of at least 1", "0"),
        (lambda: model(position="absolute"), "position", "none, learned, sinusoidal", "absolute"),
        (lambda: model(layout="in-out"), "layout", "in_out, out_in", "in-out"),
        (lambda: model(position="learned", context=None), "context",
         "a length, since positions are learned", "nothing"),
        (lambda: model(position="sinusoidal", d_model=3), "d_model",
         "an even number, for sinusoidal positions", "3"),
        (lambda: model(position_base=Fraction(0)), "position.base", "a number above 0", "0"),
        (lambda: model(BlockSpec(attention(d_head=3, out=False), None)), "block.0.attention.out",
         "an output matrix, unless heads · d_head is d_model = 4", "2 · 3 = 6"),
        (lambda: model(BlockSpec(attention(score_table=True), None), context=None), "context",
         "a length, for the table of scores", "nothing"),
    ],
)  # fmt: skip
def test_an_impossible_architecture_is_refused(
    make: Any, key: str, expected: str, found: str
) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    error = caught.value
    assert (error.key, error.expected, error.found) == (key, expected, found)
    assert error.message == f"{key} cannot be {found}"


def test_the_usual_scale_is_one_over_the_root_of_the_width() -> None:
    assert write(over_root(16)) == "1/√16"


def shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    return {p.name: p.shape for p in parameters(spec)}


def test_a_model_of_everything_needs_these_weights() -> None:
    norm = NormSpec("layernorm")
    everything = attention(
        heads=4, d_head=3, kv_heads=2, rotary=RotarySpec(2, given=True), alibi=True,
        score_table=True, q_norm=norm, k_norm=NormSpec("rmsnorm", bias=False),
        q_bias=True, k_bias=True, v_bias=True, out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(6, "silu", gated=True, hidden_bias=True, gate_bias=True, out_bias=True)
    spec = model(
        BlockSpec(everything, mlp, norm, NormSpec("rmsnorm", bias=False)),
        position="learned", final_norm=norm, tied=False, head_bias=True,
    )  # fmt: skip
    at = "block.0."
    expected = {
        "embed.token": (3, 4), "embed.position": (5, 4),
        at + "attn.norm.gain": (4,), at + "attn.norm.bias": (4,),
        at + "attn.q": (4, 12), at + "attn.q_bias": (12,),
        at + "attn.k": (4, 6), at + "attn.k_bias": (6,),
        at + "attn.v": (4, 6), at + "attn.v_bias": (6,),
        at + "attn.q_norm.gain": (3,), at + "attn.q_norm.bias": (3,),
        at + "attn.k_norm.gain": (3,), at + "attn.frequencies": (1,), at + "attn.slopes": (4,),
        at + "attn.score_table": (4, 5, 5), at + "attn.out": (12, 4), at + "attn.out_bias": (4,),
        at + "mlp.norm.gain": (4,),
        at + "mlp.gate": (4, 6), at + "mlp.gate_bias": (6,),
        at + "mlp.hidden": (4, 6), at + "mlp.hidden_bias": (6,),
        at + "mlp.out": (6, 4), at + "mlp.out_bias": (4,),
        "final.norm.gain": (4,), "final.norm.bias": (4,), "head": (4, 3), "head_bias": (3,),
    }  # fmt: skip
    assert shapes(spec) == expected
    assert list(shapes(spec)) == list(expected)  # in spine order


def test_rows_are_outputs_in_the_other_layout() -> None:
    spec = model(
        BlockSpec(attention(heads=2, kv_heads=1, packed="concatenated", q_bias=True, k_bias=True,
                            v_bias=True), MlpSpec(6)),
        layout="out_in", tied=False,
    )  # fmt: skip
    assert shapes(spec) == {
        "embed.token": (3, 4), "block.0.attn.qkv": (8, 4), "block.0.attn.qkv_bias": (8,),
        "block.0.attn.out": (4, 4), "block.0.mlp.hidden": (6, 4), "block.0.mlp.out": (4, 6),
        "head": (3, 4),
    }  # fmt: skip
    qkv = parameters(spec)[1]
    assert qkv.axes == ("(d + 2·kv_heads·d_head)", "d")
    assert qkv.size == 32


def test_a_norm_of_a_sublayer_that_is_left_out_needs_no_weights() -> None:
    norm = NormSpec()
    assert list(shapes(model(BlockSpec(None, None, norm, norm)))) == ["embed.token"]
