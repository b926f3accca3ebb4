"""gpt_neox (Pythia): partial RoPE, q, k and v packed by head, parallel or serial blocks."""

from __future__ import annotations

from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.rope import Keys, read_rope
from byhand.spec import AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root


def read(config: Config, name: str) -> ModelSpec:
    """The spec of a GPT-NeoX config."""
    d = config.whole("hidden_size")
    heads = config.whole("num_attention_heads")
    layers = config.whole("num_hidden_layers", most=MOST_LAYERS)
    if d % heads:
        expected = _("a divisor of hidden_size, {d}").format(d=d)
        raise config.refuse("num_attention_heads", expected, heads)
    norm = NormSpec("layernorm", config.epsilon("layer_norm_eps", Fraction(1, 100_000)))
    keys = Keys(
        base_keys=("rotary_emb_base", "rope_theta"),
        share_keys=("rotary_pct", "partial_rotary_factor"),
        share=Fraction(1, 4),
    )
    rope = read_rope(config, d // heads, keys)
    bias = config.flag("attention_bias", True)
    attention = AttentionSpec(
        heads=heads,
        d_head=d // heads,
        kv_heads=heads,
        scale=over_root(d // heads),
        rotary=rope,
        packed="per_head",
        q_bias=bias,
        k_bias=bias,
        v_bias=bias,
        out_bias=bias,
    )
    mlp = MlpSpec(
        d_ff=config.whole("intermediate_size"),
        activation=config.word("hidden_act", "gelu", ACTIVATIONS),
        hidden_bias=True,
        out_bias=True,
    )
    parallel = config.flag("use_parallel_residual", True)
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_position_embeddings", 2048, most=LONGEST_CONTEXT),
        blocks=(BlockSpec(attention, mlp, norm, norm, parallel=parallel),) * layers,
        final_norm=norm,
        tied=config.flag("tie_word_embeddings", False),
        layout="out_in",
    )
