"""Rows times a matrix, arranged for speed in BLAS.

A few rows (the tokens of a text) meet a large matrix, which is read once from memory.  NumPy's
OpenBLAS first copies the operands of a large product into an order of its own.  For few rows that
costs as much as half of the product itself.  Products of up to a million multiplications it does
without, so a large one is put together from such tiles.  Matrices of a narrower format are widened
piece by piece: beside the matrix only a small buffer is needed.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.floats.formats import Data, widened

PIECE = 1 << 22  # entries of a matrix that are widened at a time: 16 MB of float32
TILE = 1_000_000  # multiplications that OpenBLAS does without copying first
DEEP = {"out_in": 256, "in_out": 96}  # inputs of a tile; found by measuring
MANY = {4: 40, 8: 16}  # rows up to which tiles are faster, by the bytes of a number; likewise


def times_matrix(
    x: Data, matrix: Data, layout: str, bias: Data | None = None, *, out: Data | None = None
) -> Data:
    """x·W ("in_out") or x·Wᵀ ("out_in"), plus bias, in x's own format; into `out` or a new array.

    x is (rows, in), `out` C-contiguous; the matrix and the bias may be of a narrower format.
    """
    outputs = matrix.shape[1 if layout == "in_out" else 0]
    result = np.empty((len(x), outputs), dtype=x.dtype) if out is None else out
    if matrix.dtype != x.dtype:
        _in_pieces(x, matrix, layout, result)
    elif _tiles_help and 1 < x.shape[0] <= MANY[x.itemsize]:
        tiles = _tiles_of_columns if layout == "in_out" else _tiles_of_rows
        tiles(x, matrix, result)
    else:
        np.matmul(x, matrix if layout == "in_out" else matrix.T, out=result)
    if bias is not None:
        result += widened(bias, x.dtype)
    return result


def _uses_openblas() -> bool:
    libraries = np.show_config(mode="dicts")["Build Dependencies"]
    return "openblas" in str(libraries["blas"]["name"]).lower()


_tiles_help = _uses_openblas()


def _tiles_of_rows(x: Data, matrix: Data, result: Data) -> None:
    """x·Wᵀ for W (out, in), tile by tile, as (W·xᵀ)ᵀ."""
    deep = DEEP["out_in"]
    columns = np.ascontiguousarray(x.T)
    step = _width_of_tile(len(x), deep)
    part = np.empty((step, len(x)), dtype=x.dtype)
    for start in range(0, len(matrix), step):
        rows = matrix[start : start + step]
        total = rows[:, :deep] @ columns[:deep]
        for first in range(deep, len(columns), deep):
            more = part[: len(rows)]
            np.matmul(rows[:, first : first + deep], columns[first : first + deep], out=more)
            total += more
        result[:, start : start + step] = total.T


def _tiles_of_columns(x: Data, matrix: Data, result: Data) -> None:
    """x·W for W (in, out), tile by tile."""
    deep = DEEP["in_out"]
    inputs, outputs = matrix.shape
    step = _width_of_tile(len(x), deep)
    part = np.empty_like(result)
    for first in range(0, inputs, deep):
        some = np.ascontiguousarray(x[:, first : first + deep])
        slab = matrix[first : first + deep]
        into = part if first else result
        for start in range(0, outputs, step):
            here = slice(start, start + step)
            np.matmul(some, slab[:, here], out=into[:, here])
        if first:
            result += part


def _width_of_tile(rows: int, deep: int) -> int:
    return max(16, TILE // (rows * deep) // 16 * 16)


def _in_pieces(x: Data, matrix: Data, layout: str, result: Data) -> None:
    """A matrix of a narrower format, PIECE entries at a time."""
    step = max(1, PIECE // max(1, matrix.shape[1]))
    for start in range(0, matrix.shape[0], step):
        piece = widened(matrix[start : start + step], x.dtype)
        if layout == "out_in":
            result[:, start : start + step] = (piece @ x.T).T
        elif start == 0:
            np.matmul(x[:, :step], piece, out=result)
        else:
            result += x[:, start : start + step] @ piece
