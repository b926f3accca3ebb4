"""Attention on ranges: scores, softmax and mixing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import frexp, inf, sqrt

import numpy as np

from byhand.expression import Expression
from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.ggml import rounded
from byhand.numbers.allowed.precisions import CHAIN, FLOAT32, HALF, OWN, ROW, Precision
from byhand.numbers.allowed.ranges import (
    CHUNK,
    TYPICAL,
    Data,
    Origin,
    Range,
    added_up,
    gammas,
    peaks,
    quadrature,
    usual_of_sums,
    wide,
)
from byhand.numbers.allowed.rounding import Rounding, overflowing, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats import attention as plain

BLOCK = 64  # keys in a block of a blockwise softmax, at least
RESCALED = 24  # roundings of rescaling sums to a new maximum: two exponentials and a product
UNKNOWN = 0.3  # usual error of an exponent above which the exponential counts as unknown
SMALL = 2.0**-5  # error of an exponent up to which first terms of the series bound the effect


class Attention(Rounding):
    """scores, softmax, mix."""

    def _met(self, x: Array) -> Range:
        """A factor of scores or of mixed values, which llama.cpp rounds to float16."""
        return rounded(self._read(x), HALF) if self.precision.ggml else self._read(x)

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
    ) -> Range:
        p = self.precision
        q, k = self._met(q), self._met(k)
        mid, sizes, moved, usual = _dot_products(q, k, (len(q), len(queries), len(keys)))
        width = q.shape[-1]
        kept = FLOAT32 if p.flash and p.narrow else p.store
        store = kept.half
        factor, off = (1.0, 0.0) if scale is None else constant(scale)
        relative = (1 + p.summed(width)) * (1 + p.entering) ** 2 * (1 + off)
        if not free_of_rounding(factor, off):  # both sides times its root, at the worst
            relative *= (1 + p.work.half) ** 4
        relative += -1 + (width + 2) * OWN
        # each product and each partial sum may be flushed to 0
        rad = sizes * relative + 2 * (1 + relative) * width * p.accumulate.least
        if moved is not None:
            rad += moved * (1 + relative)
        if p.entering_least:  # lost below the format, times the other side
            rad += (1 + relative) * p.entering_least * (_longest(q) + _longest(k))
        overflowing(rad, sizes, p.accumulate.largest / (1 + relative))
        each = 0.0 if free_of_rounding(factor, off) else 0.3 * p.work.half  # scaled before
        own = usual_of_sums(p, mid, sizes, peaks(q.mid), width, each=each)
        usual = own if usual is None else np.sqrt(np.square(own) + np.square(usual))
        if factor != 1:
            # the product may be stored first: scaling it then is free, or has its share of 4w
            rad += kept.least
            rad[np.abs(mid) + rad > kept.largest] = inf
            mid, rad, usual = mid * factor, rad * abs(factor), usual * abs(factor)
            rad += np.abs(mid) * (2 * OWN)
            # or scaled before: what is lost below the normal numbers meets the other side
            longest = max(_longest(q), _longest(k))
            rad += 2 * p.work.least * max(1.0, sqrt(abs(factor))) * longest
        if cap is not None:
            mid, rad, usual = capped(p, float(cap), mid, rad, usual)
        if slopes is not None:
            rad += (np.abs(mid) + rad) * store + kept.least
            mid = self._less_distances(mid, rad, self.admit(slopes), queries, keys)
        if bias is not None:
            rad += (np.abs(mid) + rad) * store + kept.least
            more = self._read(bias)
            mid = mid + wide(more.mid)
            if (radius := more.radius()) is not None:
                rad += radius
            usual = np.hypot(usual, np.abs(mid) * (TYPICAL * store))
            usual = usual if more.usual is None else np.hypot(usual, more.usual)
        hidden = plain.hidden(mask)
        absent = None if hidden is None else np.broadcast_to(hidden, mid.shape)
        if table is not None:
            rad += (np.abs(mid) + rad) * store + kept.least
            given = self.admit(table)
            here = given[np.ix_(range(len(given)), queries, keys)]
            if here.absent is not None:
                absent = here.absent if absent is None else absent | here.absent
            mid = mid + wide(here.mid)
            if (radius := here.radius()) is not None:
                rad += radius
        made = Origin(factors=(q, k))
        return self._stored(mid, rad, usual, absent=absent, origin=made, store=kept)

    def _less_distances(
        self, mid: Data, rad: Data, slopes: Range, queries: Sequence[int], keys: Sequence[int]
    ) -> Data:
        """Scores less slope·distance; `rad` grows by the errors of the product and the slope."""
        distance = np.abs(np.subtract.outer(np.asarray(queries), np.asarray(keys)))
        part = wide(slopes.mid)[:, None, None] * distance
        # a slope is 2^(-8i/heads), a power
        rad += np.abs(part) * (self.precision.function + 2 * self.precision.store.half + 2 * OWN)
        rad += 2 * self.precision.store.least * (1 + distance)
        if (radius := slopes.radius()) is not None:
            rad += radius[:, None, None] * distance
        less: Data = mid - part
        return less

    @quiet(all="ignore")
    def softmax(self, x: Array, *, sinks: Array | None = None) -> Range:
        x = self._unrounded(x)
        if sinks is not None:
            return _without_last(self._softmax(_beside(x, self.admit(sinks)), shifted=True))
        return self._softmax(x)

    def _softmax(self, x: Range, *, shifted: bool = False) -> Range:
        """Softmax of each row; `shifted`: scores less the largest may be stored before."""
        scores = wide(x.mid)
        n = scores.shape[-1]
        mid, rad, usual = np.empty((3, *scores.shape))
        island = self.precision.attending
        flat = x.each(lambda part: part.reshape(-1, n))
        step = max(1, CHUNK // max(1, n))
        for start in range(0, len(flat), step):
            rows = slice(start, start + step)
            here = flat[rows]
            share, room, spread = shares_of(island, here, shifted=shifted)
            room = self._narrower(island, share, room)
            if island.flash:  # the sum may be that of the rounded exponentials
                room += (share + room) * self.precision.store.half
            done = self._stored(share, room, spread, absent=here.absent)
            for whole, part in ((mid, done.mid), (rad, done.rad), (usual, done.usual)):
                whole.reshape(-1, n)[rows] = 0.0 if part is None else part
        return Range(mid, rad, usual, x.absent, origin=Origin(shares=True, scores=x))

    @quiet(all="ignore")
    def mix(self, weights: Array, v: Array) -> Range:
        p = self.precision
        weights, v = self._met(weights), self._met(v)
        if p.ggml and p.flash:  # sums of values are kept in float16, and rescaled
            p = replace(p, accumulate=HALF)
        shares, values = wide(weights.mid), np.ascontiguousarray(wide(v.mid))
        heads, queries, keys = shares.shape

        def mixed(left: Data, right: Data) -> Data:
            laid = np.empty((queries, heads, values.shape[-1]))
            return plain.mixed(left, np.ascontiguousarray(right), None, laid)

        seen = keys if weights.absent is None else keys - weights.absent.sum(axis=-1)
        counts = np.broadcast_to(np.asarray(seen), (heads, queries))[..., None]
        roundings = counts + 1.0 if p.accumulate is not HALF else 2.0 * counts + 4.0
        relative = (1 + _summed(p, roundings)) * (1 + p.entering) ** 2
        relative += -1 + (keys + 2) * OWN
        mid = mixed(shares, values)
        abs_w, abs_v = np.abs(shares), np.abs(values)
        sizes = mixed(abs_w, abs_v)
        rad = sizes * relative + 2 * (1 + relative) * keys * p.accumulate.least
        # the shares of a row are 1 together
        rad += (1 + relative) * p.entering_least * (2 + keys * float(_most(v).max(initial=0)))
        overflowing(rad, sizes, p.accumulate.largest / (1 + float(relative.max(initial=0))))
        r_w, r_v = weights.radius(), v.radius()
        if r_w is not None:
            rad += mixed(r_w, abs_v) * (1 + relative)
        if r_v is not None:
            rad += mixed(abs_w if r_w is None else abs_w + r_w, r_v) * (1 + relative)
        usual: Data | None = usual_of_sums(p, mid, sizes, peaks(shares), keys)
        if weights.usual is not None:
            moved = np.sqrt(mixed(np.square(weights.usual), np.square(values)))
            usual = quadrature(usual, moved)
        if v.usual is not None:
            usual = quadrature(usual, np.sqrt(mixed(np.square(shares), np.square(v.usual))))
        return self._stored(mid, rad, usual)


def _summed(p: Precision, counts: Data) -> Data:
    """The largest relative errors of sums of so many products."""
    unit = p.accumulate.half
    return added_up(counts, unit) if p.coarse else gammas(counts, unit)


def capped(p: Precision, cap: float, mid: Data, rad: Data, usual: Data) -> tuple[Data, Data, Data]:
    """c·tanh(x/c), whose slope is at most 1; products and quotients may be stored on the way."""
    kept = p.work.half + p.store.half
    bent: Data = cap * np.tanh(mid / cap)
    size = np.abs(bent)
    # of x, stored, of the quotient and of the cap; x·(1 - tanh²(x/c)) is at most |c·tanh(x/c)|
    off = size * (4 * kept + p.function + 16 * OWN) * (1 + 8 * kept)
    room = rad * (1 + 4 * kept) + off + 4 * (p.work.least + p.store.least) * (1 + cap)
    room = np.where(np.isfinite(rad), np.minimum(room, 2.0 * cap * (1 + 8 * kept)), room)
    inner = usual * (1 - np.square(np.tanh(mid / cap))) + size * (0.6 * kept)
    return bent, room, inner


def _most(x: Range) -> Data:
    """The largest that each entry may be, whatever its sign."""
    size, radius = np.abs(wide(x.mid)), x.radius()
    return size if radius is None else size + radius


def _longest(x: Range) -> float:
    """The largest sum of the sizes of a row."""
    return float(_most(x).sum(axis=-1).max(initial=0))


def free_of_rounding(factor: float, off: float) -> bool:
    """Whether scaling by the factor, or twice by its root, is exact: a power of 4."""
    fraction, exponent = frexp(abs(factor))
    return off == 0 and fraction == 0.5 and exponent % 2 == 1


def _dot_products(
    q: Range, k: Range, shape: tuple[int, int, int]
) -> tuple[Data, Data, Data | None, Data | None]:
    """q·k and |q|·|k|; and how far q·k moves within the radii of q and k, at most and usually."""

    def dots(left: Data, right: Data) -> Data:
        return plain.dot_products(left, right, np.empty(shape))

    a, b = np.ascontiguousarray(wide(q.mid)), np.ascontiguousarray(wide(k.mid))
    abs_a, abs_b = np.abs(a), np.abs(b)
    r_q, r_k = (None if r is None else np.ascontiguousarray(r) for r in (q.radius(), k.radius()))
    moved = None if r_q is None else dots(r_q, abs_b)
    if r_k is not None:
        more = dots(abs_a if r_q is None else abs_a + r_q, r_k)
        moved = more if moved is None else moved + more
    usual = None
    if q.usual is not None:
        usual = np.sqrt(dots(np.ascontiguousarray(np.square(q.usual)), np.square(b)))
    if k.usual is not None:
        more = np.sqrt(dots(np.square(a), np.ascontiguousarray(np.square(k.usual))))
        usual = quadrature(usual, more)
    return dots(a, b), dots(abs_a, abs_b), moved, usual


def _beside(x: Range, sinks: Range) -> Range:
    """The scores with the sink of each head as a last key, which every query sees."""

    def joined(scores: Data | None, last: Data | None) -> Data | None:
        if scores is None and last is None:
            return None
        left = np.zeros(x.shape) if scores is None else scores
        column = np.zeros(x.shape[0]) if last is None else last
        right = np.broadcast_to(column[:, None, None], (*x.shape[:-1], 1))
        return np.concatenate((left, right), axis=-1)

    mid = joined(wide(x.mid), wide(sinks.mid))
    assert mid is not None
    absent = None
    if x.absent is not None:
        seen = np.zeros((*x.shape[:-1], 1), dtype=bool)
        absent = np.concatenate((x.absent, seen), axis=-1)
    return Range(mid, joined(x.radius(), sinks.radius()), joined(x.usual, sinks.usual), absent)


def _without_last(shares: Range) -> Range:
    """The shares of the keys, without that of the sink."""
    kept = shares[..., :-1]
    kept.origin = Origin(shares=True)
    return kept


def shares_of(p: Precision, x: Range, *, shifted: bool = False) -> tuple[Data, Data, Data]:
    """Softmax of some rows: the shares, their radii and usual errors, before they are stored.

    `shifted`: the scores less the largest may be stored before, as transformers does with sinks.
    """
    scores, absent, radius = wide(x.mid), x.absent, x.radius()
    n = scores.shape[-1]
    if absent is not None:
        scores = np.where(absent, -inf, scores)
        scores[absent.all(axis=-1)] = 0.0  # a row of them: any finite scores will do
    down = scores - scores.max(axis=-1, keepdims=True)
    mid = np.exp(down)
    mid /= mid.sum(axis=-1, keepdims=True)
    np.negative(down, out=down)
    if absent is not None:
        down[absent] = 0.0
    # how far what stands in the exponent may be off, with the exponential's own error
    unit = p.work.half
    kept = max(unit, p.store.half) if shifted else unit
    off = down * (unit + kept + 2 * OWN)
    if p.cast:
        off += np.abs(x.mid) * p.cast
    off += 1.01 * p.function + 4 * OWN
    if radius is not None:
        off += radius
    if absent is not None:
        off[absent] = 0.0
    # and what is off beyond that, relative to a share: the sum, stored, and its reciprocal
    seen = np.asarray(n if absent is None else n - absent.sum(axis=-1, keepdims=True))
    counts = seen + RESCALED * (seen // BLOCK)
    relative = (1 + gammas(counts, p.rows.half)) * (1 + 2.01 * unit) - 1 + (n + 8) * OWN
    relative += seen * p.work.least  # of exponentials below the normal numbers, in the sum
    rad = share_radius(mid, off)
    rad += (mid + rad) * relative
    rad += 2 * p.work.least
    if p.cast:  # a score that the working format does not reach spoils its row
        most = _most(x).max(axis=-1, keepdims=True)
        overflowing(rad, np.broadcast_to(most, rad.shape), p.work.largest)
    usual = down * (0.4 * kept)
    if p.cast:
        usual += np.abs(wide(x.mid)) * (0.4 * p.cast)
    usual += 0.6 * unit + p.usual_sum(n, ROW)[0]
    if n > ROW:
        usual += _swamped(mid, p)
    large = usual > UNKNOWN
    usual *= mid
    if large.any():
        usual[large] = inf
    if x.usual is not None:
        moved = np.where(x.usual > UNKNOWN, inf, mid * x.usual)
        shared = mid * np.sqrt(np.square(moved).sum(axis=-1, keepdims=True))
        usual = np.sqrt(np.square(usual) + np.square(moved) + np.square(shared))
    return mid, rad, usual


def _swamped(shares: Data, p: Precision) -> Data:
    """The usual error of long sums whose small terms are lost beside the largest, as shares.

    A term below half a unit of the partial sum is lost whole.  That is all of them where terms are
    added one after the other, and one in 8 or 16 where as many sums are kept side by side.
    """
    half = p.rows.half
    lost = np.where(shares < half * shares.max(axis=-1, keepdims=True), shares, 0.0)
    error: Data = lost.sum(axis=-1, keepdims=True) / 4
    return error + 0.35 * half * sqrt(min(shares.shape[-1], CHAIN) / 3)


def share_radius(mid: Data, off: Data) -> Data:
    """How far e^(x_i + t_i)/Σ e^(x_j + t_j) may be from the share p_i at t = 0, if |t| <= off.

    The share is p_i/(p_i + Σ p_j·e^(t_j - t_i)) over j ≠ i: largest where t_i = off_i and t_j =
    -off_j, smallest the other way round.
    """
    most = float(off.max(initial=0.0))
    if most < SMALL:
        # Σ p_j·(1 - e^-(t_i + t_j)) <= q and Σ p_j·(e^(t_i + t_j) - 1) <= q·(1 + 2·most), where
        # q = Σ p_j·(t_i + t_j) = (1 - p_i)·t_i + (mean t - p_i·t_i)
        mean = np.einsum("...i,...i->...", mid, off)[..., None]
        first: Data = (1.0 + 8 * OWN) - 2 * mid
        first *= off
        first += mean * (1 + 2**-40)
        np.maximum(first, 0.0, out=first)
        first *= 1 + 2 * most
        first /= 1 - first
        first *= mid
        return first
    lost = 4 * OWN * mid.shape[-1]
    grown, shrunk = np.exp(np.minimum(off, 700.0)), np.exp(-off)
    above = np.sum(mid * grown, axis=-1, keepdims=True)
    below = np.sum(mid * shrunk, axis=-1, keepdims=True)
    more = mid + grown * (above * (1 + lost) - mid * grown)
    seen = np.maximum(mid, 1e-300)  # a share that float64 cannot hold may grow from there
    fewer = seen + shrunk * np.maximum(below * (1 - lost) - seen * shrunk, 0.0)
    high = seen / (fewer * (1 - 8 * OWN))
    low = mid / (more * (1 + 8 * OWN))
    low[np.isnan(low)] = 0.0  # mid/NaN, where ∞ - ∞ stood for "more"
    out: Data = np.maximum(high - mid, mid - low)
    out += mid * 2**-40
    out[np.isinf(off).any(axis=-1)] = inf
    return out
