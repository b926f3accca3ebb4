"""Families with experts: mixtral, qwen2_moe, qwen3_moe, olmoe, granitemoe, glm4_moe, dots1, ….

Their attention is that of llama, in variants.  In each block a router chooses among experts; some
blocks have a plain MLP instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from byhand.language import _
from byhand.models.huggingface.common import SMALL, Common, factor, layer_kinds, limit, over
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.keys import know_their_code
from byhand.models.huggingface.routers import IGNORED, Usual, by_sigmoid, with_experts
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec

MINIMAX_CODE = ("configuration_minimax_m2.MiniMaxM2", "modeling_minimax_m2.MiniMaxM2")


def read_mixtral(config: Config, name: str) -> ModelSpec:
    """The spec of a Mixtral config."""
    body = Common(config, context=4096 * 32, kv_heads=8)
    norm, rope = body.rmsnorm(SMALL), body.rope(base=Fraction(1_000_000))
    attention = body.attention(rotary=rope, window=body.window(None))
    names = ("num_local_experts", "num_experts")
    mlp = with_experts(config, body.mlp("silu"), names, (8, 2))
    return body.spec(name, _blocks([attention] * body.layers, [mlp] * body.layers, norm), norm)


def read_qwen2_moe(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 2 MoE config."""
    body = Common(config, context=32_768, kv_heads=16, fixed_width=True)
    norm = body.rmsnorm()
    attention = body.attention(bias=config.flag("qkv_bias", True), rotary=body.rope())
    shared = config.whole("shared_expert_intermediate_size", 5632)
    mlps = _sparse(body, (60, 4), shared=shared, shared_gate=True)
    used = config.flag("use_sliding_window", False)
    first = config.whole("max_window_layers", 28, least=0)
    kinds = layer_kinds(config, [layer < first and not layer % 2 for layer in range(body.layers)])
    config.asked.add("sliding_window")  # unused, it may be 0
    if not used and any(kinds) and config.value("layer_types", None)[1] is not None:
        raise config.refuse("layer_types", _("full_attention, without use_sliding_window"))
    attentions = _windowed(body, attention, kinds, 4096) if used else [attention] * body.layers
    return body.spec(name, _blocks(attentions, mlps, norm), norm)


