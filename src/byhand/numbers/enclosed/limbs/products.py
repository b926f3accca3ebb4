"""Exact products of matrices of limbs on float64 BLAS.

The method is that of error-free slices: Ozaki, Ogita, Oishi and Rump, "Error-free transformations
of matrix multiplication by using fast routines of matrix multiplication and its applications",
Numerical Algorithms 59 (2012).  The checksum is that of Huang and Abraham, "Algorithm-based fault
tolerance for matrix operations", IEEE Transactions on Computers C-33 (1984).

A weight matrix comes cut into slices of 22 bits (slices.py): W = Σ_t S_t·2^(top - 22(t+1)), every
S_t a matrix of integers, balanced, so |S_t| <= 2^21.  A row of limbs times a slice is a sum of
products of integers, and float64 adds and multiplies integers exactly as long as nothing exceeds
2^53.

The certificate.  Every number that any order of summation can meet on the way to x·s is a sum over
some of the terms, and by Cauchy and Schwarz at most ‖x‖·‖s‖.  So if the largest row norm times the
largest column norm is below 2^52, the product is exact, whatever BLAS does: blocks, threads, fused
multiply-add.  It is asserted for every product; where it fails, the rows are cut into shorter ones.

The checksum.  Beside each tile of a slice stand two columns, lo + 2^22·hi = the sum of its columns.
The rows are multiplied by them in a product of their own; after the carry Σ_j y_j = lo + 2^22·hi
must hold exactly, limb by limb, in every row.  A BLAS that breaks its promise (float32 inside,
Strassen, a thread that did not write its rows) gives an error, never a wrong digit.

What is left out.  Pairs of limb and slice far below the wanted grid are not multiplied.  The same
norms bound their sum, and the bound is returned, to be added to the radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.errors import ByhandError
from byhand.language import _
from byhand.numbers.enclosed.limbs.arithmetic import (
    BASE,
    HALF,
    WIDTH,
    Digits,
    add,
    carry,
    carry_with,
    regrid,
    settle,
    settled,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, Engine, engine_of
from byhand.numbers.enclosed.limbs.radii import largest as largest_of
from byhand.numbers.enclosed.limbs.radii import length, plus, slack, times
from byhand.numbers.enclosed.limbs.slices import BLOCK, Matrix, Slice, Tile, joint

EXACT = 2.0**52 - 2.0**33  # float64 and `carry` are exact below 2^52; the rest is for a bias
FILLED = 2.0**32  # a bound of carried sums; the first limb holds most of it
ROWS = 64  # rows of x worked out at a time on a processor, so that a tile's limbs stay in the cache


def norm_with_room(norm: float, room: float) -> float:
    """A norm of limbs with room: other tokens may fill a limb, but a full one hardly changes."""
    return max(1.25 * norm, min(room * norm + 16.0, 2.0**25))


class WrongProduct(ByhandError):
    """The error for a wrong product of integers: BLAS or the machine is broken."""


# ------------------------------------------------------------------ rows times weights


@dataclass(frozen=True, slots=True)
class Product:
    """The digits of a product, and a bound of their error."""

    digits: Digits
    error: float  # a bound for every entry; 0.0: exact


def multiply_matrix(
    x: Digits,
    matrix: Matrix,
    low: int,
    bias: Digits | None = None,
    *,
    largest: float,
    tolerance: float,
) -> Product:
    """x·W + bias on the grid 2^low, or a finer one where that costs nothing.

    x is (rows, inputs), balanced.  `largest` bounds every |entry| of the exact result; `tolerance`
    is the error that pairs left out may add to an entry.
    """
    if matrix.residues is not None:
        made = matrix.residues.product(x, low, bias, largest)
        if made is not None:
            digits, error = made
            return Product(without_empty_limbs(digits), error)
    if bias is None or bias.top <= x.top + matrix.top:
        return _Run(x, matrix, low, bias, largest, tolerance).product()
    product = _Run(x, matrix, low, None, largest, tolerance).product()  # the bias is too large
    finest = min(product.digits.low, bias.low)
    error = plus(product.error, HALF * math.ldexp(1.0, low)) if low > finest else product.error
    return Product(add(product.digits, bias, max(low, finest)), error)


class _Run:
    """One product of rows and a matrix, tile by tile."""

    def __init__(
        self,
        x: Digits,
        matrix: Matrix,
        low: int,
        bias: Digits | None,
        largest: float,
        tolerance: float,
    ) -> None:
        self.engine = x.engine
        self.matrix = matrix
        self.x, self.rows = x, x.shape[0]
        self.top = x.top + matrix.top  # limb d of the sums weighs 2^(top - 22(d+1)); d = 0 is spare
        self.largest = largest
        self.norms = self._row_norms()
        self._rows: dict[tuple[int, int], list[float]] = {}
        most = max((len(tile.slices) for tile in matrix.tiles), default=1)
        whole = x.n + most  # with this many limbs everything is there
        # what is left out, at most `tolerance`, may be what the rest cancels
        self.low, self.count = self._grid(low, plus(largest, tolerance), whole)
        self.limbs = min(whole, max(2, -(-(self.top - self.low) // WIDTH)))
        self.error = self._left_out(self.limbs)
        while self.limbs < whole and self.error > tolerance:
            self.limbs += 1
            self.error = self._left_out(self.limbs)
        if self.low > self.top - WIDTH * whole:
            self.error = plus(self.error, HALF * math.ldexp(1.0, self.low))
        self.bias = None
        if bias is not None:
            finest = self.top - WIDTH * self.limbs
            self.bias = regrid(bias, max(self.top, finest + WIDTH), finest).limbs
            if bias.low < finest:
                self.error = plus(self.error, HALF * math.ldexp(1.0, finest))

    def _row_norms(self) -> Any:
        """(limb, block): the largest norm of a row of that limb within that block of inputs."""
        if self.engine is not NUMPY:
            return self._row_norms_elsewhere(self.engine)
        found = np.zeros((self.x.n, len(self.matrix.blocks)))
        for b, block in enumerate(self.matrix.blocks):
            part = self.x.limbs[:, :, block]
            squares = np.einsum("irk,irk->ir", part, part)
            found[:, b] = largest_of(squares.reshape(self.x.n, -1))
        return np.sqrt(found * slack(BLOCK)) * slack(1)

    def _row_norms_elsewhere(self, engine: Any) -> Any:
        """The same on a device, copied to the host at once."""
        limbs = self.x.limbs
        whole = self.matrix.inputs // BLOCK
        parts = []
        if whole:
            blocks = limbs[..., : whole * BLOCK].reshape(self.x.n, self.rows, whole, BLOCK)
            parts.append(engine.lengths(blocks, -1))
        if whole * BLOCK < self.matrix.inputs:
            parts.append(engine.lengths(limbs[..., whole * BLOCK :], -1)[..., None])
        norms = parts[0] if len(parts) == 1 else engine.concatenate(parts, 2)
        most = largest_of(norms, 1)
        found = np.array(engine.bounds(most.reshape(-1), norm_with_room)).reshape(most.shape)
        return found * slack(BLOCK + 4)

    def _grid(self, low: int, largest: float, whole: int) -> tuple[int, int]:
        """The grid and the number of limbs of the result.

        A grid that lies on the limbs of the sums needs no second carry.  It is finer, and is taken
        if it needs no further limb.  No grid below the exact result's own is used.
        """
        low = max(low, self.top - WIDTH * whole)
        head = math.frexp(largest * (1 + 2.0**-20))[1] + 1 if largest > 0 else low + 1
        count = max(1, -(-(head - low) // WIDTH))
        aligned = low - (low - self.top) % WIDTH
        if max(1, -(-(head - aligned) // WIDTH)) == count:
            low = aligned
        return low, count

    def _left_out(self, limbs: int) -> float:
        """A bound of the pairs beyond `limbs` limbs, in any entry."""
        missing = 0.0
        rows = length(self.norms)
        for t in range(max((len(tile.slices) for tile in self.matrix.tiles), default=0)):
            column = self.matrix.column_norm(t)
            for i in range(max(0, limbs - t - 1), self.x.n):
                unit = math.ldexp(1.0, max(-1000, self.top - WIDTH * (i + t + 2)))
                missing = plus(missing, times(float(rows[i]), column, unit))
        return missing

    def product(self) -> Product:
        engine, matrix, x = self.engine, self.matrix, self.x
        if engine is not NUMPY:
            return self._product_elsewhere(engine)
        result = engine.empty((self.count, self.rows, matrix.outputs), x.limbs)
        parts = [slice(start, min(start + ROWS, self.rows)) for start in range(0, self.rows, ROWS)]
        laid = [engine.contiguous(x.limbs[:, part]).reshape(-1, matrix.inputs) for part in parts]
        scratch = Scratch(engine, x.limbs)
        checks = [carry(self._sums(matrix.checks, rows, Scratch(engine, x.limbs))) for rows in laid]
        for number, tile in enumerate(matrix.tiles):
            for part, rows, known in zip(parts, laid, checks, strict=True):
                sums = self._sums(tile, rows, scratch)
                this = known[:, :, 2 * number : 2 * number + 2]
                self._finish(sums, this, tile, result[:, part, tile.start : tile.stop])
        made = Digits(result, self.low + WIDTH * self.count)
        return Product(without_empty_limbs(made), self.error)

    def _product_elsewhere(self, engine: Any) -> Product:
        """All rows at once, and one wait for the device at the end."""
        matrix, x = self.matrix, self.x
        rows = engine.contiguous(x.limbs).reshape(-1, matrix.inputs)
        known, found = [], []

        def tiles() -> None:
            for tile in matrix.tiles:
                sums = self._sums(tile, rows, Scratch(engine, x.limbs))
                found.append((sums, self._carried(sums, tile)))

        def checks() -> None:
            known.append(carry(self._sums(matrix.checks, rows, Scratch(engine, x.limbs))))

        engine.side_by_side(x.limbs, [tiles, checks])
        wrong, made = [], []
        for number, (sums, biased) in enumerate(found):
            this = known[0][:, :, 2 * number : 2 * number + 2]
            wrong.append(differences(sums, this, biased))
            made.append(self._rounded(sums))
        result = made[0] if len(made) == 1 else engine.concatenate(made, 2)
        digits = Digits(result, self.low + WIDTH * self.count)
        assure(engine, wrong)
        return Product(without_empty_limbs(digits), self.error)

    def _sums(self, tile: Tile, rows: Array, scratch: Scratch) -> Array:
        """(limbs, rows, columns): limb by slice, summed along the diagonals, exactly."""
        n = self.x.n
        count = rows.shape[0] // n
        width = tile.stop - tile.start
        sums = scratch.room("sums", (self.limbs, count, width))
        filled, fresh = 0.0, True
        for first, last in self._groups(tile):
            inputs = slice(self.matrix.blocks[first].start, self.matrix.blocks[last - 1].stop)
            for t, piece in enumerate(tile.slices):
                limbs = min(n, self.limbs - t - 1)
                if limbs <= 0:
                    break
                bound = self._certificate(piece, limbs, first, last)
                if filled + bound >= EXACT:
                    carry(sums)
                    filled = FILLED
                if filled + bound >= EXACT:
                    raise WrongProduct(_("a product of limbs is too large to be exact"))
                filled += bound
                some = rows[: limbs * count, inputs]
                if not fresh and not isinstance(sums, np.ndarray):
                    into = sums[t + 1 : t + 1 + limbs]
                    if piece.columns is None:
                        into.view(limbs * count, width).addmm_(some, piece.data[inputs])
                    else:
                        more = (some @ piece.data[inputs]).view(limbs, count, -1)
                        into.index_add_(2, piece.columns, more)
                    continue
                if fresh:
                    sums[0] = 0.0
                    sums[limbs + 1 :] = 0.0
                    into = sums[1 : limbs + 1].reshape(limbs * count, width)
                    matmul(some, piece.data[inputs], into)
                    fresh = False
                    continue
                part = scratch.room("part", (limbs * count, piece.data.shape[1]))
                matmul(some, piece.data[inputs], part)
                part = part.reshape(limbs, count, -1)
                if piece.columns is None:
                    sums[t + 1 : t + 1 + limbs] += part
                else:
                    sums[t + 1 : t + 1 + limbs, :, piece.columns] += part
        return sums

    def _groups(self, tile: Tile) -> list[tuple[int, int]]:
        """Runs of blocks of inputs that together pass the certificate."""
        blocks = len(self.matrix.blocks)
        size = blocks
        while size > 1:
            groups = [(i, min(i + size, blocks)) for i in range(0, blocks, size)]
            if all(
                sum(self._certificate(s, self.x.n, *group) for s in tile.slices) < EXACT - FILLED
                for group in groups
            ):
                return groups
            size = -(-size // 2)
        return [(i, i + 1) for i in range(blocks)]

    def _certificate(self, piece: Slice, limbs: int, first: int, last: int) -> float:
        """An upper bound of all partial sums, by Cauchy and Schwarz."""
        if (first, last) not in self._rows:
            self._rows[first, last] = length(self.norms[:, first:last]).tolist()
        rows = max(self._rows[first, last][:limbs])
        return rows * joint(piece.norms[first:last]) * slack(2)

    def _finish(self, sums: Array, known: Array, tile: Tile, result: Array) -> None:
        """Carries, checks, adds the bias and rounds, into the tile's part of the result."""
        check(sums, known, self._carried(sums, tile))
        finest = self.top - WIDTH * self.limbs
        below, rest = divmod(self.low - finest, WIDTH)
        last = self.limbs - below
        if rest or below < 0 or last < 1:
            whole = settle(sums, self.top)  # the first limb holds all that is left
            result[...] = regrid(whole, self.low + WIDTH * self.count, self.low).limbs
            return
        first = last - self.count
        if first < 0:
            result[:-first] = 0.0
        result[max(0, -first) :] = sums[max(0, first) : last]
        if first < 0:  # likewise
            carry(result[: 1 - first])

    def _carried(self, sums: Array, tile: Tile) -> Array | None:
        """Adds the bias and carries, in place; returns the bias of the tile."""
        if self.bias is None:
            carry(sums)
            return None
        biased = self.bias[:, tile.start : tile.stop]
        carry_with(sums, biased[:, None, :])
        return biased

    def _rounded(self, sums: Array) -> Array:
        """Carried sums on the grid of the result."""
        whole = Digits(sums, self.top)
        if not self.largest < math.ldexp(1.0, min(1000, self.top + 8)):
            whole = settled(sums, self.top)  # a first limb beyond 2^30 loses digits when shifted
        below, rest = divmod(self.low - whole.low, WIDTH)
        first = whole.n - below - self.count
        if rest or below < 0 or first < 0:
            return regrid(whole, self.low + WIDTH * self.count, self.low).limbs
        if first == 0:
            return whole.limbs[: self.count]
        return regrid(whole, self.low + WIDTH * self.count, self.low).limbs


