"""The operations of learning on NumPy float arrays: losses, adjoints, and an optimizer's step."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import Array, Note
from byhand.numbers.floats import attention
from byhand.numbers.floats.formats import Data, narrowed
from byhand.numbers.floats.places import side_by_side
from byhand.numbers.floats.results import all_finite, length
from byhand.numbers.floats.slopes import SLOPES
from byhand.numbers.floats.system import System, quiet

RUN = 1 << 12  # squares that are added one after the other; their sums are added pairwise


class Learning(System):
    """Losses, adjoints and updates."""

    # ------------------------------------------------------------------- the loss of a text

    @quiet(all="ignore")
    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        ids = np.asarray(targets)
        counted = ids != UNCOUNTED
        result = self._room(len(ids))
        result[:] = 0
        result[counted] = 0 - np.log(self._wide(probs[counted, ids[counted]]))
        result = self._give(result, probs)
        return result if counted.all() else np.ma.MaskedArray(result, mask=~counted)

    @quiet(all="ignore")
    def logprobs(self, x: Array, targets: Sequence[int]) -> Array:
        ids = np.asarray(targets)
        counted = ids != UNCOUNTED
        below = self._wide(x[counted])
        below = below - below.max(axis=-1, keepdims=True)
        own = below[np.arange(len(below)), ids[counted]]
        result = self._room(len(ids))
        result[:] = 0
        result[counted] = own - np.log(np.exp(below).sum(axis=-1))
        result = self._give(result, x)
        return result if counted.all() else np.ma.MaskedArray(result, mask=~counted)

    @quiet(all="ignore")
    def average(self, losses: Array) -> Array:
        counted = self._wide(np.ma.compressed(losses))
        return self._give(np.add.reduce(counted, keepdims=True) / len(counted), losses)

    @quiet(all="ignore")
    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        ids = for_each_row(targets, len(probs))
        counted = ids != UNCOUNTED
        result = self._room(*probs.shape)
        np.copyto(result, self._wide(probs))
        result[~counted] = 0
        result[counted, ids[counted]] -= 1
        if counted.sum() > 1:
            result /= result.dtype.type(counted.sum())
        return self._give(result, probs)

    # ------------------------------------------------------------------- sums

    @quiet(all="ignore")
    def total(self, **terms: Array) -> Array:
        first, *others = map(self._wide, terms.values())
        result = self._room(*first.shape)
        np.copyto(result, first)
        for term in others:
            result += term
        return self._give(result, *terms.values())

    @quiet(all="ignore")
    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Array:
        wide = self._wide(side_by_side(x) if merged and x.ndim == 3 else x)
        product = wide if by is None else wide * self._wide(by)
        if each:
            return self._give(np.add.reduce(product, axis=1, keepdims=True), x, by)
        rows = product.reshape(-1, product.shape[-1])
        return self._give(np.add.reduce(rows, axis=0), x, by)

    @quiet(all="ignore")
    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Array:
        one, other = self._wide(np.ma.getdata(x)), self._wide(np.ma.getdata(y))
        product = one * other
        if isinstance(x, np.ma.MaskedArray):
            np.copyto(product, 0, where=np.ma.getmaskarray(x))
        dots: Data = np.add.reduce(product, axis=-1)
        return self._give(dots[..., None] if kept else dots, x, y)

    @quiet(all="ignore")
    def sum_groups(self, x: Array, *, heads: int) -> Array:
        wide = self._wide(x)
        return self._give(np.add.reduce(wide.reshape(heads, -1, *x.shape[1:]), axis=1), x)

    # ------------------------------------------------------------------- products

    @quiet(all="ignore")
    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        one, other = (self._wide(side_by_side(y) if y.ndim == 3 else y) for y in (x, grad))
        left, right = (one, other) if layout == "in_out" else (other, one)
        result = self._room(left.shape[1], right.shape[1])
        np.matmul(left.T, right, out=result)
        if length(one) * length(other) < self.format.largest / 2:  # no entry is larger than that
            return narrowed(result, self.dtype)
        return self._give(result, x, grad)

    @quiet(all="ignore")
    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        data, hidden = self._wide(np.ma.getdata(x)), None
        if isinstance(x, np.ma.MaskedArray):
            hidden = np.ma.getmaskarray(x)
            data = np.where(hidden, data.dtype.type(0), data)
        laid = self._room(data.shape[1], len(data), y.shape[-1])
        result = attention.mixed(data, self._wide(y), hidden, laid)
        if scale is not None:
            result *= self._constant(scale)
        return self._give(result, x, y)

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        return self.along_keys(x.transpose(0, 2, 1), y, scale=scale)

    @quiet(all="ignore")
    def scale_by(self, x: Array, by: Array) -> Array:
        result = np.multiply(self._wide(x), self._wide(by), out=self._room(*x.shape))
        return self._give(result, x, by)

    # ------------------------------------------------------------------- places

    @quiet(all="ignore")
    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        wide = self._wide(grad)
        if scale is not None:
            wide = wide * self._constant(scale)
        result = np.zeros((rows, wide.shape[1]), dtype=wide.dtype)
        places = np.asarray(ids, dtype=np.intp)
        np.add.at(result, places, wide)
        table = narrowed(result, self.dtype)
        finite = all_finite(table[places])  # as the zeros of the other rows are
        return table if finite else self._give(table, grad)

    def pack_heads(
        self,
        queries: Array,
        keys: Array | None = None,
        values: Array | None = None,
        *,
        starts: Sequence[int],
        stride: int,
    ) -> Array:
        parts = [part for part in (queries, keys, values) if part is not None]
        columns = sum(part.shape[0] * part.shape[2] for part in parts)
        result = np.empty((queries.shape[1], columns), dtype=queries.dtype)
        for start, part in zip(starts, parts, strict=True):
            for head, rows in enumerate(part):
                first = start + head * stride
                result[:, first : first + part.shape[2]] = rows
        return result

    def unmasked(self, x: Array) -> Array:
        return np.ma.filled(x, 0) if isinstance(x, np.ma.MaskedArray) else x

    @quiet(all="ignore")
    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Array:
        wide = self._wide(grad)
        result = np.zeros((rows, len(wide)), dtype=wide.dtype)
        places = np.asarray(buckets, dtype=np.intp).reshape(-1)
        np.add.at(result, places, wide.reshape(len(wide), -1).T)
        return self._give(result, grad)

    # ------------------------------------------------------------------- adjoints

    @quiet(all="ignore")
    def sinks_back(self, weights: Array, dot: Array) -> Array:
        shares = self._wide(np.ma.filled(weights, 0))
        rest = shares.dtype.type(1) - np.add.reduce(shares, axis=-1)
        return self._give(0 - np.add.reduce(rest * self._wide(dot), axis=-1), weights, dot)

    @quiet(all="ignore")
    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Array:
        hidden = np.ma.getmaskarray(grad) if isinstance(grad, np.ma.MaskedArray) else None
        data = self._wide(np.ma.getdata(x)) / self._constant(cap)
        if hidden is not None:
            data = np.where(hidden, data.dtype.type(0), data)
        bent = np.cosh(data)
        result = self._wide(np.ma.getdata(grad)) / bent / bent  # 1 - tanh² is 1/cosh²
        if hidden is not None:
            np.copyto(result, 0, where=hidden)
        return attention.masked(self._give(result, grad, x), hidden, below=0)

    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        wide = self._wide(x)
        beyond = np.zeros(wide.shape, dtype=bool)
        if least is not None:
            beyond |= wide < self._constant(least)
        if most is not None:
            beyond |= wide > self._constant(most)
        back = self._wide(grad)
        return narrowed(np.where(beyond, back.dtype.type(0), back), self.dtype)

    @quiet(all="ignore")
    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        shares = self._wide(np.ma.getdata(weights))
        result = np.subtract(
            self._wide(np.ma.getdata(grad)), self._wide(dot)[..., None], out=self._room(*grad.shape)
        )
        result *= shares
        hidden = np.ma.getmaskarray(weights) if isinstance(weights, np.ma.MaskedArray) else None
        if hidden is not None:
            np.copyto(result, 0, where=hidden)
        return attention.masked(self._give(result, weights, grad, dot), hidden, below=0)

    @quiet(all="ignore")
    def slope(self, x: Array, *, kind: str) -> Array:
        if kind not in SLOPES:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        result = self._room(*x.shape)
        SLOPES[kind](self._wide(x), result)
        return narrowed(result, self.dtype)  # none is larger than 1.2: finite where x is

    @quiet(all="ignore")
    def normalize_back(self, grad: Array, by: Array) -> Array:
        top, below = self._wide(grad), self._wide(by)
        result = np.divide(top, below[..., None], out=self._room(*grad.shape))
        for place in [] if below.all() else map(tuple, np.argwhere(below == 0)):
            if not top[place].any():
                result[place] = 0
                self.notes.append(Note("zero-variance", tuple(map(int, place))))
        return self._give(result, grad, by)

    @quiet(all="ignore")
    def divisor_back(self, dot: Array, by: Array) -> Array:
        return self._give(_quotient(0 - self._wide(dot), self._wide(by)), dot, by)

    @quiet(all="ignore")
    def root_back(self, grad: Array, root: Array) -> Array:
        return self._give(_quotient(self._wide(grad), 2 * self._wide(root)), grad, root)

    @quiet(all="ignore")
    def mean_square_back(self, grad: Array, x: Array) -> Array:
        share = self._wide(grad) * self._work.dtype.type(2) / self._work.dtype.type(x.shape[-1])
        result = np.multiply(self._wide(x), share[..., None], out=self._room(*x.shape))
        return self._give(result, grad, x)

    @quiet(all="ignore")
    def center_back(self, grad: Array) -> Array:
        return self._give(0 - np.add.reduce(self._wide(grad), axis=-1), grad)

    @quiet(all="ignore")
    def mean_back(self, grad: Array, *, width: int) -> Array:
        share = self._wide(grad) / self._work.dtype.type(width)
        result = self._room(*grad.shape, width)
        np.copyto(result, share[..., None])
        return self._give(result, grad)

    @quiet(all="ignore")
    def expert_shares_back(
        self,
        x: Array,
        chosen: Array,
        shares: Array,
        grad: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Array:
        data, kept, share, back = map(self._wide, (x, chosen, shares, grad))
        factor = self._constant(Fraction(1) if scale is None else scale)
        dot = np.add.reduce(share * back, axis=-1, keepdims=True) / factor
        if alone and normalised:
            total = np.add.reduce(data * kept, axis=-1, keepdims=True)
            total = total if eps is None else total + self._constant(eps)
            result = kept * (back - dot) * (factor / total)
        elif alone:
            result = kept * back * factor
        elif normalised:
            result = share * (back - dot)
        else:
            every = attention.shares(data, self._room(*data.shape))
            result = every * (back * kept - dot) * factor
        return self._give(result, x, grad)

    # ------------------------------------------------------------------- an optimizer's step

    @quiet(all="ignore")
    def sum_squares(self, x: Array) -> Array:
        flat = self._wide(x).ravel(order="K")
        parts = [flat[start : start + RUN] for start in range(0, len(flat), RUN)]
        squares = np.array([np.dot(part, part) for part in parts], dtype=flat.dtype)
        return self._give(np.add.reduce(squares, keepdims=True), x)

    @quiet(all="ignore")
    def norm(self, **squares: Array) -> Array:
        total = np.add.reduce([self._wide(square) for square in squares.values()])
        return self._give(np.sqrt(total), *squares.values())

    @quiet(all="ignore")
    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        factor = self._constant(limit) / (self._wide(norm) + self._constant(eps))
        return self._give(np.minimum(factor, self._work.dtype.type(1)), norm)

    @quiet(all="ignore")
    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        wide = self._wide(y)
        result = np.multiply(
            wide, wide if squared else self._constant(of_y), out=self._room(*y.shape)
        )
        if squared:
            result *= self._constant(of_y)
        if x is not None:
            result += self._wide(x) * self._constant(of_x)
        return self._give(result, x, y)

    @quiet(all="ignore")
    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        result = np.sqrt(self._wide(x), out=self._room(*x.shape))
        result += self._constant(eps)
        return self._give(result, x)

    @quiet(all="ignore")
    def divide(self, x: Array, y: Array) -> Array:
        result = np.divide(self._wide(x), self._wide(y), out=self._room(*x.shape))
        return self._give(result, x, y)


def for_each_row(targets: int | Sequence[int], rows: int) -> Data:
    """The target of each row; one id is that of the last row, and the others do not count."""
    if isinstance(targets, int):
        return np.asarray([UNCOUNTED] * (rows - 1) + [targets])
    return np.asarray(targets)


def _quotient(top: Data, below: Data) -> Data:
    """top / below, and 0 where both are 0."""
    return np.where((top == 0) & (below == 0), top.dtype.type(0), top / below)
