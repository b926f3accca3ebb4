"""olmo, olmo2, olmo3, exaone4: norms without gain, norms behind the sublayers."""

from __future__ import annotations

from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.common import SMALL, Common, every, layer_kinds, limit
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.gemma import tables_by_kind
from byhand.spec import AttentionSpec, BlockSpec, ModelSpec, NormSpec

BASE = Fraction(500_000)  # of OLMo 3


def read_olmo(config: Config, name: str) -> ModelSpec:
    """The spec of an OLMo config: LayerNorms without gain and bias, q, k and v clipped."""
    common = Common(config)
    bias = config.flag("attention_bias", False)
    norm = NormSpec("layernorm", SMALL, gain=False, bias=False)
    attention = common.attention(
        bias=bias, out_bias=bias, rotary=common.rope(), clip=limit(config, "clip_qkv")
    )
    block = BlockSpec(attention, common.mlp("silu"), norm, norm)
    return common.spec(name, [block] * common.layers, norm)


def read_olmo2(config: Config, name: str) -> ModelSpec:
    """The spec of an OLMo 2 config: norms behind the sublayers, q and k normed in their width."""
    common = Common(config)
    rope = common.rope()
    return _behind(common, name, [_attention(common, rotary=rope)] * common.layers)


def read_olmo3(config: Config, name: str) -> ModelSpec:
    """The spec of an OLMo 3 config: as OLMo 2, with windows in three of four layers."""
    common = Common(config)
    usual = every(config, common.layers, 4, key="")
    kinds, windows = layer_kinds(config, usual), common.windows(usual, 4096)
    tables = tables_by_kind(config)
    theta = config.value("rope_theta", None)[1]
    if "rope_parameters" not in config and theta not in (None, BASE):
        # the library takes it for the layers without a window alone
        raise config.refuse("rope_theta", _("500000, or a table rope_parameters"), theta)
    ropes = {sliding: common.rope(table=tables[sliding], base=BASE) for sliding in (True, False)}
    attentions = [
        _attention(common, rotary=ropes[sliding], window=window)
        for sliding, window in zip(kinds, windows, strict=True)
    ]
    return _behind(common, name, attentions)


def read_exaone4(config: Config, name: str) -> ModelSpec:
    """The spec of an EXAONE 4 config: norms behind the sublayers, RoPE where there is a window."""
    common = Common(config, kv_heads=32)
    norm, window = common.rmsnorm(SMALL), common.window(4096)
    if window is None:
        config.asked.add("sliding_window_pattern")
        usual = [False] * common.layers
    else:
        usual = every(config, common.layers, 4)
    rope = common.rope()
    attentions = [
        common.attention(
            rotary=rope if sliding or window is None else None,
            window=window if sliding else None,
            q_norm=norm,
            k_norm=norm,
        )
        for sliding in layer_kinds(config, usual)
    ]
    return _behind(common, name, attentions)


def _attention(common: Common, **settings: object) -> AttentionSpec:
    bias, norm = common.config.flag("attention_bias", False), common.rmsnorm(SMALL)
    return common.attention(
        bias=bias, out_bias=bias, q_norm=norm, k_norm=norm, normed="width", **settings
    )


def _behind(common: Common, name: str, attentions: list[AttentionSpec]) -> ModelSpec:
    """Each sublayer reads the stream as it is, and what it adds is normalised."""
    norm = common.rmsnorm(SMALL)
    mlp = common.mlp("silu")
    blocks = [
        BlockSpec(attention, mlp, attn_after=norm, mlp_after=norm) for attention in attentions
    ]
    return common.spec(name, blocks, norm)
