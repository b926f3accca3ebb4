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
