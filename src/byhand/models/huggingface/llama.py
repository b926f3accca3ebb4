"""llama, and families of the same structure: RoPE, RMSNorm, a gated MLP."""

from __future__ import annotations

from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.common import (
    SMALL,
    TINY,
    Common,
    factor,
    layer_kinds,
    over,
)
from byhand.models.huggingface.config import LONGEST_CONTEXT, Config
from byhand.models.huggingface.rope import rope_table
from byhand.spec import NO_NORM, BlockSpec, ModelSpec, RotarySpec


def read_llama(config: Config, name: str) -> ModelSpec:
    """The spec of a Llama config."""
    common = Common(config)
    bias = config.flag("attention_bias", False)
    return _llama(common, name, (bias, bias), mlp_bias=config.flag("mlp_bias", False))


def read_mistral(config: Config, name: str) -> ModelSpec:
    """The spec of a Mistral config."""
    common = Common(config, context=4096 * 32, kv_heads=8)
    return _llama(common, name, windows=[common.window(4096)] * common.layers)


def read_ministral(config: Config, name: str) -> ModelSpec:
    """The spec of a Ministral config: a window in all layers, unless layer_types says otherwise."""
    common = Common(config, context=4096 * 32, kv_heads=8)
    sliding = common.window(4096) is not None
    return _llama(common, name, windows=common.windows([sliding] * common.layers, 4096))


