"""A matrix whose blocks are both rescaled and shifted, as scales and minima read wrongly make it.

Blocks of a quantised matrix are groups of input channels of one output.  Each holds few levels, a
scale and a minimum.  Whoever reads scale and minimum from the wrong bits gets a·w + b instead of w,
with a and b of its own for each block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from byhand.checking.differences.difference import Description, Floats, Reading, Truths
from byhand.checking.differences.product import Places, Product, solved
from byhand.checking.differences.told import numbered, told
from byhand.checking.suspects.rewritings import GroupsMended
from byhand.language import _

SIZES = (256, 128, 64, 32, 16, 8)
MOST_GROUPS = 64  # of an output
OTHER = 1e-3  # by which a factor or a shift must differ, relative to the weights


def block_readings(product: Product) -> Iterator[Reading]:
    """The size of the blocks, and which of them act with another scale and another minimum."""
    inputs = len(product.matrix)
    for size in SIZES:
        groups = inputs // size
        if inputs % size or not 1 < groups <= min(MOST_GROUPS, (product.count - 3) // 2):
            continue
        if _mended(product, size, product.sample) is None:
            continue
        every = _mended(product, size, np.arange(product.off.shape[1]))
        if every is None or len(product.columns) < product.size(1):
            continue
        if product.clear(product.times(every(product.matrix)), 2 * groups):
            yield from _told(product, size, every)
            return


def _mended(product: Product, size: int, part: Places) -> GroupsMended | None:
    """The factors and shifts of the blocks of some outputs; None if they do not explain them."""
    groups = len(product.matrix) // size
    x = product.x.reshape(product.count, groups, size)
    matrix = product.matrix[:, part].reshape(groups, size, -1)
    scaled = np.einsum("ngs,gsc->ngc", x, matrix)
    shifted = np.broadcast_to(x.sum(axis=2)[:, :, None], scaled.shape)
    bias = 0.0 if product.bias is None else product.bias[part]
    found = solved(np.concatenate((scaled, shifted), axis=1), product.claimed[:, part] - bias,
                   product.room[:, part])  # fmt: skip
    if found is None:
        return None
    factors, shifts = found[0][:groups], found[0][groups:]
    other = _other(product, factors, shifts)
    factors = np.where(other[:, None], factors, 1.0)
    mended = GroupsMended(size, factors, np.where(other[:, None], shifts, 0.0))
    fits = product.fits(product.times(mended(product.matrix[:, part]), part), part)
    return mended if fits and other.any() else None


def _other(product: Product, factors: Floats, shifts: Floats) -> Truths:
    """The groups of input channels that are not as they are in the file."""
    spread = float(product.matrix.std()) or 1.0
    off = np.maximum(np.abs(factors - 1), np.abs(shifts) / spread)
    return np.asarray(np.median(off, axis=1) > OTHER)


def _told(product: Product, size: int, mended: GroupsMended) -> Iterator[Reading]:
    factors, shifts = np.asarray(mended.factors), np.asarray(mended.shifts)
    other = np.flatnonzero(_other(product, factors, shifts))
    said = _(
        "it follows if channel groups {groups} (of {size}) of {name} have another scale "
"and minimum (first output: × {factor}, shift {shift}); not in the file"
    )  # fmt: skip
    words: dict[str, Any] = {
        "name": product.name, "size": size, "groups": numbered(other.tolist()),
        "factor": told(float(factors[other[0], 0])), "shift": told(float(shifts[other[0], 0])),
    }  # fmt: skip
    yield Description(said.format(**words), 3)
    yield product.rewritten(
        "weight-blocks", said,
        _("look for how the scales and minima of the blocks of {name} are unpacked"), mended,
        fitted=2 * len(other) * factors.shape[1], unlikely=4 + len(factors), **words,
    )  # fmt: skip
