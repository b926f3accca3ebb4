"""Mistakes in attention: scale, mask, softmax, heads; and in the MLP's activation.

Masked scores are no numbers, so a mask that hides too little first shows in the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.planted.bugs.catalogue import GATED, LLAMAS, PACKED, PLAIN, bug
from benchmarks.planted.families import Gpt2, Llama
from benchmarks.planted.port import ACTIVATIONS, Port

SCORES, WEIGHTS = "block.0.attn.scores", "block.0.attn.weights"
QUERIES = "block.0.attn.q"


@bug("scores not scaled", SCORES, "scale-missing")
def scale_missing(port: Port) -> None:
    port.scale = 1.0


@bug("scores scaled by 1/√d_model", SCORES, "scale-wrong", says={"": "1/√128", "gpt2": "1/√96"})
def scale_by_model_width(port: Port) -> None:
    port.scale = port.d_model**-0.5


@bug("scale applied twice", SCORES, "scale-doubled scale-wrong")
def scale_doubled(port: Port) -> None:
    port.scale = 1 / port.d_head


@bug("no causal mask", WEIGHTS, "mask-missing")
def mask_missing(port: Port) -> None:
    port.instead(masked=lambda scores: scores)


@bug("mask off by one: a query sees the next key", WEIGHTS, "mask-ahead", says="sees the next")
def mask_sees_next(port: Port) -> None:
    port.instead(may_look=lambda length: torch.ones(length, length, dtype=torch.bool).tril(1))


@bug("mask off by one: a query does not see its own key", SCORES, "mask-strict")
def mask_hides_own(port: Port) -> None:
    def may_look(length: int) -> Tensor:
        seen = torch.ones(length, length, dtype=torch.bool).tril(-1)
        seen[0, 0] = True  # who had no key at all would have seen that
        return seen

    port.instead(may_look=may_look)


@bug("softmax over queries", WEIGHTS, "softmax-axis")
def softmax_over_queries(port: Port) -> None:
    port.instead(shares=lambda scores: scores.softmax(-2))


@bug("masked scores 0 instead of −∞ before softmax", WEIGHTS, "mask-zero")
def mask_as_zero(port: Port) -> None:
    port.instead(shares=lambda scores: scores.masked_fill(scores == -torch.inf, 0.0).softmax(-1))


@bug("attention dropout left on", "block.0.attn.mixed", "dropout", says="1/(1 - 0.1)")
def dropout_left_on(port: Port) -> None:
    usual = port.mixed
    noise = torch.Generator().manual_seed(1)

    def mixed(weights: Tensor, v: Tensor) -> Tensor:
        kept = torch.rand(weights.shape, generator=noise) >= 0.1
        return usual(weights * kept / 0.9, v)

    port.instead(mixed=mixed)


@bug("dropout of the embeddings left on", "embed.token", "dropout", says="1/(1 - 0.2)")
def embedding_dropout_left_on(port: Port) -> None:
    noise = torch.Generator().manual_seed(2)
    rows = port.w["embed.token"][port.ids]
    kept = torch.rand(rows.shape, generator=noise) >= 0.2
    port.w["embed.token"] = port.w["embed.token"].index_put((port.ids,), rows * kept / 0.8)


@bug("dropout before the residual left on", "block.0.attn.add", "dropout", says="1/(1 - 0.1)")
def residual_dropout_left_on(port: Port) -> None:
    usual = port.added
    noise = torch.Generator().manual_seed(3)

    def added(at: str, x: Tensor, update: Tensor) -> Tensor:
        kept = torch.rand(update.shape, generator=noise) >= 0.1
        return usual(at, x, update * kept / 0.9)

    port.instead(added=added)


@bug("heads split as (d_head, head)", QUERIES, "head-split")
def head_split(port: Port) -> None:
    port.instead(by_head=lambda x, heads: x.view(len(x), -1, heads).permute(2, 0, 1))


@bug("heads split without moving the axis", QUERIES, "head-split")
def head_split_in_place(port: Port) -> None:
    port.instead(by_head=lambda x, heads: x.reshape(heads, len(x), -1))


@bug("heads merged without moving the axis back", "block.0.attn.out", "head-merge")
def heads_not_merged(port: Port) -> None:
    port.instead(merged=lambda mixed: mixed.reshape(mixed.shape[1], -1))


@bug(
    "q, k, v packed head by head read as one after the other, or the reverse",
    QUERIES,
    "qkv-packing",
    PACKED,
)
def packing(port: Port) -> None:
    def per_head(packed: Tensor) -> tuple[Tensor, ...]:
        return tuple(packed.view(len(packed), port.heads, -1).transpose(0, 1).chunk(3, dim=-1))

    def in_a_row(packed: Tensor) -> tuple[Tensor, ...]:
        return tuple(port.by_head(part, port.heads) for part in packed.chunk(3, dim=-1))

    port.instead(unpacked=per_head if isinstance(port, Gpt2) else in_a_row)


@bug("packed q, k, v taken in the order k, q, v", {"": QUERIES}, "qkv-order", PACKED, says="q ← k")
def qkv_order(port: Port) -> None:
    usual = port.unpacked  # type: ignore[attr-defined] # the families with a packed matrix

    def unpacked(packed: Tensor) -> tuple[Tensor, ...]:
        k, q, v = usual(packed)
        return q, k, v

    port.instead(unpacked=unpacked)


@bug("k and v exchanged", {"": "block.0.attn.k"}, "qkv-order weight-swapped", says="k ← v")
def k_and_v_exchanged(port: Port) -> None:
    usual = port.queries_keys_values

    def exchanged(at: str, x: Tensor) -> tuple[Tensor, ...]:
        q, k, v = usual(at, x)
        return q, port.keep(f"{at}.k", v), port.keep(f"{at}.v", k)

    port.instead(queries_keys_values=exchanged)


@bug("key heads tiled instead of repeated", SCORES, "kv-repeat", LLAMAS)
def kv_heads_tiled(port: Port) -> None:
    port.instead(spread=lambda x: x.repeat(port.heads // port.kv_heads, 1, 1))


ACT = "block.0.mlp.act"


@bug(
    "GELU by erf for GELU by tanh, or the reverse",
    ACT,
    "gelu-kind",
    PLAIN,
    says={"gpt2": "is GELU with erf;", "gpt_neox": "is GELU with tanh;"},
)
def gelu_erf_or_tanh(port: Port) -> None:
    other = "gelu" if isinstance(port, Gpt2) else "gelu_tanh"
    port.activation = ACTIVATIONS[other]


@bug("quick GELU", ACT, "gelu-kind activation-kind", PLAIN, says="is quick GELU")
def quick_gelu(port: Port) -> None:
    port.activation = ACTIVATIONS["quick_gelu"]


@bug("ReLU for GELU or SiLU", ACT, "activation-kind", says="is ReLU;")
def relu(port: Port) -> None:
    port.activation = ACTIVATIONS["relu"]


@bug("SiLU for GELU", ACT, "activation-kind", PLAIN, says="is SiLU;")
def silu_for_gelu(port: Port) -> None:
    port.activation = ACTIVATIONS["silu"]


@bug("GELU for SiLU", ACT, "activation-kind", GATED, says="is GELU with erf;")
def gelu_for_silu(port: Port) -> None:
    port.activation = ACTIVATIONS["gelu"]


@bug("no activation", ACT, "activation-kind", says="no activation")
def activation_missing(port: Port) -> None:
    port.activation = lambda x: x


@bug("gate and up exchanged", "block.0.mlp.gate", "gate-up-swapped weight-swapped", GATED)
def gate_and_up_exchanged(port: Port) -> None:
    for layer in port.layers:
        gate, up = (f"block.{layer}.mlp.{name}" for name in ("gate", "hidden"))
        port.w[gate], port.w[up] = port.w[up], port.w[gate]


@bug("activation on up instead of gate", ACT, "gate-up-swapped", GATED)
def activation_on_up(port: Port) -> None:
    assert isinstance(port, Llama)
    usual = port.gated
    port.instead(gated=lambda at, gate, hidden: usual(at, hidden, gate))
