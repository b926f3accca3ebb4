"""Mistakes about weights: transposed, missing, of another layer or another name."""

from __future__ import annotations

import torch

from benchmarks.planted.bugs.catalogue import BIASED, UNTIED, bug
from benchmarks.planted.port import Port

FIRST_BIASED = {"": "block.0.attn.qkv", "qwen": "block.0.attn.q"}


def _zero(port: Port, ending: str) -> None:
    for name in port.w:
        if name.endswith(ending):
            port.w[name] = torch.zeros_like(port.w[name])


@bug(
    "square output matrix transposed",
    "block.0.attn.out",
    "weight-transposed",
    says="block.0.attn.out is transposed",
)
def weight_transposed(port: Port) -> None:
    for layer in port.layers:
        name = f"block.{layer}.attn.out"
        port.w[name] = port.w[name].T.contiguous()


@bug(
    "q, k, v without bias",
    FIRST_BIASED,
    "bias-missing",
    "gpt2 qwen gpt_neox",
    says={"": "attn.qkv_bias", "qwen": "attn.q_bias"},
)
def qkv_bias_missing(port: Port) -> None:
    for ending in ("attn.qkv_bias", "attn.q_bias", "attn.k_bias", "attn.v_bias"):
        _zero(port, ending)


@bug(
    "attention output without bias",
    "block.0.attn.out",
    "bias-missing",
    BIASED,
    says="attn.out_bias",
)
def out_bias_missing(port: Port) -> None:
    _zero(port, "attn.out_bias")


@bug(
    "MLP without its first bias",
    "block.0.mlp.hidden",
    "bias-missing",
    BIASED,
    says="mlp.hidden_bias",
)
def hidden_bias_missing(port: Port) -> None:
    _zero(port, "mlp.hidden_bias")


@bug("MLP without its second bias", "block.0.mlp.out", "bias-missing", BIASED, says="mlp.out_bias")
def mlp_out_bias_missing(port: Port) -> None:
    _zero(port, "mlp.out_bias")


@bug("head without bias", "logits", "bias-missing", "gpt_neox", says="head_bias")
def head_bias_missing(port: Port) -> None:
    _zero(port, "head_bias")


@bug("head tied to the embedding", "logits", "head-tied", UNTIED)
def head_tied(port: Port) -> None:
    port.tied = True


@bug(
    "one matrix of layer 1 is layer 0's",
    "block.1.mlp.hidden",
    "weight-swapped layer-swapped",
    says="block.0.mlp.hidden stands in place",
)
def matrix_of_another_layer(port: Port) -> None:
    port.w["block.1.mlp.hidden"] = port.w["block.0.mlp.hidden"]


@bug(
    "layers 1 and 2 exchanged",
    "block.1.attn.norm.out",
    "layer-swapped weight-swapped",
    says="block.2.attn.norm",
)
def layers_exchanged(port: Port) -> None:
    for name in [name for name in port.w if name.startswith("block.1.")]:
        other = name.replace("block.1.", "block.2.")
        port.w[name], port.w[other] = port.w[other], port.w[name]


@bug(
    "layer 1 has all the weights of layer 0",
    "block.1.attn.norm.out",
    "layer-swapped weight-swapped",
    says="block.0.attn.norm",
)
def layer_repeated(port: Port) -> None:
    for name in [name for name in port.w if name.startswith("block.1.")]:
        port.w[name] = port.w[name.replace("block.1.", "block.0.")]
