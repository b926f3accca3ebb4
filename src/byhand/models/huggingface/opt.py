"""opt, biogpt: learned positions from the third row of a table on."""

from __future__ import annotations

from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.common import SMALL, Common, head_width, root
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.spec import NO_NORM, AttentionSpec, BlockSpec, MlpSpec, ModelSpec, NormSpec, over_root


def read(config: Config, name: str) -> ModelSpec:
    """The spec of an OPT config."""
    config.asked.update(("layerdrop", "dropout", "init_std"))  # of training
    d = config.whole("hidden_size")
    heads = config.whole("num_attention_heads")
    layers = config.whole("num_hidden_layers", most=MOST_LAYERS)
    width = head_width(config, d, heads)
    bias = config.flag("enable_bias", True)
    affine = config.flag("layer_norm_elementwise_affine", True)
    norm = NormSpec("layernorm", SMALL, gain=affine, bias=affine)
    before = config.flag("do_layer_norm_before", True)
    attention = AttentionSpec(
        heads, width, heads, over_root(width),
        q_bias=bias, k_bias=bias, v_bias=bias, out_bias=bias,
    )  # fmt: skip
    mlp = MlpSpec(
        d_ff=config.whole("ffn_dim"),
        activation=config.word("activation_function", "relu", ACTIVATIONS),
        hidden_bias=bias,
        out_bias=bias,
    )
    removed = config.flag("_remove_final_layer_norm", False)
    narrow = config.whole_or_none("word_embed_proj_dim") or d
    block = BlockSpec(attention, mlp, norm, norm, norm_place="pre" if before else "post")
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size"),
        d_model=d,
        context=config.whole("max_position_embeddings", 2048, most=LONGEST_CONTEXT),
        blocks=(block,) * layers,
        position="learned",
        final_norm=norm if before and not removed else NO_NORM,
        embed_width=None if narrow == d else narrow,
        tied=config.flag("tie_word_embeddings", True),
        layout="out_in",
    )


def read_biogpt(config: Config, name: str) -> ModelSpec:
    """The spec of a BioGPT config: embeddings times √d, biases everywhere."""
    config.asked.update(("layerdrop", "layer_norm_eps"))  # its norms have torch's usual eps
    common = Common(config, context=1024, fixed_width=True)
    norm = NormSpec("layernorm", SMALL)
    block = BlockSpec(
        common.attention(bias=True, out_bias=True),
        common.mlp("gelu", gated=False, bias=True),
        norm,
        norm,
    )
    scaled = config.flag("scale_embedding", True)
    return common.spec(
        name, [block] * common.layers, norm, tied=True, position="learned",
        embed_scale=root(common.d) if scaled else None,
    )  # fmt: skip
