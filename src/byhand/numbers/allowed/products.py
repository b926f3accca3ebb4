"""Rows times a matrix, with the sizes that bound the rounding of the product, in one pass.

The matrix is read once, slab by slab: a slab is widened to float64 for the products and made
absolute in float32 for their sizes, Σ|x||w|.  There is no full-size copy of the matrix.

Rough products cost a third.  They add 192 terms at a time in float32, and these sums in float64.
Each such sum has an error of at most γ₁₉₂·Σ|x||w| of its terms, whatever BLAS does.  So the result
is off by at most a quarter of the least error that long sums are allowed.  Rough sizes count only
the eighth of the terms whose x are largest, so they are not above the true ones.  A claim within
half of a rough range is then within ½ + ¼ of what is allowed; other claims stay open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ldexp

import numpy as np

from byhand.numbers.allowed.precisions import OWN, Bytes, Precision
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    UP,
    Data,
    Range,
    added_up,
    plus,
    quadrature,
    wide,
)
from byhand.numbers.floats.formats import FLOAT32, FLOAT64, widened

SLAB = 1 << 18  # entries of the matrix that are widened at a time, at most: 2 MB of float64
SOME = 1 << 8  # outputs that are finished at a time
RUN = 192  # terms that rough products add in float32
CHOSEN = 8  # one in 8 terms counts in a rough size
LONG = 4 * RUN  # terms from which on a product may be rough: its error is then small enough
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
    """Rows that are to be multiplied: their values, sizes, radii and spreads.

    `own` bounds the error of the products, relative to their sizes.  They are rough if that was
    asked for, the rows are exact float32 numbers, and the sums are long.
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
        self.squares = None if usual is None else np.square(usual).astype(FLOAT32)
        self.own = (inputs + 2) * OWN
        self.left_out = 1.0  # about the quotient of a true size and a rough one
        if self.single is not None:
            self._choose(self.single)
            return
        self.sizes = above(np.abs(self.x))
        if radius is not None:
            self.sizes = np.concatenate((self.sizes, above(radius)))
        # of a size: at most K + 2 roundings of non-negative numbers, and K products that may lie
        # below the normal numbers
        self.grown, self.floor = 1 + 2 * (inputs + 4) * SINGLE, 2 * inputs * TINY

    def _choose(self, single: Data) -> None:
        """Chooses the terms that count in rough sizes, and lowers them by their rounding."""
        inputs = single.shape[1]
        largest = np.einsum("ij,ij->j", self.x, self.x)
        count = inputs // CHOSEN
        self.chosen = np.sort(np.argpartition(largest, inputs - count)[inputs - count :])
        self.sizes = np.abs(single[:, self.chosen])
        whole = float(np.abs(self.x).sum())
        self.left_out = whole / float(self.sizes.sum(dtype=np.float64)) if whole else 1.0
        self.grown, self.floor = 1 - 2 * (count + 4) * SINGLE, 0.0

    def times(self, matrix: Data, layout: str) -> Iterator[Part]:
        """The result in parts of some columns.  The arrays of a part are reused for the next."""
        yield from self._times_rows(matrix) if layout == "out_in" else self._times_columns(matrix)

    def _times_columns(self, matrix: Data) -> Iterator[Part]:
        """x·W for W (in, out), summed over groups of rows of W."""
        outputs = matrix.shape[1]
        products, sizes, spread = self._room(outputs)
        if self.single is not None:
            self._add_runs(matrix, products)
            np.matmul(self.sizes, np.abs(_single(matrix[self.chosen])), out=sizes)
        else:
            room, space = np.empty_like(products), np.empty_like(sizes)
            for here, slab, size in Slabs(matrix, SLAB):
                first = here.start == 0
                _add(products, self.x[:, here], slab, room, first)
                _add(sizes, self.sizes[:, here], size, space, first)
                if spread is not None and self.squares is not None:
                    np.square(size, out=size)
                    _add(spread, self.squares[:, here], size, space[: len(spread)], first)
        for start in range(0, outputs, SOME):
            here = slice(start, start + SOME)
            yield self._part(here, products[:, here], sizes[:, here], None if spread is None else
                             spread[:, here])  # fmt: skip

    def _add_runs(self, matrix: Data, products: Data) -> None:
        assert self.single is not None
        room = np.empty(products.shape, dtype=FLOAT32)
        for start in range(0, len(matrix), RUN):
            run = slice(start, start + RUN)
            _add(products, self.single[:, run], _single(matrix[run]), room, start == 0)

    def _times_rows(self, matrix: Data) -> Iterator[Part]:
        """x·Wᵀ for W (out, in), which is (W·xᵀ)ᵀ: BLAS is faster that way."""
        sizes = np.ascontiguousarray(self.sizes.T)
        if self.single is not None:
            x = np.ascontiguousarray(self.single.T)
            step = max(1, SLAB // len(x))
            for start in range(0, len(matrix), step):
                slab = _single(matrix[start : start + step])
                size = np.abs(np.take(slab, self.chosen, axis=1))
                here = slice(start, start + len(slab))
                yield self._part(here, _turned(_by_runs(slab, x)), _turned(size @ sizes), None)
            return
        x = np.ascontiguousarray(self.x.T)
        squares = None if self.squares is None else np.ascontiguousarray(self.squares.T)
        for here, slab, size in Slabs(matrix, SLAB // 2):
            products, uppers = slab @ x, _turned(size @ sizes)
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


# ------------------------------------------------------------------------ ways of implementations


def in_bytes(x: Range, way: Bytes) -> Range:
    """Rows as they enter a product in 8 bits, scaled by their largest entry or by that of all."""
    size, radius = np.abs(wide(x.mid)), x.radius()
    most = size if radius is None else size + radius
    largest = most.max(axis=-1, keepdims=True, initial=0.0)
    if way.by_tensor:
        largest = np.broadcast_to(most.max(initial=0.0), largest.shape)
    off = (most * way.relative + largest * way.step) * UP
    usual = quadrature(size * (TYPICAL * way.relative), largest * (way.step * 0.3))
    return Range(x.mid, plus(radius, off), quadrature(x.usual, usual))


def parts_radius(p: Precision, sizes: Data) -> Data:
    """How far storing the partial sums of a product, and adding them so, moves it at most."""
    store = p.store
    room: Data = sizes * float(added_up(p.parts, store.half)) + 2 * p.parts * store.least
    room[~(sizes <= store.largest)] = np.inf
    return room


def parts_usual(p: Precision, sums: Data, lengths: Data) -> Data:
    """The same as usual, squared; `lengths` are √(Σ x²y²) but for a factor of 1.25.

    A partial sum is about sum/n ± length/√n; the sums of the first k of them are rounded too.
    """
    n, unit = p.parts, TYPICAL * p.store.half
    along, across = unit**2 * (1 / n + n / 3), (1.25 * unit) ** 2 * (1 + n / 2)
    usual: Data = np.square(sums) * along + np.square(lengths) * across
    return usual


def _add(total: Data, x: Data, slab: Data, room: Data, first: bool) -> None:
    """Adds x·slab to the total, through the buffer `room`; the first one replaces the total."""
    if first and total.dtype == room.dtype:
        np.matmul(x, slab, out=total)
        return
    np.matmul(x, slab, out=room)
    if first:
        np.copyto(total, room)
    else:
        total += room


def _by_runs(slab: Data, x: Data) -> Data:
    """slab·x, with float32 sums of 192 terms that are added in float64."""
    total = np.zeros((len(slab), x.shape[1]))
    for start in range(0, len(x), RUN):
        total += slab[:, start : start + RUN] @ x[start : start + RUN]
    return total


def _turned(x: Data) -> Data:
    return np.ascontiguousarray(x.T)


class Slabs:
    """Some rows of a matrix at a time: in float64, and their sizes in float32, not below the true
    ones.  The two buffers are used again for the next rows: new ones would cost more than BLAS."""

    def __init__(self, matrix: Data, entries: int) -> None:
        self.matrix = matrix
        self.step = max(1, entries // max(1, matrix.shape[1]))
        shape = min(self.step, len(matrix)), matrix.shape[1]
        self._wide = np.empty(shape)
        self._size = np.empty(shape, dtype=FLOAT32)

    def __iter__(self) -> Iterator[tuple[slice, Data, Data]]:
        for start in range(0, len(self.matrix), self.step):
            here = slice(start, start + self.step)
            slab = self.matrix[here]
            if slab.dtype != FLOAT64:
                slab = _single(slab)
            wide, size = self._wide[: len(slab)], self._size[: len(slab)]
            np.copyto(wide, slab)
            if slab.dtype == FLOAT64:
                size[...] = above(np.abs(slab))
            else:
                np.abs(slab, out=size)
            yield here, wide, size


def _single(x: Data) -> Data:
    """The numbers, of float32 or a narrower format, as float32."""
    return widened(x, FLOAT32)


def above(x: Data) -> Data:
    """float32 numbers that are not below these non-negative float64 numbers."""
    return np.nextafter(x.astype(FLOAT32), np.float32(np.inf))
