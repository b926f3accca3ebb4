"""The names of modules in encoders and in encoder–decoders."""

from __future__ import annotations

import re
from collections.abc import Mapping

from byhand.names.modules import Names, Place
from byhand.names.pieces import Row, piece


def _either(module: str) -> Place:
    """A norm of BERT: its gain and bias are gamma and beta in files of the first years."""
    return (piece(module), piece(module, weight=".gamma", bias=".beta"))


_BERT_EMBEDDINGS: dict[str, Place] = {
    "embed.segment": "embeddings.token_type_embeddings",
    "embed.position": "embeddings.position_embeddings",
    "embed.norm": _either("embeddings.LayerNorm"),
}
_BERT_BLOCK: dict[str, Place] = {
    "attn.q": "attention.self.query",
    "attn.k": "attention.self.key",
    "attn.v": "attention.self.value",
    "attn.out": "attention.output.dense",
    "attn.norm": _either("attention.output.LayerNorm"),
    "mlp.hidden": "intermediate.dense",
    "mlp.out": "output.dense",
    "mlp.norm": _either("output.LayerNorm"),
}
_BERT_OUTPUTS = {
    "embeddings": "embed.norm.out",
    "encoder.layer.L.attention.self": "block.L.attn.mixed",
    "encoder.layer.L.attention.output": "block.L.attn.norm.out",
    "encoder.layer.L.attention": "block.L.attn.norm.out",
    "encoder.layer.L.intermediate.intermediate_act_fn": "block.L.mlp.act",
    "encoder.layer.L.intermediate": "block.L.mlp.act",
    "encoder.layer.L.output": "block.L.mlp.norm.out",
}
_UNUSED = r"embeddings\.position_ids|pooler\.dense\.(weight|bias)"  # of other tasks

BERT = Names(
    prefix="bert.",
    embedding="embeddings.word_embeddings.weight",
    heads=("cls.predictions.decoder.weight",),
    outside=_BERT_EMBEDDINGS,
    layer="encoder.layer.",
    inside=_BERT_BLOCK,
    beside={
        "head.hidden": "cls.predictions.transform.dense",
        "head.norm": _either("cls.predictions.transform.LayerNorm"),
        "head_bias": (
            piece("cls.predictions.decoder", weight=".bias"),
            piece("cls.predictions", weight=".bias"),
        ),
    },
    outputs={
        **_BERT_OUTPUTS,
        "cls.predictions.transform.transform_act_fn": "head.act",
        "cls.predictions.transform": "head.norm.out",
        "cls.predictions": "logits",
        "cls": "logits",
    },
    leftovers=re.compile(
        rf"(bert\.)?({_UNUSED})|cls\.seq_relationship\.(weight|bias)|cls\.predictions\.bias"
    ),
)

ROBERTA = Names(
    prefix="roberta.",
    embedding="embeddings.word_embeddings.weight",
    heads=("lm_head.decoder.weight",),
    outside=_BERT_EMBEDDINGS,
    layer="encoder.layer.",
    inside=_BERT_BLOCK,
    beside={
        "head.hidden": "lm_head.dense",
        "head.norm": "lm_head.layer_norm",
        "head_bias": (piece("lm_head.decoder", weight=".bias"), piece("lm_head", weight=".bias")),
    },
    outputs={**_BERT_OUTPUTS, "lm_head": "logits"},
    leftovers=re.compile(rf"(roberta\.)?({_UNUSED})|lm_head\.bias"),
)

ELECTRA = Names(
    prefix="electra.",
    embedding="embeddings.word_embeddings.weight",
    heads=("generator_lm_head.weight",),
    outside=_BERT_EMBEDDINGS,
    layer="encoder.layer.",
    inside=_BERT_BLOCK,
    beside={
        "head.hidden": "generator_predictions.dense",
        "head.norm": _either("generator_predictions.LayerNorm"),
        "head_bias": piece("generator_lm_head", weight=".bias"),
    },
    outputs={
        **_BERT_OUTPUTS,
        "generator_predictions.activation": "head.act",
        "generator_predictions": "head.norm.out",
    },
    leftovers=re.compile(rf"(electra\.)?({_UNUSED})"),
)

DISTILBERT = Names(
    prefix="distilbert.",
    embedding="embeddings.word_embeddings.weight",
    heads=("vocab_projector.weight",),
    outside={
        "embed.position": "embeddings.position_embeddings",
        "embed.norm": "embeddings.LayerNorm",
    },
    layer="transformer.layer.",
    inside={
        "attn.q": "attention.q_lin",
        "attn.k": "attention.k_lin",
        "attn.v": "attention.v_lin",
        "attn.out": "attention.out_lin",
        "attn.norm": "sa_layer_norm",
        "mlp.hidden": "ffn.lin1",
        "mlp.out": "ffn.lin2",
        "mlp.norm": "output_layer_norm",
    },
    beside={
        "head.hidden": "vocab_transform",
        "head.norm": "vocab_layer_norm",
        "head_bias": piece("vocab_projector", weight=".bias"),
    },
    outputs={"embeddings": "embed.norm.out", "activation": "head.act"},
    leftovers=re.compile(r"(distilbert\.)?embeddings\.position_ids"),
)


