"""llama, with mistral, qwen2 and qwen3 of the same structure: RoPE, RMSNorm, a gated MLP."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.rope import Keys, read_rope
from byhand.spec import (
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    over_root,
)

LAYER_TYPES = {"full_attention": False, "attention": False, "sliding_attention": True}


def read_llama(config: Config, name: str) -> ModelSpec:
    """The spec of a Llama config."""
    bias = config.flag("attention_bias", False)
    return _gated(
        config,
        name,
        context=2048,
        kv_heads=None,
        biases=(bias, bias),
        mlp_bias=config.flag("mlp_bias", False),
        windows=lambda _config, layers: [None] * layers,
    )


def read_mistral(config: Config, name: str) -> ModelSpec:
    """The spec of a Mistral config."""
    return _gated(
        config,
        name,
        context=4096 * 32,
        kv_heads=8,
        biases=(False, False),
        windows=_mistral_windows,
    )


def read_qwen2(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 2 config."""
    config.asked.add("attention_bias")  # always present, whatever the config says
    return _gated(
        config,
        name,
        context=32_768,
        kv_heads=32,
        biases=(True, False),
        windows=_qwen_windows,
    )


def read_qwen3(config: Config, name: str) -> ModelSpec:
    """The spec of a Qwen 3 config."""
    bias = config.flag("attention_bias", False)
    return _gated(
        config,
        name,
        context=32_768,
        kv_heads=32,
        d_head=128,
        biases=(bias, bias),
        windows=_qwen_windows,
        head_norms=True,
    )


Windows = Callable[[Config, int], list[int | None]]


def _gated(
    config: Config,
    name: str,
    *,
    context: int,  # default
    kv_heads: int | None,  # default; None: as many as heads
    biases: tuple[bool, bool],  # of q, k and v; of out
    windows: Windows,
    d_head: int | None = None,  # default; None: hidden_size / heads
    mlp_bias: bool = False,
    head_norms: bool = False,
) -> ModelSpec:
    d = config.whole("hidden_size")
    heads = config.whole("num_attention_heads")
    layers = config.whole("num_hidden_layers", most=MOST_LAYERS)
    width = config.whole("head_dim", d_head) if d_head else config.whole_or_none("head_dim")
    if width is None:
        if d % heads:
            expected = _("a divisor of hidden_size, {d}").format(d=d)
            raise config.refuse("num_attention_heads", expected, heads)
        width = d // heads
    norm = NormSpec("rmsnorm", config.epsilon("rms_norm_eps", Fraction(1, 1_000_000)), bias=False)
    rope = read_rope(config, width, Keys(context=context))
    mlp = MlpSpec(
        d_ff=config.whole("intermediate_size"),
        activation=config.word("hidden_act", "silu", ACTIVATIONS),
        gated=True,
        hidden_bias=mlp_bias,
        gate_bias=mlp_bias,
        out_bias=mlp_bias,
    )
    kv = config.whole_or_none("num_key_value_heads", kv_heads) or heads

    def block(window: int | None) -> BlockSpec:
        attention = AttentionSpec(
            heads=heads,
            d_head=width,
            kv_heads=kv,
            scale=over_root(width),
            window=window,
            rotary=rope,
            q_norm=norm if head_norms else NO_NORM,
            k_norm=norm if head_norms else NO_NORM,
            q_bias=biases[0],
            k_bias=biases[0],
            v_bias=biases[0],
            out_bias=biases[1],
        )
        return BlockSpec(attention, mlp, norm, norm)

    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_position_embeddings", context, most=LONGEST_CONTEXT),
        blocks=tuple(block(window) for window in windows(config, layers)),
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", False),
        layout="out_in",
    )


def _mistral_windows(config: Config, layers: int) -> list[int | None]:
    return [config.whole_or_none("sliding_window", 4096, most=LONGEST_CONTEXT)] * layers


def _qwen_windows(config: Config, layers: int) -> list[int | None]:
    """Each layer's window: by layer_types, else from layer max_window_layers on."""
    used = config.flag("use_sliding_window", False)
    window = config.whole_or_none("sliding_window", 4096, most=LONGEST_CONTEXT)
    first = config.whole("max_window_layers", 28, least=0)
    _key, types = config.value("layer_types", None)
    if types is None:
        return [window if used and layer >= first else None for layer in range(layers)]
    known = ", ".join(LAYER_TYPES)
    if not isinstance(types, list) or len(types) != layers:
        expected = _("a list of {count}, each of {names}").format(count=layers, names=known)
        raise config.refuse("layer_types", expected, types)
    for kind in types:
        if not isinstance(kind, str) or kind not in LAYER_TYPES:
            raise config.refuse("layer_types", known, kind)
        if LAYER_TYPES[kind] and (window is None or not used):
            raise config.refuse("layer_types", _("use_sliding_window and sliding_window"), kind)
    return [window if LAYER_TYPES[kind] else None for kind in types]
