"""The formats of GGUF files whose codes are rows of a table: IQ1, IQ2 and IQ3.

Eight (or four) entries share one code, which names a row of whole numbers.  The tables are part of
the formats, as ggml-common.h of llama.cpp has them; `ggml_grids.npz` holds them.  Every function
says why float32 holds its numbers (see `ggml`).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from byhand.weights import Data

F32 = np.dtype(np.float32)


@lru_cache(maxsize=8)
def _table(name: str) -> Data:
    with np.load(Path(__file__).with_name("ggml_grids.npz"), allow_pickle=False) as tables:
        return np.asarray(tables[name]).astype(F32)


def _half(blocks: Data, at: int) -> Data:
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(F32)


def _words(blocks: Data, first: int, last: int, format: str) -> Data:
    """Some bytes of each block as words of a format."""
    return np.ascontiguousarray(blocks[:, first:last]).view(format)


def _fields(words: Data, width: int, count: int) -> Data:
    """The fields of so many bits in each word, the lowest first."""
    shifts = np.arange(0, width * count, width, dtype=words.dtype)
    fields: Data = (words[..., None] >> shifts) & words.dtype.type((1 << width) - 1)
    return fields.reshape(len(words), -1)


def _signs(bits: Data) -> Data:
    """1 or -1 for each bit of some bytes."""
    return 1 - 2 * np.unpackbits(bits.astype(np.uint8), axis=1, bitorder="little").astype(F32)


def _even(bits: Data) -> Data:
    """7 bits, and an eighth that makes the number of those that are set even."""
    parity = bits ^ bits >> 4
    parity = parity ^ parity >> 2
    even: Data = bits | (((parity ^ parity >> 1) & 1) << 7)
    return even


def _scaled(rows: Data, scales: Data, signs: Data | None = None) -> Data:
    """Rows of a table, side by side, times the scale of their group and the sign of each entry."""
    entries = rows.reshape(len(scales), scales.shape[1], -1) * scales[:, :, None]
    flat: Data = entries.reshape(len(scales), -1)
    return flat if signs is None else flat * signs


def iq2_xxs(blocks: Data) -> Data:
    """d·(2s + 1)/8 times a number of 6 bits; s of 4 bits: 11 + 5 + 6 bits."""
    words = _words(blocks, 2, 66, "<u4").reshape(len(blocks), 8, 2)
    codes, rest = np.ascontiguousarray(words[:, :, 0]).view(np.uint8), words[:, :, 1]
    scales = _half(blocks, 0) * ((rest >> 28).astype(F32) * 2 + 1) / 8
    signs = _signs(_even(_fields(rest, 7, 4)))
    return _scaled(_table("IQ2_XXS")[codes], scales, signs)


def iq2_xs(blocks: Data) -> Data:
    """The same with a scale for each 16 entries: 11 + 5 + 6 bits."""
    codes = _words(blocks, 2, 66, "<u2")
    scales = _half(blocks, 0) * (_fields(blocks[:, 66:74], 4, 2).astype(F32) * 2 + 1) / 8
    return _scaled(_table("IQ2_XS")[codes & 511], scales, _signs(_even(codes >> 9)))


def iq2_s(blocks: Data) -> Data:
    """The same with the signs apart, and two upper bits of each code: 11 + 5 + 6 bits."""
    codes = blocks[:, 2:34].astype(np.uint16) | _fields(blocks[:, 66:74], 2, 4).astype("<u2") << 8
    scales = _half(blocks, 0) * (_fields(blocks[:, 74:82], 4, 2).astype(F32) * 2 + 1) / 8
    return _scaled(_table("IQ2_S")[codes], scales, _signs(blocks[:, 34:66]))


def iq3_xxs(blocks: Data) -> Data:
    """d·(2s + 1)/4 times a number of 6 bits, four entries a code: 11 + 5 + 6 bits."""
    rest = _words(blocks, 66, 98, "<u4")
    scales = _half(blocks, 0) * ((rest >> 28).astype(F32) * 2 + 1) / 4
    signs = _signs(_even(_fields(rest, 7, 4)))
    return _scaled(_table("IQ3_XXS")[blocks[:, 2:66]], scales, signs)


def iq3_s(blocks: Data) -> Data:
    """d·(2s + 1) times a number of 4 bits, signs apart, one upper bit a code: 11 + 5 + 4 bits."""
    codes = blocks[:, 2:66].astype(np.uint16) | _fields(blocks[:, 66:74], 1, 8).astype("<u2") << 8
    scales = _half(blocks, 0) * (_fields(blocks[:, 106:110], 4, 2).astype(F32) * 2 + 1)
    return _scaled(_table("IQ3_S")[codes], scales, _signs(blocks[:, 74:106]))


def iq1_s(blocks: Data) -> Data:
    """d·(2s + 1)·(t ± 1/8), t one of -1, 0, 1, s of 3 bits: 11 + 4 + 4 bits."""
    upper = _words(blocks, 34, 50, "<u2")
    codes = blocks[:, 2:34].astype(np.uint16) | _fields(upper, 3, 4) << 8
    scales = _half(blocks, 0) * ((upper >> 12 & 7).astype(F32) * 2 + 1)
    moved = np.where(upper >> 15, F32.type(-0.125), F32.type(0.125))
    return _scaled(_shifted("IQ1_S", codes, np.repeat(moved, 4, axis=1)), scales)


def iq1_m(blocks: Data) -> Data:
    """The same with a scale for each 16 entries; d is spread over four words: 11 + 4 + 4 bits."""
    words = _words(blocks, 48, 56, "<u2")
    spread = (words >> 12) << np.array([0, 4, 8, 12], "<u2")
    d = np.bitwise_or.reduce(spread, axis=1).astype("<u2").view("<f2").astype(F32)[:, None]
    scales = d * (_fields(words & 0xFFF, 3, 4).astype(F32) * 2 + 1)
    upper = _fields(blocks[:, 32:48], 4, 2)
    codes = blocks[:, :32].astype(np.uint16) | (upper & 7).astype("<u2") << 8
    moved = np.where(upper >> 3, F32.type(-0.125), F32.type(0.125))
    return _scaled(_shifted("IQ1_S", codes, moved), scales)


def _shifted(name: str, codes: Data, by: Data) -> Data:
    """Rows of a table, each shifted by a number of its own."""
    rows: Data = _table(name)[codes] + by[:, :, None]
    return rows