def _t5_block(mlp: int) -> dict[str, Place]:
    """The block of a T5, whose MLP is its sublayer of this number."""
    at = f"layer.{mlp}.DenseReluDense"
    return {
        "attn.norm": "layer.0.layer_norm",
        "attn.q": "layer.0.SelfAttention.q",
        "attn.k": "layer.0.SelfAttention.k",
        "attn.v": "layer.0.SelfAttention.v",
        "attn.out": "layer.0.SelfAttention.o",
        "mlp.norm": f"layer.{mlp}.layer_norm",
        "mlp.gate": f"{at}.wi_0",
        "mlp.hidden": (piece(f"{at}.wi"), piece(f"{at}.wi_1")),
        "mlp.out": f"{at}.wo",
    }


_COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
_T5_TABLE = "block.0.layer.0.SelfAttention.relative_attention_bias"
T5 = Names(
    prefix="",
    embedding="shared.weight",
    heads=("lm_head.weight",),
    outside={
        "relative": f"decoder.{_T5_TABLE}",
        "final.norm": "decoder.final_layer_norm",
        "encoder.relative": f"encoder.{_T5_TABLE}",
        "encoder.final.norm": "encoder.final_layer_norm",
    },
    layer="decoder.block.",
    inside={
        **_t5_block(2),
        "cross.norm": "layer.1.layer_norm",
        "cross.q": "layer.1.EncDecAttention.q",
        "cross.k": "layer.1.EncDecAttention.k",
        "cross.v": "layer.1.EncDecAttention.v",
        "cross.out": "layer.1.EncDecAttention.o",
    },
    encoder_layer="encoder.block.",
    encoder_inside=_t5_block(1),
    copies=_COPIES,
    outputs={
        "shared": "",  # of the source and of the text, in older versions
        "encoder.embed_tokens": "encoder.embed.token",
        "decoder.embed_tokens": "embed.token",
        f"encoder.{_T5_TABLE}": "",  # with the heads last
        f"decoder.{_T5_TABLE}": "",
        "encoder.block.L.layer.0": "encoder.block.L.attn.add",
        "encoder.block.L.layer.1": "encoder.block.L.mlp.add",
        "decoder.block.L.layer.0": "block.L.attn.add",
        "decoder.block.L.layer.1": "block.L.cross.add",
        "decoder.block.L.layer.2": "block.L.mlp.add",
    },
    leftovers=re.compile(
        r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
    ),
)


def _bart_attention(ours: str, theirs: str) -> dict[str, Place]:
    return {
        f"{ours}.norm": f"{theirs}_layer_norm",
        f"{ours}.q": f"{theirs}.q_proj",
        f"{ours}.k": f"{theirs}.k_proj",
        f"{ours}.v": f"{theirs}.v_proj",
        f"{ours}.out": f"{theirs}.out_proj",
    }


_BART_BLOCK: dict[str, Place] = {
    **_bart_attention("attn", "self_attn"),
    "mlp.norm": "final_layer_norm",
    "mlp.hidden": "fc1",
    "mlp.out": "fc2",
}


def _bart(embedding: str, learned: bool, copies: tuple[str, ...]) -> Names:
    """The names of a BART and its kin; tables of sines and cosines are not read."""
    outside: dict[str, Place] = {}
    for stack, module in (("", "decoder"), ("encoder.", "encoder")):
        outside[f"{stack}embed.position"] = f"{module}.embed_positions"
        outside[f"{stack}embed.norm"] = f"{module}.layernorm_embedding"
        outside[f"{stack}final.norm"] = f"{module}.layer_norm"
    outside["encoder.embed.token"] = "encoder.embed_tokens"
    unread = [r"(encoder|decoder)\.embed_positions\.weight"] * (not learned)
    unread += [] if copies else [r"shared\.weight"]
    return Names(
        prefix="model.",
        embedding=embedding,
        heads=("lm_head.weight",),
        outside=outside,
        layer="decoder.layers.",
        inside={**_BART_BLOCK, **_bart_attention("cross", "encoder_attn")},
        beside={"head_bias": piece("final_logits_bias", Row(), weight="")},
        encoder_layer="encoder.layers.",
        encoder_inside=_BART_BLOCK,
        copies=copies,
        # a module of Marian and Pegasus gives the rows before they are scaled
        outputs={
            "shared": "",
            "encoder.embed_tokens": "encoder.embed.token" if learned else "",
            "decoder.embed_tokens": "embed.token" if learned else "",
        },
        leftovers=re.compile(rf"(model\.)?({'|'.join(unread) or '(?!)'})"),
    )


ENCODERS: Mapping[str, Names] = {
    "bert": BERT,
    "roberta": ROBERTA,
    "electra": ELECTRA,
    "distilbert": DISTILBERT,
    "t5": T5,
    "bart": _bart("shared.weight", True, _COPIES),
    "marian": _bart("shared.weight", False, _COPIES),
    "bart_apart": _bart("decoder.embed_tokens.weight", True, ()),
    "marian_apart": _bart("decoder.embed_tokens.weight", False, ()),
}
