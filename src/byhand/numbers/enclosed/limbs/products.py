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
from dataclasses import dataclass
from typing import Any

import numpy as np

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
from byhand.numbers.enclosed.limbs.checksums import (
    WrongProduct,
    assure,
    check,
    differences,
    disagrees,
)
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of
from byhand.numbers.enclosed.limbs.joined_limbs import (
    EXACT,
    FILLED,
    SLICES,
    Tail,
    first_joined,
    laid_out,
)
from byhand.numbers.enclosed.limbs.radii import length, plus, slack, times
from byhand.numbers.enclosed.limbs.row_norms import row_norms
from byhand.numbers.enclosed.limbs.scratch import Scratch
from byhand.numbers.enclosed.limbs.slices import Matrix, Slice, Tile, joint

ROWS = 64  # rows of x worked out at a time on a processor, so that a tile's limbs stay in the cache


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
        if self.engine is NUMPY and (bias is None or bias.top <= x.top + matrix.top - WIDTH):
            x = first_joined(x, matrix, largest)
        self.x, self.rows = x, x.shape[0]
        self.top = x.top + matrix.top  # limb d of the sums weighs 2^(top - 22(d+1)); d = 0 is spare
        self.largest = largest
        self.norms = row_norms(x, matrix.blocks)
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
        self.exact = x.n  # limbs that are multiplied exactly
        self.tail: Tail | None = None
        rounded = self.low > self.top - WIDTH * whole
        if self.engine is NUMPY and (self.error or rounded) and x.n > 1:
            self._join_the_last(tolerance)
        if rounded:
            self.error = plus(self.error, HALF * math.ldexp(1.0, self.low))
        self.bias = None
        if bias is not None:
            finest = self.top - WIDTH * self.limbs
            self.bias = regrid(bias, max(self.top, finest + WIDTH), finest).limbs
            if bias.low < finest:
                self.error = plus(self.error, HALF * math.ldexp(1.0, finest))

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

    def _join_the_last(self, tolerance: float) -> None:
        """Takes the last two limbs of x as one, where that is near enough (`joined_limbs`)."""
        tail, rounding = Tail.of(self.x, self.matrix, self.norms, self.top)
        if not tail.fits:
            return
        needed = -(-(self.top - self.low) // WIDTH)
        for limbs in range(max(self.x.n, needed), self.x.n + 2):
            error = plus(rounding, self._left_out(limbs, tail.first))
            fewer = self._pairs(tail.first, limbs, 1) < self._pairs(self.x.n, self.limbs)
            if error <= tolerance and fewer:
                self.tail, self.exact, self.limbs, self.error = tail, tail.first, limbs, error
                return

    def _pairs(self, exact: int, limbs: int, joined: int = 0) -> int:
        """How many pairs of limb and slice are multiplied; `joined`: and those of the tail."""
        count = max((len(tile.slices) for tile in self.matrix.tiles), default=0)
        return sum(max(0, min(exact, limbs - t - 1)) + joined * (t < SLICES) for t in range(count))

    def _left_out(self, limbs: int, exact: int | None = None) -> float:
        """A bound of the pairs beyond `limbs` limbs, in any entry, of the first limbs of x."""
        missing = 0.0
        exact = self.x.n if exact is None else exact
        rows = length(self.norms)
        for t in range(max((len(tile.slices) for tile in self.matrix.tiles), default=0)):
            column = self.matrix.column_norm(t)
            for i in range(max(0, limbs - t - 1), exact):
                unit = math.ldexp(1.0, max(-1000, self.top - WIDTH * (i + t + 2)))
                missing = plus(missing, times(float(rows[i]), column, unit))
        return missing

    def product(self) -> Product:
        engine, matrix, x = self.engine, self.matrix, self.x
        if engine is not NUMPY:
            return self._product_elsewhere(engine)
        result = engine.empty((self.count, self.rows, matrix.outputs), x.limbs)
        parts = [slice(start, min(start + ROWS, self.rows)) for start in range(0, self.rows, ROWS)]
        laid = [laid_out(x.limbs[:, part], self.tail) for part in parts]
        scratch = Scratch(engine, x.limbs)
        known = [self._known(rows) for rows in laid]
        for number, tile in enumerate(matrix.tiles):
            for part, rows, (checks, totals) in zip(parts, laid, known, strict=True):
                sums = self._sums(tile, rows, scratch)
                added = None
                if self.tail is not None:
                    made = scratch.last("tail", sums.shape[1:])
                    if not self.tail.agrees(made, totals[:, number]):
                        raise disagrees()
                    added = self.tail.add_to(sums, made)
                this = checks[:, :, 2 * number : 2 * number + 2]
                self._finish(sums, this, added, tile, result[:, part, tile.start : tile.stop])
        made = Digits(result, self.low + WIDTH * self.count)
        return Product(without_empty_limbs(made), self.error)

    def _known(self, rows: Array) -> tuple[Array, Array]:
        """What the columns of every tile add up to: of exact limbs, and of the tail."""
        scratch = Scratch(self.engine, rows)
        checks = carry(self._sums(self.matrix.checks, rows, scratch))
        if self.tail is None:
            return checks, None
        return checks, rows[-checks.shape[1] :] @ self.matrix.totals

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
        """(limbs, rows, columns): limb by slice, summed along the diagonals, exactly.

        Products of the tail are summed apart, in `scratch`.
        """
        tail = self.tail is not None
        count = rows.shape[0] // (self.exact + tail)
        width = tile.stop - tile.start
        sums = scratch.room("sums", (self.limbs, count, width))
        if tail:
            scratch.room("tail", (count, width))
        filled, fresh = 0.0, True
        for first, last in self._groups(tile):
            for t, piece in enumerate(tile.slices):
                limbs = min(self.exact, self.limbs - t - 1)
                joined = tail and t < SLICES
                if limbs <= 0 and not joined:
                    break
                if piece.thin and first > 0:
                    continue  # added with the first group
                end = len(self.matrix.blocks) if piece.thin else last
                bound = self._certificate(piece, limbs, first, end)
                if filled + bound >= EXACT:
                    carry(sums)
                    filled = FILLED
                if filled + bound >= EXACT:
                    raise WrongProduct(_("a product of limbs is too large to be exact"))
                filled += bound
                inputs = slice(self.matrix.blocks[first].start, self.matrix.blocks[last - 1].stop)
                self._add(piece, t, (limbs, joined, inputs, fresh), rows, sums, scratch)
                fresh = False
        if self.tail is not None and filled + self.tail.height >= EXACT:
            carry(sums)  # there has to be room for the tail
        return sums

    def _add(
        self,
        piece: Slice,
        t: int,
        part: tuple[int, bool, slice, bool],
        rows: Array,
        sums: Array,
        scratch: Scratch,
    ) -> None:
        """Adds the first limbs of the rows, and the tail if it is joined, times slice t."""
        limbs, joined, inputs, fresh = part
        count, width = sums.shape[1:]
        into = sums[t + 1 : t + 1 + limbs]
        if piece.thin:
            whole = rows.reshape(-1, count, rows.shape[1])
            for few in piece.few:
                made = whole[: limbs + joined, :, few.inputs] * few.values
                into[..., few.columns] += made[:limbs]
                if joined:
                    scratch.last("tail", (count, width))[:, few.columns] += made[limbs] * BASE**-t
            return
        some, data = rows[: (limbs + joined) * count, inputs], piece.data[inputs]
        if fresh:
            sums[0] = 0.0
            sums[limbs + 1 :] = 0.0
            matmul(some, data, sums[1 : limbs + joined + 1].reshape(-1, width))
            if joined:
                scratch.last("tail", (count, width))[...] = sums[limbs + 1]
                sums[limbs + 1] = 0.0
        elif not isinstance(sums, np.ndarray):
            if piece.columns is None:
                into.view(limbs * count, width).addmm_(some, data)
            else:
                into.index_add_(2, piece.columns, (some @ data).view(limbs, count, -1))
        else:
            made = scratch.room("part", ((limbs + joined) * count, data.shape[1]))
            matmul(some, data, made)
            made = made.reshape(limbs + joined, count, -1)
            columns = slice(None) if piece.columns is None else piece.columns
            into[..., columns] += made[:limbs]
            if joined:
                scratch.last("tail", (count, width))[:, columns] += made[limbs] * BASE**-t

    def _groups(self, tile: Tile) -> list[tuple[int, int]]:
        """Runs of blocks of inputs that together pass the certificate."""
        blocks = len(self.matrix.blocks)
        size = blocks
        while size > 1:
            groups = [(i, min(i + size, blocks)) for i in range(0, blocks, size)]
            if all(
                sum(self._certificate(s, self.exact, *group) for s in tile.slices) < EXACT - FILLED
                for group in groups
            ):
                return groups
            size = -(-size // 2)
        return [(i, i + 1) for i in range(blocks)]

    def _certificate(self, piece: Slice, limbs: int, first: int, last: int) -> float:
        """An upper bound of all partial sums, by Cauchy and Schwarz."""
        if (first, last) not in self._rows:
            self._rows[first, last] = length(self.norms[:, first:last]).tolist()
        rows = max(self._rows[first, last][:limbs], default=0.0)
        return rows * joint(piece.norms[first:last]) * slack(2)

    def _finish(self, sums: Array, known: Array, added: Array, tile: Tile, result: Array) -> None:
        """Carries, checks, adds the bias and rounds, into the tile's part of the result."""
        check(sums, known, self._carried(sums, tile), added)
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


def matmul(x: Array, y: Array, out: Array) -> None:
    """out = x·y, by the BLAS of the arrays' engine."""
    engine_of(x).module.matmul(x, y, out=out)
