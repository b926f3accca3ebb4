"""The operations of a transformer on Arb balls, entry by entry: arrays of objects.

For any weights, exact, named, printed or floats, and for models of up to some hundred thousand
parameters.  Each entry is a ball that contains the real value.  Its width depends on the weights
and on `bits` alone, never on a precision set elsewhere in FLINT.  After a division by a ball around
zero, the ball is not finite, and its enclosure is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Array, Note, Prediction
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.arrays import (
    absent,
    each,
    matrix,
    objects,
    present_or_zero,
    table_of,
)
from byhand.numbers.enclosed.balls.functions import ACTIVATIONS, softmax_row
from byhand.numbers.enclosed.balls.given import Given, narrow_ball
from byhand.numbers.enclosed.balls.largest import predict
from byhand.numbers.enclosed.balls.sizes import apart_from, enclosure_of_ball, magnitudes
from byhand.numbers.enclosed.distance import Apart
from byhand.numbers.enclosed.enclosure import Enclosing, Logs, absurd
from byhand.numbers.exact.read import evaluate
from byhand.numbers.exact.space import Space
from byhand.numbers.made import centered, is_centered, made, made_of, root_of_rows

SPARE = 128  # extra bits, so that a difference is as narrow as the ball

Operation = TypeVar("Operation", bound=Callable[..., Any])


def precisely(operation: Operation) -> Operation:
    """An operation that works with the system's own precision, and leaves FLINT's as it was."""

    @wraps(operation)
    def working(self: Balls, *args: Any, **settings: Any) -> Any:
        with ctx.workprec(self.bits):
            return operation(self, *args, **settings)

    return working  # type: ignore[return-value]


class Balls(Enclosing):
    """Arb balls with a working precision of so many bits.

    >>> numbers = Balls(64)
    >>> thirds = numbers.admit([Fraction(1, 3)])
    >>> numbers.entries(numbers.add(thirds, thirds))[0].decimal(12)
    '0.666666666667'
    """

    limit: ClassVar[int] = 4096

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self._space = Space()  # for the values of expressions

    @property
    def name(self) -> str:
        return f"balls of {self.bits} bits"

    def at(self, bits: int) -> Self:
        return type(self)(bits)

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Given:
        """These numbers, exactly; rounded decimals stay the intervals they are."""
        return Given(data, self._space)

    def entries(self, value: Array) -> Array:
        """The value as an array of enclosures, masked entries ABSENT."""
        return each(lambda x: ABSENT if x is ABSENT else enclosure_of_ball(x), self._balls(value))

    def magnitudes(self, value: Array) -> tuple[Logs, Logs]:
        balls = self._balls(value)
        logs = [(-np.inf, -np.inf) if x is ABSENT else magnitudes(x) for x in balls.ravel()]
        both = np.array(logs, dtype=np.float64).reshape(*balls.shape, 2)
        return both[..., 0], both[..., 1]

    def missing(self, value: Array, digits: int) -> Logs:
        found = super().missing(value, digits)
        for place, x in np.ndenumerate(self._balls(value)):
            if x is not ABSENT and absurd(x) and enclosure_of_ball(x).proves(digits):
                found[place] = -np.inf
        return found

    def apart(self, value: Array, floats: Logs) -> Apart:
        with ctx.workprec(self.bits + SPARE):
            return apart_from(self._balls(value), floats)

    def with_zeros(self, value: Array, places: Sequence[tuple[int, ...]]) -> Array:
        """The value with the entries at these places set to 0, which they are known to be."""
        balls = self._balls(value).copy()
        for place in places:
            balls[place] = arb(0)
        return balls

    def take_rows(self, x: Array, places: Sequence[int]) -> Array:
        return super().take_rows(self._balls(x), places)

    def take_columns(self, x: Array, places: Sequence[int]) -> Array:
        return super().take_columns(self._balls(x), places)

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        return super().stack_rows([self._balls(part) for part in parts])

    def _balls(self, x: Any) -> Array:
        """Admitted numbers, or the result of an operation, as an array of balls."""
        return x.at(self.bits) if isinstance(x, Given) else x

    def _scalar(self, value: Expression | Fraction) -> arb:
        known = evaluate(value, self._space) if isinstance(value, Expression) else value
        return narrow_ball(known, self.bits)

    # ------------------------------------------------------------------- embedding and sums

    @precisely
    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = self._balls(table)[list(ids)]
        return rows if scale is None else rows * self._scalar(scale)

    @precisely
    def sinusoid(self, *, positions: Sequence[int], width: int, base: Fraction) -> Array:
        result = np.empty((len(positions), width), dtype=object)
        sin, cos = self._turns(positions, self._frequencies(base, width, (width + 1) // 2))
        result[:, 0::2], result[:, 1::2] = sin, cos[:, : width // 2]
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
    def affine(self, x: Array, *, gain: Array | None = None, bias: Array | None = None) -> Array:
        x = self._balls(x)
        if gain is not None:
            x = x * self._balls(gain)
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

    def _matrix(self, weight: Array, layout: str) -> arb_mat:
        """A matrix of weights, input by input."""
        if isinstance(weight, Given):
            return weight.matrix(self.bits, layout)
        return matrix(weight if layout == "in_out" else weight.T)

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
    ) -> Array:
        if frequencies is None:
            turning = self._frequencies(base, width, width // 2)
        else:
            turning = list(self._balls(frequencies))
        sin, cos = self._turns(positions, turning)
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
        scale: Expression | None = None,
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
        if slopes is not None:
            distances = np.abs(np.subtract.outer(np.asarray(queries), np.asarray(keys)))
            result = result - self._balls(slopes)[:, None, None] * distances.astype(object)
        hidden = np.broadcast_to(~np.asarray(mask, dtype=bool), result.shape)
        if table is not None:
            here = self._balls(table)[np.ix_(range(len(q)), queries, keys)]
            hidden = hidden | absent(here)
            result = result + present_or_zero(here)
        result[hidden] = ABSENT
        return result

    @precisely
    def softmax(self, x: Array) -> Array:
        scores = self._balls(x)
        result = np.full(scores.shape, ABSENT, dtype=object)
        for place in np.ndindex(scores.shape[:-1]):
            present = [j for j, score in enumerate(scores[place]) if score is not ABSENT]
            shares = softmax_row([scores[(*place, j)] for j in present])
            for j, share in zip(present, shares, strict=True):
                result[(*place, j)] = share
        return made(result, "softmax", x)

    @precisely
    def mix(self, weights: Array, v: Array) -> Array:
        weights, v = self._balls(weights), self._balls(v)
        group = len(weights) // len(v)
        rows = []
        for head, shares in enumerate(weights):
            values = v[head // group]
            if all(entry.is_finite() for entry in values.ravel()):
                rows.append(table_of(matrix(present_or_zero(shares)) * matrix(values)))
            else:  # infinite values may stand at hidden keys
                rows.append(np.stack([_mixed(row, values) for row in shares]))
        return np.stack(rows)

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
        share = self._balls(probs)[-1, target]
        scores = made_of(probs, "softmax")
        if scores is None or ranges.narrow(share):
            return objects([-share.log()], (1,))
        return objects([ranges.surprise(list(self._balls(scores)[-1]), target)], (1,))


def _mixed(shares: Array, values: Array) -> Array:
    """The sum of the values a query looks at, each with its share."""
    present = [j for j, share in enumerate(shares) if share is not ABSENT]
    total = np.full(values.shape[-1], arb(0), dtype=object)
    for j in present:
        total = total + shares[j] * values[j]
    return total
