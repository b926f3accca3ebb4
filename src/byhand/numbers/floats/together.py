"""Floats of several texts of one length at once: their rows stand one below the other.

A plan is written for one text.  Here each value holds that of every text: what is (pos, …) for one
text is (texts·pos, …) for all, so that a matrix is read once for many texts.  Operations on rows
do not notice.  Attention alone must not look into another text: its scores have the texts as
their first axis, (text, head, query, key).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.expression import Expression
from byhand.numbers.base import Array
from byhand.numbers.floats import attention
from byhand.numbers.floats.formats import Data, narrowed
from byhand.numbers.floats.operations import Floats
from byhand.numbers.floats.results import all_finite
from byhand.numbers.floats.system import quiet


class Together(Floats):
    """Floats of so many texts, all of one length."""

    def __init__(self, format: str, texts: int, length: int) -> None:
        super().__init__(format)
        self.texts = texts
        self.length = length

    def _for_each(self, places: Sequence[int]) -> Sequence[int]:
        """The positions of one text, again for every text."""
        return places if len(places) != self.length else [*places] * self.texts

    # ------------------------------------------------------------------- positions

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        return super().embed(table, self._for_each(ids), scale=scale)

    def sinusoid(self, *, positions: Sequence[int], **settings: Any) -> Array:
        return super().sinusoid(positions=self._for_each(positions), **settings)

    def rotate(self, x: Array, *, positions: Sequence[int], **settings: Any) -> Array:
        return super().rotate(x, positions=self._for_each(positions), **settings)

    def join(self, x: Array, y: Array) -> Array:
        raise AssertionError("texts that go on from a cache are worked out one by one")

    # ------------------------------------------------------------------- attention

    def table_scores(self, *, heads: int, **settings: Any) -> Array:
        nothing = self.admit(np.zeros((heads, self.texts * self.length, 1)))
        return self.scores(nothing, nothing, **settings)

    def _dot_products(self, q: Data, k: Data) -> Data:
        """(text, head, query, key); query head h reads key head h // (heads / kv_heads)."""
        heads, kv_heads = len(q), len(k)
        result = self._room(self.texts, heads, self.length, self.length)
        groups = result.reshape(self.texts, kv_heads, -1, self.length, self.length)
        queries, keys = self._apart(q, kv_heads), self._apart(k, kv_heads)
        np.matmul(queries, keys.transpose(0, 1, 2, 4, 3), out=groups)
        return result

    def _apart(self, x: Data, kv_heads: int) -> Data:
        """(head, text·pos, width) → (text, kv_head, heads of its group, pos, width)."""
        heads, _rows, width = x.shape
        parts = x.reshape(kv_heads, heads // kv_heads, self.texts, self.length, width)
        return parts.transpose(2, 0, 1, 3, 4)

    @quiet(all="ignore")
    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        data = self._wide(np.ma.getdata(x))
        if sinks is None and isinstance(x, np.ma.MaskedArray):  # -∞ is below the mask already
            result = attention.shares(data, self._room(*data.shape))
            if not np.isnan(result[..., 0]).any():  # else a query that may look nowhere
                mask = np.ma.getmaskarray(x)
                return np.ma.MaskedArray(narrowed(result, self.dtype), mask=mask, copy=False)
        return super().softmax(x, sinks=sinks)

    @quiet(all="ignore")
    def mix(self, weights: Array, v: Array) -> Array:
        shares, hidden = self._wide(np.ma.getdata(weights)), None
        if isinstance(weights, np.ma.MaskedArray):
            hidden = np.ma.getmaskarray(weights)
        (_texts, heads, length, _keys), (kv_heads, _rows, width) = shares.shape, v.shape
        values = self._apart(self._wide(v), kv_heads)
        laid = self._room(self.texts * length, heads, width)
        if all_finite(v):
            grouped = laid.reshape(self.texts, length, kv_heads, heads // kv_heads, width)
            parts = shares.reshape(self.texts, kv_heads, -1, length, length)
            np.matmul(parts, values, out=grouped.transpose(0, 2, 3, 1, 4))
        else:  # 0·∞ is not 0: each text on its own leaves masked values out
            for text in range(self.texts):
                own = laid[text * length : (text + 1) * length]
                away = None if hidden is None else hidden[text]
                attention.mixed(shares[text], values[text, :, 0], away, own)
        return self._give(laid.transpose(1, 0, 2), weights, v)
