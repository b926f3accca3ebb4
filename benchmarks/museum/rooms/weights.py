"""Bugs about weights: what is packed, how it is unpacked, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.museum import models, packing
from benchmarks.museum.catalogue import exhibit
from benchmarks.museum.replicas import Replica, as_tensor

GATE = "block.0.mlp.gate"
ROWS = 96  # tokens: more than the matrix has columns, so that what it did can be solved for
GITHUB = "https://github.com"


def _unpacked(port: Replica, packed: str, unpack: Callable[[dict[str, Any]], Any]) -> None:
    """The MLPs' matrices as somebody unpacks them."""
    for name, block in models.blocks("llama", packed).items():
        port.w[name] = as_tensor(unpack(block)).to(port.dtype)


@exhibit(
    "weights",
    f"{GITHUB}/ml-explore/mlx/pull/3664",
    2026,
    "Fix Q4_1 GGUF loading",
    family="llama",
    packed="q4_1",
    length=ROWS,
    shows=GATE,
    says="stands 2 input channels later in each block of 16",
)
def header_of_another_block(port: Replica) -> None:
    """A Q4_1 block begins with a scale and a minimum, a Q4_0 block with a scale alone.  One
    function unpacked both and skipped 2 bytes, so the minimum was read as the first four numbers
    and the last two bytes were never read.

    Scales, minima and shapes were all right.  Only numbers that were compared one by one were not.
    """
    _unpacked(port, "q4_1", lambda block: packing.unpack_q4_1(block, header=2))


@exhibit(
    "weights",
    f"{GITHUB}/paiml/trueno/issues/182",
    2026,
    "Fused Q4K GEMM scale extraction incorrect for sub-blocks 4-7 (GGML Q4_K_M format)",
    family="llama",
    packed="q4_k",
    length=ROWS,
    shows=GATE,
    says=r"channel groups .*\(of 8\)",
)
def scales_in_two_places(port: Replica) -> None:
    """A Q4_K superblock has eight 6-bit scales in 12 bytes.  The last four are split: their high
    bits stand above the first four.  A fused kernel read all eight in one way.

    Half of every superblock was right.
    """
    _unpacked(port, "q4_k", lambda block: packing.unpack_q4_k(block, split=False))


@exhibit(
    "weights",
    f"{GITHUB}/ModelCloud/GPTQModel/pull/2351",
    2026,
    "Fix: Zero point underflow in AWQ Exllama v2 kernel",
    family="llama",
    packed="gptq",
    length=ROWS,
    shows=GATE,
    says="zero point",
)
def zero_point_wraps(port: Replica) -> None:
    """The kernel's format stores zero points less 1.  A zero point of 0 became −1, which is 15 in
    four bits, and the kernel added its 1 to that.

    57,276 zero points of one model were 0.  With symmetric quantisation there are none.
    """

    def unpack(block: dict[str, Any]) -> Any:
        return packing.unpack_gptq(block, ((block["zeros"] - 1) & 15) + 1)

    _unpacked(port, "gptq", unpack)


@exhibit(
    "weights",
    f"{GITHUB}/amd/Quark/pull/30",
    2026,
    'Fix file2file int4/uint4 packing to match advertised pack_method="reorder"',
    family="llama",
    packed="awq",
    length=ROWS,
    shows=GATE,
    says="each group of 8 with even entries before odd",
)
def nibbles_in_reading_order(port: Replica) -> None:
    """A quantiser wrote eight numbers of four bits into a word in reading order, and a config that
    promised AWQ's order: 0, 2, 4, 6, 1, 3, 5, 7.  Loaders believed the config.

    Every number was there, six of eight in the wrong column.
    """
    _unpacked(port, "awq", lambda block: packing.unpack_awq(block, tuple(range(8))))


@exhibit(
    "weights",
    f"{GITHUB}/intel/neural-compressor/pull/1799",
    2024,
    "[3x] fix bug in gptq g_idx",
    family="llama",
    packed="act_order",
    length=ROWS,
    shows=GATE,
    says="(scale|zero point|group)",
)
def groups_by_place(port: Replica) -> None:
    """GPTQ with act-order groups columns by importance and stores each column's group.  The export
    left that list out, so every column took the scale of the group at its place.

    The numbers have the right sign and about the right size: a model that seems badly quantised.
    """

    def unpack(block: dict[str, Any]) -> Any:
        return packing.unpack_by_importance(block, in_order=True)

    _unpacked(port, "act_order", unpack)


@exhibit(
    "weights",
    f"{GITHUB}/1bit-MONSTER/1bit-MONSTER/pull/488",
    2026,
    "fix: Q2_K/Q3_K/Q5_K dequant + critical early-return bug in K-quant dispatch",
    family="llama",
    packed="q4_k",
    length=ROWS,
    shows=GATE,
    says=r"from 1 on \(of 128\) are 0",
)
def only_the_first_block(port: Replica) -> None:
    """The loop over the blocks of a tensor held a `return`.  The first block was unpacked, and all
    others stayed 0.

    A tensor of one block is right, whatever the loop does.
    """

    def unpack(block: dict[str, Any]) -> Any:
        whole = packing.unpack_q4_k(block)
        first = np.zeros_like(whole)
        first.reshape(-1)[: 8 * packing.SMALL] = whole.reshape(-1)[: 8 * packing.SMALL]
        return first

    _unpacked(port, "q4_k", unpack)


@exhibit(
    "weights",
    f"{GITHUB}/tenstorrent/tt-metal/issues/6243",
    2024,
    "nlp_create_qkv_heads in Falcon40b attention has bad pcc for interleaved in- and outputs",
    family="gpt_neox",
    shows="block.0.attn.q",
    says="q of all heads, then k, then v",
)
def packed_by_group(port: Replica) -> None:
    """q, k and v were packed group by group: some of q, its k, its v, then the next.  The operation
    that takes them apart expected all of q, all of k, all of v.

    With one group for each processor both orders agree, which is how it had been tested.
    """

    def unpacked(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(port.by_head(part, port.heads) for part in x.chunk(3, dim=-1))

    port.instead(unpacked=unpacked)


@exhibit(
    "weights",
    f"{GITHUB}/EricLBuehler/candle-vllm/pull/167",
    2025,
    "Fix attention_bias for qwen2",
    family="qwen2",
    shows="block.0.attn.q",
    says=r"bias block\.0\.attn\.q_bias is left out",
)
def biases_not_loaded(port: Replica) -> None:
    """Qwen 2 has biases on q, k and v, and its configs do not say so: true is the default.  The
    port's default was false, and the biases in the file were skipped.

    A missing key has a meaning, and the file knows what it holds.
    """
    for name in port.w:
        if name.endswith(("q_bias", "k_bias", "v_bias")):
            port.w[name] = torch.zeros_like(port.w[name])
