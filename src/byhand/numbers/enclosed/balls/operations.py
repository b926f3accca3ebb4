"""The operations of a transformer on Arb balls, entry by entry: arrays of objects.

For any weights, exact, named, printed or floats, and for models of up to some hundred thousand
parameters.  Each entry is a ball that contains the real value.  Its width depends on the weights
and on `bits` alone, never on a precision set elsewhere in FLINT.  After a division by a ball around
zero, the ball is not finite, and its enclosure is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, fmpq

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Array, Note, Prediction
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.arrays import (
    absent,
    each,
    matrix,
    mixed,
    objects,
    present_or_zero,
    table_of,
)
from byhand.numbers.enclosed.balls.entrywise import Entrywise
from byhand.numbers.enclosed.balls.functions import ACTIVATIONS, softmax_row
from byhand.numbers.enclosed.balls.largest import predict
from byhand.numbers.enclosed.balls.system import precisely
from byhand.numbers.made import centered, is_centered, made, root_of_rows


class Balls(Entrywise):
    """Arb balls with a working precision of so many bits.

    >>> numbers = Balls(64)
    >>> thirds = numbers.admit([Fraction(1, 3)])
    >>> numbers.entries(numbers.add(thirds, thirds))[0].decimal(12)
    '0.666666666667'
    """

    # ------------------------------------------------------------------- embedding and sums

    @precisely
    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = self._balls(table)[list(ids)]
        return rows if scale is None else rows * self._scalar(scale)

    @precisely
    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        pairs = (width + 1) // 2
        result = np.empty((len(positions), width), dtype=object)
        sin, cos = self._turns(positions, self._frequencies(base, width, pairs))
        sines, cosines = slice(0, width, 2), slice(1, width, 2)
        if pairing == "half":
            sines, cosines = slice(0, pairs), slice(pairs, width)
        result[:, sines], result[:, cosines] = sin, cos[:, : width // 2]
        return result

    def _frequencies(self, base: Fraction, width: int, count: int) -> list[arb]:
        """base^(-2i/width)."""
        log = self._scalar(base).log()
        return [(log * arb(fmpq(-2 * i, width))).exp() for i in range(count)]

    def _turns(self, positions: Sequence[int], frequencies: Sequence[arb]) -> tuple[Array, Array]:
        """The sines and cosines of position · frequency."""
        shape = len(positions), len(frequencies)
        turns = [(f * p).sin_cos() for p in positions for f in frequencies]
        return (
            objects([sin for sin, _cos in turns], shape),
            objects([cos for _sin, cos in turns], shape),
        )

    @precisely
    def add(self, x: Array, y: Array) -> Array:
        return self._balls(x) + self._balls(y)

    @precisely
    def multiply(self, x: Array, y: Array) -> Array:
        return self._balls(x) * self._balls(y)

    # ------------------------------------------------------------------- norms

    @precisely
    def mean(self, x: Array) -> Array:
        balls = self._balls(x)
        return made(np.asarray(balls.sum(axis=-1) / arb(balls.shape[-1]), dtype=object), "mean", x)

    @precisely
    def center(self, x: Array, mean: Array) -> Array:
        return centered(self._balls(x) - self._balls(mean)[..., None], x, mean)

    @precisely
    def mean_square(self, x: Array) -> Array:
        squares = each(lambda entry: ranges.power(entry, 2), self._balls(x))
        share = np.asarray(squares.sum(axis=-1) / arb(squares.shape[-1]), dtype=object)
        return made(each(arb.nonnegative_part, share), "mean_square", x)

    @precisely
    def root(self, x: Array, *, eps: Fraction) -> Array:
        balls = self._balls(x)
        return made(each(ranges.root, balls + self._scalar(eps) if eps else balls), "root", x, eps)

    @precisely
    def normalize(self, x: Array, by: Array) -> Array:
        rows, divisors = self._balls(x), self._balls(by)
        result = rows / divisors[..., None]
        eps = root_of_rows(by, x)
        for place in np.ndindex(divisors.shape):
            if divisors[place] == 0 and all(entry == 0 for entry in rows[place]):
                result[place] = arb(0)
                self.notes.append(Note("zero-variance", place))
            elif eps is not None and not ranges.narrow(divisors[place]):
                row, zero_sum = list(rows[place]), is_centered(x)
                result[place][:] = ranges.normalized(row, self._scalar(eps), centered=zero_sum)
        return result

    @precisely
    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        x = self._balls(x)
        if gain is not None:
            x = x * (1 + self._balls(gain) if plus_one else self._balls(gain))
        return x if bias is None else x + self._balls(bias)

    # ------------------------------------------------------------------- products

    @precisely
    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        x = self._balls(x)
        rows = matrix(np.concatenate(list(x), axis=1) if x.ndim == 3 else x)
        result = table_of(rows * self._matrix(weight, layout))
        if bias is not None:
            result = result + self._balls(bias)
        return result if heads is None else np.stack(np.split(result, heads, axis=1))

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        x = self._balls(x)
        starts = [start + h * stride for h in range(heads)]
        return np.stack([x[:, first : first + width] for first in starts])

    def merge_heads(self, x: Array) -> Array:
        return np.concatenate(list(self._balls(x)), axis=1)

    def join(self, x: Array, y: Array) -> Array:
        return np.concatenate([self._balls(x), self._balls(y)], axis=-2)

    @precisely
    def rotate(
        self,
        x: Array,
        *,
        frequencies: Array | None = None,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str,
        magnitude: Expression | None = None,
    ) -> Array:
        if frequencies is None:
            turning = self._frequencies(base, width, width // 2)
        else:
            turning = list(self._balls(frequencies))
        sin, cos = self._turns(positions, turning)
        if magnitude is not None:
            factor = self._scalar(magnitude)
            sin, cos = sin * factor, cos * factor
        result = self._balls(x).copy()
        if pairing == "half":
            first, second = slice(0, width // 2), slice(width // 2, width)
        else:
            first, second = slice(0, width, 2), slice(1, width, 2)
        a, b = result[..., first].copy(), result[..., second].copy()
        result[..., first] = a * cos - b * sin
        result[..., second] = a * sin + b * cos
        return result

    # ------------------------------------------------------------------- attention

    @precisely
    def scores(
        self,
        q: Array,
        k: Array,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        bias: Array | None = None,
        scale: Expression | None = None,
        cap: Fraction | None = None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        q, k = self._balls(q), self._balls(k)
        group = len(q) // len(k)
        columns = [matrix(head).transpose() for head in k]
        result = np.stack(
            [table_of(matrix(head) * columns[h // group]) for h, head in enumerate(q)]
        )
        if scale is not None:
            result = result * self._scalar(scale)
        if cap is not None:
            result = self.soft_cap(result, cap=cap)
        if slopes is not None:
            distances = np.abs(np.subtract.outer(np.asarray(queries), np.asarray(keys)))
            result = result - self._balls(slopes)[:, None, None] * distances.astype(object)
        if bias is not None:
            result = result + self._balls(bias)
        hidden = np.broadcast_to(~np.asarray(mask, dtype=bool), result.shape)
        if table is not None:
            here = self._balls(table)[np.ix_(range(len(q)), queries, keys)]
            hidden = hidden | absent(here)
            result = result + present_or_zero(here)
        result[hidden] = ABSENT
        return result

    @precisely
    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        scores = self._balls(x)
        last = None if sinks is None else self._balls(sinks)
        result = np.full(scores.shape, ABSENT, dtype=object)
        for place in np.ndindex(scores.shape[:-1]):
            present = [j for j, score in enumerate(scores[place]) if score is not ABSENT]
            sink = [] if last is None else [last[place[0]]]
            shares = softmax_row([*(scores[(*place, j)] for j in present), *sink])
            for j, share in zip(present, shares[: len(present)], strict=True):
                result[(*place, j)] = share
        return result if last is not None else made(result, "softmax", x)

    @precisely
    def mix(self, weights: Array, v: Array) -> Array:
        weights, v = self._balls(weights), self._balls(v)
        group = len(weights) // len(v)
        return np.stack([mixed(rows, v[head // group]) for head, rows in enumerate(weights)])

    @precisely
    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        mixed = self._balls(mixed)
        heads, positions, width = mixed.shape
        parts = [slice(h * width, (h + 1) * width) for h in range(heads)]
        if weight is None:
            result = np.full((heads, positions, heads * width), arb(0), dtype=object)
            for h, part in enumerate(parts):
                result[h, :, part] = mixed[h]
            return result
        balls = self._balls(weight)
        whole = balls if layout == "in_out" else balls.T
        cuts = zip(mixed, parts, strict=True)
        return np.stack([table_of(matrix(head) * matrix(whole[part])) for head, part in cuts])

    # ------------------------------------------------------------------- activations and the end

    @precisely
    def activate(self, x: Array, *, kind: str) -> Array:
        x = self._balls(x)
        if kind == "identity":
            return x
        if kind not in ACTIVATIONS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return each(ACTIVATIONS[kind](), x)

    @precisely
    def argmax(self, x: Array) -> list[Prediction]:
        return [predict(list(row)) for row in self._balls(x)]

    @precisely
    def loss(self, probs: Array, *, target: int) -> Array:
        return objects([self._surprise(probs, -1, target)], (1,))
