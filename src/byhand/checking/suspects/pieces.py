"""Operations on pieces of a line: slices scaled, shifted, copied, rounded, limited.

What is read off a claim are floats here, not exact numbers: arrays of them are cheap, also for the
logits of a large vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.checking.suspects.casts import rounded_to
from byhand.checking.suspects.edited import Data, Edited
from byhand.checking.suspects.grids import Grid, on_grid, scales
from byhand.numbers.allowed import Range
from byhand.numbers.allowed.ranges import TYPICAL, wide


@dataclass(frozen=True)
class When:
    """The entries that a sign or a size chooses."""

    kind: str  # "below", "above": by value; "small", "large": by size
    limit: float = 0.0

    def chooses(self, data: Data) -> Data:
        """Whether each entry is chosen."""
        size = np.abs(data)
        chosen: Data = {
            "below": data < self.limit,
            "above": data > self.limit,
            "small": size <= self.limit,
            "large": size >= self.limit,
        }[self.kind]
        return chosen


class Pieces(Edited):
    """Edited numbers, with operations on pieces of a line."""

    def weighed(
        self, x: Range, *, factors: Data, relative: float = 0.0, when: When | None = None
    ) -> Range:
        """Each entry times its own factor, which an implementation has up to `relative`.

        With `when`, only the entries that a sign or a size chooses.
        """
        each = np.array(np.broadcast_to(factors, x.shape), dtype=np.float64)
        if when is not None:
            each = np.where(when.chooses(wide(self._read(x).mid)), each, 1.0)
        usual = np.abs(each) * (TYPICAL * relative) if relative else None
        weighed = self.multiply(x, Range(each, None, usual, relative=relative))
        if not each.all():  # no rounding makes anything else of a product with 0
            for part in (weighed.rad, weighed.usual):
                if part is not None:
                    part[each == 0] = 0.0
        return self._where_changed(each != 1.0, weighed, x)

    def plus_each(
        self, x: Range, *, summands: Data, off: float = 0.0, when: When | None = None
    ) -> Range:
        """Each entry plus its own summand, which is known up to `off`; `when` as in `weighed`."""
        each = np.array(np.broadcast_to(summands, x.shape), dtype=np.float64)
        if when is not None:
            each = np.where(when.chooses(wide(self._read(x).mid)), each, 0.0)
        around = np.full(x.shape, off)
        total = self.add(x, Range(each, around, around / 2))
        return self._where_changed(each != 0.0, total, x)

    def set_to(self, x: Range, *, value: float, where: Data) -> Range:
        """x with one number in some entries."""
        there = self._stored(np.full(x.shape, value), None)
        return self._where_changed(np.broadcast_to(where, x.shape), there, x)

    def averaged(self, x: Range, *, axis: int, places: Sequence[int]) -> Range:
        """x with the mean of some slices along an axis in the place of each of them."""
        total = self.taken_mean(x, axis, places)
        chosen = np.zeros(x.shape, dtype=bool)
        np.moveaxis(chosen, axis, 0)[list(places)] = True
        return self._where_changed(chosen, total, x)

    def taken_mean(self, x: Range, axis: int, places: Sequence[int]) -> Range:
        """The mean of some slices along an axis, in every slice."""
        x = self._read(self.present(x))
        rad, usual, count = x.radius(), x.usual, len(places)

        def mean(data: Data) -> Data:
            return np.asarray(np.take(data, places, axis=axis).mean(axis=axis, keepdims=True))

        size = mean(np.abs(wide(x.mid)))
        room = size * (count * self.precision.work.half)
        parts = (
            mean(wide(x.mid)),
            room if rad is None else room + mean(rad),
            room if usual is None else np.sqrt(mean(np.square(usual))) + TYPICAL * room / count,
        )
        mid, off, spread = (
            None if part is None else np.array(np.broadcast_to(part, x.shape)) for part in parts
        )
        assert mid is not None
        return self._stored(mid, off, spread)

    def largest_alone(self, x: Range, *, count: int, again: bool) -> Range:
        """Of each row the largest entries alone, the others 0; `again`: they sum to 1 again."""
        x = self._read(x)
        mid = wide(x.mid)
        least = np.sort(mid, axis=-1)[..., -count, None]
        kept = mid >= least
        factor = np.ones(mid.shape)
        if again:
            total = np.where(kept, mid, 0.0).sum(axis=-1, keepdims=True)
            factor = np.broadcast_to(1 / np.where(total > 0, total, 1.0), mid.shape)
        relative = 8 * self.precision.work.half
        return self.weighed(x, factors=np.where(kept, factor, 0.0), relative=relative)

    def to_length(self, x: Range, *, length: float, longer: bool) -> Range:
        """Each row scaled to a length; `longer`: only the rows that are longer."""
        x = self._read(x)
        own = np.linalg.norm(wide(x.mid), axis=-1, keepdims=True)
        factors = np.where(own > 0, length / np.where(own > 0, own, 1.0), 1.0)
        factors = np.minimum(factors, 1.0) if longer else factors
        return self.weighed(x, factors=factors, relative=16 * self.precision.work.half)

    def to_multiples(self, x: Range, *, step: float) -> Range:
        """x rounded to whole multiples of a step."""
        return self._once_more(self.rounded(x, lambda data: np.rint(data / step) * step))

    def copied(self, x: Range) -> Range:
        """The value, stored once more: what comes back after something was added and taken off."""
        mid, rad = wide(x.mid), x.radius()
        largest = np.abs(mid).max(axis=-1, keepdims=True, initial=0.0) if mid.ndim else np.abs(mid)
        room = np.broadcast_to(largest * (4 * self.precision.work.half), mid.shape)
        return self._once_more(Range(mid, room if rad is None else rad + room, x.usual, x.absent))

    def patched(self, x: Range, y: Range, *, where: Data) -> Range:
        """x with the entries of y where `where` is True; y may have another shape."""
        other = self.moved(lambda data: data.reshape(x.shape), self.copied(self.present(y)))
        return self._where_changed(np.broadcast_to(where, x.shape), other, x)

    def picked(self, x: Range, *, order: Data) -> Range:
        """All entries in another order, by flat index, with the same shape; -1 stands for 0."""
        away = order < 0

        def pick(data: Data) -> Data:
            found = data.reshape(-1)[order]
            found[away] = 0
            return found.reshape(data.shape)

        return self.moved(pick, self.present(x))

    def other_text(self, x: Range, *, values: Data) -> Range:
        """The numbers that the claimant wrote for the same step in another text."""
        return self._stored(np.array(values, dtype=np.float64), None, absent=x.absent)

    def less_of_row(self, x: Range, *, kind: str) -> Range:
        """Each row less its largest number, its mean, or the logarithm of its sum of exponentials.

        All three move by at most the largest error of the row.
        """
        x = self._read(x)
        data = wide(x.mid) if x.absent is None else np.where(x.absent, -np.inf, x.mid)
        rad, usual = x.radius(), x.usual
        with np.errstate(all="ignore"):
            mid = data - row_part(data, kind)[..., None]
        size = 4 * self.precision.function * (1 + np.abs(mid))
        away = size if rad is None else size + rad + rad.max(axis=-1, keepdims=True)
        spread = None if usual is None else np.hypot(usual, np.abs(mid) * self.precision.work.half)
        return self._stored(np.where(np.isfinite(mid), mid, 0.0), away, spread, absent=x.absent)

    # ------------------------------------------------------------------- rounded, limited

    def cast_part(self, x: Range, *, format: str, where: Data) -> Range:
        """x with some entries rounded to a coarser format."""
        chosen = np.broadcast_to(where, x.shape)
        return self._where_changed(
            chosen, self.rounded(x, lambda data: rounded_to(format, data)), x
        )

    def on_grid(self, x: Range, *, grid: Grid) -> Range:
        """x as whole numbers times a scale: quantised, and back."""
        x = self._read(x)
        rad, mid = x.radius(), wide(x.mid)
        step = scales(mid, grid)
        near = self.rounded(x, lambda data: on_grid(data, grid, step))
        if rad is not None:  # the scale moves with the largest number
            wider = np.abs(scales(np.abs(mid) + np.where(np.isfinite(rad), rad, 0.0), grid) - step)
            near.rad = near.rad + (np.abs(near.mid) / step + 1) * wider
        return self._once_more(near)

    def to_decimals(self, x: Range, *, places: int) -> Range:
        """x rounded to so many decimals, as floats hold them."""
        return self._once_more(self.rounded(x, lambda data: np.round(data, places)))

    def limited(self, x: Range, *, low: float, high: float, where: Data | None = None) -> Range:
        """Each entry, or some, at least `low` and at most `high`; ±∞ stand for no limit."""
        near = self._once_more(self.rounded(x, lambda data: np.clip(data, low, high)))
        return near if where is None else self._where_changed(where, near, x)

    def _once_more(self, near: Range) -> Range:
        """Rounded numbers, worked out and stored in the format: some roundings more."""
        rad, room = near.radius(), np.abs(wide(near.mid)) * (4 * self.precision.work.half)
        usual = near.usual
        return self._stored(
            near.mid,
            room if rad is None else rad + room,
            room * TYPICAL if usual is None else np.hypot(usual, room * TYPICAL),
            absent=near.absent,
        )

    def _where_changed(self, changed: Data, there: Range, elsewhere: Range) -> Range:
        """The entries of one range where something changed, and of another elsewhere."""
        elsewhere = self._read(elsewhere)

        def chosen(own: Data | None, other: Data | None) -> Any:
            if own is None and other is None:
                return None
            return np.where(changed, 0.0 if own is None else own, 0.0 if other is None else other)

        mid = chosen(there.mid, elsewhere.mid)
        rad, usual = (
            chosen(there.radius(), elsewhere.radius()),
            chosen(there.usual, elsewhere.usual),
        )
        return self.hidden_like(Range(mid, rad, usual, origin=elsewhere.origin), elsewhere)


def row_part(data: Data, kind: str) -> Data:
    """Of each row its largest number, its mean, or the logarithm of its sum of exponentials."""
    seen = np.isfinite(data)
    top = np.where(seen, data, -np.inf).max(axis=-1)
    if kind == "max":
        return np.asarray(top)
    if kind == "mean":
        count = np.maximum(seen.sum(axis=-1), 1)
        return np.asarray(np.where(seen, data, 0.0).sum(axis=-1) / count)
    shown = np.where(seen, data - top[..., None], -np.inf)
    return np.asarray(top + np.log(np.exp(shown).sum(axis=-1)))
