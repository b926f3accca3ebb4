"""Families with experts: mixtral, qwen2_moe, qwen3_moe, olmoe, granitemoe, glm4_moe and dots1.

Their attention is that of llama, in variants.  In each block a router chooses among experts; some
blocks have a plain MLP instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from byhand.expression import Expression, Number, Quotient
from byhand.language import _
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.rope import Keys, read_rope
from byhand.models.huggingface.routers import IGNORED, Usual, by_sigmoid, plain_mlp, with_experts
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root

LAYER_TYPES = {"full_attention": False, "sliding_attention": True}
SMALL, SMALLER = Fraction(1, 100_000), Fraction(1, 1_000_000)  # eps of norms


def read_mixtral(config: Config, name: str) -> ModelSpec:
    """The spec of a Mixtral config."""
    body = Body.of(
        config, kv_heads=8, eps=SMALL, rope=Keys(base=Fraction(1_000_000)), head_dim=True
    )
    window = config.whole_or_none("sliding_window", most=LONGEST_CONTEXT)
    names = ("num_local_experts", "num_experts")
    mlp = with_experts(config, plain_mlp(config), names, (8, 2))
    attention = replace(body.attention, window=window)
    return body.spec(config, name, 4096 * 32, lambda _layer: (attention, mlp))


def read_qwen2_moe(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 2 MoE config."""
    body = Body.of(config, kv_heads=16, eps=SMALLER)
    bias = config.flag("qkv_bias", True)
    attention = replace(body.attention, q_bias=bias, k_bias=bias, v_bias=bias)
    shared = config.whole("shared_expert_intermediate_size", 5632)
    mlps = _sparse(config, body.layers, (60, 4), shared=shared, shared_gate=True)
    windows = _alternating_windows(config, body.layers)

    def layer_of(layer: int) -> tuple[AttentionSpec, MlpSpec]:
        return replace(attention, window=windows[layer]), mlps[layer]

    return body.spec(config, name, 32_768, layer_of)


