"""The number formats of GGUF files: what a block of bytes stands for, exactly.

A block is some entries with common scales.  Every entry is a whole number times scales that are
floats of 16 bits (or powers of 2), perhaps plus one more such product: a dyadic number.  Each
function below says why its float format holds all of them, so that nothing is rounded:

    a scale d of float16 is k·2^e with |k| < 2^11 and e >= -24, and |d| < 2^16
    n bits times m bits are at most n + m bits; float32 has 24 bits, float64 has 53
    whole steps of 2^e: fewer than 2^24 of them fit float32, fewer than 2^53 float64
    a sum of multiples of 2^-24 that is below 2^29 has at most 53 bits

`unpacked` gives the numbers of some blocks.  The formats: ggml-common.h of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from byhand.files import ggml_grids as grids
from byhand.weights import Data

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
# the 4-bit codes of IQ4_NL and IQ4_XS; those of MXFP4, in halves
UNEVEN = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
HALVES = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


# where a scale and a scale of minima stand, and whether the minimum is taken away
MINIMA = {
    "Q4_1": (0, 2, False), "Q5_1": (0, 2, False), "Q2_K": (80, 82, True), "Q4_K": (0, 2, True),
    "Q5_K": (0, 2, True),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Type:
    """One format: how many entries a block has, how many bytes it takes, what holds its numbers."""

    name: str
    block: int
    bytes: int
    dtype: np.dtype[Any]
    unpack: Callable[[Data], Data] | None = None
    plain: np.dtype[Any] | None = None  # of entries that are stored as they are


def addends(kind: Type, blocks: Data) -> Data | None:
    """Of entries that are scale·code + minimum, the sums of both terms' sizes; else None."""
    if kind.name not in MINIMA:
        return None
    scale, least, taken_away = MINIMA[kind.name]
    changed = blocks.copy()
    changed[:, scale + 1] &= 0x7F  # the sign of a float16
    changed[:, least + 1] &= 0x7F
    if taken_away:
        changed[:, least + 1] |= 0x80
    return unpacked(kind, changed)


def unpacked(kind: Type, blocks: Data) -> Data:
    """The numbers of some blocks, given as rows of bytes: one row a block."""
    assert kind.unpack is not None
    return kind.unpack(blocks).reshape(len(blocks), kind.block)


# ------------------------------------------------------------------ what blocks are made of


def _half(blocks: Data, at: int) -> Data:
    """The float16 at a place of each block, in float32."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(F32)


def _nibbles(codes: Data, run: int) -> Data:
    """4-bit codes: of each `run` bytes first all lower halves, then all upper ones."""
    runs = codes.reshape(len(codes), -1, 1, run)
    return np.concatenate((runs & 15, runs >> 4), axis=2).reshape(len(codes), -1)


def _pieces(codes: Data, width: int, run: int) -> Data:
    """Codes of 1 or 2 bits: of each `run` bytes first all lowest ones, then all next ones."""
    shifts = np.arange(0, 8, width, dtype=np.uint8).reshape(1, 1, -1, 1)
    pieces = (codes.reshape(len(codes), -1, 1, run) >> shifts) & ((1 << width) - 1)
    return pieces.reshape(len(codes), -1)


def _bits(word: Data) -> Data:
    """The single bits of some bytes, the lowest first."""
    return np.unpackbits(np.ascontiguousarray(word), axis=1, bitorder="little")


def _grouped(codes: Data, scales: Data) -> Data:
    """Codes times the scale of their group; the groups are equally long."""
    groups = codes.reshape(len(codes), scales.shape[1], -1)
    return groups * scales[:, :, None]


# ------------------------------------------------------------------ blocks of 32


def _q4_0(blocks: Data) -> Data:
    """d·(q - 8), q of 4 bits: 11 + 4 bits."""
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:], 16).astype(F32) - 8)


def _q4_1(blocks: Data) -> Data:
    """d·q + m, q of 4 bits: multiples of 2^-24 below 2^20 + 2^16."""
    return _half(blocks, 0).astype(F64) * _nibbles(blocks[:, 4:], 16) + _half(blocks, 2)


def _q5_0(blocks: Data) -> Data:
    """d·(q - 16), q of 5 bits, the fifth apart: 11 + 5 bits."""
    codes = _nibbles(blocks[:, 6:], 16) | (_bits(blocks[:, 2:6]) << 4)
    scaled: Data = _half(blocks, 0) * (codes.astype(F32) - 16)
    return scaled


def _q5_1(blocks: Data) -> Data:
    """d·q + m, q of 5 bits: multiples of 2^-24 below 2^21 + 2^16."""
    codes = _nibbles(blocks[:, 8:], 16) | (_bits(blocks[:, 4:8]) << 4)
    moved: Data = _half(blocks, 0).astype(F64) * codes + _half(blocks, 2)
    return moved


def _q8_0(blocks: Data) -> Data:
    """d·q, q a signed byte: 11 + 8 bits."""
    return _half(blocks, 0) * blocks[:, 2:].view(np.int8)


def _iq4_nl(blocks: Data) -> Data:
    """d times one of 16 whole numbers of 7 bits: 11 + 7 bits."""
    return _half(blocks, 0) * UNEVEN[_nibbles(blocks[:, 2:], 16)]


def _mxfp4(blocks: Data) -> Data:
    """2^(e - 127) times a float of 4 bits: 2 bits, and no smaller than 2^-128.

    Where 2^(e - 127) times the code exceeds float32 the entry is infinite, which is told.
    """
    scales = np.ldexp(F32.type(1), blocks[:, :1].astype(np.int32) - 128)
    return scales * HALVES[_nibbles(blocks[:, 1:], 16)]


# ------------------------------------------------------------------ blocks of 256


def _six_bits(packed: Data) -> tuple[Data, Data]:
    """The 8 scales and the 8 minima of Q4_K and Q5_K, each of 6 bits, out of 12 bytes."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate((first & 63, (third & 15) | ((first >> 6) << 4)), axis=1)
    minima = np.concatenate((second & 63, (third >> 4) | ((second >> 6) << 4)), axis=1)
    return scales, minima


