"""Grids: whole numbers times a scale, which a tensor, a row, a column or a group has for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.casts import rounded_to

Data = npt.NDArray[Any]
TENSOR, ROW, COLUMN = "tensor", "row", "column"


@dataclass(frozen=True)
class Grid:
    """How numbers are quantised: the levels, and what shares a scale.

    `levels` is the whole number that the largest size becomes; with `range`, the number of steps
    between the smallest and the largest; with `float`, the format whose largest number it becomes.
    """

    levels: float
    by: str = TENSOR  # or ROW, COLUMN, or the number of neighbours in a row that share a scale
    range: bool = False
    float: str | None = None


def on_grid(data: Data, grid: Grid, scale: Data | None = None) -> Data:
    """The numbers on a grid: that of the scales given, or the one that they make themselves."""
    step = scales(data, grid) if scale is None else scale
    inside = np.where(np.isfinite(data), data, 0.0) / step
    whole = np.rint(inside) if grid.float is None else rounded_to(grid.float, inside)
    result: Data = np.where(np.isfinite(data), whole * step, data)
    return result


def scales(data: Data, grid: Grid) -> Data:
    """The scale of each number, of the shape of the data; 1 where all is 0."""
    finite = np.where(np.isfinite(data), data, 0.0)
    parts = _by_scale(finite, grid.by)
    if grid.range:
        reach = parts.max(axis=-1, initial=0.0) - parts.min(axis=-1, initial=0.0)
    else:
        reach = np.abs(parts).max(axis=-1, initial=0.0)
    step = np.where(reach > 0, reach, grid.levels)[..., None] / grid.levels
    step = np.where(step > 0, step, 1.0)
    spread = np.broadcast_to(step, parts.shape)
    if grid.by == COLUMN:
        return np.ascontiguousarray(spread.T).reshape(data.shape)
    return np.ascontiguousarray(spread).reshape(data.shape)


def _by_scale(data: Data, by: str) -> Data:
    """The numbers as rows that share a scale each."""
    if by == TENSOR or data.ndim == 0:
        return data.reshape(1, -1)
    flat = data.reshape(-1, data.shape[-1])
    if by == COLUMN:
        return flat.T
    return flat if by == ROW else data.reshape(-1, int(by))