def read_qwen3_moe(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 3 MoE config."""
    body = Body.of(config, kv_heads=4, eps=SMALLER, head_dim=True)
    bias = config.flag("attention_bias", False)
    window = None
    config.asked.update(("sliding_window", "max_window_layers"))
    if config.flag("use_sliding_window", False):
        window = config.whole_or_none("sliding_window", 4096, most=LONGEST_CONTEXT)
    attention = replace(
        biased(body.attention, bias, bias), window=window, q_norm=body.norm, k_norm=body.norm
    )
    mlps = _sparse(config, body.layers, (128, 8))
    return body.spec(config, name, 32_768, lambda layer: (attention, mlps[layer]))


def read_olmoe(config: Config, name: str) -> ModelSpec:
    """The spec of an OLMoE config: queries and keys are normalised as whole rows."""
    body = Body.of(config, kv_heads=None, eps=SMALL)
    bias = config.flag("attention_bias", False)
    clip = None if config.value("clip_qkv", None)[1] is None else config.positive("clip_qkv")
    attention = replace(
        biased(body.attention, bias, bias),
        q_norm=body.norm,
        k_norm=body.norm,
        normed="width",
        clip=clip,
    )
    names = ("num_experts", "num_local_experts")
    normalised = config.flag("norm_topk_prob", False)
    mlp = with_experts(config, plain_mlp(config), names, (64, 8), normalised=normalised)
    return body.spec(config, name, 4096, lambda _layer: (attention, mlp))


def read_granitemoe(config: Config, name: str) -> ModelSpec:
    """The spec of a Granite MoE config: with multipliers along the stream."""
    body = Body.of(config, kv_heads=None, eps=SMALLER)
    bias = config.flag("attention_bias", False)
    scale = _factor(config, "attention_multiplier")
    attention = replace(biased(body.attention, bias, bias), scale=scale)
    mlp = with_experts(config, plain_mlp(config), ("num_local_experts", None), (8, 2))
    if config.table.get("model_type") == "granitemoeshared":
        mlp = replace(mlp, shared=config.whole("shared_intermediate_size", 0, least=0) or None)
    scaling = config.number("logits_scaling", Fraction(1))
    if scaling == 0:
        raise config.refuse("logits_scaling", _("a number other than 0"))
    return body.spec(
        config,
        name,
        2048,
        lambda _layer: (attention, mlp),
        add_scale=_factor(config, "residual_multiplier"),
        embed_scale=_factor(config, "embedding_multiplier"),
        logit_scale=None if scaling == 1 else Quotient(Number(Fraction(1)), Number(scaling)),
    )


def read_glm4_moe(config: Config, name: str) -> ModelSpec:
    """The spec of a GLM 4 MoE config: a choice by sigmoids, and a shared expert."""
    body = Body.of(config, kv_heads=8, eps=SMALL, rope=Keys(share=Fraction(1, 2)), head_dim=True)
    attention = biased(body.attention, config.flag("attention_bias", False), out=False)
    if config.flag("use_qk_norm", False):
        attention = replace(attention, q_norm=body.norm, k_norm=body.norm)
    plain = plain_mlp(config)
    sparse = by_sigmoid(config, plain, Usual(128, 8, shared=1))
    first = config.whole("first_k_dense_replace", 1, least=0)
    config.asked.update(("num_nextn_predict_layers", "num_mtp_layers"))

    def layer_of(layer: int) -> tuple[AttentionSpec, MlpSpec]:
        return attention, plain if layer < first else sparse

    return body.spec(config, name, 131_072, layer_of)


def read_dots1(config: Config, name: str) -> ModelSpec:
    """The spec of a dots.llm1 config: the attention of Qwen 3, the experts of DeepSeek V3."""
    body = Body.of(config, kv_heads=32, eps=SMALLER, head_dim=True)
    bias = config.flag("attention_bias", False)
    attention = replace(biased(body.attention, bias, bias), q_norm=body.norm, k_norm=body.norm)
    plain = plain_mlp(config)
    sparse = by_sigmoid(config, plain, Usual(normalised=False))
    first = config.whole("first_k_dense_replace", 0, least=0)
    window = config.whole_or_none("sliding_window", 4096, most=LONGEST_CONTEXT)
    slides = config.whole("max_window_layers", 62, least=0)
    usual = [window is not None and layer >= slides for layer in range(body.layers)]
    windows = windows_of(config, usual, window)

    def layer_of(layer: int) -> tuple[AttentionSpec, MlpSpec]:
        return replace(attention, window=windows[layer]), plain if layer < first else sparse

    return body.spec(config, name, 2048, layer_of)


# ------------------------------------------------------------------ what they share


@dataclass(frozen=True)
class Body:
    """What the blocks of a model share: its width, its norm and its attention."""

    d: int
    layers: int
    norm: NormSpec
    attention: AttentionSpec

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        kv_heads: int | None,  # default; None: as many as heads
        eps: Fraction,
        rope: Keys = Keys(),  # noqa: B008 - it is frozen
        head_dim: bool = False,  # whether the config may give the width of a head
        d_head: int | None = None,  # default; None: hidden_size / heads
    ) -> Body:
        """The body that a config describes; the rest are the defaults of its family."""
        d = config.whole("hidden_size")
        heads = config.whole("num_attention_heads")
        layers = config.whole("num_hidden_layers", most=MOST_LAYERS)
        width = config.whole_or_none("head_dim", d_head) if head_dim else None
        if width is None:
            if d % heads:
                expected = _("a divisor of hidden_size, {d}").format(d=d)
                raise config.refuse("num_attention_heads", expected, heads)
            width = d // heads
        norm = NormSpec("rmsnorm", config.epsilon("rms_norm_eps", eps), bias=False)
        attention = AttentionSpec(
            heads=heads,
            d_head=width,
            kv_heads=config.whole_or_none("num_key_value_heads", kv_heads) or heads,
            scale=over_root(width),
            rotary=read_rope(config, width, rope),
        )
        return cls(d, layers, norm, attention)

    def spec(
        self,
        config: Config,
        name: str,
        context: int,
        layer_of: Callable[[int], tuple[AttentionSpec, MlpSpec]],
        add_scale: Expression | None = None,
        **more: Any,
    ) -> ModelSpec:
        """The model of these layers; `context` is the default."""
        blocks = (
            BlockSpec(attention, mlp, self.norm, self.norm, add_scale=add_scale)
            for attention, mlp in map(layer_of, range(self.layers))
        )
        return ModelSpec(
            name=name,
            vocab=config.whole("vocab_size"),
            d_model=self.d,
            context=config.whole("max_position_embeddings", context, most=LONGEST_CONTEXT),
            blocks=tuple(blocks),
            final_norm=self.norm,
            tied=config.flag("tie_word_embeddings", False),
            layout="out_in",
            **more,
        )


def biased(attention: AttentionSpec, bias: bool, out: bool) -> AttentionSpec:
    """The attention with biases of q, k and v, and of its output, or without."""
    return replace(attention, q_bias=bias, k_bias=bias, v_bias=bias, out_bias=out)


def _factor(config: Config, key: str) -> Expression | None:
    """A factor of the config; None where it is 1."""
    found = config.number(key, Fraction(1))
    return None if found == 1 else Number(found)


def _sparse(config: Config, layers: int, usual: tuple[int, int], **more: Any) -> list[MlpSpec]:
    """The MLP of each layer, as Qwen's configs tell it: a plain one, or one with experts."""
    plain = plain_mlp(config)
    config.asked.update(("num_experts", "num_local_experts", "moe_intermediate_size"))
    config.asked.update(("num_experts_per_tok", "norm_topk_prob", *IGNORED))
    step = config.whole("decoder_sparse_step", 1)
    _key, alone = config.value("mlp_only_layers", None)
    alone = [] if alone is None else alone
    if not isinstance(alone, list) or not all(type(layer) is int for layer in alone):
        raise config.refuse("mlp_only_layers", _("a list of layers, or null"), alone)
    if 0 in (config.table.get("num_experts"), config.table.get("num_local_experts")):
        return [plain] * layers
    wide = replace(plain, d_ff=config.whole("moe_intermediate_size"))
    normalised = config.flag("norm_topk_prob", False)
    names = ("num_experts", "num_local_experts")
    sparse = with_experts(config, wide, names, usual, normalised=normalised, **more)
    dense = (layer in alone or (layer + 1) % step for layer in range(layers))
    return [plain if each else sparse for each in dense]


def _alternating_windows(config: Config, layers: int) -> list[int | None]:
    """The windows of Qwen 2 MoE: by layer_types, else every second layer of the first ones."""
    used = config.flag("use_sliding_window", False)
    first = config.whole("max_window_layers", 28, least=0)
    config.asked.add("sliding_window")
    usual = [used and layer < first and layer % 2 == 0 for layer in range(layers)]
    window = config.whole("sliding_window", 4096, most=LONGEST_CONTEXT) if used else None
    return windows_of(config, usual, window)


def windows_of(config: Config, usual: list[bool], window: int | None) -> list[int | None]:
    """The window of each layer that slides by layer_types, or by what is usual; None elsewhere."""
    _key, types = config.value("layer_types", None)
    if types is None:
        return [window if slides else None for slides in usual]
    known = ", ".join(LAYER_TYPES)
    if not isinstance(types, list) or len(types) != len(usual):
        expected = _("a list of {count}, each of {names}").format(count=len(usual), names=known)
        raise config.refuse("layer_types", expected, types)
    for kind in types:
        if not isinstance(kind, str) or kind not in LAYER_TYPES:
            raise config.refuse("layer_types", known, kind)
        if LAYER_TYPES[kind] and window is None:
            raise config.refuse("layer_types", _("full_attention, without a sliding_window"), kind)
    return [window if LAYER_TYPES[kind] else None for kind in types]