class Scratch:
    """Arrays that are reused for every tile."""

    def __init__(self, engine: Engine, like: Array) -> None:
        self.engine = engine
        self.like = like
        self.kept: dict[str, Array] = {}

    def room(self, name: str, shape: tuple[int, ...]) -> Array:
        """An array of a shape with arbitrary contents; the next call of this name reuses it."""
        size = math.prod(shape)
        if name not in self.kept or self.kept[name].shape[0] < size:
            self.kept[name] = self.engine.empty((size,), self.like)
        return self.kept[name][:size].reshape(*shape)


def matmul(x: Array, y: Array, out: Array) -> None:
    """out = x·y, by the BLAS of the arrays' engine."""
    engine_of(x).module.matmul(x, y, out=out)


def check(sums: Array, known: Array, bias: Array | None = None) -> None:
    """Compares the sum of the columns with lo and hi, `known`; an error where they differ.

    Both are carried, so sums of less than 2^30 columns are exact.  A bias, in the same limbs, is
    part of the sums but not of `known`.
    """
    if NUMPY.largest(differences(sums, known, bias)) != 0.0:
        raise _disagrees()


def assure(engine: Any, wrong: Sequence[Array]) -> None:
    """The same check for the results of `differences` on a device."""
    sizes = [engine.largest_of(found.reshape(1, -1)) for found in wrong]
    if sizes and any(size != 0.0 for size in engine.bounds(engine.concatenate(sizes))):
        raise _disagrees()


def _disagrees() -> WrongProduct:
    return WrongProduct(
        _("a product of matrices is wrong: its checksum does not agree"),
        expected=_("exact float64 products"),
        hint="byhand selftest",
    )


def differences(sums: Array, known: Array, bias: Array | None = None) -> Array:
    """The differences that `check` tests: carried, and zero if all is right."""
    found = sums.sum(-1)
    found -= known[..., 0]
    high = known[..., 1]
    found[:-1] -= high[1:]  # 2^22·hi: one limb up
    found[0] -= high[0] * BASE
    if bias is not None:
        found -= bias.sum(1)[:, None]
    return carry(found)
