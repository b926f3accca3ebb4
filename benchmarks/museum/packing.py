"""Quantised blocks: how matrices are packed into bytes, and how they are read back.

Each way packs rows of a matrix into groups of 4-bit (or 8-bit) numbers with scales, and unpacks
them to the float32 numbers that a model with such weights has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
GROUP = 32  # numbers that share a scale
SMALL = 8  # the same in a superblock
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # which of eight numbers stands in which four bits


@dataclass(frozen=True)
class Way:
    """A way to pack a matrix."""

    pack: Callable[[Array], dict[str, Array]]
    unpack: Callable[[dict[str, Array]], Array]


def _groups(data: Array) -> Array:
    """(rows, columns) → (rows, groups, GROUP)"""
    return np.asarray(data, np.float64).reshape(len(data), -1, GROUP)


def _codes(data: Array, scale: Array, low: Array, most: int) -> Array:
    return np.clip(np.rint((data - low[..., None]) / scale[..., None]), 0, most).astype(np.uint8)


# ------------------------------------------------------------------ Q4_1: |d|m|16 bytes|


def pack_q4_1(data: Array) -> dict[str, Array]:
    """Blocks of 20 bytes: scale and minimum as float16, then 16 bytes with two numbers each."""
    groups = _groups(data)
    low = groups.min(-1).astype(np.float16)
    scale = ((groups.max(-1) - low) / 15).astype(np.float16)
    codes = _codes(groups, scale.astype(np.float64), low.astype(np.float64), 15)
    pairs = codes[..., :16] | codes[..., 16:] << 4
    head = np.stack([scale, low], -1).view(np.uint8).reshape(*scale.shape, 4)
    return {"blocks": np.concatenate([head, pairs], -1)}


def unpack_q4_1(packed: dict[str, Array], header: int = 4) -> Array:
    """The numbers d·q + m; `header` is where the numbers of a block begin."""
    blocks = packed["blocks"]
    head = np.ascontiguousarray(blocks[..., :4]).view(np.float16).astype(np.float32)
    scale, low = head[..., :1], head[..., 1:]
    pairs = blocks[..., header : header + 16]
    codes = np.concatenate([pairs & 15, pairs >> 4], -1)
    return (scale * codes + low).astype(np.float32).reshape(len(blocks), -1)


# ------------------------------------------------------------------ Q4_K: 8 scales of 6 bits


def pack_q4_k(data: Array) -> dict[str, Array]:
    """Superblocks of 8 groups; their scales and minima are 6-bit numbers in 12 bytes.

    A group has 8 numbers here and 32 in files, so that a row of these small models is a superblock.
    """
    groups = np.asarray(data, np.float64).reshape(len(data), -1, 8, SMALL)
    low = np.maximum(-groups.min(-1), 0)
    scale = (groups.max(-1) + low) / 15
    d, m = ((x.max(-1, keepdims=True) / 63).astype(np.float16) for x in (scale, low))
    scales, lows = (
        np.rint(x / whole.astype(np.float64)).clip(1, 63).astype(np.uint8)
        for x, whole in ((scale, d), (low, m))
    )
    codes = _codes(groups, d.astype(np.float64) * scales, -m.astype(np.float64) * lows, 15)
    first = scales[..., :4] | scales[..., 4:] >> 4 << 6
    second = lows[..., :4] | lows[..., 4:] >> 4 << 6
    third = scales[..., 4:] & 15 | (lows[..., 4:] & 15) << 4
    return {"d": d, "m": m, "scales": np.concatenate([first, second, third], -1), "codes": codes}


def unpack_q4_k(packed: dict[str, Array], split: bool = True) -> Array:
    """d·scale·q − m·min.

    Scales 4 to 7 have their low bits in the last four bytes and their high bits on top of scales 0
    to 3; `split` says whether the high bits are fetched from there.
    """
    bits = packed["scales"]
    a, b, c = bits[..., :4], bits[..., 4:8], bits[..., 8:]
    high = (a >> 6 << 4, b >> 6 << 4) if split else (np.uint8(0), np.uint8(0))
    scales = np.concatenate([a & 63, c & 15 | high[0]], -1)
    lows = np.concatenate([b & 63, c >> 4 | high[1]], -1)
    scale, low = (packed[name].astype(np.float32) * x for name, x in (("d", scales), ("m", lows)))
    return (scale[..., None] * packed["codes"] - low[..., None]).reshape(len(bits), -1)


# ------------------------------------------------------------------ GPTQ and AWQ: 8 in a word


def pack_gptq(data: Array) -> dict[str, Array]:
    """4-bit numbers and 4-bit zero points, one zero point less 1 for each group."""
    groups = _groups(data)
    low = np.minimum(groups.min(-1), 0)
    scale = (np.maximum(groups.max(-1), 0) - low) / 15
    scale = np.maximum(scale, 1e-9).astype(np.float16).astype(np.float32)
    zeros = np.rint(-low / scale).clip(0, 15).astype(np.int64)
    codes = np.rint(groups / scale[..., None] + zeros[..., None]).clip(0, 15).astype(np.int64)
    return {"codes": codes, "zeros": zeros, "scales": scale}


def unpack_gptq(packed: dict[str, Array], zeros: Array | None = None) -> Array:
    """(q − zero)·scale, with these zero points or those that were packed."""
    zeros = packed["zeros"] if zeros is None else zeros
    numbers = (packed["codes"] - zeros[..., None]) * packed["scales"][..., None]
    return numbers.astype(np.float32).reshape(len(numbers), -1)


def pack_lopsided(data: Array) -> dict[str, Array]:
    """As GPTQ does, of numbers whose groups are often all positive: their zero point is 0."""
    data = np.array(data)
    groups = data.reshape(len(data), -1, GROUP)
    groups[::3] = np.abs(groups[::3])
    return pack_gptq(groups.reshape(data.shape))


def pack_awq(data: Array) -> dict[str, Array]:
    """As GPTQ, the numbers in words of eight, each word in AWQ's order."""
    packed = pack_gptq(data)
    codes = packed["codes"].reshape(*packed["codes"].shape[:-1], -1, 8)[..., AWQ_ORDER]
    return packed | {"words": (codes << 4 * np.arange(8)).sum(-1)}