def _less_minima(blocks: Data, codes: Data, at: int, scales: Data, minima: Data) -> Data:
    """d·scale·code - m·minimum, with d and m at a place of each block."""
    d, m = _half(blocks, at).astype(F64), _half(blocks, at + 2).astype(F64)
    return _grouped(codes, d * scales) - (m * minima)[:, :, None]


def _q2_k(blocks: Data) -> Data:
    """d·s·q - m·n; s and n of 4 bits, q of 2: multiples of 2^-24 below 2^22 + 2^20."""
    codes = _pieces(blocks[:, 16:80], 2, 32)
    return _less_minima(blocks, codes, 80, blocks[:, :16] & 15, blocks[:, :16] >> 4)


def _q3_k(blocks: Data) -> Data:
    """d·(s - 32)·(q - 4); s of 6 bits, q of 3, the third apart: 11 + 6 + 3 bits."""
    codes = _pieces(blocks[:, 32:96], 2, 32) | (_pieces(blocks[:, :32], 1, 32) << 2)
    packed = blocks[:, 96:108]
    scales = _nibbles(packed[:, :8], 8) | (_pieces(packed[:, 8:], 2, 4) << 4)
    return _grouped(codes.astype(F32) - 4, _half(blocks, 108) * (scales.astype(F32) - 32))


def _q4_k(blocks: Data) -> Data:
    """d·s·q - m·n; s and n of 6 bits, q of 4: multiples of 2^-24 below 2^26 + 2^22."""
    return _less_minima(blocks, _nibbles(blocks[:, 16:], 32), 0, *_six_bits(blocks[:, 4:16]))


def _q5_k(blocks: Data) -> Data:
    """d·s·q - m·n; s and n of 6 bits, q of 5, one apart: multiples of 2^-24 below 2^27 + 2^22."""
    codes = _nibbles(blocks[:, 48:], 32) | (_pieces(blocks[:, 16:48], 1, 32) << 4)
    return _less_minima(blocks, codes, 0, *_six_bits(blocks[:, 4:16]))


def _q6_k(blocks: Data) -> Data:
    """d·s·(q - 32); s a signed byte, q of 6 bits, two apart: below 2^(11 + 7 + 5) steps."""
    codes = _nibbles(blocks[:, :128], 64) | (_pieces(blocks[:, 128:192], 2, 32) << 4)
    scales = _half(blocks, 208) * blocks[:, 192:208].view(np.int8)
    return _grouped(codes.astype(F32) - 32, scales)


