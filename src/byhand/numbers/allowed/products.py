"""Rows times a matrix, with what a bound of the rounding of such a product needs, in one pass.

The matrix is read once, slab by slab: a slab is widened to float64 for the products and made
absolute in float32 for their sizes, Σ|x||w|.  There is no full-size copy of the matrix.

Rough products cost half: float32 throughout, but for the sums of every 96 terms, which are added in
float64.  Each such sum is off by at most γ₉₆·Σ|x||w| of its terms, whatever BLAS does, so that the
result is off by so much of the whole Σ|x||w|: little beside what is allowed of long sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ldexp

import numpy as np

from byhand.numbers.allowed.precisions import OWN
from byhand.numbers.allowed.ranges import Data
from byhand.numbers.floats.formats import FLOAT32, FLOAT64, widened

SLAB = 1 << 18  # entries of the matrix that are widened at a time, at most: 2 MB of float64
SOME = 1 << 8  # outputs that are finished at a time
RUN = 96  # terms that rough products add in float32
LONG = 8 * RUN  # terms from which on a product may be rough: its error is an eighth of the allowed
SINGLE, TINY = ldexp(1.0, -24), ldexp(1.0, -126)  # float32: unit roundoff, smallest normal number


@dataclass(frozen=True, slots=True)
class Part:
    """Some columns of the result, for all rows.

    Sizes are float32, as BLAS gave them: `Rows.grown`·sizes + `Rows.floor` is a bound.
    """

    columns: slice
    products: Data  # x·W in float64: off by at most `Rows.own`·(|x|·|W|)
    sizes: Data  # |x|·|W|
    moved: Data | None  # radius·|W|
    spread: Data | None  # usual²·W²


class Rows:
    """Rows that are to be multiplied: as they are, as sizes, and with them radii and spreads.

    `own` is how far the products are off, relative to their sizes.  They are rough where that was
    asked for, the rows are exact and numbers of float32, and the sums are long.
    """

    def __init__(
        self, x: Data, radius: Data | None, usual: Data | None, *, rough: bool = False
    ) -> None:
        self.x = np.ascontiguousarray(x)
        inputs = self.x.shape[1]
        self.single: Data | None = None
        if rough and radius is None and usual is None and inputs >= LONG:
            single = self.x.astype(FLOAT32)
            self.single = single if np.array_equal(single, self.x) else None
        self.sizes = above(np.abs(self.x)) if self.single is None else np.abs(self.single)
        if radius is not None:
            self.sizes = np.concatenate((self.sizes, above(radius)))
        self.squares = None if usual is None else np.square(usual).astype(FLOAT32)
        # of a size: at most K + 2 roundings of non-negative numbers, and K products that may lie
        # below the normal numbers
        self.grown, self.floor = 1 + 2 * (inputs + 4) * SINGLE, 2 * inputs * TINY
        self.own = (inputs + 2) * OWN
        if self.single is not None:
            self.own += 1.01 * (RUN + 1) * SINGLE

    def times(self, matrix: Data, layout: str) -> Iterator[Part]:
        """The result, some columns after the others.  Its arrays are used again for the next."""
        yield from self._times_rows(matrix) if layout == "out_in" else self._times_columns(matrix)

    def _times_columns(self, matrix: Data) -> Iterator[Part]:
        """x·W for W (in, out): the sum of what some rows of W give after the others."""
        outputs = matrix.shape[1]
        products, sizes, spread = self._room(outputs)
        x = self.x if self.single is None else self.single
        room, space = np.empty(products.shape, dtype=x.dtype), np.empty_like(sizes)
        for here, slab, size in Slabs(matrix, SLAB, single=self.single is not None):
            first = here.start == 0
            if self.single is None:
                _add(products, x[:, here], slab, room, first)
            for start in range(0, len(slab), RUN) if self.single is not None else ():
                run = slice(here.start + start, here.start + min(start + RUN, len(slab)))
                _add(products, x[:, run], slab[start : start + RUN], room, run.start == 0)
            _add(sizes, self.sizes[:, here], size, space, first)
            if spread is not None and self.squares is not None:
                np.square(size, out=size)
                _add(spread, self.squares[:, here], size, space[: len(spread)], first)
        for start in range(0, outputs, SOME):
            here = slice(start, start + SOME)
            yield self._part(here, products[:, here], sizes[:, here], None if spread is None else
                             spread[:, here])  # fmt: skip

    def _times_rows(self, matrix: Data) -> Iterator[Part]:
        """x·Wᵀ for W (out, in), which is (W·xᵀ)ᵀ: BLAS is faster that way."""
        x = np.ascontiguousarray((self.x if self.single is None else self.single).T)
        sizes = np.ascontiguousarray(self.sizes.T)
        squares = None if self.squares is None else np.ascontiguousarray(self.squares.T)
        for here, slab, size in Slabs(matrix, SLAB // 2, single=self.single is not None):
            products = slab @ x if self.single is None else _by_runs(slab, x)
            uppers = _turned(size @ sizes)
            spread = None if squares is None else _turned(np.square(size, out=size) @ squares)
            yield self._part(here, _turned(products), uppers, spread)

    def _room(self, outputs: int) -> tuple[Data, Data, Data | None]:
        products = np.empty((len(self.x), outputs))
        sizes = np.empty((len(self.sizes), outputs), dtype=FLOAT32)
        spread = None if self.squares is None else np.empty((len(self.x), outputs), dtype=FLOAT32)
        return products, sizes, spread

    def _part(self, columns: slice, products: Data, sizes: Data, spread: Data | None) -> Part:
        rows = len(self.x)
        moved = sizes[rows:] if len(sizes) > rows else None
        return Part(columns, products, sizes[:rows], moved, spread)


def _add(total: Data, x: Data, slab: Data, room: Data, first: bool) -> None:
    """Adds x·slab to the total, by way of some room; the first begins it."""
    if first and total.dtype == room.dtype:
        np.matmul(x, slab, out=total)
        return
    np.matmul(x, slab, out=room)
    if first:
        np.copyto(total, room)
    else:
        total += room


def _by_runs(slab: Data, x: Data) -> Data:
    """slab·x, whose sums of 96 terms are float32 and are added in float64."""
    total = np.zeros((len(slab), x.shape[1]))
    for start in range(0, len(x), RUN):
        total += slab[:, start : start + RUN] @ x[start : start + RUN]
    return total


def _turned(x: Data) -> Data:
    return np.ascontiguousarray(x.T)


class Slabs:
    """Some rows of a matrix at a time: in float64, and their sizes in float32, not below the true
    ones; `single` ones stay in float32.  The buffers are used again for the next rows: new ones
    would cost more than BLAS."""

    def __init__(self, matrix: Data, entries: int, *, single: bool = False) -> None:
        self.matrix = matrix
        self.single = single
        self.step = max(1, entries // max(1, matrix.shape[1]))
        if single:
            self.step = max(1, self.step // RUN) * RUN
        shape = min(self.step, len(matrix)), matrix.shape[1]
        self._wide = np.empty(shape if not single else (0, 0))
        self._size = np.empty(shape, dtype=FLOAT32)

    def __iter__(self) -> Iterator[tuple[slice, Data, Data]]:
        for start in range(0, len(self.matrix), self.step):
            here = slice(start, start + self.step)
            slab = self.matrix[here]
            if slab.dtype not in (FLOAT32, FLOAT64):
                slab = widened(slab, FLOAT32)
            size = self._size[: len(slab)]
            if slab.dtype == FLOAT64:
                size[...] = above(np.abs(slab))
            else:
                np.abs(slab, out=size)
            if self.single:
                yield here, slab, size
                continue
            wide = self._wide[: len(slab)]
            np.copyto(wide, slab)
            yield here, wide, size


def above(x: Data) -> Data:
    """Numbers of float32 that are not below these non-negative ones of float64."""
    return np.nextafter(x.astype(FLOAT32), np.float32(np.inf))