def unpack_awq(packed: dict[str, Array], order: tuple[int, ...] = AWQ_ORDER) -> Array:
    """The numbers, read from the words in this order."""
    codes = packed["words"][..., None] >> 4 * np.arange(8) & 15
    codes = codes[..., np.argsort(order)]
    return unpack_gptq(packed | {"codes": codes.reshape(packed["codes"].shape)})


def pack_by_importance(data: Array) -> dict[str, Array]:
    """As GPTQ with act-order: columns are grouped by importance; `groups` tells each its group."""
    order = np.argsort(-np.abs(np.asarray(data)).sum(0), kind="stable")
    packed = pack_gptq(np.asarray(data)[:, order])
    groups = np.empty(len(order), np.int64)
    groups[order] = np.arange(len(order)) // GROUP
    codes = np.empty((len(data), len(order)), np.int64)
    codes[:, order] = packed["codes"].reshape(len(data), -1)
    return packed | {"codes": codes, "groups": groups}


def unpack_by_importance(packed: dict[str, Array], in_order: bool = False) -> Array:
    """Each column with the scale and zero point of its group, or of the group of its place."""
    groups = packed["groups"]
    groups = np.arange(len(groups)) // GROUP if in_order else groups
    numbers = (packed["codes"] - packed["zeros"][:, groups]) * packed["scales"][:, groups]
    return numbers.astype(np.float32)


WAYS = {
    "q4_1": Way(pack_q4_1, unpack_q4_1),
    "q4_k": Way(pack_q4_k, unpack_q4_k),
    "gptq": Way(pack_lopsided, unpack_gptq),
    "awq": Way(pack_awq, unpack_awq),
    "act_order": Way(pack_by_importance, unpack_by_importance),
}
