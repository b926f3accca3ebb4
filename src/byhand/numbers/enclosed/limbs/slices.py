"""Weight matrices as slices of 22-bit integers, for exact products (products.py).

Slices as Ozaki and others cut them (2012), with one exponent for the whole matrix.

Memory: slices are kept in float64, two of them for nearly all float32 weights: 16 bytes for each
weight beside the weight itself (8 for bfloat16).  float32 would hold 22-bit integers as well, but
to widen them again for every product costs a fifth of its time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu.decisions import outside_the_pass
from byhand.numbers.enclosed.limbs.arithmetic import BASE
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, Engine, engine_of
from byhand.numbers.enclosed.limbs.radii import length

COLUMNS = 1024  # of a tile on a processor
COLUMNS_ELSEWHERE = 8192  # of a tile on a GPU
FEW = 3  # entries a column, on the average, up to which a slice is kept entry by entry
TURNS = 8  # entries a column at most, for that
SHORT = 1 << 16  # inputs, for that: then 8 products of 2^42 pass the certificate
BLOCK = 256  # inputs whose column norms are kept together: 256·2^42 always passes the certificate


@dataclass(frozen=True, slots=True)
class Few:
    """Entries of a slice, no two of them in one column."""

    inputs: Any
    columns: Any
    values: Any


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a tile, (inputs, columns); `columns` None: all of the tile's."""

    columns: Any  # an index array where the data is
    data: Array  # None: only few entries are not 0
    norms: tuple[float, ...]  # the largest column norm of each BLOCK of inputs
    few: tuple[Few, ...] = ()  # those entries; none at all where every bit lies further down

    @property
    def thin(self) -> bool:
        """Whether its entries are so few that they are added one by one."""
        return self.data is None


@dataclass(frozen=True, slots=True)
class Tile:
    """Some columns of a matrix, as slices."""

    start: int
    stop: int
    slices: tuple[Slice, ...]