def read_qwen3_moe(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 3 MoE config."""
    body = Common(config, context=32_768, kv_heads=4)
    norm, bias = body.rmsnorm(), config.flag("attention_bias", False)
    config.asked.update(("sliding_window", "max_window_layers"))
    window = body.window(4096) if config.flag("use_sliding_window", False) else None
    attention = body.attention(
        bias=bias, out_bias=bias, rotary=body.rope(), window=window, q_norm=norm, k_norm=norm
    )
    mlps = _sparse(body, (128, 8))
    return body.spec(name, _blocks([attention] * body.layers, mlps, norm), norm)


def read_olmoe(config: Config, name: str) -> ModelSpec:
    """The spec of an OLMoE config: queries and keys are normalised as whole rows."""
    body = Common(config, context=4096, fixed_width=True)
    norm, bias = body.rmsnorm(SMALL), config.flag("attention_bias", False)
    attention = body.attention(
        bias=bias,
        out_bias=bias,
        rotary=body.rope(),
        q_norm=norm,
        k_norm=norm,
        normed="width",
        clip=limit(config, "clip_qkv"),
    )
    names = ("num_experts", "num_local_experts")
    normalised = config.flag("norm_topk_prob", False)
    mlp = with_experts(config, body.mlp("silu"), names, (64, 8), normalised=normalised)
    return body.spec(name, _blocks([attention] * body.layers, [mlp] * body.layers, norm), norm)


def read_granitemoe(config: Config, name: str) -> ModelSpec:
    """The spec of a Granite MoE config: with multipliers along the stream."""
    body = Common(config, fixed_width=True)
    norm, bias = body.rmsnorm(), config.flag("attention_bias", False)
    scale = factor(config, "attention_multiplier")
    attention = body.attention(bias=bias, out_bias=bias, rotary=body.rope(), scale=scale)
    mlp = with_experts(config, body.mlp("silu"), ("num_local_experts", None), (8, 2))
    if config.table.get("model_type") == "granitemoeshared":
        mlp = replace(mlp, shared=config.whole("shared_intermediate_size", 0, least=0) or None)
    added = factor(config, "residual_multiplier")
    blocks = _blocks([attention] * body.layers, [mlp] * body.layers, norm, add_scale=added)
    return body.spec(
        name,
        blocks,
        norm,
        embed_scale=factor(config, "embedding_multiplier"),
        logit_scale=over(config, "logits_scaling"),
    )


def read_glm4_moe(config: Config, name: str) -> ModelSpec:
    """The spec of a GLM 4 MoE config: a choice by sigmoids, and a shared expert."""
    body = Common(config, context=131_072, kv_heads=8)
    norm, rope = body.rmsnorm(SMALL), body.rope(share=Fraction(1, 2))
    attention = body.attention(bias=config.flag("attention_bias", False), rotary=rope)
    if config.flag("use_qk_norm", False):
        attention = replace(attention, q_norm=norm, k_norm=norm)
    config.asked.update(("num_nextn_predict_layers", "num_mtp_layers"))
    mlps = _after_plain_ones(body, 1, Usual(128, 8, shared=1))
    return body.spec(name, _blocks([attention] * body.layers, mlps, norm), norm)


def read_dots1(config: Config, name: str) -> ModelSpec:
    """The spec of a dots.llm1 config: the attention of Qwen 3, the experts of DeepSeek V3."""
    body = Common(config, kv_heads=32)
    norm, bias = body.rmsnorm(), config.flag("attention_bias", False)
    attention = body.attention(
        bias=bias, out_bias=bias, rotary=body.rope(), q_norm=norm, k_norm=norm
    )
    first = config.whole("max_window_layers", 62, least=0)
    there = body.window(4096) is not None
    kinds = [there and layer >= first for layer in range(body.layers)]
    mlps = _after_plain_ones(body, 0, Usual(normalised=False))
    return body.spec(name, _blocks(_windowed(body, attention, kinds, 4096), mlps, norm), norm)


def read_minimax_m2(config: Config, name: str) -> ModelSpec:
    """The spec of a MiniMax M2 config: norms of whole rows, and a choice by sigmoids."""
    know_their_code(config, MINIMAX_CODE)
    body = Common(config, context=196_608, kv_heads=8, head_dim=128)
    for key in ("use_qk_norm", "use_routing_bias"):
        if not config.flag(key, True):
            raise config.refuse(key, "true")
    config.word("scoring_func", "sigmoid", {"sigmoid": None})
    config.word("qk_norm_type", "per_layer", {"per_layer": None})
    turned = config.whole_or_none("rotary_dim")
    share = Fraction(1) if turned is None else Fraction(turned, body.width)
    norm, rope = body.rmsnorm(), body.rope(base=Fraction(5_000_000), share=share)
    attention = body.attention(rotary=rope, q_norm=norm, k_norm=norm, normed="width")
    names = ("num_local_experts", "num_experts")
    more = {"scoring": "sigmoid", "choice_bias": True}
    mlp = with_experts(config, body.mlp("silu"), names, (256, 8), **more)
    return body.spec(name, _blocks([attention] * body.layers, [mlp] * body.layers, norm), norm)


# ------------------------------------------------------------------ what they share


def _blocks(
    attentions: Sequence[AttentionSpec], mlps: Sequence[MlpSpec], norm: NormSpec, **more: Any
) -> list[BlockSpec]:
    both = zip(attentions, mlps, strict=True)
    return [BlockSpec(attention, mlp, norm, norm, **more) for attention, mlp in both]


def _windowed(
    body: Common, attention: AttentionSpec, kinds: Sequence[bool], usual: int
) -> list[AttentionSpec]:
    """The attention of each layer, with its window."""
    return [replace(attention, window=window) for window in body.windows(kinds, usual)]


def _after_plain_ones(body: Common, usual: int, experts: Usual) -> list[MlpSpec]:
    """Plain MLPs in the first layers, then experts as DeepSeek V3 has them."""
    plain = body.mlp("silu")
    sparse = by_sigmoid(body.config, plain, experts)
    first = body.config.whole("first_k_dense_replace", usual, least=0)
    return [plain if layer < first else sparse for layer in range(body.layers)]


def _sparse(body: Common, usual: tuple[int, int], **more: Any) -> list[MlpSpec]:
    """The MLP of each layer, as Qwen's configs tell it: a plain one, or one with experts."""
    config, plain = body.config, body.mlp("silu")
    config.asked.update(("num_experts", "num_local_experts", "moe_intermediate_size"))
    config.asked.update(("num_experts_per_tok", "norm_topk_prob", *IGNORED))
    step = config.whole("decoder_sparse_step", 1)
    _key, alone = config.value("mlp_only_layers", None)
    alone = [] if alone is None else alone
    if not isinstance(alone, list) or not all(type(layer) is int for layer in alone):
        raise config.refuse("mlp_only_layers", _("a list of layers, or null"), alone)
    counts = (config.table.get(key) for key in ("num_experts", "num_local_experts"))
    if any(type(count) is int and count == 0 for count in counts):
        return [plain] * body.layers
    wide = replace(plain, d_ff=config.whole("moe_intermediate_size"))
    normalised = config.flag("norm_topk_prob", False)
    names = ("num_experts", "num_local_experts")
    sparse = with_experts(config, wide, names, usual, normalised=normalised, **more)
    dense = (layer in alone or (layer + 1) % step for layer in range(body.layers))
    return [plain if each else sparse for each in dense]
