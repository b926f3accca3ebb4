"""Codes of quantised weights: what some bits, a float of 4 or 8 bits or an exponent stands for.

Every weight is a code times scales.  A product of n and m bits has at most n + m bits, so its float
format follows from the scale alone, and nothing is rounded:

    float16, bfloat16, a power of 2   times at most 9 bits: float32 has 24, down to 2^-149
    float32                           times at most 24 bits: float64 has 53, down to 2^-1074
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from byhand.weights import Data

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)  # E2M1
FP8 = {
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
EXPONENTS = ("U8", "F8_E8M0")  # a byte e that stands for 2^(e - 127); 255 is no number
SHORT = ("F16", "BF16", *EXPONENTS)  # scales whose products float32 holds
SCALES = ("F32", "F16", "BF16")
NO_NUMBER = 255
# The 16 numbers of bitsandbytes' nf4 (quantiles of a normal distribution) and fp4, as float32.
NF4 = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ], F32,
)  # fmt: skip
TWELFTHS = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], F64)
BNB_FP4 = np.concatenate((TWELFTHS / 12, -TWELFTHS / 12)).astype(F32)


def holding(scale: str) -> np.dtype[Any]:
    """The float format that holds every product of a code and a scale of this format."""
    return F32 if scale in SHORT else F64


def bit_stream(words: Data, bits: int, axis: int, count: int) -> Data:
    """The first `count` codes of some bits each, packed along an axis, the lowest bits first."""
    rows = np.ascontiguousarray(np.moveaxis(words, axis, -1)).astype("<u4", copy=False)
    octets = rows.view(np.uint8)
    if bits == 8:
        codes = octets[..., :count]
    elif bits == 4:
        codes = np.stack((octets & 15, octets >> 4), axis=-1)
        codes = codes.reshape(*octets.shape[:-1], -1)[..., :count]
    else:
        single = np.unpackbits(octets, axis=-1, bitorder="little")[..., : count * bits]
        places = np.left_shift(1, np.arange(bits, dtype=np.uint8), dtype=np.uint8)
        groups = single.reshape(*single.shape[:-1], count, bits)
        codes = np.bitwise_or.reduce(groups * places, axis=-1)
    return np.moveaxis(codes, -1, axis)


def exchanged(codes: Data, axis: int = -1) -> Data:
    """Neighbours along an axis exchanged, as by readers of the other half of a byte first."""
    order = np.arange(codes.shape[axis]) ^ 1
    return np.take(codes, order, axis=axis) if codes.shape[axis] % 2 == 0 else codes


def words_for(count: int, bits: int) -> int:
    """How many words of 32 bits hold this many codes."""
    return -(-count * bits // 32)


def halves(octets: Data) -> Data:
    """The 4-bit codes of some bytes, the lower one of each first."""
    return np.stack((octets & 15, octets >> 4), axis=-1).reshape(*octets.shape[:-1], -1)


def powers(exponents: Data) -> Data:
    """2^(e - 127) of each byte e."""
    return np.ldexp(F32.type(1), exponents.astype(np.int32) - 127).astype(F32)


def spread(scales: Data, shape: tuple[int, ...], blocks: tuple[int, int]) -> Data:
    """Each scale for its whole block of the last two axes; blocks at the far edges are cut."""
    rows, columns = (
        np.arange(side) // block for side, block in zip(shape[-2:], blocks, strict=True)
    )
    return scales[..., rows[:, None], columns[None, :]]
