"""The operations of a transformer on exact-or-named values, as NumPy object arrays of Value.

Each operation is done as a whole where that keeps forms small.  Centred entries are linear forms of
the entries, not of a mean that may be a letter.  A variance is one dot product.  Softmax is shifted
by its lowest score, which only changes the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from flint import fmpq

from byhand.errors import InputError, Undecided
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Array, Note, Prediction
from byhand.numbers.exact import within
from byhand.numbers.exact.activations import ACTIVATIONS
from byhand.numbers.exact.entrywise import Entrywise
from byhand.numbers.exact.largest import predict
from byhand.numbers.exact.names import HALF, ONE
from byhand.numbers.exact.system import array
from byhand.numbers.exact.value import How, Value
from byhand.numbers.made import centered, is_centered, made, made_of, root_of_rows


class Exact(Entrywise):
    """The system of rational numbers and names: nothing is rounded, and nothing is guessed."""

    # ------------------------------------------------------------------- embedding and sums

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = table[list(ids)]
        if scale is None:
            return rows
        factor = self.scalar(scale)
        return self._each(lambda x: self.space.multiply(factor, x), rows)

    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        space = self.space
        result = np.empty((len(positions), width), dtype=object)
        pairs = (width + 1) // 2
        for i in range(pairs):
            first, second = (i, i + pairs) if pairing == "half" else (2 * i, 2 * i + 1)
            frequency = self.frequency(base, Fraction(-2 * i, width))
            for row, position in enumerate(positions):
                angle = frequency.times(fmpq(position))
                result[row, first] = space.sin(angle)
                if second < width:
                    result[row, second] = space.cos(angle)
        return result

    def frequency(self, base: Fraction, exponent: Fraction) -> Value:
        """base^exponent."""
        space = self.space
        return space.exp(space.ln(space.value(base)) * exponent)

    def add(self, x: Array, y: Array) -> Array:
        return self._each(self.space.add, x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._each(self.space.multiply, x, y)

    # ------------------------------------------------------------------- norms

    def mean(self, x: Array) -> Array:
        share = fmpq(1, x.shape[-1])
        one = self.space.plain(ONE)

        def of_row(row: list[Value]) -> Value:
            return self.space.total([(share, entry, one) for entry in row], How("mean", row))

        return made(self._rows(of_row, x), "mean", x)

    def center(self, x: Array, mean: Array) -> Array:
        space = self.space
        width = x.shape[-1]
        one = space.plain(ONE)
        share = fmpq(1, width)
        result = np.empty_like(x)
        for place in np.ndindex(x.shape[:-1]):
            row, middle = list(x[place]), mean[place]
            seen = [space.use(entry) for entry in row]
            plain = all(entry.num is None for entry in seen)
            few = len({i for entry in seen for i in entry.atoms}) <= space.limits.terms
            own = middle.how is not None and middle.how.operation == "mean"
            own = own and all(a is b for a, b in zip(middle.how.parts[0], row, strict=True))
            for k in range(width):
                how = How("linear", (ONE, -ONE), (row[k], middle))
                if plain or not few or not own:
                    parts = [(ONE, row[k], one), (-ONE, middle, one)]
                else:
                    parts = [(ONE * (j == k) - share, v, one) for j, v in enumerate(seen)]
                result[(*place, k)] = space.total(parts, how)
        return centered(result, x, mean)

    def mean_square(self, x: Array) -> Array:
        share = fmpq(1, x.shape[-1])

        def of_row(row: list[Value]) -> Value:
            self._as_multiples_of_one_letter(row)
            return within.mean_of_squares(self.space, row, share)

        return made(self._rows(of_row, x), "mean_square", x)

    def root(self, x: Array, *, eps: Fraction) -> Array:
        shift = self.space.value(eps)
        found = self._each(lambda v: within.root(self.space, v if eps == 0 else v + shift), x)
        return made(found, "root", x, eps)

    def normalize(self, x: Array, by: Array) -> Array:
        result = np.empty_like(x)
        eps = root_of_rows(by, x)
        for place in np.ndindex(x.shape[:-1]):
            row, divisor = x[place], by[place]
            found: list[Value] = []
            try:
                found = self._divided(row, divisor, place)
            except Undecided:
                if eps is None or not within.enclosed(divisor):
                    raise
            if eps is not None and within.enclosed(divisor):
                found = within.limited(self.space, row, found, eps, centered=is_centered(x))
            result[place] = array(found, row.shape)
        return result

    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        space = self.space
        one = space.plain(ONE)
        if gain is None:
            return x if bias is None else self._each(space.add, x, bias)
        if plus_one:
            gain = self._each(lambda g: space.add(one, g), gain)
        if bias is None:
            return self._each(space.multiply, x, gain)

        def entry(v: Value, g: Value, b: Value) -> Value:
            return space.total([(ONE, v, g), (ONE, b, one)], How("dot", (v,), (g,), ONE, b))

        return self._each(entry, x, gain, bias)

    # ------------------------------------------------------------------- products

    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        side_by_side = np.concatenate(list(x), axis=1) if x.ndim == 3 else x
        result = self._linear(side_by_side, weight.T if layout == "in_out" else weight, bias)
        return result if heads is None else np.stack(np.split(result, heads, axis=1))

    def _linear(self, x: Array, rows: Array, bias: Array | None) -> Array:
        """Each row of x times each row of a matrix, plus bias."""
        space = self.space
        offsets = None if bias is None else list(bias)
        flat = x.reshape(-1, x.shape[-1])
        if all(w.num is None for w in rows.ravel()):
            matrix = [[w.q for w in row] for row in rows]
            results = [space.linear(matrix, list(row), offsets) for row in flat]
        else:
            results = [
                [self._named_row(row, w, k, bias) for k, w in enumerate(rows)] for row in flat
            ]
        return array([v for row in results for v in row], (*x.shape[:-1], rows.shape[0]))

    def _named_row(self, x: Array, weights: Array, k: int, bias: Array | None) -> Value:
        space = self.space
        xs, ys = list(x), list(weights)
        if bias is None:
            return space.dot(xs, ys)
        parts = [(ONE, u, w) for u, w in zip(xs, ys, strict=True)]
        return space.total(
            [*parts, (ONE, bias[k], space.plain(ONE))], How("dot", xs, ys, ONE, bias[k])
        )

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        return np.stack(
            [x[:, start + h * stride : start + h * stride + width] for h in range(heads)]
        )

    def merge_heads(self, x: Array) -> Array:
        return np.concatenate(list(x), axis=1)

    def join(self, x: Array, y: Array) -> Array:
        return np.concatenate([x, y], axis=-2)

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
        space = self.space
        result = x.copy()
        half = width // 2
        factor = None if magnitude is None else self.scalar(magnitude)
        for i in range(half):
            if frequencies is None:
                frequency = self.frequency(base, Fraction(-2 * i, width))
            else:
                frequency = frequencies[i]
            a, b = (i, i + half) if pairing == "half" else (2 * i, 2 * i + 1)
            for row, position in enumerate(positions):
                c, s = space.circle(frequency.times(fmpq(position)))
                if factor is not None:
                    c, s = space.multiply(factor, c), space.multiply(factor, s)
                for head in range(x.shape[0]):
                    u, v = x[head, row, a], x[head, row, b]
                    result[head, row, a] = space.total([(HALF, u, c), (-HALF, v, s)])
                    result[head, row, b] = space.total([(HALF, u, s), (HALF, v, c)])
        return result

    # ------------------------------------------------------------------- attention

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
        space = self.space
        one = space.plain(ONE)
        factor = one if scale is None else self.scalar(scale)
        group = q.shape[0] // k.shape[0]
        result = np.full((q.shape[0], len(queries), len(keys)), ABSENT, dtype=object)
        for h, i, j in np.ndindex(result.shape):
            offset = None if table is None else table[h, queries[i], keys[j]]
            if not mask[i][j] or (table is not None and offset is ABSENT):
                continue
            xs, ys = list(q[h, i]), list(k[h // group, j])
            if factor.num is None:
                parts = [(factor.q, x, y) for x, y in zip(xs, ys, strict=True)]
            else:
                parts = [(ONE, space.dot(xs, ys), factor)]
            if cap is not None:
                parts = [(ONE, self._capped(space.total(parts), cap), one)]
            beside: list[tuple[fmpq, Value]] = []  # what else is added, for the line of working
            if slopes is not None:
                distance = fmpq(abs(queries[i] - keys[j]))
                parts.append((-distance, slopes[h], one))
                beside.append((-distance, slopes[h]))
            if offset is not None:
                parts.append((ONE, offset, one))
                beside.append((ONE, offset))
            if bias is not None:
                parts.append((ONE, bias[h, i, j], one))
                beside.append((ONE, bias[h, i, j]))
            how = None if cap is not None else How("scores", xs, ys, factor, *beside)
            result[h, i, j] = space.total(parts, how)
        return result

    def table_scores(
        self,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        bias: Array | None = None,
        heads: int,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        one = self.space.plain(ONE)
        result = np.full((heads, len(queries), len(keys)), ABSENT, dtype=object)
        for h, i, j in np.ndindex(result.shape):
            offset = None if table is None else table[h, queries[i], keys[j]]
            if not mask[i][j] or (table is not None and offset is ABSENT):
                continue
            terms = [] if offset is None else [(ONE, offset)]
            if slopes is not None:
                terms.append((fmpq(-abs(queries[i] - keys[j])), slopes[h]))
            if bias is not None:
                terms.append((ONE, bias[h, i, j]))
            how = How("linear", [c for c, _x in terms], [x for _c, x in terms])
            result[h, i, j] = self.space.total([(c, x, one) for c, x in terms], how)
        return result

    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        result = np.full(x.shape, ABSENT, dtype=object)
        for place in np.ndindex(x.shape[:-1]):
            present = [j for j, score in enumerate(x[place]) if score is not ABSENT]
            sink = [] if sinks is None else [sinks[place[0]]]
            row = within.softmax_row(self.space, [*(x[(*place, j)] for j in present), *sink])
            for j, weight in zip(present, row[: len(present)], strict=True):
                result[(*place, j)] = weight
        return result if sinks is not None else made(result, "softmax", x)

    def mix(self, weights: Array, v: Array) -> Array:
        heads, queries, _keys = weights.shape
        group = heads // v.shape[0]
        result = np.empty((heads, queries, v.shape[-1]), dtype=object)
        for h, i in np.ndindex(heads, queries):
            present = [j for j, weight in enumerate(weights[h, i]) if weight is not ABSENT]
            row = [weights[h, i, j] for j in present]
            for d in range(v.shape[-1]):
                total = self.space.dot(row, [v[h // group, j, d] for j in present])
                result[h, i, d] = self.space.settled(total)
        return result

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        heads, positions, width = mixed.shape
        zero = self.space.plain(fmpq(0))
        if weight is None:
            result = np.full((heads, positions, heads * width), zero, dtype=object)
            for h in range(heads):
                result[h, :, h * width : (h + 1) * width] = mixed[h]
            return result
        rows = weight.T if layout == "in_out" else weight
        return np.stack(
            [
                self._linear(mixed[h], rows[:, h * width : (h + 1) * width], None)
                for h in range(heads)
            ]
        )

    # ------------------------------------------------------------------- activations and the end

    def activate(self, x: Array, *, kind: str) -> Array:
        if kind == "identity":
            return x
        if kind in ("relu", "relu2"):
            bent = self._relu(x)
            return bent if kind == "relu" else self._each(self.space.multiply, bent, bent)
        if kind not in ACTIVATIONS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return self._each(partial(within.activated, self.space, kind), x)

    def _relu(self, x: Array) -> Array:
        result = np.empty_like(x)
        for place in np.ndindex(x.shape):
            result[place], decided = self.space.relu(x[place])
            if not decided:
                self.notes.append(Note("undecided-sign", place))
        return result

    def argmax(self, x: Array) -> list[Prediction]:
        return [predict(self.space, list(row)) for row in x]

    def loss(self, probs: Array, *, target: int) -> Array:
        scores = made_of(probs, "softmax")
        row = None if scores is None else list(scores[-1])
        return array([within.loss(self.space, probs[-1, target], row, target)], (1,))
