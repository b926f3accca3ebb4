"""What is done to each entry of a line of Arb balls on its own: factors, caps, limits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from byhand.expression import Expression
from byhand.numbers.base import Array
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.arrays import each
from byhand.numbers.enclosed.balls.experts import Experts
from byhand.numbers.enclosed.balls.system import precisely


class Entrywise(Experts):
    """rescale, soft_cap, clamp, weigh, beside, bucket_scores."""

    @precisely
    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        result = self._balls(x)
        result = result if by is None else result * self._scalar(by)
        return result if plus is None else result + self._scalar(plus)

    @precisely
    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        most = self._scalar(cap)
        return each(lambda v: most * ranges.increasing(arb.tanh, v / most), self._balls(x))

    @precisely
    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        low, high = (None if end is None else self._scalar(end) for end in (least, most))
        return each(lambda v: ranges.limited(v, low, high), self._balls(x))

    @precisely
    def weigh(self, x: Array, by: Array) -> Array:
        return self._balls(x) * self._balls(by)

    def beside(self, x: Array, y: Array) -> Array:
        x, y = self._balls(x), self._balls(y)
        return np.concatenate((x, np.broadcast_to(y, (len(x), *y.shape[1:]))), axis=-1)

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        return np.moveaxis(self._balls(table)[np.asarray(buckets, dtype=np.intp)], -1, 0)
