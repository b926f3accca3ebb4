"""cohere, cohere2: attention and MLP read one LayerNorm, neighbours turn, logits are scaled."""

from __future__ import annotations

from fractions import Fraction

from byhand.models.huggingface.common import Common, every, factor, layer_kinds
from byhand.models.huggingface.config import Config
from byhand.spec import NO_NORM, AttentionSpec, BlockSpec, ModelSpec


def read_cohere(config: Config, name: str) -> ModelSpec:
    """The spec of a Cohere config."""
    common = Common(config, context=8192, fixed_width=True)
    norm = common.layernorm(bias=False)
    heads = norm if config.flag("use_qk_norm", False) else NO_NORM
    bias = config.flag("attention_bias", False)
    attention = common.attention(
        bias=bias,
        out_bias=bias,
        rotary=common.rope(base=Fraction(500_000), pairing="interleaved"),
        q_norm=heads,
        k_norm=heads,
        normed="each",
    )
    return _parallel(common, name, [attention] * common.layers)


def read_cohere2(config: Config, name: str) -> ModelSpec:
    """The spec of a Cohere 2 config: RoPE in the layers with a window, and only there."""
    common = Common(config, context=8192, fixed_width=True)
    config.asked.add("head_dim")  # which the library works out again
    usual = every(config, common.layers, 4)
    kinds, windows = layer_kinds(config, usual), common.windows(usual, 4096)
    bias, rope = config.flag("attention_bias", False), common.rope(pairing="interleaved")
    attentions = [
        common.attention(bias=bias, out_bias=bias, rotary=rope if sliding else None, window=window)
        for sliding, window in zip(kinds, windows, strict=True)
    ]
    return _parallel(common, name, attentions)


def _parallel(common: Common, name: str, attentions: list[AttentionSpec]) -> ModelSpec:
    norm, mlp = common.layernorm(bias=False), common.mlp("silu")
    blocks = [
        BlockSpec(attention, mlp, norm, parallel=True, one_norm=True) for attention in attentions
    ]
    scale = factor(common.config, "logit_scale", Fraction(1, 16))
    return common.spec(name, blocks, norm, tied=True, logit_scale=scale)
