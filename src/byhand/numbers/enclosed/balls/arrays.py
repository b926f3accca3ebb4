"""Arrays of Arb balls: objects in NumPy arrays, and FLINT's matrices of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat

from byhand.numbers.base import ABSENT, Array


def objects(entries: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """An array of these objects, in this shape."""
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result.reshape(shape)


def each(function: Callable[[Any], Any], x: Array) -> Array:
    """The function of every entry."""
    return objects([function(entry) for entry in x.ravel()], x.shape)


def absent(x: Array) -> Array:
    """True where an entry is masked."""
    return np.array([entry is ABSENT for entry in x.ravel()], dtype=bool).reshape(x.shape)


def present_or_zero(x: Array) -> Array:
    """The entries, 0 where they are masked."""
    return each(lambda entry: arb(0) if entry is ABSENT else entry, x)


def table_of(product: arb_mat) -> Array:
    """A matrix of FLINT's as an array."""
    return objects(product.entries(), (product.nrows(), product.ncols()))


def matrix(x: Array) -> arb_mat:
    """Two axes of balls as a matrix of FLINT's, which multiplies much faster than entries do."""
    rows, columns = x.shape
    return arb_mat(rows, columns, list(x.ravel()))


def mixed(shares: Array, values: Array) -> Array:
    """The sum of the rows of values, each times its share, for every row of shares."""
    if all(entry.is_finite() for entry in values.ravel()):
        return table_of(matrix(present_or_zero(shares)) * matrix(values))
    return np.stack([_mixed(row, values) for row in shares])  # hidden rows may be infinite


def _mixed(shares: Array, values: Array) -> Array:
    """The sum of the rows whose share is not hidden."""
    total = np.full(values.shape[-1], arb(0), dtype=object)
    for share, row in zip(shares, values, strict=True):
        if share is not ABSENT:
            total = total + share * row
    return total


def side_by_side(x: Array) -> Array:
    """(head, pos, width) → (pos, head·width); two axes as they are."""
    return np.concatenate(list(x), axis=1) if x.ndim == 3 else x
