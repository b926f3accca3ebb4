"""gemma, gemma2, gemma3: gains as 1 + w, embeddings times √d, soft caps, norms on both sides."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from byhand.language import _
from byhand.models.huggingface.common import Common, every, layer_kinds, limit, over_root_of, root
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.keys import check_unread
from byhand.models.huggingface.rope import rope_table
from byhand.spec import NO_NORM, AttentionSpec, BlockSpec, ModelSpec

TANH = "gelu_pytorch_tanh"


def read_gemma(config: Config, name: str) -> ModelSpec:
    """The spec of a Gemma config; its "gelu" has always meant the tanh form."""
    common = Common(config, context=8192, kv_heads=16, head_dim=256)
    bias = config.flag("attention_bias", False)
    norm = common.rmsnorm(plus_one=True)
    attention = common.attention(bias=bias, out_bias=bias, rotary=common.rope())
    if config.value("hidden_activation", None)[1] not in (None, TANH):
        raise config.refuse("hidden_activation", f"{TANH}, null")
    usual = config.table.get("hidden_act") == "gelu"
    config.asked.add("hidden_act")
    mlp = common.mlp(TANH, key="" if usual else "hidden_act")
    block = BlockSpec(attention, mlp, norm, norm)
    return common.spec(name, [block] * common.layers, norm, tied=True, embed_scale=root(common.d))


def read_gemma2(config: Config, name: str) -> ModelSpec:
    """The spec of a Gemma 2 config: norms around each sublayer, every other layer with a window."""
    common = Common(config, context=8192, kv_heads=4, head_dim=256)
    rope, cap = common.rope(), limit(config, "attn_logit_softcapping", Fraction(50))
    windows = common.windows(every(config, common.layers, 2, key=""), 4096)
    attentions = [_attention(common, window=window, rotary=rope, cap=cap) for window in windows]
    return _sandwich(
        common, name, attentions, limit(config, "final_logit_softcapping", Fraction(30))
    )


def read_vaultgemma(config: Config, name: str) -> ModelSpec:
    """The spec of a VaultGemma config: as Gemma 2, without the norms behind the sublayers."""
    spec = read_gemma2(config, name)
    blocks = (replace(block, attn_after=NO_NORM, mlp_after=NO_NORM) for block in spec.blocks)
    return replace(spec, blocks=tuple(blocks))


def read_gemma3(config: Config, name: str) -> ModelSpec:
    """The spec of a Gemma 3 config: q and k normalised, and a RoPE of its own in each window."""
    common = Common(config, context=131_072, kv_heads=4, head_dim=256)
    config.asked.add("attn_logit_softcapping")  # which the library does not use here
    norm = common.rmsnorm(plus_one=True)
    usual = every(config, common.layers, 6)
    tables = tables_by_kind(config)
    ropes = {
        True: common.rope(table=tables[True], base_keys=("rope_local_base_freq",)),
        False: common.rope(table=tables[False], base=Fraction(1_000_000)),
    }
    kinds = layer_kinds(config, usual)
    attentions = [
        _attention(common, window=window, rotary=ropes[sliding], q_norm=norm, k_norm=norm)
        for sliding, window in zip(kinds, common.windows(usual, 4096), strict=True)
    ]
    return _sandwich(common, name, attentions, limit(config, "final_logit_softcapping"))


def read_gemma3_with_images(config: Config, name: str) -> ModelSpec:
    """The spec of what reads text in a Gemma 3 model that reads images as well."""
    text = config.within("text_config")
    if text is None:
        raise config.refuse("text_config", _("the settings of the language model"))
    config.asked.update(("vision_config", "mm_tokens_per_image", "boi_token_index",
                         "eoi_token_index", "image_token_index"))  # fmt: skip
    tied = text.table.get("tie_word_embeddings", True)
    if config.flag("tie_word_embeddings", True) is not tied:
        raise config.refuse("tie_word_embeddings", _("the same as in text_config"))
    spec = read_gemma3(text, name)
    check_unread(text, "gemma3_text")
    return spec


def _attention(common: Common, **settings: Any) -> AttentionSpec:
    bias = common.config.flag("attention_bias", False)
    scale = over_root_of(common.config, "query_pre_attn_scalar", Fraction(256))
    return common.attention(bias=bias, out_bias=bias, scale=scale, **settings)


def _sandwich(
    common: Common, name: str, attentions: list[AttentionSpec], cap: Fraction | None
) -> ModelSpec:
    norm = common.rmsnorm(plus_one=True)
    mlp = common.mlp(TANH, key="hidden_activation")
    common.config.asked.add("hidden_act")  # an older name, which the library does not use
    blocks = [
        BlockSpec(attention, mlp, norm, norm, attn_after=norm, mlp_after=norm)
        for attention in attentions
    ]
    return common.spec(name, blocks, norm, tied=True, embed_scale=root(common.d), logit_cap=cap)


def tables_by_kind(config: Config) -> dict[bool, Config]:
    """The settings of RoPE with a window, and without: older configs have only these."""
    empty = Config(config.path, {})
    new = config.within("rope_parameters")
    if new is None:
        return {True: empty, False: rope_table(config)}
    for key in new.table:
        if key not in ("sliding_attention", "full_attention"):
            raise new.refuse(key, "sliding_attention, full_attention", key)
    return {
        True: new.within("sliding_attention") or empty,
        False: new.within("full_attention") or empty,
    }
