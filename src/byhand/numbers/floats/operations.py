"""The operations of a transformer on NumPy float arrays; `learning` has those of learning.

Masked scores and weights are `numpy.ma.MaskedArray`s, with -∞ and 0 below the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note, Prediction
from byhand.numbers.floats import attention
from byhand.numbers.floats.activations import ACTIVATIONS
from byhand.numbers.floats.angles import sinusoids, turns_in
from byhand.numbers.floats.experts import Experts, expert_by_expert
from byhand.numbers.floats.formats import Data, narrowed
from byhand.numbers.floats.places import side_by_side
from byhand.numbers.floats.products import times_matrix
from byhand.numbers.floats.results import predict
from byhand.numbers.floats.system import quiet


class Floats(Experts):
    """Floats of one format.

    Weights of a narrower format stay as they are and are widened piece by piece.  With
    `convert_once` they are converted when admitted, for frequent use.
    """

    # ------------------------------------------------------------------- embedding and sums

    @quiet(all="ignore")
    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = self._wide(table[np.asarray(ids, dtype=np.intp)])
        if scale is not None:
            rows = rows * self._constant(scale)
        return self._give(rows, table)

    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        return narrowed(sinusoids(positions, width, base, pairing), self.dtype)

    @quiet(all="ignore")
    def add(self, x: Array, y: Array) -> Array:
        return self._give(np.add(self._wide(x), self._wide(y), out=self._room(*x.shape)), x, y)

    @expert_by_expert
    @quiet(all="ignore")
    def multiply(self, x: Array, y: Array) -> Array:
        result = np.multiply(self._wide(x), self._wide(y), out=self._room(*x.shape))
        return self._give(result, x, y)

    # ------------------------------------------------------------------- norms

    @quiet(all="ignore")
    def mean(self, x: Array) -> Array:
        return self._give(self._mean(self._wide(x)), x)

    def _mean(self, x: Data) -> Data:
        total: Data = np.add.reduce(x, axis=-1)  # pairwise
        total /= x.dtype.type(x.shape[-1])
        return total

    @quiet(all="ignore")
    def center(self, x: Array, mean: Array) -> Array:
        middle = self._wide(mean)[..., None]
        return self._give(np.subtract(self._wide(x), middle, out=self._room(*x.shape)), x, mean)

    @quiet(all="ignore")
    def mean_square(self, x: Array) -> Array:
        wide = self._wide(x)
        return self._give(self._mean(wide * wide), x)

    @quiet(all="ignore")
    def root(self, x: Array, *, eps: Fraction) -> Array:
        under = self._wide(x) + self._constant(eps)
        return self._give(np.sqrt(under, out=under), x)

    @quiet(all="ignore")
    def normalize(self, x: Array, by: Array) -> Array:
        top, below = self._wide(x), self._wide(by)
        result = np.divide(top, below[..., None], out=self._room(*x.shape))
        for place in [] if below.all() else map(tuple, np.argwhere(below == 0)):
            if not top[place].any():
                result[place] = 0
                self.notes.append(Note("zero-variance", tuple(map(int, place))))
        return self._give(result, x, by)

    @quiet(all="ignore")
    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        result = self._room(*x.shape)
        one = self._work.dtype.type(1)
        factor = one if gain is None else self._wide(gain) + one if plus_one else self._wide(gain)
        np.multiply(self._wide(x), factor, out=result)
        if bias is not None:
            result += self._wide(bias)
        return self._give(result, x, gain, bias)

    # ------------------------------------------------------------------- entry by entry

    @expert_by_expert
    @quiet(all="ignore")
    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        result = self._wide(x)
        result = result if by is None else result * self._constant(by)
        return self._give(result if plus is None else result + self._constant(plus), x)

    @quiet(all="ignore")
    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        limit = self._constant(cap)
        return self._give(np.tanh(self._wide(x) / limit) * limit, x)

    @expert_by_expert
    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        result = self._wide(x)
        if least is not None:
            result = np.maximum(result, self._constant(least))
        if most is not None:
            result = np.minimum(result, self._constant(most))
        return self._give(result, x)

    @quiet(all="ignore")
    def weigh(self, x: Array, by: Array) -> Array:
        return self._give(self._wide(x) * self._wide(by), x, by)

    def beside(self, x: Array, y: Array) -> Array:
        return np.concatenate((x, np.broadcast_to(y, (len(x), *y.shape[1:]))), axis=-1)

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
    ) -> Array:
        flat = self._wide(side_by_side(x) if x.ndim == 3 else x)
        room = self._room(len(flat), weight.shape[1 if layout == "in_out" else 0])
        times_matrix(flat, weight, layout, bias, out=room)
        if heads is not None:
            width = room.shape[1] // heads
            room = self.split_heads(room, start=0, heads=heads, width=width, stride=width)
        return self._give(room, x, bias, weight)

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        """(pos, any) → (head, pos, width), without a copy."""
        if stride == width:
            flat = x[:, start : start + heads * width]
            return flat.reshape(len(x), heads, width).transpose(1, 0, 2)
        last = start + (heads - 1) * stride + 1  # where the last head begins, and one more
        windows = np.lib.stride_tricks.sliding_window_view(x, width, axis=1)
        return windows[:, start:last:stride].transpose(1, 0, 2)

    def merge_heads(self, x: Array) -> Array:
        return side_by_side(x)

    def join(self, x: Array, y: Array) -> Array:
        return np.concatenate((x, y), axis=-2)

    @quiet(all="ignore")
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
        given = None if frequencies is None else (frequencies.tobytes(), frequencies.dtype)
        cos, sin = turns_in(self._work.dtype, tuple(positions), width, base, given)
        if magnitude is not None:
            factor = self._constant(magnitude)
            cos, sin = cos * factor, sin * factor
        wide = self._wide(x)
        if pairing == "half":
            first, second = slice(0, width // 2), slice(width // 2, width)
        else:
            first, second = slice(0, width, 2), slice(1, width, 2)
        a, b = wide[..., first], wide[..., second]
        heads, count, whole = x.shape
        result = self._room(count, heads, whole).transpose(1, 0, 2)  # heads side by side, as in x
        turned = result[..., first]
        np.multiply(a, cos, out=turned)
        turned -= b * sin
        turned = result[..., second]
        np.multiply(a, sin, out=turned)
        turned += b * cos
        result[..., width:] = wide[..., width:]
        return self._give(result, x)

    # ------------------------------------------------------------------- attention

    @quiet(all="ignore")
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
        result = self._dot_products(self._wide(q), self._wide(k))
        if scale is not None:
            result *= self._constant(scale)
        if cap is not None:
            result /= self._constant(cap)
            np.tanh(result, out=result)
            result *= self._constant(cap)
        if slopes is not None:
            distance = np.abs(np.subtract.outer(np.asarray(queries), np.asarray(keys)))
            result -= self._wide(slopes)[:, None, None] * distance.astype(result.dtype)
        if bias is not None:
            result += self._wide(bias)
        hidden = attention.hidden(mask)
        if table is not None:
            here = table[np.ix_(range(len(table)), queries, keys)]
            result += self._wide(np.ma.getdata(here))
            if isinstance(table, np.ma.MaskedArray):
                hidden = np.ma.getmaskarray(here) | (False if hidden is None else hidden)
        if hidden is not None:
            np.copyto(result, 0, where=hidden)
        result = self._give(result, q, k, slopes, table, bias)
        return attention.masked(result, hidden, below=-np.inf)

    def _dot_products(self, q: Data, k: Data) -> Data:
        """(head, query, key) in new memory."""
        return attention.dot_products(q, k, self._room(len(q), q.shape[1], k.shape[1]))

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        rows = np.asarray(buckets, dtype=np.intp)
        return narrowed(self._wide(table)[rows].transpose(2, 0, 1), self.dtype)

    @quiet(all="ignore")
    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        data = self._wide(np.ma.getdata(x))
        hidden = np.ma.getmaskarray(x) if isinstance(x, np.ma.MaskedArray) else None
        if hidden is not None:
            data = np.where(hidden, data.dtype.type(-np.inf), data)
        if sinks is not None:
            last = np.broadcast_to(self._wide(sinks)[:, None, None], (*data.shape[:-1], 1))
            data = np.concatenate((data, last), axis=-1)
        shares = attention.shares(data, self._room(*data.shape))  # of finite scores: finite
        if sinks is not None:
            shares = np.ascontiguousarray(shares[..., :-1])
        return attention.masked(narrowed(shares, self.dtype), hidden, below=0)

    def mix(self, weights: Array, v: Array) -> Array:
        return self.along_keys(weights, v)

    @quiet(all="ignore")
    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        heads, positions, width = mixed.shape
        wide = self._wide(mixed)
        parts = [slice(h * width, (h + 1) * width) for h in range(heads)]
        if weight is None:
            result = np.zeros((heads, positions, heads * width), dtype=wide.dtype)
            for h, part in enumerate(parts):
                result[h, :, part] = wide[h]
        else:
            cuts = [weight[part] if layout == "in_out" else weight[:, part] for part in parts]
            rows = [times_matrix(wide[h], cut, layout) for h, cut in enumerate(cuts)]
            result = np.stack(rows)
        return self._give(result, mixed, weight)

    # ------------------------------------------------------------------- activations and the end

    @expert_by_expert
    @quiet(all="ignore")
    def activate(self, x: Array, *, kind: str) -> Array:
        if kind not in ACTIVATIONS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        result = self._room(*x.shape)
        ACTIVATIONS[kind](self._wide(x), result)
        return narrowed(result, self.dtype)  # none is larger than its x: finite where that is

    @quiet(all="ignore")
    def argmax(self, x: Array) -> list[Prediction]:
        predictions = [predict(self._wide(row), self.dtype) for row in x]
        for position, prediction in enumerate(predictions):
            if prediction.id is None:
                self.notes.append(Note("not-finite", (position,)))
                break
        return predictions

    @quiet(all="ignore")
    def loss(self, probs: Array, *, target: int) -> Array:
        p = self._wide(probs[-1:, target])
        return self._give(0 - np.log(p), probs)
