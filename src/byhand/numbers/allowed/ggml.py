"""What llama.cpp does to the factors of a product, as ranges: the way `+ggml`.

The format of a matrix decides how what meets it is rounded:

    F32            not at all
    F16, BF16      to the same format
    blocks of 32   to signed bytes q·d in blocks of 32 (q8_0, q8_1), d = largest/127 in float16
    blocks of 256  the same in blocks of 256 with d in float32 (q8_K), or of 32 (GPUs)

Keys and values are kept in float16, and what meets them is rounded to it.  Nothing has to be: an
engine that unpacks matrices and multiplies in float32 is in the class as well.  numbers/README.md
derives the bounds.
"""

from __future__ import annotations

from math import inf, ldexp

import numpy as np

from byhand.numbers.allowed.precisions import BFLOAT, HALF, Precision, Unit
from byhand.numbers.allowed.ranges import TYPICAL, UP, Data, Range, plus, quadrature, wide

PLAIN: dict[str, Unit] = {"F16": HALF, "BF16": BFLOAT}
BLOCKS = {
    **dict.fromkeys(("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4"), 32),
    **dict.fromkeys(
        ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "TQ1_0", "TQ2_0",
         "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"), 256
    ),
}  # fmt: skip
MINIMA = ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K")
LEVELS = 127.0
STEP = (0.5 + ldexp(1.0, -11)) / LEVELS  # of the largest entry: half a step, and its roundings
RELATIVE = HALF.half * (1 + ldexp(1.0, -8))  # of an entry: that of a scale in float16
FINE = LEVELS * ldexp(1.0, -25)  # of an entry whose scale is below the normal numbers of float16
SMALL = LEVELS * ldexp(1.0, -14) * (1 + ldexp(1.0, -20))  # the largest entry of such a block
UNIFORM = 0.29  # the standard deviation of a number that is anywhere between -1/2 and 1/2


def entering(x: Range, stored: str | None) -> tuple[Range, Data | None]:
    """Rows as they meet a matrix of this format.

    Also, what a matrix with minima moves by besides, in units of its radius; None: nothing.
    """
    stored = _coarsest(stored or "")
    if stored in PLAIN:
        return rounded(x, PLAIN[stored]), None
    if stored not in BLOCKS:
        return x, None
    return _in_blocks(x, BLOCKS[stored], stored in MINIMA)


def _coarsest(stored: str) -> str:
    """Of a matrix put together of several formats (Q8_0+F16), the one that rounds most."""
    parts = stored.split("+")
    packed = [part for part in parts if part in BLOCKS]
    if packed:
        return max(packed, key=lambda part: (BLOCKS[part], part in MINIMA))
    return "BF16" if "BF16" in parts else "F16" if "F16" in parts else stored


def rounded(x: Range, unit: Unit) -> Range:
    """The numbers rounded to a format; infinite beyond its largest number."""
    size, radius = np.abs(wide(x.mid)), x.radius()
    most = size if radius is None else size + radius
    off = (most * unit.half + unit.least) * UP
    off[most * (1 + unit.half) > unit.largest] = inf
    # below the normal numbers of float16, all of what is lost is usual
    usual = quadrature(x.usual, size * (TYPICAL * unit.half) + TYPICAL * unit.least)
    return Range(x.mid, plus(radius, off), usual, x.absent, origin=x.origin)


def _in_blocks(x: Range, block: int, minima: bool) -> tuple[Range, Data | None]:
    """Rows in signed bytes; blocks with minima need the sums of rows as well."""
    size, radius = np.abs(wide(x.mid)), x.radius()
    most = size if radius is None else size + radius
    rows, inputs = most.shape
    if inputs % block:
        return x, None  # no file has such a matrix
    blocks = most.reshape(rows, -1, block)
    largest = np.broadcast_to(blocks.max(axis=-1, keepdims=True), blocks.shape).reshape(rows, -1)
    fine = np.where(largest < SMALL, FINE, 0.0)
    off = (most * RELATIVE + largest * STEP + fine) * UP
    off[largest / LEVELS > HALF.largest] = inf  # no scale in float16
    if minima:  # and no sum of a block in float16
        sums = most.reshape(rows, -1, 32).sum(axis=-1)
        off[np.repeat(sums > HALF.largest / 2, 32, axis=1)] = inf
    usual = quadrature(
        x.usual, size * (TYPICAL * RELATIVE), largest * (UNIFORM / LEVELS), fine * 0.2
    )
    return Range(x.mid, plus(radius, off), usual), fine / RELATIVE


def of_two_terms(weight: Range, addends: Data, p: Precision) -> Range:
    """A matrix whose entries are scale·code + minimum, each of both terms rounded on its own.

    `addends` are the sums of the terms' sizes.  A product adds up the codes and the minima of a
    block apart, each times a scale of the row that may be rounded to float16.
    """
    off = RELATIVE + p.summed(weight.shape[-1] + 2)
    return Range(weight.mid, addends * (off * UP), relative=weight.relative, least=weight.least)
