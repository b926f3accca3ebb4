"""Sums over positions, rows and readers on ranges: the gradients of weights, in any order.

The sizes of the terms count, not that of their sum: it may be small where the terms are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot

import numpy as np

from byhand.expression import Expression
from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.attention import free_of_rounding
from byhand.numbers.allowed.precisions import OWN, Unit
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    Data,
    Origin,
    Range,
    added_up,
    gammas,
    plus,
    product_radius,
    product_usual,
    quadrature,
    wide,
)
from byhand.numbers.allowed.rounding import Rounding, overflowing, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats.places import side_by_side

Times = Callable[[Data, Data], Data]


class Sums(Rounding):
    """total, column_sums, sum_groups, outer, scatter, pack_heads, scale_by."""

    texts = 1  # texts whose gradients may have been stored, and added to those of the others

    @quiet(all="ignore")
    def total(self, **terms: Array) -> Range:
        """Added in any order, each sum stored; parts of a norm are added before they are stored."""
        parts = [term if _inside(term) else self._read(term) for term in terms.values()]
        inside = [part.origin for part in parts if part.origin is not None and part.origin.inside]
        centred = any(made.centred for made in inside)
        store = self.precision.store
        p = self.precision if centred and not self.precision.narrow else self.precision.island
        mid = np.asarray(sum(wide(part.mid) for part in parts), dtype=np.float64)
        rad = plus(*(part.radius() for part in parts))
        usual = quadrature(*(part.usual for part in parts))
        whole = np.asarray(sum(_sizes(part) for part in parts))
        count = sum(2 if _is_sum(part) else 1 for part in parts)
        room = whole * (float(added_up(count, p.work.half * bool(inside))) + count * OWN)
        rad = room if rad is None else rad + room
        if len(inside) == len(parts):
            made = Origin(addends=whole, centred=centred)
            result = self._part(p, mid, rad, usual, made)
            made.inside = centred and not any(term.last for term in inside)
            return result
        made = Origin(addends=whole)
        sizes = np.asarray(sum(np.abs(wide(part.mid)) for part in parts)) if inside else whole
        between = count - 2  # sums on the way that are stored
        if all(map(_is_sum, parts)):  # a table's gradients, of each text
            between += 2 * (self.texts - 1)
        if between > 0:
            room = sizes * added_up(between, store.half) + between * store.least
            rad = plus(rad, overflowing(room, sizes, store.largest))
            usual = quadrature(usual, sizes * (0.2 * store.half))
        return self._stored(mid, rad, usual, origin=made)

    @quiet(all="ignore")
    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Range:
        """The gradients of biases and gains; those of a norm may be summed up in 16 bits."""
        if each:
            others = [None] * len(x) if by is None else [by[k] for k in range(len(by))]
            heads = [self.column_sums(x[k], by=other) for k, other in enumerate(others)]
            gathered: Range = self.stack(heads).each(lambda part: part[:, None, :])
            return gathered
        p = self.precision
        x = self._read(x)
        if merged and x.ndim == 3:
            x = x.each(side_by_side)
        rows = x.each(lambda data: data.reshape(-1, data.shape[-1]))
        data, size, rad, spread = wide(rows.mid), np.abs(wide(rows.mid)), rows.radius(), rows.usual
        if by is not None:
            one = self.used_again(by).each(lambda data: data.reshape(-1, data.shape[-1]))
            parts = None if by.origin is None else by.origin.parts
            size = size * (np.abs(wide(one.mid)) if parts is None else parts.reshape(one.shape))
            rad, spread = product_radius(rows, one), product_usual(rows, one)
            data = data * wide(one.mid)
        n = len(data)
        unit = p.rows.half if merged else max(p.rows.half, p.parameters.half)
        relative = float(added_up(n, unit)) + (n + 2) * OWN
        if by is not None:
            relative += 4 * p.work.half
        room = size.sum(axis=0) * relative + (2 * n) * (p.rows.least + p.work.least)
        overflowing(room, size.sum(axis=0), p.reach)
        if rad is not None:
            room += rad.sum(axis=0) * (1 + relative)
        mid = data.sum(axis=0)
        usual = self._usual_of(mid, np.square(size).sum(axis=0), n, unit)
        if spread is not None:
            usual = np.hypot(usual, np.sqrt(np.square(spread).sum(axis=0)))
        store = p.store if merged else p.parameters
        return self._gathered(mid, room, usual, size.sum(axis=0), x, store)

    @quiet(all="ignore")
    def sum_groups(self, x: Array, *, heads: int) -> Range:
        """The heads' gradients may each be stored, and their sums too."""
        p = self.precision
        x = self._read(x)
        grouped = x.each(lambda data: data.reshape(heads, -1, *data.shape[1:]))
        size = np.abs(wide(grouped.mid)).sum(axis=1)
        n = grouped.shape[1]
        relative = float(added_up(max(n - 2, 0), p.store.half)) + n * OWN
        rad = size * relative + n * p.store.least
        overflowing(rad, size, p.store.largest)
        if (radius := grouped.radius()) is not None:
            rad += radius.sum(axis=1) * (1 + n * p.store.half)
        squares = np.square(wide(grouped.mid)).sum(axis=1)
        usual = np.sqrt(max(n - 2, 0) * squares) * (TYPICAL * p.store.half)
        if grouped.usual is not None:
            usual = np.hypot(usual, np.sqrt(np.square(grouped.usual).sum(axis=1)))
        return self._stored(wide(grouped.mid).sum(axis=1), rad, usual)

    # ------------------------------------------------------------------- products

    @quiet(all="ignore")
    def outer(self, x: Array, grad: Array, *, layout: str) -> Range:
        """The gradient of a matrix: products in the order of any matrix product."""
        rows = [self._read(y) for y in (x, grad)]
        left, right = (y.each(side_by_side) if y.ndim == 3 else y for y in rows)
        if layout != "in_out":
            left, right = right, left

        def times(a: Data, b: Data) -> Data:
            return a.T @ b

        mid, rad, usual, sizes = self._products(left, right, times, np.asarray(len(left)))
        return self._gathered(mid, rad, usual, sizes, rows[1], self.precision.store)

    def _gathered(
        self, mid: Data, rad: Data, usual: Data, sizes: Data, grad: Range, store: Unit
    ) -> Range:
        """A weight's gradient, stored.

        Where the gradients that it sums up were not claimed, the mean over positions may have been
        taken last.  The gradients of several texts may be added to a stored sum.
        """
        if not grad.claimed:
            rad += (np.abs(mid) + rad) * store.half
        made = None
        if self.texts > 1:
            rad += sizes * added_up(2 * self.texts, store.half) + 2 * self.texts * store.least
            usual = np.hypot(usual, sizes * (0.2 * store.half))
            made = Origin(addends=sizes)
        return self._stored(mid, rad, usual, origin=made, store=store)

    def _products(
        self, x: Range, y: Range, times: Times, count: Data, *, scale: Expression | None = None
    ) -> tuple[Data, Data, Data, Data]:
        """Sums of `count` products: middles, radii, usual errors and sizes, before storing."""
        p = self.precision
        a, b = wide(x.mid), wide(y.mid)
        abs_a, abs_b, r_x, r_y = np.abs(a), np.abs(b), x.radius(), y.radius()
        factor, off = (1.0, 0.0) if scale is None else constant(scale)
        relative = (1 + gammas(count, p.accumulate.half)) * (1 + p.entering) ** 2 * (1 + off)
        if not free_of_rounding(factor, off):  # both sides times its root, at the worst
            relative = relative * (1 + p.work.half) ** 4
        relative = relative - 1 + (count + 4) * OWN
        mid, sizes = times(a, b), times(abs_a, abs_b)
        # each product and each partial sum may be flushed to 0
        rad = sizes * relative + 2 * (1 + relative) * count * p.accumulate.least
        if r_x is not None:
            rad += times(r_x, abs_b) * (1 + relative)
            abs_a = abs_a + r_x
        if r_y is not None:
            rad += times(abs_a, r_y) * (1 + relative)
            abs_b = abs_b + r_y
        lost = p.entering_least  # below the format of products, times the other side
        if factor != 1:  # or what is lost where one side is scaled before
            lost += 2 * p.work.least * max(1.0, abs(factor) ** 0.5) / abs(factor)
        if lost:
            ones = np.ones(a.shape), np.ones(b.shape)
            rad += (times(abs_a, ones[1]) + times(ones[0], abs_b)) * (lost * (1 + relative))
        most = float(np.max(relative, initial=0.0))
        overflowing(rad, sizes, p.accumulate.largest / (1 + most))
        along, across = p.usual_sum(int(np.max(count, initial=1)))
        along = hypot(along, 0.5 * p.entering)
        across = hypot(across, 0.3 * p.entering, 0.0 if factor == 1 else 0.3 * p.work.half)
        other = np.square(b) * across**2
        if y.usual is not None:
            other += np.square(y.usual)
        usual = np.square(mid * along) + times(np.square(a), other)
        if x.usual is not None:
            usual += times(np.square(x.usual), np.square(b))
        np.sqrt(usual, out=usual)
        if factor != 1:
            # the product may be stored first: scaling it then has its share of 4w
            rad += p.store.least
            rad[np.abs(mid) + rad > p.store.largest] = np.inf
            size = abs(factor)
            mid, rad, usual, sizes = mid * factor, rad * size, usual * size, sizes * size
            rad += np.abs(mid) * (2 * OWN)
        return mid, rad, usual, sizes

    @quiet(all="ignore")
    def scale_by(self, x: Array, by: Array) -> Range:
        x, by = self._read(x), self._read(by)
        return self._stored(wide(x.mid) * wide(by.mid), product_radius(x, by), product_usual(x, by))

    # ------------------------------------------------------------------- places

    @quiet(all="ignore")
    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Range:
        """Added one after the other in the format, in any order, as atomics do."""
        p = self.precision
        grad = self._read(grad)
        places = np.asarray(ids, dtype=np.intp)
        factor, off = (1.0, 0.0) if scale is None else constant(scale)
        counts = np.bincount(places, minlength=rows)[:, None]

        def added(data: Data) -> Data:
            table = np.zeros((rows, data.shape[1]))
            np.add.at(table, places, data)
            return table

        sizes = added(np.abs(wide(grad.mid))) * abs(factor)
        relative = added_up(np.maximum(counts - 1, 0), p.parameters.half) + (counts + 3) * OWN
        if scale is not None:  # rounded to the format, and each row times it
            relative = relative + 2 * p.parameters.half + off
        rad = sizes * relative + 2 * counts * p.parameters.least
        overflowing(rad, sizes, p.parameters.largest)
        if (radius := grad.radius()) is not None:
            rad += added(radius) * (abs(factor) * (1 + relative))
        mid = added(wide(grad.mid)) * factor
        squares = added(np.square(wide(grad.mid))) * factor**2
        usual = np.sqrt(np.maximum(counts - 1, 0) * squares) * (0.3 * p.parameters.half)
        if grad.usual is not None:
            usual = np.hypot(usual, np.sqrt(added(np.square(grad.usual))) * abs(factor))
        return self._gathered(mid, rad, usual, sizes, grad, p.parameters)

    def pack_heads(
        self,
        queries: Array,
        keys: Array | None = None,
        values: Array | None = None,
        *,
        starts: Sequence[int],
        stride: int,
    ) -> Range:
        parts = [self._read(part) for part in (queries, keys, values) if part is not None]

        def packed(arrays: list[Data]) -> Data:
            columns = sum(part.shape[0] * part.shape[2] for part in parts)
            result = np.zeros((parts[0].shape[1], columns))
            for start, array in zip(starts, arrays, strict=True):
                for head, rows in enumerate(array):
                    first = start + head * stride
                    result[:, first : first + array.shape[2]] = rows
            return result

        def there(arrays: list[Data | None]) -> Data | None:
            if all(array is None for array in arrays):
                return None
            zeros = (np.zeros(part.shape) for part in parts)
            return packed([zero if x is None else x for x, zero in zip(arrays, zeros, strict=True)])

        result = Range(
            packed([wide(part.mid) for part in parts]),
            there([part.radius() for part in parts]),
            there([part.usual for part in parts]),
        )
        result.claimed = all(part.claimed for part in parts)
        return result

    # ------------------------------------------------------------------- what a way back reads

    def used_again(self, x: Array) -> Range:
        """A value of the way forth as the way back uses it.

        Where it was claimed, it may be used before it was rounded, or be worked out once more.
        """
        read: Range = self._read(x)
        if not read.claimed:
            return read
        p = self.precision
        more = p.store.half + 4 * p.single if p.narrow else 4 * p.work.half
        size = np.abs(wide(read.mid))
        rad = plus(read.radius(), size * more + p.store.least)
        usual = quadrature(read.usual, size * (TYPICAL * p.store.half)) if p.narrow else read.usual
        return Range(read.mid, rad, usual, read.absent, claimed=True, origin=read.origin)

    def _usual_of(self, sums: Data, squares: Data, count: int, unit: float) -> Data:
        """The usual error of sums of terms whose squares are given, each partial sum rounded."""
        length = min(count, 512)
        along, across = 0.35 * unit * (length / 3) ** 0.5, 0.35 * unit * (length / 2) ** 0.5
        usual: Data = np.sqrt(np.square(sums * along) + squares * across**2)
        return usual


def _inside(x: Range) -> bool:
    return x.origin is not None and x.origin.inside


def _is_sum(x: Range) -> bool:
    return x.origin is not None and x.origin.addends is not None


def _sizes(x: Range) -> Data:
    """The sizes of the terms of a sum that nobody claimed; else that of the value."""
    if x.origin is not None and x.origin.addends is not None:
        return x.origin.addends
    return np.abs(wide(x.mid))