def _iq4_xs(blocks: Data) -> Data:
    """d·(s - 32) times one of 16 numbers of 7 bits; s of 6 bits: below 2^(11 + 5 + 7) steps."""
    upper = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype="<u2")
    pairs = blocks[:, 4:8, None] >> np.array([0, 4], np.uint8)
    scales = (pairs.reshape(len(blocks), 8) & 15) | ((upper & 3).astype(np.uint8) << 4)
    codes = UNEVEN[_nibbles(blocks[:, 8:], 16)]
    return _grouped(codes, _half(blocks, 0) * (scales.astype(F32) - 32))


def _tq1_0(blocks: Data) -> Data:
    """d·(t - 1), t one of 0, 1, 2; 5 of them are the digits of a byte·3^5/256: 11 bits."""
    parts = []
    for first, last, run, digits in ((0, 32, 32, 5), (32, 48, 16, 5), (48, 52, 4, 4)):
        powers = (3 ** np.arange(digits, dtype=np.uint8)).astype(np.uint8).reshape(1, -1, 1)
        digit = blocks[:, None, first:last] * powers  # in bytes: modulo 256
        parts.append((digit.astype(np.uint16) * 3 >> 8).reshape(len(blocks), digits * run))
    return _half(blocks, 52) * (np.concatenate(parts, axis=1).astype(F32) - 1)


def _tq2_0(blocks: Data) -> Data:
    """d·(t - 1), t of 2 bits: 11 + 2 bits."""
    return _half(blocks, 64) * (_pieces(blocks[:, :64], 2, 32).astype(F32) - 1)


def _plain(name: str, format: Any, dtype: np.dtype[Any]) -> Type:
    stored = np.dtype(format)
    return Type(name, 1, stored.itemsize, dtype, plain=stored)


TYPES: dict[int, Type] = {
    0: _plain("F32", "<f4", F32),
    1: _plain("F16", "<f2", np.dtype("<f2")),
    2: Type("Q4_0", 32, 18, F32, _q4_0),
    3: Type("Q4_1", 32, 20, F64, _q4_1),
    6: Type("Q5_0", 32, 22, F32, _q5_0),
    7: Type("Q5_1", 32, 24, F64, _q5_1),
    8: Type("Q8_0", 32, 34, F32, _q8_0),
    10: Type("Q2_K", 256, 84, F64, _q2_k),
    11: Type("Q3_K", 256, 110, F32, _q3_k),
    12: Type("Q4_K", 256, 144, F64, _q4_k),
    13: Type("Q5_K", 256, 176, F64, _q5_k),
    14: Type("Q6_K", 256, 210, F32, _q6_k),
    16: Type("IQ2_XXS", 256, 66, F32, grids.iq2_xxs),
    17: Type("IQ2_XS", 256, 74, F32, grids.iq2_xs),
    18: Type("IQ3_XXS", 256, 98, F32, grids.iq3_xxs),
    19: Type("IQ1_S", 256, 50, F32, grids.iq1_s),
    20: Type("IQ4_NL", 32, 18, F32, _iq4_nl),
    21: Type("IQ3_S", 256, 110, F32, grids.iq3_s),
    22: Type("IQ2_S", 256, 82, F32, grids.iq2_s),
    23: Type("IQ4_XS", 256, 136, F32, _iq4_xs),
    24: _plain("I8", "<i1", F32),
    25: _plain("I16", "<i2", F32),
    26: _plain("I32", "<i4", F64),
    28: _plain("F64", "<f8", F64),
    29: Type("IQ1_M", 256, 56, F32, grids.iq1_m),
    30: _plain("BF16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)),
    34: Type("TQ1_0", 256, 54, F32, _tq1_0),
    35: Type("TQ2_0", 256, 66, F32, _tq2_0),
    39: Type("MXFP4", 32, 17, F32, _mxfp4),
}
# formats that byhand does not read, for messages
UNREAD = {
    4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 15: "Q8_K", 27: "I64",
    31: "Q4_0_4_4", 32: "Q4_0_4_8",
    33: "Q4_0_8_8", 36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 40: "NVFP4",
    41: "Q1_0", 42: "Q2_0",
}  # fmt: skip
