"""What edited plans do besides the operations of a transformer: they move entries about.

A mistake is written as a plan of right operations and of these: copied, scaled, taken in another
order, read with another shape, rounded to a coarser format.  `WrongOperations` stands on top of
any number system that says how to move and round its values; `Mistaken` on the ranges that claims
are judged with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.rounding import rounded_to
from byhand.expression import Expression
from byhand.numbers.base import Array, Numbers, Prediction

Data = npt.NDArray[Any]
Move = Callable[[Data], Data]
Rounding = Callable[[Data], Data]


class WrongOperations(Numbers):
    """A number system that can also do what no transformer does."""

    # ------------------------------------------------------------------- what a system provides

    @abstractmethod
    def moved(self, move: Move, *values: Array) -> Array:
        """The value whose entries are where `move` puts those of the values, laid end to end along
        the first axis where there are several."""

    @abstractmethod
    def rounded(self, x: Array, rounding: Rounding) -> Array:
        """The value after a monotonic rounding of every entry."""

    @abstractmethod
    def hiding(self, x: Array, absent: Data) -> Array:
        """The value with these entries absent."""

    @abstractmethod
    def hidden_like(self, x: Array, other: Array) -> Array:
        """The value with those entries absent that are absent in another."""

    @abstractmethod
    def present(self, x: Array) -> Array:
        """Scores or shares with 0 where nothing was to be seen."""

    @abstractmethod
    def shape_of(self, x: Array) -> tuple[int, ...]:
        """The sides of a value."""

    def _filled(self, like: Array, number: Any) -> Array:
        data = np.empty(self.shape_of(like), dtype=object)
        data.fill(number)
        return self.admit(data)

    # ------------------------------------------------------------------- copied, scaled, raised

    def keep(self, x: Array) -> Array:
        """x as it is."""
        return x

    def scaled(self, x: Array, *, factor: Fraction | Expression) -> Array:
        """x times a constant."""
        return self.hidden_like(self.multiply(x, self._filled(x, factor)), x)

    def raised(self, x: Array, *, by: Fraction) -> Array:
        """x plus a constant."""
        return self.hidden_like(self.add(x, self._filled(x, by)), x)

    def adjusted(
        self,
        x: Array,
        *,
        places: Sequence[int],
        factors: Sequence[Fraction],
        shifts: Sequence[Fraction],
    ) -> Array:
        """x, with single entries times a factor plus a summand; places count all entries."""
        times = np.full(self.shape_of(x), Fraction(1), dtype=object)
        plus = np.full(self.shape_of(x), Fraction(0), dtype=object)
        times.reshape(-1)[list(places)] = factors
        plus.reshape(-1)[list(places)] = shifts
        return self.add(self.multiply(x, self.admit(times)), self.admit(plus))

    def times_each(self, x: Array, *, factors: Data) -> Array:
        """Each entry times its own factor."""
        return self.hidden_like(self.multiply(x, self.admit(factors)), x)

    def over(self, *, below: Array, top: Fraction) -> Array:
        """A constant divided by each entry."""
        one = self.moved(lambda data: data[..., None], self._filled(below, top))
        return self.moved(lambda data: data[..., 0], self.normalize(one, below))

    # ------------------------------------------------------------------- moved

    def taken(self, x: Array, *, axis: int, order: Sequence[int]) -> Array:
        """The entries along an axis in another order, some perhaps twice or never."""
        return self.moved(lambda data: np.take(data, order, axis=axis), x)

    def turned(self, x: Array, *, axes: Sequence[int]) -> Array:
        """The axes in another order."""
        return self.moved(lambda data: data.transpose(tuple(axes)), x)

    def reread(self, x: Array, *, shape: Sequence[int]) -> Array:
        """The same numbers, as they lie in memory, read with another shape."""
        return self.moved(lambda data: np.ascontiguousarray(data).reshape(tuple(shape)), x)

    def shuffled(self, x: Array, *, order: Data) -> Array:
        """All entries in another order, the shape as it is."""
        return self.moved(lambda data: data.reshape(-1)[order].reshape(data.shape), x)

    def pieced(self, x: Array, y: Array, *, axis: int, start: int) -> Array:
        """x with y in place of its entries from `start` on, along an axis."""
        stop = start + self.shape_of(y)[axis]

        def lay(data: Data) -> Data:
            parts = np.split(data, [self.shape_of(x)[axis]], axis=0)
            whole = np.moveaxis(parts[0], 0, axis).copy()
            place = [slice(None)] * whole.ndim
            place[axis] = slice(start, stop)
            whole[tuple(place)] = np.moveaxis(parts[1], 0, axis)
            return whole

        first = self.moved(lambda data: np.moveaxis(data, axis, 0), x)
        second = self.moved(lambda data: np.moveaxis(data, axis, 0), y)
        return self.moved(lay, first, second)

    def part(self, x: Array, *, axis: int, start: int, stop: int) -> Array:
        """The entries from `start` to `stop` along an axis."""
        order = range(start, stop)
        return self.moved(lambda data: np.take(data, order, axis=axis), x)

    def hidden(self, x: Array, *, mask: Sequence[Sequence[bool]]) -> Array:
        """x, absent where the mask is False."""
        away = np.broadcast_to(~np.asarray(mask, dtype=bool), self.shape_of(x))
        return self.hiding(x, away)

    def even_rows(self, x: Array, *, rows: Sequence[int]) -> Array:
        """Shares in which some queries look at every key alike: nothing else was left to them."""
        size = self.shape_of(x)[-1]
        even = self._filled(x, Fraction(1, size))
        chosen = np.zeros(self.shape_of(x), dtype=bool)
        chosen[..., list(rows), :] = True

        def lay(data: Data) -> Data:
            own, other = np.split(data, 2, axis=0)
            return np.where(chosen, other, own)

        return self.moved(lay, x, even)

    # ------------------------------------------------------------------- rounded

    def cast(self, x: Array, *, format: str) -> Array:
        """x rounded to a coarser format."""
        return self.rounded(x, lambda data: rounded_to(format, data))

    def cut_off(self, x: Array, *, places: int) -> Array:
        """x without the digits after so many decimals."""
        unit = 10.0**places
        return self.rounded(x, lambda data: np.trunc(data * unit) / unit)

    def to_places(self, x: Array, *, places: int) -> Array:
        """x rounded to so many decimals."""
        return self.rounded(x, lambda data: np.round(data, places))

    # ------------------------------------------------------------------- the end

    def lowest(self, x: Array) -> list[Prediction]:
        """The token with the smallest logit at each position."""
        return self.argmax(self.scaled(x, factor=Fraction(-1)))

    def renumbered(self, x: Array, *, by: int) -> list[Prediction]:
        """The next tokens, with ids counted from another number."""
        return self.argmax(self.moved(lambda data: np.roll(data, by, axis=-1), x))

    def positions_taken(self, x: Sequence[Prediction], *, order: Sequence[int]) -> list[Prediction]:
        """The predictions of other positions."""
        return [x[place] for place in order]

    def target_share(self, probs: Array, *, target: int) -> Array:
        """probs[last position, target], as an array of one value."""
        return self.moved(lambda data: data[-1:, target], probs)

    def mean_loss(
        self, probs: Array, *, target: int, following: Sequence[int], places: Sequence[int]
    ) -> Array:
        """The mean over some positions of -ln probs[position, the token that follows it].

        `following` are the tokens that follow, from position 0 on; behind them, and where they
        are negative, comes the target.
        """
        total = None
        for place in places:
            token = following[place] if place < len(following) else target
            row = self.taken(probs, axis=0, order=[place])
            each = self.loss(row, target=target if token < 0 else token)
            total = each if total is None else self.add(total, each)
        return self.scaled(total, factor=Fraction(1, len(places)))
