"""Rows times a matrix, as BLAS likes it.

A few rows (the tokens of a text) meet a large matrix, which is read once from memory.  OpenBLAS,
which NumPy comes with, first copies the operands of a large product into an order of its own; for
few rows that costs as much as half of the product itself.  Products of up to a million
multiplications it does without, so a large one is put together from such tiles.  Matrices of a
narrower format are widened piece by piece: beside the matrix only a small buffer is needed.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.floats.formats import Data, widened

PIECE = 1 << 22  # entries of a matrix that are widened at a time: 16 MB of float32
TILE = 1_000_000  # multiplications that OpenBLAS does without copying first
DEEP = {"out_in": 256, "in_out": 48}  # inputs of a tile; found by measuring
FEW, MANY = 3, 160  # rows from which and up to which tiles are faster


def times_matrix(x: Data, matrix: Data, layout: str, bias: Data | None = None) -> Data:
    """x·W ("in_out") or x·Wᵀ ("out_in"), plus bias, in x's own format; C-contiguous, new.

    x is (rows, in); the matrix and the bias may be of a narrower format.
    """
    outputs = matrix.shape[1 if layout == "in_out" else 0]
    result = np.empty((x.shape[0], outputs), dtype=x.dtype)
    if matrix.dtype != x.dtype:
        _in_pieces(x, matrix, layout, result)
    elif _tiles_help and FEW <= x.shape[0] <= MANY:
        _in_tiles(x, matrix.T if layout == "in_out" else matrix, DEEP[layout], result)
    else:
        np.matmul(x, matrix if layout == "in_out" else matrix.T, out=result)
    if bias is not None:
        result += widened(bias, x.dtype)
    return result


def _uses_openblas() -> bool:
    libraries = np.show_config(mode="dicts")["Build Dependencies"]
    return "openblas" in str(libraries["blas"]["name"]).lower()


_tiles_help = _uses_openblas()


def _in_tiles(x: Data, matrix: Data, deep: int, result: Data) -> None:
    """x·Wᵀ for W (out, in), tile by tile: (W·xᵀ)ᵀ is what OpenBLAS does best."""
    columns = np.ascontiguousarray(x.T)
    outputs, inputs = matrix.shape
    step = max(8, TILE // (len(x) * deep) // 8 * 8)
    part = np.empty((step, len(x)), dtype=x.dtype)
    for start in range(0, outputs, step):
        rows = matrix[start : start + step]
        total = rows[:, :deep] @ columns[:deep]
        for first in range(deep, inputs, deep):
            more = part[: len(rows)]
            np.matmul(rows[:, first : first + deep], columns[first : first + deep], out=more)
            total += more
        result[:, start : start + step] = total.T


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
