"""The way back through attention on ranges: stored shares, or shares that are worked out again.

A fused kernel keeps no attention weights.  On the way back it makes them again from the scores and
the logarithm of their sum, and takes Σ grad·mixed for the row's Σ weights·grad.
"""

from __future__ import annotations

from math import inf

import numpy as np

from byhand.expression import Expression
from byhand.numbers.allowed.precisions import OWN, ULPS
from byhand.numbers.allowed.ranges import Data, Origin, Range, gamma, quadrature, wide
from byhand.numbers.allowed.rounding import overflowing, quiet
from byhand.numbers.allowed.sums import Sums
from byhand.numbers.base import Array
from byhand.numbers.floats import attention as plain


class AttentionBack(Sums):
    """along_keys, along_queries, softmax_back, and the rows' sums for it."""

    @quiet(all="ignore")
    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Range:
        x, y = self._read(x), self._read(y)
        heads, queries, keys = x.shape

        def times(a: Data, b: Data) -> Data:
            laid = np.empty((queries, heads, b.shape[-1]))
            return plain.mixed(a, np.ascontiguousarray(b), None, laid)

        seen = keys if x.absent is None else keys - x.absent.sum(axis=-1)
        count = np.broadcast_to(np.asarray(seen), (heads, queries))[..., None]
        return self._stored(*self._products(x, y, times, count, scale=scale)[:3])

    @quiet(all="ignore")
    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Range:
        x, y = self._made_again(self._read(x)), self._read(y)
        heads, queries, keys = x.shape

        def times(a: Data, b: Data) -> Data:
            laid: Data = a.transpose(0, 2, 1) @ b
            return laid

        seen = queries if x.absent is None else queries - x.absent.sum(axis=-2)
        count = np.broadcast_to(np.asarray(seen), (heads, keys))[..., None]
        return self._stored(*self._products(x, y, times, count, scale=scale)[:3])

    def _made_again(self, weights: Range) -> Range:
        """Attention weights as the way back may have them; any other value is as it is."""
        made = weights.origin
        if made is None or not made.shares:
            return weights
        if made.scores is None or weights.claimed:
            return self.used_again(weights)
        mid, radius = wide(weights.mid), weights.radius()
        rad = mid * np.expm1(_exponents_off(self.precision.single, made.scores, mid))
        rad += (np.abs(mid) + rad) * self.precision.store.half + self.precision.store.least
        room = np.maximum(rad, 0.0 if radius is None else radius)
        room[np.isnan(room)] = inf
        if weights.absent is not None:
            room[weights.absent] = 0.0
        return Range(mid, room, weights.usual, weights.absent, origin=Origin(shares=True))

    def _attention_dots(self, x: Range, y: Range) -> Range:
        """Σ weights·grad of each row, or Σ grad·mixed over the entries of a head."""
        x = self._made_again(x)
        p = self.precision.island
        shares, grads = wide(x.mid), wide(y.mid)
        if x.absent is not None:
            grads = np.where(x.absent, 0.0, grads)
        n = shares.shape[-1]
        mid, sizes = (shares * grads).sum(axis=-1), np.abs(shares * grads).sum(axis=-1)
        relative = (1 + gamma(n + 1, p.rows.half)) * (1 + p.work.half) - 1 + (n + 2) * OWN
        rad = sizes * relative + 2 * n * (p.rows.least + p.work.least)
        usual = np.sqrt(np.square(shares * grads).sum(axis=-1)) * (0.5 * p.work.half)
        parts = (
            (np.abs(grads), x.radius()),
            (np.abs(shares), _shown(y.radius(), x)),
            (x.radius(), _shown(y.radius(), x)),
        )
        for one, other in parts:
            if one is not None and other is not None:
                rad += (one * other).sum(axis=-1) * (1 + relative)
        for size, spread in ((grads, x.usual), (shares, _shown(y.usual, x))):
            if spread is not None:
                usual = np.hypot(usual, np.sqrt(np.square(size * spread).sum(axis=-1)))
        if y.origin is not None and y.origin.factors is not None:
            rad = np.maximum(rad, self._by_mixed(x, *y.origin.factors, mid))
        overflowing(rad, sizes, p.reach)
        return self._part(p, mid, rad, usual, Origin())

    def _by_mixed(self, weights: Range, grad: Range, v: Range, mid: Data) -> Data:
        """How far Σ grad·mixed may be from `mid`, where mixed is stored before."""
        p = self.precision
        mixed = self.mix(weights, v)
        size, most = np.abs(wide(grad.mid)), np.abs(mixed.mid) + mixed.rad
        other = (wide(grad.mid) * mixed.mid).sum(axis=-1)
        width = size.shape[-1]
        relative = gamma(width + 1, p.rows.half) + (width + 2) * OWN
        rad: Data = (size * most).sum(axis=-1) * relative
        rad += (size * mixed.rad).sum(axis=-1) + np.abs(other - mid)
        rad += 2 * width * p.rows.least
        if (radius := grad.radius()) is not None:
            rad += (radius * most).sum(axis=-1) * (1 + relative)
        return rad

    @quiet(all="ignore")
    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Range:
        """weights · (grad - dot), or weights · grad - weights · dot: both terms count."""
        p = self.precision.island
        x, y = self._made_again(self._read(weights)), self._read(grad)
        shares, grads, row = wide(x.mid), wide(y.mid), wide(dot.mid)[..., None]
        less = grads - row
        sizes = np.abs(grads) + np.abs(row)
        moved = sizes * (3 * p.work.half + 4 * OWN)
        for radius in (y.radius(), dot.radius()):
            if radius is not None:
                moved = moved + (radius if radius.ndim == sizes.ndim else radius[..., None])
        room = np.abs(shares) * moved + p.work.least * (2 + sizes)
        if (r_x := x.radius()) is not None:
            room += r_x * (np.abs(less) + moved)
        usual: Data | None = np.abs(shares) * sizes * (0.4 * p.work.half)
        for spread in (y.usual, None if dot.usual is None else dot.usual[..., None]):
            usual = quadrature(usual, None if spread is None else np.abs(shares) * spread)
        if x.usual is not None:
            usual = quadrature(usual, x.usual * np.abs(less))
        overflowing(room, sizes, p.reach)
        mid = shares * less
        absent = weights.absent
        if absent is not None and usual is not None:
            usual = np.where(absent, 0.0, usual)
        room = self._narrower(p, mid, room)
        return self._stored(mid, room, usual, absent=absent, origin=Origin(shares=True))


def _exponents_off(unit: float, scores: Range, shares: Data) -> Data:
    """How far s - ln Σ e^s may be off, with its exponential, where the scores are made again."""
    data, radius, absent = wide(scores.mid), scores.radius(), scores.absent
    shown = data if absent is None else np.where(absent, -inf, data)
    top = shown.max(axis=-1, keepdims=True)
    whole = top + np.log(np.exp(shown - top).sum(axis=-1, keepdims=True))
    n = data.shape[-1]
    off: Data = 4 * (np.abs(data) + np.abs(whole)) * (unit + OWN)
    off += 3 * ULPS * (unit + OWN) + gamma(2 * n, unit + OWN)
    if radius is not None:  # twice: on the way forth in the sum, and here
        off = off + radius + np.einsum("...i,...i->...", shares, radius)[..., None]
    if absent is not None:
        off = np.where(absent, 0.0, off)
    return off


def _shown(part: Data | None, x: Range) -> Data | None:
    """The part with 0 where x is absent."""
    if part is None or x.absent is None:
        return part
    return np.where(x.absent, 0.0, part)
