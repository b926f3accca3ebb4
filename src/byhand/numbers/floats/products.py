"""Rows times a matrix, as BLAS likes it.

A few rows (the tokens of a text) meet a large matrix, which is read once from memory.  What counts
is in which order: OpenBLAS is fastest on (W·xᵀ)ᵀ, with the rows of W as they lie in memory; where
the matrix lies the other way round, on thin slabs of it.  Matrices of a narrower format are widened
piece by piece, so that beside the matrix only a small buffer is needed.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.floats.formats import Data, widened

PIECE = 1 << 22  # entries of a matrix that are widened at a time: 16 MB of float32
THIN = 64  # inputs a slab has, where the matrix is stored input by input
BROAD = 3072  # outputs computed at a time
FEW = 2  # rows up to which a product is no more than reading the matrix
MANY = 192  # rows from which the order makes no difference


def times_matrix(x: Data, matrix: Data, layout: str, bias: Data | None = None) -> Data:
    """x·W ("in_out") or x·Wᵀ ("out_in"), plus bias, in x's own format; C-contiguous, new.

    x is (rows, in); the matrix and the bias may be of a narrower format.
    """
    outputs = matrix.shape[1 if layout == "in_out" else 0]
    result = np.empty((x.shape[0], outputs), dtype=x.dtype)
    if bias is not None:
        bias = widened(bias, x.dtype)
    if matrix.dtype != x.dtype:
        _in_pieces(x, matrix, layout, result)
    elif x.shape[0] <= FEW or x.shape[0] >= MANY:
        np.matmul(x, matrix if layout == "in_out" else matrix.T, out=result)
    else:
        by_layout = _slab_by_slab if layout == "in_out" else _rows_by_rows
        by_layout(x, matrix, bias, result)
        return result
    if bias is not None:
        result += bias
    return result


def _rows_by_rows(x: Data, matrix: Data, bias: Data | None, result: Data) -> None:
    """(out, in): some rows of the matrix at a time; bias comes in on the way into the result."""
    columns = x.T
    for start in range(0, matrix.shape[0], BROAD):
        here = slice(start, start + BROAD)
        _lay_down((matrix[here] @ columns).T, bias, result, here)


def _slab_by_slab(x: Data, matrix: Data, bias: Data | None, result: Data) -> None:
    """(in, out): THIN inputs at a time, so that the slab stays within reach of the cache."""
    columns = x.T
    inputs = matrix.shape[0]
    for start in range(0, matrix.shape[1], BROAD):
        here = slice(start, start + BROAD)
        total = matrix[:THIN, here].T @ columns[:THIN]
        part = np.empty_like(total)
        for top in range(THIN, inputs, THIN):
            slab = slice(top, top + THIN)
            np.matmul(matrix[slab, here].T, columns[slab], out=part)
            total += part
        _lay_down(total.T, bias, result, here)


def _lay_down(block: Data, bias: Data | None, result: Data, here: slice) -> None:
    if bias is None:
        result[:, here] = block
    else:
        np.add(block, bias[here], out=result[:, here])


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
