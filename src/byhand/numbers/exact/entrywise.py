"""What is done to each entry of an exact-or-named line on its own: factors, caps, limits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import fmpq

from byhand.errors import Undecided
from byhand.expression import Expression
from byhand.numbers.base import Array, Note
from byhand.numbers.exact.experts import Experts
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.value import Value


class Entrywise(Experts):
    """rescale, soft_cap, clamp, weigh, beside, bucket_scores."""

    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        space, one = self.space, self.space.plain(ONE)
        factor = one if by is None else self.scalar(by)
        shift = space.value(plus or 0)

        def entry(v: Value) -> Value:
            return space.total([(ONE, v, factor), (ONE, shift, one)])

        return self._each(entry, x)

    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        return self._each(lambda v: self._capped(v, cap), x)

    def _capped(self, x: Value, cap: Fraction) -> Value:
        """cap · tanh(x / cap)."""
        most = fmpq(cap.numerator, cap.denominator)
        return self.space.odd_function("tanh", x.times(1 / most)).times(most)

    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        result = x.copy()
        for limit, side in ((least, -1), (most, 1)):
            if limit is None:
                continue
            end = self.space.value(limit)
            for place in np.ndindex(x.shape):
                result[place], decided = self._limited(result[place], end, side)
                if not decided:
                    self.notes.append(Note("undecided-sign", place))
        return result

    def _limited(self, x: Value, end: Value, side: int) -> tuple[Value, bool]:
        """(The smaller of x and a limit, for side -1 the larger; decided).

        Where the order is undecided, it is end - relu(end - x), or end + relu(x - end).
        """
        space = self.space
        try:
            return (x if space.compare(x, end) * side < 0 else end), True
        except Undecided:
            room, _known = space.relu(space.subtract(end, x).times(fmpq(side)))
            return space.combine((ONE, fmpq(-side)), (end, room)), False

    def weigh(self, x: Array, by: Array) -> Array:
        return self._each(self.space.multiply, x, by)

    def beside(self, x: Array, y: Array) -> Array:
        return np.concatenate((x, np.broadcast_to(y, (len(x), *y.shape[1:]))), axis=-1)

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        return np.moveaxis(table[np.asarray(buckets, dtype=np.intp)], -1, 0)
