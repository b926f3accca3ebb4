"""bart, mbart, marian and pegasus: the Transformer of the original paper, and what became of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from byhand.expression import Call, Expression, Number
from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.keys import unsupported
from byhand.spec import (
    NO_NORM,
    AttentionSpec,
    BlockSpec,
    EncoderSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    over_root,
)

NORM = NormSpec("layernorm", Fraction(1, 100_000))
BEFORE = 2  # rows of a learned table that no position has
BIAS = "final_logits_bias"
APART = "_apart"  # behind the names of a family: encoder and decoder have tables of their own
OWN_TABLE = "decoder.embed_tokens.weight"


def read_bart(config: Config, name: str) -> ModelSpec:
    """The spec of a BART config: post-norm, learned positions, a norm of the embeddings."""
    return _encoder_decoder(config, name, place="post", learned=True, embed_norm=True)


def read_mbart(config: Config, name: str) -> ModelSpec:
    """The spec of an mBART config: a BART with norms before its sublayers."""
    return _encoder_decoder(config, name, place="pre", learned=True, embed_norm=True)


def read_pegasus(config: Config, name: str) -> ModelSpec:
    """The spec of a Pegasus config: pre-norm, sines and cosines."""
    return _encoder_decoder(config, name, place="pre", learned=False, embed_norm=False)


def read_marian(config: Config, name: str) -> ModelSpec:
    """The spec of a Marian config: post-norm, sines and cosines; perhaps two vocabularies."""
    spec = _encoder_decoder(config, name, place="post", learned=False, embed_norm=False)
    other = config.whole_or_none("decoder_vocab_size") or spec.vocab
    if not config.flag("share_encoder_decoder_embeddings", True):
        return replace(_apart(spec), vocab=other)
    if other != spec.vocab:
        raise unsupported(config, "decoder_vocab_size", (spec.vocab,), "marian")
    return spec


def as_stored(spec: ModelSpec, tensors: Collection[str]) -> ModelSpec:
    """The spec without the bias of the logits, where the folder has none.

    Older versions shared one table even where config.json ties nothing.
    """
    there = BIAS in tensors
    spec = replace(spec, head_bias=there, fixed_bias=there)
    assert spec.encoder is not None
    if spec.family.endswith(APART) and not any(name.endswith(OWN_TABLE) for name in tensors):
        family = spec.family.removesuffix(APART)
        encoder: EncoderSpec = spec.encoder
        return replace(spec, family=family, encoder=replace(encoder, vocab=None))
    return spec


def _apart(spec: ModelSpec) -> ModelSpec:
    """The spec with a table of tokens for the encoder and another for the decoder."""
    assert spec.encoder is not None
    family = ("bart" if spec.position == "learned" else "marian") + APART
    return replace(spec, encoder=replace(spec.encoder, vocab=spec.vocab), family=family)


def _encoder_decoder(
    config: Config, name: str, *, place: str, learned: bool, embed_norm: bool
) -> ModelSpec:
    d = config.whole("d_model", 1024, also="hidden_size")
    context = config.whole("max_position_embeddings", 1024, most=LONGEST_CONTEXT)
    kind = config.word("activation_function", "gelu", ACTIVATIONS)
    scale = _root(d) if config.flag("scale_embedding", False) else None
    if not config.flag("is_encoder_decoder", True) or config.flag("is_decoder", False):
        expected = _("true, since the model has an encoder and a decoder")
        raise config.refuse("is_encoder_decoder", expected)
    for key, there in (
        ("normalize_embedding", embed_norm),
        ("normalize_before", place == "pre"),
        ("add_final_layer_norm", place == "pre"),
        ("static_position_embeddings", not learned),
    ):
        if config.flag(key, there) != there:
            raise unsupported(config, key, (there,), str(config.table.get("model_type")))

    def blocks(side: str, *, writes: bool) -> tuple[BlockSpec, ...]:
        heads = config.whole(f"{side}_attention_heads", 16)
        if d % heads:
            expected = _("a divisor of d_model, {d}").format(d=d)
            raise config.refuse(f"{side}_attention_heads", expected, heads)
        attention = AttentionSpec(
            heads=heads,
            d_head=d // heads,
            kv_heads=heads,
            scale=over_root(d // heads),
            causal=writes,
            q_bias=True,
            k_bias=True,
            v_bias=True,
            out_bias=True,
        )
        mlp = MlpSpec(config.whole(f"{side}_ffn_dim", 4096), kind, hidden_bias=True, out_bias=True)
        block = BlockSpec(attention, mlp, NORM, NORM, norm_place=place)
        if writes:
            across = replace(attention, causal=False)
            block = replace(block, cross=across, cross_norm=NORM)
        return (block,) * config.whole(f"{side}_layers", 12, most=MOST_LAYERS)

    config.whole_or_none("num_hidden_layers", most=MOST_LAYERS)  # those of the encoder, again
    positions = {
        "context": context,
        "position": "learned" if learned else "sinusoidal",
        "first_row": BEFORE if learned else 0,
        "position_pairing": "interleaved" if learned else "half",
        "embed_scale": scale,
        "embed_norm": NORM if embed_norm else NO_NORM,
        "final_norm": NORM if place == "pre" else NO_NORM,
    }
    tied = config.flag("tie_word_embeddings", True)
    spec = ModelSpec(
        name=name,
        vocab=config.whole("vocab_size", 50_265),
        d_model=d,
        blocks=blocks("decoder", writes=True),
        tied=tied,
        head_bias=True,
        fixed_bias=True,
        layout="out_in",
        encoder=EncoderSpec(blocks("encoder", writes=False), **positions),  # type: ignore[arg-type]
        **positions,  # type: ignore[arg-type]
    )
    return spec if tied else _apart(spec)


def _root(width: int) -> Expression:
    """√width."""
    return Call("sqrt", Number(Fraction(width)))
