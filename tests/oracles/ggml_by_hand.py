"""The block formats of GGUF, one entry at a time in fractions, written from their description.

It shares no code with byhand.files.ggml: no arrays, no float arithmetic.  The tables of IQ formats
are the same file.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from byhand.files import ggml

UNEVEN = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
FLOATS_OF_4_BITS = ("0", "1/2", "1", "3/2", "2", "3", "4", "6")


def half(block: bytes, at: int) -> Fraction:
    """The float16 at a place: sign, 5 bits of exponent, 10 bits behind the point."""
    word = block[at] + 256 * block[at + 1]
    sign, exponent, rest = word >> 15, word >> 10 & 31, word & 1023
    assert exponent != 31, "infinite"
    value = (
        Fraction(rest, 1 << 24) if exponent == 0 else Fraction(1024 + rest) * _two(exponent - 25)
    )
    return -value if sign else value


def _two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def signed(byte: int) -> int:
    """A byte as a number from -128 to 127."""
    return byte - 256 if byte > 127 else byte


def nibble(block: bytes, start: int, place: int, run: int) -> int:
    """4 bits: of each 2·run entries, the first half are the lower halves of `run` bytes."""
    group, inside = divmod(place, 2 * run)
    byte = block[start + group * run + inside % run]
    return byte >> 4 if inside >= run else byte & 15


def two_bits(block: bytes, start: int, place: int) -> int:
    """2 bits: 128 entries in 32 bytes, the first 32 entries in their lowest bits."""
    group, inside = divmod(place, 128)
    return block[start + 32 * group + inside % 32] >> 2 * (inside // 32) & 3


def q4_0(block: bytes, i: int) -> Fraction:
    return half(block, 0) * (nibble(block, 2, i, 16) - 8)


def q4_1(block: bytes, i: int) -> Fraction:
    return half(block, 0) * nibble(block, 4, i, 16) + half(block, 2)


def _fifth(block: bytes, start: int, i: int) -> int:
    return (block[start + i // 8] >> i % 8 & 1) * 16


def q5_0(block: bytes, i: int) -> Fraction:
    return half(block, 0) * (nibble(block, 6, i, 16) + _fifth(block, 2, i) - 16)


def q5_1(block: bytes, i: int) -> Fraction:
    return half(block, 0) * (nibble(block, 8, i, 16) + _fifth(block, 4, i)) + half(block, 2)


def q8_0(block: bytes, i: int) -> Fraction:
    return half(block, 0) * signed(block[2 + i])


def q2_k(block: bytes, i: int) -> Fraction:
    scale = block[i // 16]
    return half(block, 80) * (scale & 15) * two_bits(block, 16, i) - half(block, 82) * (scale >> 4)


def q3_k(block: bytes, i: int) -> Fraction:
    high = block[i % 32] >> i // 32 & 1  # set: nothing is taken away
    code = two_bits(block, 32, i) - (0 if high else 4)
    group = i // 16
    low = block[96 + group % 8] >> (4 if group >= 8 else 0) & 15
    top = block[104 + group % 4] >> 2 * (group // 4) & 3
    return half(block, 108) * (low + 16 * top - 32) * code


def _six(block: bytes, group: int) -> tuple[int, int]:
    packed = block[4:16]
    if group < 4:
        return packed[group] & 63, packed[group + 4] & 63
    low = packed[group + 4]
    return (
        low & 15 | (packed[group - 4] >> 6) << 4,
        low >> 4 | (packed[group] >> 6) << 4,
    )


def q4_k(block: bytes, i: int) -> Fraction:
    scale, least = _six(block, i // 32)
    return half(block, 0) * scale * nibble(block, 16, i, 32) - half(block, 2) * least


def q5_k(block: bytes, i: int) -> Fraction:
    scale, least = _six(block, i // 32)
    code = nibble(block, 48, i, 32) + 16 * (block[16 + i % 32] >> i // 32 & 1)
    return half(block, 0) * scale * code - half(block, 2) * least


def q6_k(block: bytes, i: int) -> Fraction:
    top = two_bits(block, 128, i)
    code = nibble(block, 0, i, 64) + 16 * top - 32
    return half(block, 208) * signed(block[192 + i // 16]) * code


def iq4_nl(block: bytes, i: int) -> Fraction:
    return half(block, 0) * UNEVEN[nibble(block, 2, i, 16)]


def iq4_xs(block: bytes, i: int) -> Fraction:
    group = i // 32
    low = block[4 + group // 2] >> 4 * (group % 2) & 15
    top = (block[2] + 256 * block[3]) >> 2 * group & 3
    return half(block, 0) * (low + 16 * top - 32) * UNEVEN[nibble(block, 8, i, 16)]


def mxfp4(block: bytes, i: int) -> Fraction:
    code = nibble(block, 1, i, 16)
    value = Fraction(FLOATS_OF_4_BITS[code & 7]) * _two(block[0] - 127)
    return -value if code & 8 else value


def tq1_0(block: bytes, i: int) -> Fraction:
    if i < 160:
        byte, digit = block[i % 32], i // 32
    elif i < 240:
        byte, digit = block[32 + (i - 160) % 16], (i - 160) // 16
    else:
        byte, digit = block[48 + (i - 240) % 4], (i - 240) // 4
    return half(block, 52) * ((byte * 3**digit % 256) * 3 // 256 - 1)


def tq2_0(block: bytes, i: int) -> Fraction:
    return half(block, 64) * (two_bits(block, 0, i) - 1)


with np.load(Path(ggml.__file__).with_name("ggml_grids.npz")) as _tables:
    TABLES = {name: _tables[name].tolist() for name in _tables}


def _word(block: bytes, at: int, size: int) -> int:
    return int.from_bytes(block[at : at + size], "little")


def _sign(seven: int, bit: int) -> int:
    """The sign of a bit of 7; the eighth makes the number of set bits even."""
    eight = seven | (bin(seven).count("1") % 2) << 7
    return -1 if eight >> bit & 1 else 1


def iq2_xxs(block: bytes, i: int) -> Fraction:
    code, rest = block[2 + 8 * (i // 32) + i % 32 // 8], _word(block, 6 + 8 * (i // 32), 4)
    sign = _sign(rest >> 7 * (i % 32 // 8) & 127, i % 8)
    return half(block, 0) * (2 * (rest >> 28) + 1) / 8 * TABLES["IQ2_XXS"][code][i % 8] * sign


def _scale_of_16(block: bytes, start: int, i: int) -> int:
    return 2 * (block[start + i // 32] >> 4 * (i % 32 // 16) & 15) + 1


def iq2_xs(block: bytes, i: int) -> Fraction:
    word = _word(block, 2 + 2 * (i // 8), 2)
    entry = TABLES["IQ2_XS"][word & 511][i % 8] * _sign(word >> 9, i % 8)
    return half(block, 0) * _scale_of_16(block, 66, i) / 8 * entry


def _apart(block: bytes, start: int, i: int) -> int:
    return -1 if block[start + i // 8] >> i % 8 & 1 else 1


def iq2_s(block: bytes, i: int) -> Fraction:
    code = block[2 + i // 8] + 256 * (block[66 + i // 32] >> 2 * (i % 32 // 8) & 3)
    entry = TABLES["IQ2_S"][code][i % 8] * _apart(block, 34, i)
    return half(block, 0) * _scale_of_16(block, 74, i) / 8 * entry


def iq3_xxs(block: bytes, i: int) -> Fraction:
    rest = _word(block, 66 + 4 * (i // 32), 4)
    sign = _sign(rest >> 7 * (i % 32 // 8) & 127, i % 8)
    entry = TABLES["IQ3_XXS"][block[2 + i // 4]][i % 4] * sign
    return half(block, 0) * (2 * (rest >> 28) + 1) / 4 * entry


def iq3_s(block: bytes, i: int) -> Fraction:
    code = block[2 + i // 4] + 256 * (block[66 + i // 32] >> i % 32 // 4 & 1)
    scale = 2 * (block[106 + i // 64] >> 4 * (i % 64 // 32) & 15) + 1
    return half(block, 0) * scale * TABLES["IQ3_S"][code][i % 4] * _apart(block, 74, i)


def iq1_s(block: bytes, i: int) -> Fraction:
    upper = _word(block, 34 + 2 * (i // 32), 2)
    code = block[2 + i // 8] + 256 * (upper >> 3 * (i % 32 // 8) & 7)
    shift = Fraction(-1 if upper >> 15 else 1, 8)
    return half(block, 0) * (2 * (upper >> 12 & 7) + 1) * (TABLES["IQ1_S"][code][i % 8] + shift)


def iq1_m(block: bytes, i: int) -> Fraction:
    words = [_word(block, 48 + 2 * place, 2) for place in range(4)]
    d = sum((word >> 12) << 4 * place for place, word in enumerate(words))
    upper = block[32 + i // 16] >> 4 * (i % 16 // 8) & 15
    code = block[i // 8] + 256 * (upper & 7)
    scale = 2 * (words[i // 64] >> 3 * (i % 64 // 16) & 7) + 1
    shift = Fraction(-1 if upper >> 3 else 1, 8)
    return half(d.to_bytes(2, "little"), 0) * scale * (TABLES["IQ1_S"][code][i % 8] + shift)


BY_HAND: dict[str, Callable[[bytes, int], Fraction]] = {
    "Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q5_1": q5_1, "Q8_0": q8_0, "Q2_K": q2_k,
    "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "IQ4_NL": iq4_nl, "IQ4_XS": iq4_xs,
    "MXFP4": mxfp4, "TQ1_0": tq1_0, "TQ2_0": tq2_0, "IQ2_XXS": iq2_xxs, "IQ2_XS": iq2_xs,
    "IQ2_S": iq2_s, "IQ3_XXS": iq3_xxs, "IQ3_S": iq3_s, "IQ1_S": iq1_s, "IQ1_M": iq1_m,
}  # fmt: skip
