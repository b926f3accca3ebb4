"""bloom, falcon, mpt: scores that fall with the distance, and falcon's RoPE instead of them."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from byhand.expression import Expression, Number, Power, Product, rational
from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.common import SMALL, head_width, limit
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.family import Buffers
from byhand.models.huggingface.rope import Keys, read_rope
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)
from byhand.weights import Data

MOST_HEADS = 65_536  # that slopes are made for


def read_bloom(config: Config, name: str) -> ModelSpec:
    """The spec of a BLOOM config: a norm of the embedding, q, k and v packed by head."""
    config.asked.add("slow_but_exact")  # the same numbers by another way
    d = config.whole("hidden_size", also="n_embed")
    heads = config.whole("n_head", also="num_attention_heads", most=MOST_HEADS)
    layers = config.whole("n_layer", also="num_hidden_layers", most=MOST_LAYERS)
    width = head_width(config, d, heads, "n_head")
    norm = NormSpec("layernorm", config.epsilon("layer_norm_epsilon", SMALL))
    attention = AttentionSpec(
        heads, width, heads, over_root(width), alibi=True, packed="per_head",
        q_bias=True, k_bias=True, v_bias=True, out_bias=True,
    )  # fmt: skip
    mlp = MlpSpec(4 * d, "gelu_bloom", hidden_bias=True, out_bias=True)
    onto = config.flag("apply_residual_connection_post_layernorm", False)
    block = BlockSpec(attention, mlp, norm, norm, from_norm=onto)
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=None,
        blocks=(block,) * layers,
        embed_norm=norm,
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", True),
        layout="out_in",
    )


def read_falcon(config: Config, name: str) -> ModelSpec:
    """The spec of a Falcon config, in its three architectures."""
    d = config.whole("hidden_size", also="n_embed")
    heads = config.whole("num_attention_heads", also="n_head", most=MOST_HEADS)
    layers = config.whole("num_hidden_layers", also="n_layer", most=MOST_LAYERS)
    width = head_width(config, d, heads)
    norm = NormSpec("layernorm", config.epsilon("layer_norm_epsilon", SMALL))
    new = config.flag("new_decoder_architecture", False)
    one = config.flag("multi_query", True) and not new
    given = config.whole_or_none("num_kv_heads") or heads
    if not new and not one and given != heads:
        raise config.refuse("num_kv_heads", _("as many as heads, {count}").format(count=heads))
    bias, alibi = config.flag("bias", False), config.flag("alibi", False)
    attention = AttentionSpec(
        heads=heads,
        d_head=width,
        kv_heads=given if new else 1 if one else heads,
        scale=over_root(width),
        rotary=_falcon_rope(config, width, alibi),
        alibi=alibi,
        packed=None if new else "concatenated" if one else "per_head",
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        out_bias=bias,
    )
    mlp = MlpSpec(
        d_ff=config.whole_or_none("ffn_hidden_size") or 4 * d,
        activation=config.word("activation", "gelu", ACTIVATIONS),
        hidden_bias=bias,
        out_bias=bias,
    )
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_position_embeddings", 2048, most=LONGEST_CONTEXT),
        blocks=(_falcon_block(config, attention, mlp, norm, new),) * layers,
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", True),
        layout="out_in",
    )


def _falcon_rope(config: Config, width: int, alibi: bool) -> RotarySpec | None:
    if alibi:
        config.asked.update(("rope_theta", "rope_parameters", "rope_scaling"))
        return None
    return read_rope(config, width, Keys())


def _falcon_block(
    config: Config, attention: AttentionSpec, mlp: MlpSpec, norm: NormSpec, new: bool
) -> BlockSpec:
    """Serial, parallel with one norm, or parallel with a norm for each sublayer."""
    parallel = config.flag("parallel_attn", True)
    norms = config.whole_or_none("num_ln_in_parallel_attn", most=2)
    if not new:
        if not parallel:
            return BlockSpec(attention, mlp, norm, norm)
        return BlockSpec(attention, mlp, norm, parallel=True, one_norm=True)
    if norms == 1:
        if not parallel:
            raise config.refuse("parallel_attn", _("true, with one norm for both sublayers"))
        return BlockSpec(attention, mlp, norm, parallel=True, one_norm=True)
    return BlockSpec(attention, mlp, norm, norm, parallel=True)


def read_mpt(config: Config, name: str) -> ModelSpec:
    """The spec of an MPT config: norms without bias, q, k and v packed and clipped."""
    d = config.whole("d_model", also="hidden_size")
    heads = config.whole("n_heads", also="num_attention_heads", most=MOST_HEADS)
    layers = config.whole("n_layers", also="num_hidden_layers", most=MOST_LAYERS)
    width = head_width(config, d, heads, "n_heads")
    inner = _mpt_attention(config)
    # these change nothing in the library
    config.asked.update(
        ("logit_scale", "no_bias", "learned_pos_emb", "norm_type", "embedding_fraction", "verbose",
         "expansion_ratio")
    )  # fmt: skip
    norm = NormSpec("layernorm", config.epsilon("layer_norm_epsilon", SMALL), bias=False)
    scale = limit(inner, "softmax_scale")
    attention = AttentionSpec(
        heads,
        width,
        heads,
        over_root(width) if scale is None else None if scale == 1 else Number(scale),
        alibi=True,
        packed="concatenated",
        clip=limit(inner, "clip_qkv"),
    )
    mlp = MlpSpec(4 * d, "gelu")
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_seq_len", 2048, most=LONGEST_CONTEXT),
        blocks=(BlockSpec(attention, mlp, norm, norm),) * layers,
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", True),
        layout="out_in",
    )


def _mpt_attention(config: Config) -> Config:
    """The table of attention; what the library does not do is refused."""
    inner = config.within("attn_config") or Config(config.path, {}, "attn_config.")
    for key, usual in (("prefix_lm", False), ("qk_ln", False), ("attn_uses_sequence_id", False),
                       ("alibi", True)):  # fmt: skip
        if inner.flag(key, usual) is not usual:
            raise inner.refuse(key, str(usual).lower())
    for key, only in (("attn_type", "multihead_attention"), ("alibi_bias_max", 8)):
        if inner.value(key, only)[1] != only:
            raise inner.refuse(key, str(only))
    return inner


# ------------------------------------------------------------------ slopes


def slopes(heads: int) -> list[Expression]:
    """2^(-8i/n) for the n heads, n a power of 2; further heads have every other one of 2n."""
    whole = 1 << (heads.bit_length() - 1)
    first = [_power(Fraction(-8 * (i + 1), whole)) for i in range(whole)]
    return first + [_power(Fraction(-4 * (2 * i + 1), whole)) for i in range(heads - whole)]


def mpt_slopes(heads: int) -> list[Expression]:
    """The same, of the next power of 2: every other one from the second on, then the rest."""
    whole = 1 << (heads - 1).bit_length()
    every = slopes(whole)
    return every if whole == heads else (every[1::2] + every[::2])[:heads]


def _power(exponent: Fraction) -> Expression:
    if exponent.denominator == 1:
        return Number(Fraction(2) ** int(exponent))
    return Power(Number(Fraction(2)), Number(exponent))


def _data(every: list[Expression]) -> Data:
    """The slopes, as floats where all of them are: large models are proven from floats."""
    known = [rational(slope) for slope in every]
    floats = [np.float32(x) for x in known if x is not None]
    if len(floats) == len(every) and all(map(_equal, floats, known)):
        return np.array(floats)
    data: Data = np.empty(len(every), dtype=object)
    for place, slope in enumerate(every):
        data[place] = slope
    return data


def _equal(x: np.float32, value: Fraction | None) -> bool:
    return Fraction(float(x)) == value


def bloom_buffers(_config: Config, spec: ModelSpec) -> Buffers:
    """The slope of each head."""
    return {"slopes": _data(slopes(_heads(spec)))}


def falcon_buffers(_config: Config, spec: ModelSpec) -> Buffers:
    """The slope of each head, divided by √width as the products are."""
    attention = spec.blocks[0].attention
    assert attention is not None
    if not attention.alibi:
        return {}
    whole = isqrt(attention.d_head)
    square = whole * whole == attention.d_head
    scale = Number(Fraction(1, whole)) if square else over_root(attention.d_head)
    return {"slopes": _data([Product((slope, scale)) for slope in slopes(attention.heads)])}


def mpt_buffers(_config: Config, spec: ModelSpec) -> Buffers:
    """The slope of each head."""
    return {"slopes": _data(mpt_slopes(_heads(spec)))}


def _heads(spec: ModelSpec) -> int:
    attention = spec.blocks[0].attention
    assert attention is not None
    return attention.heads
