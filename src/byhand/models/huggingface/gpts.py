"""gptj, gpt_neo, gpt_bigcode, openai-gpt: relatives of GPT-2 with other keys."""

from __future__ import annotations

from typing import Any

from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.common import SMALL, head_width
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RotarySpec,
    over_root,
)


class _Gpt:
    """The sizes of a config with the keys of GPT-2: n_embd, n_head, n_layer, n_positions."""

    def __init__(self, config: Config, *, context: int) -> None:
        self.config = config
        self.d = config.whole("n_embd", also="hidden_size")
        self.heads = config.whole("n_head", also="num_attention_heads")
        self.layers = config.whole("n_layer", also="num_hidden_layers", most=MOST_LAYERS)
        self.width = head_width(config, self.d, self.heads, "n_head")
        self.context = config.whole(
            "n_positions", context, also="max_position_embeddings", most=LONGEST_CONTEXT
        )
        self.norm = NormSpec("layernorm", config.epsilon("layer_norm_epsilon", SMALL))

    def attention(
        self, *, kv_heads: int | None = None, bias: bool = True, **settings: Any
    ) -> AttentionSpec:
        return AttentionSpec(
            heads=self.heads,
            d_head=self.width,
            kv_heads=kv_heads or self.heads,
            **{
                "scale": over_root(self.width), "q_bias": bias, "k_bias": bias, "v_bias": bias,
                "out_bias": bias, **settings,
            },
        )  # fmt: skip

    def mlp(self, activation: str) -> MlpSpec:
        return MlpSpec(d_ff=self.config.whole_or_none("n_inner") or 4 * self.d,
                       activation=activation, hidden_bias=True, out_bias=True)  # fmt: skip

    def spec(self, name: str, block: BlockSpec, **settings: Any) -> ModelSpec:
        return ModelSpec(
            name=name,
            vocab=self.config.whole("vocab_size"),
            d_model=self.d,
            context=self.context,
            blocks=(block,) * self.layers,
            **settings,
        )


def read_gptj(config: Config, name: str) -> ModelSpec:
    """The spec of a GPT-J config: neighbours turn, and both sublayers read one norm."""
    gpt = _Gpt(config, context=2048)
    turned = config.whole("rotary_dim", 64)
    if turned > gpt.width or turned % 2:
        expected = _("an even number up to the head width {width}").format(width=gpt.width)
        raise config.refuse("rotary_dim", expected, turned)
    attention = gpt.attention(bias=False, rotary=RotarySpec(turned, pairing="interleaved"))
    mlp = gpt.mlp(config.word("activation_function", "gelu_new", ACTIVATIONS))
    block = BlockSpec(attention, mlp, gpt.norm, parallel=True, one_norm=True)
    return gpt.spec(
        name, block, final_norm=gpt.norm, layout="out_in", head_bias=True,
        tied=config.flag("tie_word_embeddings", False),
    )  # fmt: skip


def read_codegen(config: Config, name: str) -> ModelSpec:
    """The spec of a CodeGen config: as GPT-J, with q, v and k of four shards in one matrix."""
    config.asked.add("n_ctx")
    spec = read_gptj(config, name)
    heads = config.whole("n_head", also="num_attention_heads")
    if heads % 4:
        raise config.refuse("n_head", _("a multiple of 4"), heads)
    return spec


def read_gpt_bigcode(config: Config, name: str) -> ModelSpec:
    """The spec of a GPT-BigCode config: one key head for all, or q, k and v packed by head."""
    gpt = _Gpt(config, context=1024)
    # where softmax is worked out changes no exact number
    config.asked.update(("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"))
    one = config.flag("multi_query", True)
    heads = config.whole_or_none("num_key_value_heads")  # which the library works out again
    if heads not in (None, 1 if one else gpt.heads):
        raise config.refuse("num_key_value_heads", str(1 if one else gpt.heads))
    attention = gpt.attention(
        kv_heads=1 if one else gpt.heads,
        packed="concatenated" if one else "per_head",
        scale=over_root(gpt.width) if config.flag("scale_attn_weights", True) else None,
    )
    mlp = gpt.mlp(config.word("activation_function", "gelu_pytorch_tanh", ACTIVATIONS))
    block = BlockSpec(attention, mlp, gpt.norm, gpt.norm)
    return gpt.spec(
        name, block, final_norm=gpt.norm, layout="out_in", position="learned",
        tied=config.flag("tie_word_embeddings", True),
    )  # fmt: skip


def read_openai_gpt(config: Config, name: str) -> ModelSpec:
    """The spec of the first GPT's config: norms behind each sum; its "gelu" is the tanh form."""
    gpt = _Gpt(config, context=512)
    known = {"relu": "relu", "silu": "silu", "swish": "silu", "gelu": "gelu_tanh"}
    attention = gpt.attention(packed="concatenated")
    config.asked.add("n_inner")
    mlp = MlpSpec(4 * gpt.d, config.word("afn", "gelu", known), hidden_bias=True, out_bias=True)
    block = BlockSpec(attention, mlp, gpt.norm, gpt.norm, norm_place="post")
    return gpt.spec(
        name, block, layout="in_out", position="learned",
        tied=config.flag("tie_word_embeddings", True),
    )  # fmt: skip


def read_gpt_neo(config: Config, name: str) -> ModelSpec:
    """The spec of a GPT-Neo config: scores that are not scaled, windows in some layers."""
    d = config.whole("hidden_size")
    heads = config.whole("num_heads", also="num_attention_heads")
    layers = config.whole("num_layers", also="num_hidden_layers", most=MOST_LAYERS)
    width = head_width(config, d, heads, "num_heads")
    norm = NormSpec("layernorm", config.epsilon("layer_norm_epsilon", SMALL))
    window = config.whole("window_size", 256, most=LONGEST_CONTEXT)
    mlp = MlpSpec(
        d_ff=config.whole_or_none("intermediate_size") or 4 * d,
        activation=config.word("activation_function", "gelu_new", ACTIVATIONS),
        hidden_bias=True,
        out_bias=True,
    )

    def block(local: bool) -> BlockSpec:
        attention = AttentionSpec(
            heads, width, heads, window=window if local else None, out_bias=True
        )
        return BlockSpec(attention, mlp, norm, norm)

    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_position_embeddings", 2048, most=LONGEST_CONTEXT),
        blocks=tuple(block(local) for local in _local_layers(config, layers)),
        position="learned",
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", True),
        layout="out_in",
    )


def _local_layers(config: Config, layers: int) -> list[bool]:
    """Which layers see a window: attention_types has kinds and how often they repeat."""
    _key, found = config.value("attention_types", None)
    expected = _('[[["global", "local"], n], …] for {count} layers').format(count=layers)
    error = config.refuse("attention_types", expected, found)
    kinds: list[str] = []
    groups = [[["global", "local"], 12]] if found is None else found
    if not isinstance(groups, list):
        raise error
    for group in groups:
        match group:
            case [list(names), int(times)] if times >= 0 and (
                len(kinds) + len(names) * times <= layers
            ):
                kinds += names * times
            case _:
                raise error
    if len(kinds) != layers or any(kind not in ("global", "local") for kind in kinds):
        raise error
    _key, each = config.value("attention_layers", None)
    if each not in (None, kinds):
        raise config.refuse("attention_layers", _("the same as attention_types"))
    return [kind == "local" for kind in kinds]
