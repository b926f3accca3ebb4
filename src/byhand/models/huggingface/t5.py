"""t5 and mt5: an encoder and a decoder that know distances by buckets, and no biases."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import MOST_LAYERS, Config
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    RelativeSpec,
    over_root,
)

GATED = "gated-"
HEAD = "lm_head.weight"


def read_t5(config: Config, name: str) -> ModelSpec:
    """The spec of a T5 config.

    The first T5 multiplies the stream by 1/√d before its head, which is tied to the embedding.
    From 1.1 on the head is its own, and nothing is multiplied; its config says so by not tying.
    """
    tied = config.flag("tie_word_embeddings", True)
    return _encoder_decoder(
        config,
        name,
        tied=tied,
        scaled=config.flag("scale_decoder_outputs", tied),
        proj="relu",
        sizes={"vocab_size": 32_128, "d_ff": 2048, "num_layers": 6, "num_heads": 8},
    )


def read_mt5(config: Config, name: str) -> ModelSpec:
    """The spec of an mT5 config: a T5 1.1."""
    return _encoder_decoder(
        config,
        name,
        tied=config.flag("tie_word_embeddings", True),
        scaled=False,
        proj="gated-gelu",
        sizes={"vocab_size": 250_112, "d_ff": 1024, "num_layers": 8, "num_heads": 6},
    )


def with_own_head(spec: ModelSpec, tensors: Collection[str]) -> ModelSpec:
    """The spec with a head of its own, where the folder has one: newer configs tie all of them."""
    return replace(spec, tied=False) if HEAD in tensors else spec


def _encoder_decoder(
    config: Config, name: str, *, tied: bool, scaled: bool, proj: str, sizes: dict[str, int]
) -> ModelSpec:
    d = config.whole("d_model", 512, also="hidden_size")
    layers = config.whole(
        "num_layers", sizes["num_layers"], also="num_hidden_layers", most=MOST_LAYERS
    )
    behind = config.whole_or_none("num_decoder_layers", most=MOST_LAYERS) or layers
    norm = NormSpec(
        "rmsnorm", config.epsilon("layer_norm_epsilon", Fraction(1, 1_000_000)), bias=False
    )
    heads = config.whole("num_heads", sizes["num_heads"], also="num_attention_heads")
    width = config.whole("d_kv", 64, also="head_dim")
    mlp = _mlp(config, proj, sizes["d_ff"])

    def attention(*, causal: bool, relative: bool = True) -> AttentionSpec:
        return AttentionSpec(heads, width, heads, causal=causal, relative=relative)

    buckets = config.whole("relative_attention_num_buckets", 32, least=4)
    distance = config.whole("relative_attention_max_distance", 128)
    if not config.flag("is_encoder_decoder", True) or config.flag("is_decoder", False):
        raise config.refuse("is_encoder_decoder", _("true, since T5 has an encoder and a decoder"))
    encoder = EncoderSpec(
        blocks=(BlockSpec(attention(causal=False), mlp, norm, norm),) * layers,
        final_norm=norm,
        relative=RelativeSpec(buckets, distance, both=True),
    )
    block = BlockSpec(
        attention(causal=True),
        mlp,
        norm,
        norm,
        cross=attention(causal=False, relative=False),
        cross_norm=norm,
    )
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size", sizes["vocab_size"]),
        d_model=d,
        context=None,
        blocks=(block,) * behind,
        final_norm=norm,
        relative=RelativeSpec(buckets, distance),
        tied=tied,
        head_scale=over_root(d) if scaled else None,
        layout="out_in",
        encoder=encoder,
    )


def _mlp(config: Config, proj: str, d_ff: int) -> MlpSpec:
    """The MLP that feed_forward_proj names: an activation, behind "gated-" that of a gate."""
    kinds = {**ACTIVATIONS, **{GATED + word: kind for word, kind in ACTIVATIONS.items()}}
    kinds["gated-gelu"] = ACTIVATIONS["gelu_new"]
    kind = config.word("feed_forward_proj", proj, kinds)
    gated = str(config.value("feed_forward_proj", proj)[1]).startswith(GATED)
    if config.word("dense_act_fn", _word(kind), ACTIVATIONS) != kind:
        raise config.refuse("dense_act_fn", _("the activation of feed_forward_proj"))
    if config.flag("is_gated_act", gated) != gated:
        raise config.refuse("is_gated_act", _("as feed_forward_proj says"))
    return MlpSpec(config.whole("d_ff", d_ff), kind, gated=gated)


def _word(kind: str) -> str:
    """A word of config.json for an activation."""
    return next(word for word, known in ACTIVATIONS.items() if known == kind)
