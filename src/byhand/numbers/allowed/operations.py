"""The operations of a transformer on ranges: each result holds all that is allowed.

`norms`, `positions`, `attention`, `experts` and `entrywise` hold the others; `norms_back`,
`attention_back`, `parts_back`, `slopes`, `sums` and `losses` the way back; `updates` a step of
learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.allowed import judged
from byhand.numbers.allowed.activations import KINDS, TABLES, from_table, moved
from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.entrywise import Entrywise
from byhand.numbers.allowed.experts import Experts
from byhand.numbers.allowed.ggml import entering
from byhand.numbers.allowed.largest import contest
from byhand.numbers.allowed.losses import Losses
from byhand.numbers.allowed.parts_back import PartsBack
from byhand.numbers.allowed.positions import Positions
from byhand.numbers.allowed.precisions import OWN
from byhand.numbers.allowed.products import Rows, in_bytes, parts_radius, parts_usual
from byhand.numbers.allowed.ranges import (
    TYPICAL,
    Data,
    Origin,
    Range,
    Truths,
    peaks,
    plus,
    product_radius,
    product_usual,
    quadrature,
    usual_of_sums,
    wide,
)
from byhand.numbers.allowed.rounding import overflowing, quiet
from byhand.numbers.allowed.slopes import Slopes
from byhand.numbers.allowed.updates import Updates
from byhand.numbers.base import Array, Prediction


class Allowed(PartsBack, Positions, Experts, Entrywise, Slopes, Losses, Updates):
    """The number system of all values that correct implementations of one precision may give.

    `judge` judges claims about a value; `overlay` replaces entries by claims, so that later steps
    are worked out from them.  While `rough` is set, long products cost a third, and their ranges
    may be too narrow.  A claim within half of such a range follows; other claims stay open
    (`products`).
    """

    uniform: ClassVar[str | None] = "enclosed"
    rough: bool = False

    @property
    def name(self) -> str:
        return f"allowed {self.precision.name}"

    def register(self, entry: Any) -> str:
        return "enclosed"

    def entries(self, value: Array) -> Array:
        """The middles, masked as NumPy masks."""
        if not isinstance(value, Range):
            return value
        mid = wide(value.mid)
        return mid if value.absent is None else np.ma.MaskedArray(mid, mask=value.absent)

    def judge(
        self,
        value: Range,
        index: Any,
        values: Data,
        slack: Data | float = 0.0,
        claimed: Truths | None = None,
    ) -> judged.Judged:
        """The judgement of the claims `values` about value[index], each known up to its slack."""
        with quiet(all="ignore"):
            return judged.judge(self._read(value), index, values, slack, claimed)

    def overlay(
        self,
        value: Range,
        index: Any,
        values: Data,
        slack: Data | float = 0.0,
        claimed: Truths | None = None,
    ) -> Range:
        """The value with the claimed entries as they are claimed, within their slack.

        For an entry that is claimed to be infinite or NaN, everything is allowed.
        """
        with quiet(all="ignore"):
            laid = judged.overlay(self._read(value), index, values, slack, claimed)
        laid.claimed, laid.least = True, self.precision.flushed
        return laid

    # ------------------------------------------------------------------- embedding and sums

    @quiet(all="ignore")
    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Range:
        rows = self.admit(table)[np.asarray(ids, dtype=np.intp)]
        if rows.stored is not None:  # one row is unpacked: its terms meet nothing else
            rows.rad = None
        rows = Range(wide(rows.mid), rows.radius(), rows.usual)
        if scale is None:
            return rows
        factor, off = constant(scale)
        mid, unit = rows.mid * factor, self.precision.store.half
        rad = np.abs(mid) * (unit + off + OWN)  # the scale may be rounded to the format first
        if rows.rad is not None:
            rad += rows.rad * (abs(factor) * (1 + unit + off))
        return self._stored(mid, rad, None if rows.usual is None else rows.usual * abs(factor))

    @quiet(all="ignore")
    def add(self, x: Array, y: Array) -> Range:
        x, y = self._unrounded(x), self._unrounded(y)
        a, b = wide(x.mid), wide(y.mid)
        rad = plus(x.radius(), y.radius())
        sizes = np.abs(a) + np.abs(b)
        before = [v.origin.addends for v in (x, y) if v.origin and v.origin.addends is not None]
        usual = quadrature(x.usual, y.usual)
        if before:  # a sum of three or four that nobody claimed: any of them may come first
            store, terms = self.precision.store, sizes + sum(before)
            partial = terms * store.half
            rad = plus(rad, overflowing(partial + 2 * store.least, terms, store.largest))
            usual = quadrature(usual, partial * (TYPICAL / 2))
        return self._stored(a + b, rad, usual, origin=Origin(addends=sizes))

    @quiet(all="ignore")
    def multiply(self, x: Array, y: Array) -> Range:
        x, y = self._unrounded(x), self._unrounded(y)
        rad = product_radius(x, y)
        if y.origin is not None and y.origin.lost is not None:
            rad = plus(rad, y.origin.lost * self.precision.work.least)
        return self._stored(wide(x.mid) * wide(y.mid), rad, product_usual(x, y))

    # ------------------------------------------------------------------- products

    @quiet(all="ignore")
    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Range:
        x = self._read(x)
        rows: Range = self.merge_heads(x) if x.ndim == 3 else x
        more = None if bias is None else self.admit(bias)
        result = self._times_matrix(rows, self.admit(weight), layout, more, self.rough)
        if heads is None:
            return result
        width = result.shape[1] // heads
        return self.split_heads(result, start=0, heads=heads, width=width, stride=width)

    def _times_matrix(
        self, x: Range, weight: Range, layout: str, bias: Range | None, rough: bool = False
    ) -> Range:
        """Rows times a matrix: any order of summation, fused or not, bias first or last."""
        p = self.precision
        x = x if p.bytes is None else in_bytes(x, p.bytes)
        beside: Data | None = None
        if p.ggml:
            x, beside = entering(x, weight.stored)
        data, radius = wide(x.mid), x.radius()
        inputs = data.shape[1]
        outputs = weight.shape[1 if layout == "in_out" else 0]
        unit = p.accumulate.half
        relative = (1 + p.summed(inputs + 1)) * (1 + weight.relative) * (1 + p.entering) ** 2
        rough = rough and weight.mid.dtype != np.float64 and unit > OWN
        rows = Rows(data, radius, x.usual, rough=rough)
        relative += -1 + rows.own
        peak = peaks(data)
        most = np.abs(data) if radius is None else np.abs(data) + radius
        matrix_radius = None  # of rounded weights
        if weight.rad is not None:
            columns = weight.rad if layout == "in_out" else weight.rad.T
            matrix_radius = (most if beside is None else most + beside) @ columns
        offset = None if bias is None else wide(bias.mid)
        offset_radius = None if bias is None else bias.radius()
        growth, moving = relative * rows.grown, (1 + relative) * rows.grown
        # each product and each partial sum may be flushed to 0, and so may each weight that is read
        lost = 2 * (inputs + 1) * p.accumulate.least + weight.least * most.sum(axis=1)
        if p.entering_least:  # numbers below the format lose up to `entering_least`
            largest = float(np.abs(weight.mid).max(initial=0)) + p.entering_least
            lost = lost + p.entering_least * (most.sum(axis=1) + inputs * largest)
        floor = ((1 + 2 * relative) * rows.floor + (1 + relative) * lost)[:, None]
        most_sums = p.accumulate.largest / (1 + relative)
        mid, rad, usual = np.empty((3, len(data), outputs))
        for part in rows.times(weight.mid, layout):
            here, sums = part.columns, part.products
            room = np.multiply(part.sizes, growth, dtype=np.float64)
            room += floor
            overflowing(room, part.sizes, most_sums)
            before: Data | None = None
            if p.parts > 1:
                sizes = part.sizes * (rows.grown * (1 + relative)) + floor
                room += parts_radius(p, sizes)
                before = parts_usual(p, sums, part.sizes * (peak * rows.left_out))
            if part.moved is not None:
                room += np.multiply(part.moved, moving, dtype=np.float64)
            if matrix_radius is not None:
                room += matrix_radius[:, here] * (1 + relative)
            if offset is not None:
                if p.narrow:  # the product may be stored before the bias is added
                    size = np.abs(sums)
                    room += (size + room) * p.store.half + p.store.least
                    before = plus(before, np.square(size * (TYPICAL * p.store.half)))
                sums = sums + offset[here]
                room += np.abs(offset[here]) * relative
                if offset_radius is not None:
                    room += offset_radius[here] * (1 + relative)
            spread = usual_of_sums(p, sums, part.sizes, peak * rows.left_out, inputs, stored=True)
            if (more := plus(before, part.spread)) is not None:
                np.sqrt(np.square(spread) + more, out=spread)
            stored = self._stored(sums, room, spread, settled=True)
            mid[:, here], rad[:, here], usual[:, here] = stored.mid, stored.rad, stored.usual
        return Range(mid, rad, usual)

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Range:
        """(pos, any) → (head, pos, width), without a copy."""

        def split(data: Data) -> Data:
            if stride == width:
                flat = data[:, start : start + heads * width]
                return flat.reshape(len(data), heads, width).transpose(1, 0, 2)
            last = start + (heads - 1) * stride + 1  # where the last head begins, and one more
            windows = np.lib.stride_tricks.sliding_window_view(data, width, axis=1)
            return windows[:, start:last:stride].transpose(1, 0, 2)

        return self._read(x).each(split)

    def merge_heads(self, x: Array) -> Range:
        def merged(data: Data) -> Data:
            heads, positions, width = data.shape
            return data.transpose(1, 0, 2).reshape(positions, heads * width)

        return self._read(x).each(merged)

    def join(self, x: Array, y: Array) -> Range:
        x, y = self._read(x), self._read(y)

        def both(a: Data | None, b: Data | None) -> Data | None:
            if a is None and b is None:
                return None
            there = np.zeros(x.shape) if a is None else a, np.zeros(y.shape) if b is None else b
            return np.concatenate(there, axis=-2)

        mid = np.concatenate((wide(x.mid), wide(y.mid)), axis=-2)
        return Range(mid, both(x.radius(), y.radius()), both(x.usual, y.usual))

    @quiet(all="ignore")
    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Range:
        rows: Range = self._read(mixed)
        heads, positions, width = rows.shape
        parts = [slice(h * width, (h + 1) * width) for h in range(heads)]

        def laid(data: Data) -> Data:
            result = np.zeros((heads, positions, heads * width))
            for h, part in enumerate(parts):
                result[h, :, part] = data[h]
            return result

        if weight is None:
            return rows.each(laid)
        matrix = self.admit(weight)
        cuts = [matrix[part] if layout == "in_out" else matrix[:, part] for part in parts]
        made = [self._times_matrix(rows[h], cut, layout, None) for h, cut in enumerate(cuts)]
        mid, rad, usual = (np.stack(each) for each in zip(*((r.mid, r.rad, r.usual) for r in made),
                                                          strict=True))  # fmt: skip
        return Range(mid, rad, usual)

    # ------------------------------------------------------------------- activations and the end

    @quiet(all="ignore")
    def activate(self, x: Array, *, kind: str) -> Range:
        if kind not in KINDS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        p = self.precision
        x = self._unrounded(x)
        data, radius = np.ascontiguousarray(wide(x.mid)), x.radius()
        mid, own = KINDS[kind](data, p)
        if p.ggml and kind in TABLES:
            own = plus(own, from_table(kind, data, mid))
        through = None if radius is None else moved(kind, data, radius)
        usual = None if x.usual is None else moved(kind, data, x.usual)
        if own is None:
            return Range(mid, through, usual)
        size = np.abs(data)
        own += p.work.least * (2 + 2 * size)  # of half of x, and of what x is multiplied by
        if through is not None:
            own += through * (1 + 2 * p.function + 8 * p.work.half)
        spread = (size + np.abs(mid)) * (0.25 * p.work.half) if p.work.half else None
        if p.ggml and kind in TABLES:
            spread = quadrature(spread, from_table(kind, data, mid) * (TYPICAL / 2))
        return self._stored(mid, own, quadrature(usual, spread), own=0.0)

    @quiet(all="ignore")
    def argmax(self, x: Array) -> list[Prediction]:
        """Decided where one range lies above all others, or all are exactly known."""
        x = self._unrounded(x)
        return [contest(x[position]) for position in range(len(x))]
