"""The numbers of mistakes in attention: pairs turned by given tables, capped scores, a sink.

`Attended` has operations that no model here has; `Mistaken` adds those of other places.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.precisions import OWN, ULPS
from byhand.numbers.allowed.ranges import Origin, wide

Data = npt.NDArray[Any]
ANGLE = 48.0  # roundings of an angle: a power, its exponent, a scaling, a product
SHARED = 64  # heads whose values may be added one after the other
TURNED = 0.1  # the usual error of a table, of the largest


class Attended(Allowed):
    """Allowed numbers, also for wrong turns, scores and attention weights."""

    # ------------------------------------------------------------------- turned

    def turned_by(
        self,
        x: Range,
        *,
        tables: Data,
        angles: Data,
        read: tuple[Sequence[int], Sequence[int]],
        write: tuple[Sequence[int], Sequence[int]],
    ) -> Range:
        """x with each pair (a, b) as (A·a + B·b, C·a + D·b); `tables` are A, B, C, D (pos, pair).

        `read` and `write` are the entries of the pairs; `angles` tell how wrong a table may be.
        """
        x = self._read(x)
        p = self.precision
        kept = p.store.half if p.store.half > p.tables.half else 0.0
        off = np.abs(angles) * (ANGLE * (p.tables.half + OWN)) + ULPS * (p.tables.half + OWN) + kept
        a, b = (x.each(lambda data, at=list(each): data[..., at]) for each in read)  # type: ignore[misc]

        def times(value: Range, table: Data) -> Range:
            room = np.broadcast_to(off * np.maximum(1.0, np.abs(table)), value.shape)
            mid = np.broadcast_to(table, value.shape)
            return self.multiply(value, Range(mid, room, TURNED * room))

        mid = np.array(wide(x.mid))
        rad, usual = (np.zeros(x.shape) if part is None else np.array(part)
                      for part in (x.radius(), x.usual))  # fmt: skip
        for at, left, right in zip(write, tables[0::2], tables[1::2], strict=True):
            made = self.add(times(a, left), times(b, right))
            for whole, part in ((mid, made.mid), (rad, made.radius()), (usual, made.usual)):
                whole[..., list(at)] = 0.0 if part is None else part
        return Range(mid, rad, usual)

    # ------------------------------------------------------------------- scores

    def plus_terms(self, x: Range, *, terms: Data) -> Range:
        """Each entry plus its own number, itself a product that is rounded; the mask stays."""
        each = np.broadcast_to(terms, x.shape)
        off = np.abs(each) * (3 * self.precision.store.half)
        return _hidden_like(self.add(x, Range(each, off, 0.15 * off)), x)

    @np.errstate(over="ignore", invalid="ignore")
    def softcapped(self, x: Range, *, cap: float) -> Range:
        """cap·tanh(x/cap), entry by entry: its slope is at most 1."""
        x, p = self._read(x), self.precision
        mid = cap * np.tanh(wide(x.mid) / cap)
        # x/cap is rounded, then the function, then the product
        off = np.abs(mid) * (p.function + 4 * p.work.half + 4 * OWN)
        usual = np.abs(mid) * (0.6 * p.work.half)
        if (radius := x.radius()) is not None:
            off = off + radius
        if x.usual is not None:
            slope = 1 - np.square(mid / cap)
            usual = np.hypot(usual, slope * x.usual)
        return self._stored(mid, off, usual, absent=x.absent)

    # ------------------------------------------------------------------- weights

    def softmax_with(self, x: Range, *, extra: Data, sinks: Range | None = None) -> Range:
        """The softmax of each row with one more score, whose share is thrown away."""
        more = np.broadcast_to(extra, (*x.shape[:-1], 1)).astype(np.float64)
        x = self._read(x)

        def wider(part: Data | None, last: Data) -> Data | None:
            return None if part is None else np.concatenate((part, last), axis=-1)

        none = np.zeros(more.shape)
        mid = np.concatenate((wide(x.mid), more), axis=-1)
        wide_x = Range(mid, wider(x.radius(), none), wider(x.usual, none),
                       wider(x.absent, none.astype(bool)))  # fmt: skip
        result = self.softmax(wide_x, sinks=sinks).each(lambda data: data[..., :-1])
        result.origin = Origin(shares=True)
        return result

    @np.errstate(over="ignore", invalid="ignore")
    def exponentials(self, x: Range, *, shifted: bool) -> Range:
        """e^x, entry by entry, with the row's largest taken off first if `shifted`: no sum."""
        x, p = self._read(x), self.precision.island
        data = wide(x.mid)
        if x.absent is not None:
            data = np.where(x.absent, -np.inf, data)
        if shifted:
            data = data - data.max(axis=-1, keepdims=True)
        mid = np.exp(data)
        off = np.where(np.isfinite(data), np.abs(data), 0.0) * (2 * p.work.half + 2 * OWN)
        off = off + 1.01 * p.function + 4 * OWN
        usual = mid * (p.work.half * (0.6 + 0.4 * np.where(np.isfinite(data), np.abs(data), 0.0)))
        if (radius := x.radius()) is not None:
            off = off + radius * (2 if shifted else 1)
        if x.usual is not None:
            usual = np.hypot(usual, mid * x.usual)
        rad = np.where(mid > 0, mid * np.expm1(off), 0.0)
        made = self._stored(mid, rad, usual, absent=x.absent)
        made.origin = Origin(shares=True)
        return made

    # ------------------------------------------------------------------- heads

    def head_mean(self, x: Range) -> Range:
        """The mean over all heads, for each head."""
        x = self._read(x)
        heads = [x.each(lambda data, at=head: data[at : at + 1]) for head in range(len(x))]  # type: ignore[misc]
        total = reduce(self.add, heads)
        share = Range(np.full(total.shape, 1 / len(x)), relative=self.precision.work.half)
        mean = self.multiply(total, share)
        # heads that share a key head may be added one by one
        sizes = np.abs(wide(x.mid)).mean(axis=0, keepdims=True) * self.precision.accumulate.half
        rad, usual = mean.radius(), mean.usual
        mean = Range(
            mean.mid,
            SHARED * sizes if rad is None else rad + SHARED * sizes,
            sizes if usual is None else np.hypot(usual, sizes),
        )
        return _hidden_like(mean.each(lambda data: np.repeat(data, len(x), axis=0)), x)

    def heads_turned(self, x: Range, *, heads: Sequence[int]) -> Range:
        """(head, row, column) with rows and columns exchanged in some heads."""

        def turn(data: Data) -> Data:
            result = np.array(data)
            result[list(heads)] = data[list(heads)].transpose(0, 2, 1)
            return result

        read = self._read(x)
        return Range(read.mid, read.rad, read.usual).each(turn)

    # ------------------------------------------------------------------- rows of keys and values

    def rows_taken(self, x: Range, *, order: Data) -> Range:
        """(head, pos, width) made of other rows: `order` numbers them by head and position.

        A row numbered -1 is zeros.
        """

        def take(data: Data) -> Data:
            rows = data.reshape(-1, data.shape[-1])[np.maximum(order, 0)]
            return np.where((order < 0)[..., None], np.zeros((), rows.dtype), rows)

        return self._read(x).each(take)

    def columns_taken(self, x: Range, *, order: Data) -> Range:
        """(pos, columns) cut into (head, pos, width): `order` numbers the columns."""
        return self._read(x).each(lambda data: data[:, order].transpose(1, 0, 2))


def _hidden_like(x: Range, other: Range) -> Range:
    if other.absent is None:
        return x
    parts = (None if part is None else np.where(other.absent, 0.0, part)
             for part in (x.mid, x.radius(), x.usual))  # fmt: skip
    mid, rad, usual = parts
    assert mid is not None
    return Range(mid, rad, usual, other.absent)
