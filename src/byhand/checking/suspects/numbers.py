"""The numbers of edited plans: ranges with operations that no transformer has.

A mistake is a plan of usual operations and of these: entries copied, scaled, reordered, reshaped,
rounded to a coarser format, or dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.attended import Attended
from byhand.checking.suspects.casts import rounded_to
from byhand.checking.suspects.dropout import kept_keys, nearer, plausible
from byhand.checking.suspects.read_numbers import ReadOff
from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.allowed import Range
from byhand.numbers.allowed.ranges import wide
from byhand.numbers.base import Prediction

Data = npt.NDArray[Any]


class Mistaken(ReadOff, Attended):
    """Allowed numbers, also for wrong operations: all that such an implementation may give."""

    def _filled(self, like: Range, number: Any) -> Range:
        one = np.empty(1, dtype=object)
        one[0] = number
        return self.admit(one).each(lambda part: np.broadcast_to(part, like.shape))

    # ------------------------------------------------------------------- copied, scaled, raised

    def keep(self, x: Range) -> Range:
        """The value unchanged."""
        return x

    def scaled(self, x: Range, *, factor: Fraction | Expression) -> Range:
        """x times a constant."""
        return self.hidden_like(self.multiply(x, self._filled(x, factor)), x)

    def raised(self, x: Range, *, by: Fraction) -> Range:
        """x plus a constant."""
        return self.hidden_like(self.add(x, self._filled(x, by)), x)

    def adjusted(
        self,
        x: Range,
        *,
        places: Sequence[int],
        factors: Sequence[Fraction],
        shifts: Sequence[Fraction],
    ) -> Range:
        """The value with some entries times a factor plus a summand; `places` are flat indices."""
        times = self._scattered(x, 1.0, places, factors)
        return self.add(self.multiply(x, times), self._scattered(x, 0.0, places, shifts))

    def _scattered(
        self, like: Range, number: float, places: Sequence[int], others: Sequence[Fraction]
    ) -> Range:
        """A number everywhere but at some flat places, as exact as it is written."""
        some = self.admit(np.array([Fraction(number), *others], dtype=object))

        def spread(part: Data) -> Data:
            whole = np.full(like.shape, part[0])
            whole.reshape(-1)[list(places)] = part[1:]
            return whole

        return some.each(spread)

    def times_each(self, x: Range, *, factors: Data) -> Range:
        """Each entry times its own factor."""
        return self.hidden_like(self.multiply(x, self.admit(factors)), x)

    def over(self, *, below: Range, top: Fraction) -> Range:
        """A constant divided by each entry."""
        one = self.moved(lambda data: data[..., None], self._filled(below, top))
        return self.moved(lambda data: data[..., 0], self.normalize(one, below))

    # ------------------------------------------------------------------- with a pencil

    def absolute(self, x: Range) -> Range:
        """The absolute value of each entry."""
        return self.moved(np.abs, x)

    @np.errstate(over="ignore", invalid="ignore")
    def exponential(self, x: Range) -> Range:
        """e^x of each entry, not divided by anything."""
        x = self._read(x)
        radius = x.radius()
        mid = np.exp(wide(x.mid))
        off = 0.0 if radius is None else np.where(np.isfinite(radius), radius, 0.0)
        return self.hidden_like(self._stored(mid, mid * np.expm1(off + 2.0**-48), mid * off), x)

    @np.errstate(divide="ignore", invalid="ignore")
    def shares_of_sum(self, x: Range) -> Range:
        """Each entry over the sum of its row."""
        whole = self.present(self._read(x))
        radius = whole.radius()
        data = wide(whole.mid)
        total = data.sum(axis=-1, keepdims=True)
        off = np.zeros(data.shape) if radius is None else np.where(np.isfinite(radius), radius, 0.0)
        spread = off.sum(axis=-1, keepdims=True)
        mid = data / total
        least = np.maximum(np.abs(total) - spread, 0.0)
        error = (off + np.abs(mid) * spread) / least + np.abs(mid) * 2.0**-48
        return self.hidden_like(self._stored(mid, error, error), x)

    def median(self, x: Range) -> Range:
        """The median of each row; every entry may be off by its own radius."""
        x = self._read(x)
        radius = x.radius()
        mid = np.median(wide(x.mid), axis=-1)
        off = np.zeros(mid.shape) if radius is None else radius.max(axis=-1)
        return self._stored(mid, off, off)

    def hard_maximum(self, x: Range) -> Range:
        """1 at the largest entry of each row, 0 elsewhere."""
        x = self._read(x)
        data = wide(x.mid)
        seen = data if x.absent is None else np.where(x.absent, -np.inf, data)
        one = (np.arange(data.shape[-1]) == seen.argmax(axis=-1)[..., None]).astype(np.float64)
        return self.hidden_like(Range(one), x)

    @np.errstate(over="ignore", invalid="ignore")
    def over_largest(self, x: Range) -> Range:
        """e^x of each entry over the largest of its row."""
        x = self._read(x)
        data, radius = wide(x.mid), x.radius()
        seen = data if x.absent is None else np.where(x.absent, -np.inf, data)
        mid = np.exp(data - seen.max(axis=-1, keepdims=True))
        off = np.zeros(mid.shape) if radius is None else 2 * radius.max(axis=-1, keepdims=True)
        error = mid * np.expm1(off + 2.0**-47)
        return self.hidden_like(self._stored(mid, error, error), x)

    @np.errstate(divide="ignore", invalid="ignore")
    def over_all_but(self, x: Range, *, place: int) -> Range:
        """Shares, divided by a sum that leaves out one entry of the row."""
        shares = self._read(x)
        data, radius = wide(shares.mid), shares.radius()
        rest = 1 - data[..., place : place + 1]
        mid = data / rest
        off = np.zeros(data.shape) if radius is None else np.where(np.isfinite(radius), radius, 0)
        error = (off + np.abs(mid) * off[..., place : place + 1]) / rest + np.abs(mid) * 2.0**-48
        return self.hidden_like(self._stored(mid, error, error), x)

    def ones(self, x: Range) -> Range:
        """1 in place of every entry that is present."""
        return self.hidden_like(self._filled(x, Fraction(1)), x)

    def below_zero(self, x: Range) -> Range:
        """The negative entries; 0 in place of the others."""
        return self.rounded(x, lambda data: np.minimum(data, 0.0))

    def leaky(self, x: Range) -> Range:
        """The positive entries; a hundredth of the others."""
        return self.rounded(x, lambda data: np.where(data > 0, data, data / 100))

    def above_zero(self, x: Range) -> Range:
        """1 at the positive entries, 0 elsewhere."""
        return self.rounded(x, lambda data: np.where(data > 0, 1.0, 0.0))

    def tanh(self, x: Range) -> Range:
        """tanh of each entry."""
        return self.rounded(x, np.tanh)

    def times_share(self, probs: Range, loss: Range, *, target: int) -> Range:
        """The loss times the probability of the target."""
        return self.multiply(self.target_share(probs, target=target), loss)

    def without_largest(self, x: Range) -> Range:
        """The row with its largest entry below all the others."""
        x = self._read(x)
        data = wide(x.mid)
        top = data.argmax(axis=-1)[..., None] == np.arange(data.shape[-1])
        low = data.min() - 1 - 2 * np.ptp(data)
        return Range(np.where(top, low, data), x.radius(), x.usual, x.absent)

    # ------------------------------------------------------------------- moved

    def taken(self, x: Range, *, axis: int, order: Sequence[int]) -> Range:
        """The entries along an axis in another order; entries may be repeated or omitted."""
        return self.moved(lambda data: np.take(data, order, axis=axis), x)

    def turned(self, x: Range, *, axes: Sequence[int]) -> Range:
        """The axes in another order."""
        return self.moved(lambda data: data.transpose(tuple(axes)), x)

    def reread(self, x: Range, *, shape: Sequence[int]) -> Range:
        """The numbers in their order in memory, with another shape."""
        return self.moved(lambda data: np.ascontiguousarray(data).reshape(tuple(shape)), x)

    def shuffled(self, x: Range, *, order: Data) -> Range:
        """All entries in another order, with the same shape."""
        return self.moved(lambda data: data.reshape(-1)[order].reshape(data.shape), x)

    def taken_by_rank(self, shares: Range, scores: Range, chosen: Range) -> Range:
        """The shares of experts, the r-th best of a row taking that of the expert with number r."""
        ranks = np.argsort(np.argsort(-wide(scores.mid), axis=-1), axis=-1)
        rows, columns = np.indices(shares.shape)
        order = rows * shares.shape[-1] + np.where(wide(chosen.mid) > 0, ranks, columns)
        return self.shuffled(shares, order=order.reshape(-1))

    def hidden(self, x: Range, *, mask: Sequence[Sequence[bool]]) -> Range:
        """x, absent where the mask is False."""
        away = np.broadcast_to(~np.asarray(mask, dtype=bool), x.shape)
        return self.hiding(x, away)

    def even_rows(self, x: Range, *, rows: Sequence[int]) -> Range:
        """Attention weights in which some queries attend equally to all keys."""
        size = x.shape[-1]
        even = self._filled(x, Fraction(1, size))
        chosen = np.zeros(x.shape, dtype=bool)
        chosen[..., list(rows), :] = True

        def lay(data: Data) -> Data:
            own, other = np.split(data, 2, axis=0)
            return np.where(chosen, other, own)

        return self.moved(lay, x, even)

    # ------------------------------------------------------------------- rounded

    def cast(self, x: Range, *, format: str) -> Range:
        """x rounded to a coarser format."""
        return self.rounded(x, lambda data: rounded_to(format, data))

    def cut_off(self, x: Range, *, places: int) -> Range:
        """The value cut off after so many decimals."""
        unit = 10.0**places
        return self.rounded(x, lambda data: np.trunc(data * unit) / unit)

    def to_places(self, x: Range, *, places: int) -> Range:
        """The value rounded to so many decimals."""
        return self.rounded(x, lambda data: np.round(data, places))

    def clamped(self, x: Range, *, limit: Fraction) -> Range:
        """Each entry, at most ±limit, which is rounded to the format too."""
        most = float(limit)
        near = self.rounded(x, lambda data: np.clip(data, -most, most))
        return self._stored(near.mid, near.radius(), near.usual)

    # ------------------------------------------------------------------- the way back

    def shared_out(self, weights: Range, grad: Range) -> Range:
        """weights · grad, absent where the weights are."""
        both = self.multiply(self.present(weights), self.present(grad))
        return self.hidden_like(both, weights)

    @np.errstate(over="ignore", invalid="ignore")
    def sigmoid(self, x: Range) -> Range:
        """1/(1 + e^-x), entry by entry: its slope is at most 1/4."""
        x, p = self._read(x), self.precision
        data, radius = wide(x.mid), x.radius()
        mid, rest = 1 / (1 + np.exp(-data)), 1 / (1 + np.exp(data))
        off = mid * (rest * 1.01 * p.function + 2.1 * p.work.half + 2.0**-48)
        usual = mid * (0.5 * p.work.half)
        if radius is not None:
            off = off + radius / 4
        if x.usual is not None:
            usual = np.hypot(usual, x.usual / 4)
        return self._stored(mid, off, usual)

    @np.errstate(over="ignore", invalid="ignore")
    def shares_without_mask(self, x: Range, seen: Range) -> Range:
        """e^x over the sum of e^seen: attention weights made again from scores, none masked."""
        p = self.precision.island
        data, shown = wide(x.mid), wide(seen.mid)
        if seen.absent is not None:
            shown = np.where(seen.absent, -np.inf, shown)
        top = shown.max(axis=-1, keepdims=True)
        whole = top + np.log(np.exp(shown - top).sum(axis=-1, keepdims=True))
        off = 4 * (np.abs(data) + np.abs(whole)) * (p.work.half + 2.0**-52) + 8 * p.function
        for part in (x.radius(), seen.radius()):
            if part is not None:
                off = off + np.where(np.isfinite(part), part, 0.0).max(axis=-1, keepdims=True)
        mid = np.exp(data - whole)
        return self._stored(mid, mid * np.expm1(off), mid * off * 0.1)

    # ------------------------------------------------------------------- the end

    def renumbered(self, x: Range, *, by: int) -> list[Prediction]:
        """The next tokens, with ids counted from another number."""
        return self.argmax(self.moved(lambda data: np.roll(data, by, axis=-1), x))

    def positions_taken(self, x: Sequence[Prediction], *, order: Sequence[int]) -> list[Prediction]:
        """The predictions of other positions."""
        return [x[place] for place in order]

    def target_share(self, probs: Range, *, target: int) -> Range:
        """probs[last position, target], as an array of one value."""
        return self.moved(lambda data: data[-1:, target], probs)

    def mean_loss(
        self, probs: Range, *, target: int, following: Sequence[int], places: Sequence[int]
    ) -> Range:
        """The mean over some positions of -ln probs[position, the token that follows it].

        `following` are the next tokens, from position 0 on; the target stands after them, and in
        place of negative ids.
        """
        losses = []
        for place in places:
            token = following[place] if place < len(following) else target
            row = self.taken(probs, axis=0, order=[place])
            losses.append(self.loss(row, target=target if token < 0 else token))
        return self.scaled(reduce(self.add, losses), factor=Fraction(1, len(places)))

    # ------------------------------------------------------------------- dropped

    def dropped(self, x: Range, *, values: Data, rate: Fraction) -> Range:
        """The value after a dropout, whose kept entries the claimed values show."""
        larger = wide(x.mid) / float(1 - rate)
        return self._kept(x, nearer(values, np.zeros(x.shape), larger), larger != 0, rate)

    def dropped_add(self, x: Range, y: Range, *, values: Data, rate: Fraction) -> Range:
        """x + y after a dropout of y."""
        larger, off = wide(y.mid) / float(1 - rate), self.add(x, y).radius()
        kept = nearer(values, wide(x.mid), wide(x.mid) + larger)
        tells = np.abs(larger) > 4 * (0.0 if off is None else off)
        return self.add(x, self._kept(y, kept, tells, rate))

    def dropped_mix(self, weights: Range, v: Range, *, values: Data, rate: Fraction) -> Range:
        """The mix of v with the attention weights that a dropout kept."""
        factor = float(1 / (1 - rate))
        off = self.mix(weights, v).radius()
        assert off is not None
        shares, rows = wide(weights.mid), wide(v.mid)
        # the weights are stored once more before mixing, and the result may be larger
        sizes = self.mix(Range(shares), Range(np.abs(rows))).mid
        off = off + sizes * (2 * self.precision.store.half)
        kept = kept_keys(shares, rows, values, factor * off, factor)
        lengths = np.repeat(np.linalg.norm(rows, axis=-1), len(shares) // len(rows), axis=0)
        tells = shares * lengths[:, None] > 4 * np.linalg.norm(off, axis=-1)[..., None]
        return self.mix(self._kept(weights, kept, tells, rate), v)

    def _kept(self, x: Range, kept: Data, tells: Data, rate: Fraction) -> Range:
        """The kept entries of x, scaled; entries too small to tell are not counted."""
        if not plausible(kept, tells, float(rate)):
            raise InputError(_("no dropout explains it"))
        # the factor is a float32 number whatever the format
        left = Range(np.where(kept, float(1 / (1 - rate)), 0.0), relative=2.0**-24)
        return self.hidden_like(self.multiply(x, left), x)
