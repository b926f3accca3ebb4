"""gpt2: learned positions, packed queries, keys and values, matrices as x·W."""

from __future__ import annotations

from fractions import Fraction

from byhand.expression import Expression, Number, Quotient
from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root


def read(config: Config, name: str) -> ModelSpec:
    """The spec of a GPT-2 config."""
    d = config.whole("n_embd", also="hidden_size")
    heads = config.whole("n_head", also="num_attention_heads")
    layers = config.whole("n_layer", also="num_hidden_layers", most=MOST_LAYERS)
    if d % heads:
        raise config.refuse("n_head", _("a divisor of n_embd, {d}").format(d=d), heads)
    norm = NormSpec("layernorm", config.epsilon("layer_norm_epsilon", Fraction(1, 100_000)))
    mlp = MlpSpec(
        d_ff=config.whole_or_none("n_inner") or 4 * d,
        activation=config.word("activation_function", "gelu_new", ACTIVATIONS),
        hidden_bias=True,
        out_bias=True,
    )
    by_width = config.flag("scale_attn_weights", True)
    by_layer = config.flag("scale_attn_by_inverse_layer_idx", False)

    def block(layer: int) -> BlockSpec:
        attention = AttentionSpec(
            heads=heads,
            d_head=d // heads,
            kv_heads=heads,
            scale=_scale(d // heads, by_width, layer + 1 if by_layer else 1),
            packed="concatenated",
            q_bias=True,
            k_bias=True,
            v_bias=True,
            out_bias=True,
        )
        return BlockSpec(attention, mlp, norm, norm)

    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("n_positions", also="max_position_embeddings", most=LONGEST_CONTEXT),
        blocks=tuple(block(layer) for layer in range(layers)),
        position="learned",
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", True),
        layout="in_out",
    )


def _scale(width: int, by_width: bool, divisor: int) -> Expression | None:
    """The scale of the scores: 1/√width if `by_width`, divided by `divisor`; None for 1."""
    if not by_width:
        return None if divisor == 1 else Number(Fraction(1, divisor))
    scale = over_root(width)
    return scale if divisor == 1 else Quotient(scale, Number(Fraction(divisor)))
