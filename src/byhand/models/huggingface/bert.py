"""bert, roberta, distilbert and electra: encoders, which say the word at each place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from byhand.language import _
from byhand.models.huggingface.activations import ACTIVATIONS
from byhand.models.huggingface.config import LONGEST_CONTEXT, MOST_LAYERS, Config
from byhand.models.huggingface.keys import unsupported
from byhand.spec import (
    AttentionSpec,
    BlockSpec,
    HeadSpec,
    MlpSpec,
    ModelSpec,
    NormSpec,
    over_root,
)

EPS = Fraction(1, 10**12)


def read_bert(config: Config, name: str) -> ModelSpec:
    """The spec of a BERT config: norms after every addition, and one of the embeddings."""
    return _encoder(_usual(config), config, name)


def read_electra(config: Config, name: str) -> ModelSpec:
    """The spec of an Electra generator, which is a BERT."""
    settings = _usual(config)
    if config.whole("embedding_size", 128) != settings.d:
        raise unsupported(config, "embedding_size", (settings.d,), "electra")
    return _encoder(settings, config, name, head="gelu")


def read_roberta(config: Config, name: str) -> ModelSpec:
    """The spec of a RoBERTa config: a BERT whose positions count from the padding id + 1."""
    before = 1 + config.whole("pad_token_id", 1, least=0)
    return _encoder(_usual(config, before), config, name, head="gelu")


def read_distilbert(config: Config, name: str) -> ModelSpec:
    """The spec of a DistilBERT config: a BERT without segments."""
    config.flag("sinusoidal_pos_embds", False)  # how the table of positions was first set
    settings = _Settings(
        d=config.whole("dim", 768, also="hidden_size"),
        heads=config.whole("n_heads", 12, also="num_attention_heads"),
        layers=config.whole("n_layers", 6, also="num_hidden_layers", most=MOST_LAYERS),
        d_ff=config.whole("hidden_dim", 3072),
        activation=config.word("activation", "gelu", ACTIVATIONS),
        context=config.whole("max_position_embeddings", 512, most=LONGEST_CONTEXT),
        segments=None,
        eps=EPS,
    )
    return _encoder(settings, config, name)


@dataclass(frozen=True)
class _Settings:
    """What the configs of these families say, each in its own words."""

    d: int
    heads: int
    layers: int
    d_ff: int
    activation: str
    context: int
    segments: int | None
    eps: Fraction
    first_row: int = 0


def _usual(config: Config, before: int = 0) -> _Settings:
    """The settings of BERT's keys; the first rows of the table of positions are not used."""
    rows = config.whole("max_position_embeddings", 512, least=before + 1, most=LONGEST_CONTEXT)
    return _Settings(
        d=config.whole("hidden_size", 768),
        heads=config.whole("num_attention_heads", 12),
        layers=config.whole("num_hidden_layers", 12, most=MOST_LAYERS),
        d_ff=config.whole("intermediate_size", 3072),
        activation=config.word("hidden_act", "gelu", ACTIVATIONS),
        context=rows - before,
        segments=config.whole("type_vocab_size", 2),
        eps=config.epsilon("layer_norm_eps", EPS),
        first_row=before,
    )


def _encoder(said: _Settings, config: Config, name: str, head: str | None = None) -> ModelSpec:
    """Blocks that look both ways, or as a decoder back alone; `head` is the head's activation."""
    if said.d % said.heads:
        expected = _("a divisor of hidden_size, {d}").format(d=said.d)
        raise config.refuse("num_attention_heads", expected, said.heads)
    norm = NormSpec("layernorm", said.eps)
    width = said.d // said.heads
    decoder = config.flag("is_decoder", False)
    attention = AttentionSpec(
        heads=said.heads,
        d_head=width,
        kv_heads=said.heads,
        scale=over_root(width),
        causal=decoder,
        q_bias=True,
        k_bias=True,
        v_bias=True,
        out_bias=True,
    )
    mlp = MlpSpec(said.d_ff, said.activation, hidden_bias=True, out_bias=True)
    block = BlockSpec(attention, mlp, norm, norm, norm_place="post")
    return ModelSpec(
        name=name,
        vocab=config.whole("vocab_size", 30_522),
        d_model=said.d,
        context=said.context,
        blocks=(block,) * said.layers,
        position="learned",
        first_row=said.first_row,
        embed_norm=norm,
        segments=said.segments,
        head=HeadSpec(head or said.activation, norm),
        head_bias=True,
        tied=config.flag("tie_word_embeddings", True),
        layout="out_in",
        in_place=not decoder,
    )