def read_qwen2(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 2 config."""
    config.asked.add("attention_bias")  # always present, whatever the config says
    common = Common(config, context=32_768, kv_heads=32)
    return _llama(common, name, (True, False), windows=_qwen_windows(common))


def read_qwen3(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 3 config."""
    common = Common(config, context=32_768, kv_heads=32, head_dim=128)
    bias = config.flag("attention_bias", False)
    return _llama(common, name, (bias, bias), windows=_qwen_windows(common), head_norms=True)


def read_granite(config: Config, name: str) -> ModelSpec:
    """The spec of a Granite config: a Llama with multipliers."""
    common = Common(config)
    bias = config.flag("attention_bias", False)
    norm = common.rmsnorm()
    attention = common.attention(
        bias=bias,
        out_bias=bias,
        rotary=common.rope(),
        scale=factor(config, "attention_multiplier"),
    )
    mlp = common.mlp("silu", bias=config.flag("mlp_bias", False))
    add = factor(config, "residual_multiplier")
    return common.spec(
        name,
        [BlockSpec(attention, mlp, norm, norm, add_scale=add)] * common.layers,
        norm,
        embed_scale=factor(config, "embedding_multiplier"),
        logit_scale=over(config, "logits_scaling"),
    )


def read_smollm3(config: Config, name: str) -> ModelSpec:
    """The spec of a SmolLM 3 config: no RoPE in every fourth layer."""
    common = Common(config, context=32_768, kv_heads=4)
    turned = _turned_layers(config, common.layers)
    used = config.flag("use_sliding_window", False)
    window = common.window(None)
    sliding = [used and window is not None and not turn for turn in turned]
    windows = common.windows(sliding)
    bias = config.flag("attention_bias", False)
    rope, norm = common.rope(base=Fraction(2_000_000)), common.rmsnorm()
    mlp = common.mlp("silu", bias=config.flag("mlp_bias", False))
    blocks = [
        BlockSpec(
            common.attention(
                bias=bias, out_bias=bias, rotary=rope if turn else None, window=window
            ),
            mlp, norm, norm,
        )
        for turn, window in zip(turned, windows, strict=True)
    ]  # fmt: skip
    return common.spec(name, blocks, norm, tied=True)


def read_helium(config: Config, name: str) -> ModelSpec:
    """The spec of a Helium config: pairs of neighbours turn."""
    common = Common(config, context=4096, kv_heads=20, head_dim=128)
    norm = common.rmsnorm(Fraction(1, 10**8))
    attention = common.attention(
        bias=config.flag("attention_bias", False),
        rotary=common.rope(base=Fraction(100_000), pairing="interleaved"),
    )
    mlp = common.mlp("silu", bias=config.flag("mlp_bias", False))
    return common.spec(name, [BlockSpec(attention, mlp, norm, norm)] * common.layers, norm)


def read_seed_oss(config: Config, name: str) -> ModelSpec:
    """The spec of a Seed-OSS config."""
    common = Common(config, context=524_288, kv_heads=8, head_dim=128, null_width=True)
    biases = config.flag("attention_bias", True), config.flag("attention_out_bias", False)
    return _llama(common, name, biases, mlp_bias=config.flag("mlp_bias", False))


def read_arcee(config: Config, name: str) -> ModelSpec:
    """The spec of an Arcee config: a Llama whose MLP has no gate."""
    common = Common(config, context=4096)
    bias = config.flag("attention_bias", False)
    norm = common.rmsnorm(SMALL)
    attention = common.attention(bias=bias, out_bias=bias, rotary=common.rope())
    mlp = common.mlp("relu2", gated=False, bias=config.flag("mlp_bias", False))
    return common.spec(name, [BlockSpec(attention, mlp, norm, norm)] * common.layers, norm)


def read_cwm(config: Config, name: str) -> ModelSpec:
    """The spec of a CWM config: windows in three of four layers, the first one without."""
    common = Common(config, context=131_072, kv_heads=8, head_dim=128, null_width=True)
    windows = common.windows([bool(layer % 4) for layer in range(common.layers)], 8192)
    usual = {
        "rope_theta": 1_000_000, "factor": 16, "high_freq_factor": 4, "low_freq_factor": 1,
        "original_max_position_embeddings": 8192, "rope_type": "llama3",
    }  # fmt: skip
    table = rope_table(config)
    rope = common.rope(
        base=Fraction(1_000_000), table=table if table.table else Config(config.path, usual)
    )
    mlp_bias = config.flag("mlp_bias", False)
    return _llama(common, name, mlp_bias=mlp_bias, windows=windows, eps=SMALL, rope=rope)


def read_ernie(config: Config, name: str) -> ModelSpec:
    """The spec of an ERNIE 4.5 config: pairs of neighbours turn, biases everywhere or nowhere."""
    common = Common(config, context=131_072, kv_heads=2, head_dim=128, null_width=True)
    bias = config.flag("use_bias", False)
    rope = common.rope(base=Fraction(500_000), pairing="interleaved")
    return _llama(common, name, (bias, bias), mlp_bias=bias, eps=SMALL, rope=rope, tied=True)


def read_hunyuan(config: Config, name: str) -> ModelSpec:
    """The spec of a HunYuan config: q and k are turned, then normalised."""
    common = Common(config)
    bias, norm = config.flag("attention_bias", False), common.rmsnorm(SMALL)
    attention = common.attention(
        bias=bias, out_bias=bias, rotary=common.rope(alpha=True), q_norm=norm, k_norm=norm,
        turned_first=True,
    )  # fmt: skip
    block = BlockSpec(attention, common.mlp("silu"), norm, norm)
    return common.spec(name, [block] * common.layers, norm)


def _llama(
    common: Common,
    name: str,
    biases: tuple[bool, bool] = (False, False),  # of q, k and v; of out
    *,
    mlp_bias: bool = False,
    windows: list[int | None] | None = None,
    head_norms: bool = False,
    eps: Fraction = TINY,
    rope: RotarySpec | None = None,  # None: the usual one
    tied: bool = False,
) -> ModelSpec:
    norm = common.rmsnorm(eps)
    rope = rope or common.rope()
    mlp = common.mlp("silu", bias=mlp_bias)
    heads = norm if head_norms else NO_NORM

    def block(window: int | None) -> BlockSpec:
        attention = common.attention(
            bias=biases[0], out_bias=biases[1], window=window, rotary=rope,
            q_norm=heads, k_norm=heads,
        )  # fmt: skip
        return BlockSpec(attention, mlp, norm, norm)

    every = windows or [None] * common.layers
    return common.spec(name, [block(window) for window in every], norm, tied=tied)


def _qwen_windows(common: Common) -> list[int | None]:
    """Each layer's window: by layer_types, else from layer max_window_layers on."""
    config = common.config
    used = config.flag("use_sliding_window", False)
    window = config.whole_or_none("sliding_window", 4096, most=LONGEST_CONTEXT)
    first = config.whole("max_window_layers", 28, least=0)
    usual = [used and layer >= first for layer in range(common.layers)]
    kinds = layer_kinds(config, usual)
    if kinds is not usual and any(kinds) and (window is None or not used):
        expected = _("use_sliding_window and sliding_window")
        raise config.refuse("layer_types", expected, "sliding_attention")
    return [window if sliding else None for sliding in kinds]


def _turned_layers(config: Config, layers: int) -> list[bool]:
    """Which layers have RoPE: as no_rope_layers says (1: it has), else all but every n-th."""
    _key, found = config.value("no_rope_layers", None)
    interval = config.whole("no_rope_layer_interval", 4)
    if found is None:
        return [bool((layer + 1) % interval) for layer in range(layers)]
    if not isinstance(found, list) or len(found) != layers or any(x not in (0, 1) for x in found):
        expected = _("a list of {count}, each 0 or 1").format(count=layers)
        raise config.refuse("no_rope_layers", expected, found)
    return [bool(x) for x in found]
