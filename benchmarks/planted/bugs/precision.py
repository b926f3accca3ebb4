"""Casts to a narrower format at one step of a pass that is otherwise in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.bugs.catalogue import bug
from benchmarks.planted.port import Port

ONLY = ("float32",)


def _through(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype).to(x.dtype)


@bug("activation in bfloat16", "block.0.mlp.act", "precision", formats=ONLY, says="bfloat16")
def cast_activation(port: Port) -> None:
    usual = port.activation
    port.activation = lambda x: usual(x.bfloat16()).to(x.dtype)


@bug("scores in float16", "block.0.attn.scores", "precision", formats=ONLY, says="float16")
def cast_scores(port: Port) -> None:
    usual = port.scores
    port.instead(scores=lambda q, k: _through(usual(q, k), torch.float16))


@bug("softmax in bfloat16", "block.0.attn.weights", "precision", formats=ONLY, says="bfloat16")
def cast_softmax(port: Port) -> None:
    port.instead(shares=lambda scores: scores.bfloat16().softmax(-1).to(scores.dtype))


@bug(
    "norm's result in bfloat16", "block.0.attn.norm.out", "precision", formats=ONLY, says="bfloat16"
)
def cast_norm(port: Port) -> None:
    usual = port.affine
    port.instead(affine=lambda at, x: _through(usual(at, x), torch.bfloat16))


@bug(
    "weights of the MLP kept in float16",
    "block.0.mlp.hidden",
    "precision",
    formats=ONLY,
    says="weights are rounded to float16",
)
def cast_weights(port: Port) -> None:
    for name in port.w:
        if name.endswith(".mlp.hidden"):
            port.w[name] = _through(port.w[name], torch.float16)


def _cast_all(port: Port, *endings: str) -> None:
    for name in port.w:
        if name.endswith(endings):
            port.w[name] = _through(port.w[name], torch.bfloat16)


@bug(
    "gains and biases of norms kept in bfloat16",
    "block.0.attn.norm.out",
    "precision",
    formats=ONLY,
    says="biases and gains are rounded to bfloat16",
)
def cast_norm_weights(port: Port) -> None:
    _cast_all(port, ".norm.gain", ".norm.bias")


@bug(
    "biases kept in bfloat16",
    {"": "block.0.attn.qkv", "qwen": "block.0.attn.q"},
    "precision",
    "gpt2 qwen gpt_neox",
    formats=ONLY,
    says="biases and gains are rounded to bfloat16",
)
def cast_biases(port: Port) -> None:
    _cast_all(port, "_bias")


@bug(
    "matrices and biases kept in bfloat16",
    {"": "block.0.attn.qkv", "qwen": "block.0.attn.q"},
    "precision",
    "gpt2 qwen gpt_neox",
    formats=ONLY,
    says="the weights, biases and gains too, are rounded to bfloat16",
)
def cast_matrices_and_biases(port: Port) -> None:
    _cast_all(port, "_bias", ".q", ".k", ".v", ".qkv", ".out", ".hidden", ".gate")


@bug("embeddings kept in bfloat16", "embed.token", "precision", formats=ONLY, says="to bfloat16")
def cast_embeddings(port: Port) -> None:
    _cast_all(port, "embed.token")


@bug("head in bfloat16", "logits", "precision", formats=ONLY, says="bfloat16")
def cast_head(port: Port) -> None:
    usual = port.unembedded

    def unembedded(x: Tensor) -> None:
        usual(x)
        rounded = port.keep("logits", _through(port.kept["logits"], torch.bfloat16))
        port.keep("probs", rounded.softmax(-1))
        port.keep("next", rounded.argmax(-1))

    port.instead(unembedded=unembedded)