class Matrix:
    """A matrix (inputs, outputs) of floats as exact slices, which are made when first needed.

    On a device it may have residues, by which products are made instead (`gpu.residues`).
    """

    def __init__(self, floats: Array, residues: Any = None) -> None:
        self.inputs, self.outputs = map(int, floats.shape)
        self.residues = residues
        self.top = _top(_largest(floats)) if residues is None else residues.top
        self._floats = floats
        self._column_norms: dict[int, float] = {}
        self.blocks = [
            slice(start, min(start + BLOCK, self.inputs)) for start in range(0, self.inputs, BLOCK)
        ]

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        """The columns, some after others, as slices."""
        width = COLUMNS if engine_of(self._floats) is NUMPY else COLUMNS_ELSEWHERE
        parts = -(-self.outputs // width)
        width = -(-self.outputs // parts)

        def tile(start: int) -> Tile:
            stop = min(start + width, self.outputs)
            return Tile(start, stop, self._cut(self._floats[:, start:stop]))

        starts = range(0, self.outputs, width)
        return outside_the_pass(lambda: tuple(tile(start) for start in starts))

    @cached_property
    def checks(self) -> Tile:
        """The checksums of all tiles."""
        tiles, engine = self.tiles, engine_of(self._floats)
        return outside_the_pass(lambda: _checks_of(engine, tiles, self._floats))

    @cached_property
    def totals(self) -> Any:
        """(inputs, tile): the sum of each tile's columns in units of the first slice, rounded."""
        sums = self.checks.slices
        lo, hi = slice(0, None, 2), slice(1, None, 2)
        parts = [(s.data[:, lo] + s.data[:, hi] * BASE) * BASE**-t for t, s in enumerate(sums[:2])]
        return np.add.reduce(parts)

    def column_norm(self, t: int) -> float:
        """A bound of the norm of every column of slice t."""
        if t not in self._column_norms:
            norms = [tile.slices[t].norms for tile in self.tiles if t < len(tile.slices)]
            self._column_norms[t] = max(map(joint, norms), default=0.0)
        return self._column_norms[t]

    @property
    def bytes(self) -> int:
        """The memory that the slices take."""
        slices = [s for tile in self.tiles for s in tile.slices]
        few = sum(24 * len(part.values) for s in slices for part in s.few)
        whole = sum(math.prod(s.data.shape) * 8 for s in slices if s.data is not None)
        return int(few + whole)

    def _cut(self, part: Array) -> tuple[Slice, ...]:
        """Slices of 22 bits; from the second on, only the columns that have bits left."""
        engine = engine_of(part)
        rest = engine.floats(part)
        made: list[Slice] = []
        columns: Any = None
        exponent = -self.top
        rest *= math.ldexp(1.0, exponent) if abs(exponent) < 1000 else 1.0
        while not made or rest.shape[1]:
            rest *= BASE
            integers = engine.rint(rest)
            rest -= integers
            index = None if columns is None else engine.constant(columns, rest)
            made.append(_slice(engine, index, integers))
            left = engine.to_numpy(
                (rest != 0).any(0) if engine is NUMPY else (rest != 0).any(dim=0)
            )
            if left.all():
                continue
            kept = np.flatnonzero(left)
            columns = kept if columns is None else columns[kept]
            rest = rest[:, engine.constant(kept, rest)]
        return tuple(made)


def _largest(floats: Array) -> float:
    if floats.shape[0] == 0 or floats.shape[1] == 0:
        return 0.0
    return float(abs(floats).max())


def _top(largest: float) -> int:
    """The exponent for which numbers of at most `largest` have a first limb of at most 2^21."""
    return math.frexp(largest)[1] + 1 if largest else 0


def _slice(engine: Engine, columns: Any, integers: Array) -> Slice:
    norms = [
        engine.largest(length(integers[start : start + BLOCK].T))
        for start in range(0, integers.shape[0], BLOCK)
    ]
    if engine is NUMPY and columns is not None:
        few = _few(columns, integers)
        if few is not None:
            return Slice(columns, None, tuple(norms), few)
    return Slice(columns, integers, tuple(norms))


def _few(columns: Any, integers: Any) -> tuple[Few, ...] | None:
    """The entries that are not 0, by their place in their column; None where they are many."""
    column, inputs = np.nonzero(integers.T)
    if len(column) > FEW * len(columns) or integers.shape[0] > SHORT:
        return None
    starts = np.searchsorted(column, column)  # the first entry of the same column
    place = np.arange(len(column)) - starts
    turns = int(place.max(initial=-1)) + 1
    if turns > TURNS:
        return None
    parts = []
    for turn in range(turns):
        here = place == turn
        values = integers[inputs[here], column[here]]
        parts.append(Few(inputs[here], columns[column[here]], values))
    return tuple(parts)


def _row_sums(piece: Slice, inputs: int) -> Any:
    """The sum over the columns of a slice of few entries, as one column."""
    made = np.zeros((inputs, 1))
    for part in piece.few:
        np.add.at(made[:, 0], part.inputs, part.values)
    return made


@lru_cache(1 << 14)
def joint(norms: tuple[float, ...]) -> float:
    """A bound of the norm of a vector whose parts have these norms."""
    return float(length(np.array(norms))) if norms else 0.0


def _checks_of(engine: Engine, tiles: tuple[Tile, ...], like: Array) -> Tile:
    """A tile with the checksums of all tiles, two columns for each."""
    slices = []
    for t in range(max((len(tile.slices) for tile in tiles), default=0)):
        parts = []
        for tile in tiles:
            if t < len(tile.slices):
                piece = tile.slices[t]
                data = _row_sums(piece, like.shape[0]) if piece.data is None else piece.data
                parts.append(check_columns(engine, data))
            else:
                parts.append(engine.zeros((like.shape[0], 2), tile.slices[0].data))
        slices.append(_slice(engine, None, engine.concatenate(parts, 1)))
    return Tile(0, 2 * len(tiles), tuple(slices))


def check_columns(engine: Engine, integers: Array) -> Array:
    """(…, columns) → (…, 2): lo and hi, with lo + 2^22·hi the sum of at most 2^30 columns."""
    sums = integers.sum(-1)[..., None]
    high = engine.rint(sums * (1.0 / BASE))
    return engine.concatenate([sums - high * BASE, high], integers.ndim - 1)
