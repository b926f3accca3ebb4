"""Weights of 8-bit floats: each a float times the scale of its tensor, row or block.

The file calls a scale weight_scale, or weight_scale_inv: the number to multiply by, either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from byhand.errors import ShapeError
from byhand.files.mapped import Stored, sides
from byhand.language import _
from byhand.models.huggingface.config import Config
from byhand.models.huggingface.quantised.codes import (
    EXPONENTS,
    F64,
    FP8,
    SCALES,
    holding,
    spread,
)
from byhand.models.huggingface.quantised.matrix import (
    Parts,
    Quantised,
    fitting,
    flat,
    refused_entry,
    scales,
)
from byhand.weights import Data

INVERSE, SCALE = "_scale_inv", "_scale"
LARGEST_BLOCK = 1 << 20


def read_fp8(config: Config, parts: Parts) -> Iterator[Quantised]:
    """Every tensor of 8-bit floats, with its scales."""
    blocks = block_size(config, "weight_block_size")
    for name in [name for name, part in parts.left.items() if part.dtype in FP8]:
        codes = parts.left.pop(name)
        scale = parts.need(name + INVERSE, codes, name + SCALE)
        yield scaled_floats(name, codes, scale, blocks)


def block_size(config: Config, key: str) -> tuple[int, int] | None:
    """The sides of a block that has one scale; None: there are no blocks."""
    _key, found = config.value(key, None)
    if found is None:
        return None
    fine = isinstance(found, list) and len(found) == 2
    if not fine or not all(type(side) is int and 0 < side <= LARGEST_BLOCK for side in found):
        raise config.refuse(key, _("two whole numbers above 0, or null"))
    return found[0], found[1]


def scaled_floats(
    name: str, codes: Stored, scale: Stored, blocks: tuple[int, int] | None
) -> Quantised:
    """One tensor of 8-bit floats."""
    flat(codes, max(2, len(codes.shape)))
    formats = (*SCALES, *EXPONENTS)
    shape, over = block_of(codes, scale, blocks)
    fitting(scale, scale.shape, formats)
    holds = holding(scale.dtype)

    def numbers() -> Data:
        return eight_bits(codes).astype(holds)

    def opening(flipped: bool = False) -> Data:
        grid = scales(scale, holds).reshape(shape)
        if flipped:
            grid = np.swapaxes(grid, -1, -2).reshape(shape)
        return numbers() * spread(grid, codes.shape, over)

    def divided() -> Data:
        wide = scales(scale, F64).reshape(shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            return numbers() / spread(wide, codes.shape, over)

    mistakes = {"no scales": numbers, "divided": divided}
    if min(shape[-2:]) > 1:
        mistakes["turned"] = partial(opening, flipped=True)
    return Quantised(name, codes.dtype, codes.shape, holds, (codes, scale), opening, mistakes)


def block_of(
    codes: Stored, scale: Stored, blocks: tuple[int, int] | None
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """The scales as a grid over the last two axes, and the block that each of them covers."""
    *before, rows, columns = codes.shape
    outer = tuple(before)
    ways: list[tuple[tuple[int, ...], tuple[int, int]]] = []
    if blocks is not None:
        grid = (*outer, -(-rows // blocks[0]), -(-columns // blocks[1]))
        ways.append((grid, blocks))
    ways.append(((*outer, rows, 1), (1, columns)))
    ways.append(((*outer, 1, 1), (rows, columns)))
    for grid, over in ways:
        if scale.shape in (grid, _without_ones(grid), outer if grid[-2:] == (1, 1) else grid):
            return grid, over
    if scale.shape in ((), (1,), (1, 1)):
        return (*(1 for _ in outer), 1, 1), (rows, columns)
    raise ShapeError(
        _("the tensor {name} has another shape than its quantisation").format(name=scale.name),
        where=scale.where,
        expected=_(" or ").join(sides(grid) for grid, _over in ways),
        found=sides(scale.shape),
    )


def _without_ones(grid: tuple[int, ...]) -> tuple[int, ...]:
    return grid[:-1] if grid[-1] == 1 else grid


def eight_bits(codes: Stored) -> Data:
    """The numbers of 8-bit floats; InputError for a code that is NaN or infinite."""
    numbers: Data = codes.octets().view(FP8[codes.dtype])
    bad = ~np.isfinite(numbers)
    if bad.any():
        at = np.argwhere(bad)[0]
        raise refused_entry(codes, at, str(float(numbers[tuple(at)])))
    return numbers
