"""Blocks of GGUF read wrongly: the mistakes that readers of these formats make.

Each is a change of bytes before the right reading.  `slips` gives every mistake that a format can
have, by name, and the numbers it makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from byhand.files.ggml import MINIMA, Type, unpacked
from byhand.weights import Data


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a block keeps its parts: (first byte, last + 1)."""

    scale: tuple[int, int]
    codes: tuple[int, int]
    bits: int = 4  # of a code, but for its upper bits
    upper: tuple[int, int] | None = None  # the upper bits of codes
    groups: tuple[int, int] | None = None  # scales of groups within the block
    run: int = 16  # bytes whose lower halves come before their upper halves


LAYOUTS = {
    "Q4_0": Layout((0, 2), (2, 18)),
    "Q4_1": Layout((0, 2), (4, 20)),
    "Q5_0": Layout((0, 2), (6, 22), upper=(2, 6)),
    "Q5_1": Layout((0, 2), (8, 24), upper=(4, 8)),
    "Q8_0": Layout((0, 2), (2, 34), bits=8),
    "Q2_K": Layout((80, 82), (16, 80), bits=2, groups=(0, 16)),
    "Q3_K": Layout((108, 110), (32, 96), bits=2, upper=(0, 32), groups=(96, 104)),
    "Q4_K": Layout((0, 2), (16, 144), groups=(4, 8), run=32),
    "Q5_K": Layout((0, 2), (48, 176), upper=(16, 48), groups=(4, 8), run=32),
    "Q6_K": Layout((208, 210), (0, 128), upper=(128, 192), groups=(192, 208), run=64),
    "IQ4_NL": Layout((0, 2), (2, 18)),
    "IQ4_XS": Layout((0, 2), (8, 136), groups=(4, 8)),
    "IQ1_S": Layout((0, 2), (2, 34), bits=8),
    "IQ1_M": Layout((48, 56), (0, 32), bits=8),
    "IQ2_XXS": Layout((0, 2), (2, 66), bits=8),
    "IQ2_XS": Layout((0, 2), (2, 66), bits=8, groups=(66, 74)),
    "IQ2_S": Layout((0, 2), (2, 34), bits=8, upper=(66, 74), groups=(74, 82)),
    "IQ3_XXS": Layout((0, 2), (2, 66), bits=8),
    "IQ3_S": Layout((0, 2), (2, 66), bits=8, upper=(66, 74), groups=(106, 110)),
    "MXFP4": Layout((0, 1), (1, 17)),
    "TQ1_0": Layout((52, 54), (0, 52), bits=8),
    "TQ2_0": Layout((64, 66), (0, 64), bits=2),
}
OFFSETS = ("Q4_0", "Q5_0", "Q3_K", "Q6_K", "TQ1_0", "TQ2_0")  # a number is taken from each code


def slips(kind: Type, blocks: Data) -> Iterator[tuple[str, Data]]:
    """Each mistake by its name, with the numbers that it makes of these blocks.

    nibbles   the two codes of a byte exchanged        pairs    they stand side by side
    before    the scale of the block before            behind   that of the block behind
    groups    scales of groups moved by one            upper    upper bits of codes left out
    sign      minima with the other sign               minima   left out
    exchanged the scales of codes and minima           offset   left out
    """
    layout = LAYOUTS[kind.name]
    for name, changed in _changes(kind, layout, blocks):
        yield name, unpacked(kind, changed)
    if layout.bits == 4:
        yield "pairs", _side_by_side(unpacked(kind, blocks), layout)
    if kind.name in OFFSETS:
        yield "offset", unpacked(kind, blocks) - unpacked(kind, _without_codes(layout, blocks))


def _changes(kind: Type, layout: Layout, blocks: Data) -> Iterator[tuple[str, Data]]:
    codes = slice(*layout.codes)
    if layout.bits == 4:
        yield "nibbles", _with(blocks, codes, blocks[:, codes] >> 4 | blocks[:, codes] << 4)
    if layout.bits == 2:
        yield "nibbles", _with(blocks, codes, _turned(blocks[:, codes]))
    for name, by in (("before", 1), ("behind", -1)):
        scale = slice(*layout.scale)
        yield name, _with(blocks, scale, np.roll(blocks[:, scale], by, axis=0))
    if layout.groups is not None:
        groups = slice(*layout.groups)
        yield "groups", _with(blocks, groups, np.roll(blocks[:, groups], 1, axis=1))
    if layout.upper is not None:
        yield "upper", _with(blocks, slice(*layout.upper), 0)
    if kind.name in MINIMA:
        first, least, _taken_away = MINIMA[kind.name]
        signs = slice(least + 1, least + 2)
        yield "sign", _with(blocks, signs, blocks[:, signs] ^ 0x80)
        yield "minima", _with(blocks, slice(least, least + 2), 0)
        both = np.concatenate((blocks[:, least : least + 2], blocks[:, first : first + 2]), axis=1)
        yield "exchanged", _with(blocks, slice(first, first + 4), both)


def _with(blocks: Data, where: slice, what: Data | int) -> Data:
    changed = blocks.copy()
    changed[:, where] = what
    return changed


def _turned(codes: Data) -> Data:
    """The four codes of 2 bits in each byte in reverse order."""
    halves = codes >> 4 | codes << 4
    turned: Data = (halves & 0x33) << 2 | (halves & 0xCC) >> 2
    return turned


def _side_by_side(numbers: Data, layout: Layout) -> Data:
    """The numbers where the two codes of a byte are taken for neighbours."""
    runs = numbers.reshape(len(numbers), -1, 2, layout.run)
    return runs.swapaxes(2, 3).reshape(numbers.shape)


def _without_codes(layout: Layout, blocks: Data) -> Data:
    bare = _with(blocks, slice(*layout.codes), 0)
    return bare if layout.upper is None else _with(bare, slice(*layout.upper), 0)
