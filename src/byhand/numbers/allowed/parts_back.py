"""The way back through caps, limits, sinks, buckets and experts on ranges.

Every bound counts the roundings of the usual ways to write a rule, each in the coarser of the
working and the stored format, and the sizes of terms that may cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

import numpy as np

from byhand.numbers.allowed.activations import OURS
from byhand.numbers.allowed.entrywise import moved_limit
from byhand.numbers.allowed.norms_back import NormsBack
from byhand.numbers.allowed.precisions import OWN
from byhand.numbers.allowed.ranges import Data, Range, added_up, gammas, quadrature, wide
from byhand.numbers.allowed.rounding import overflowing, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats import attention as plain

BENT = 0.77  # 1 - tanh² changes by at most 4/(3√3) times as much as its argument


class PartsBack(NormsBack):
    """columns, unmasked, bucket_back, sinks_back, cap_back, clamp_back, and those of experts."""

    @property
    def _unit(self) -> float:
        """The coarsest rounding that a result on the way may have."""
        p = self.precision
        return max(p.store.half, p.work.half, p.accumulate.half)

    @property
    def _least(self) -> float:
        p = self.precision
        return max(p.store.least, p.work.least, p.accumulate.least)

    # ------------------------------------------------------------------- places

    def columns(self, x: Array, *, start: int, width: int) -> Range:
        read = self._read(x)
        cut: Range = read.each(lambda part: part[..., start : start + width])
        return cut

    def unmasked(self, x: Array) -> Range:
        read = self._read(x)
        absent, rad = read.absent, read.radius()
        if absent is None:
            return read
        mid, room, usual = (
            None if part is None else np.where(absent, 0.0, part)
            for part in (wide(read.mid), rad, read.usual)
        )
        assert mid is not None
        return Range(mid, room, usual, claimed=read.claimed)

    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Range:
        """The gradients of a bucket, added up in any order."""
        terms = self._read(grad).each(lambda part: part.reshape(len(part), -1).T)
        ids = [bucket for row in buckets for bucket in row]
        return self.scatter(terms, ids, rows=rows)

    # ------------------------------------------------------------------- attention

    @quiet(all="ignore")
    def sinks_back(self, weights: Array, dot: Array) -> Range:
        """-Σ rest·dot, where the rest of a row is the sink's own share, or 1 less the others."""
        unit, weights, dot = self._unit, self.used_again(weights), self._read(dot)
        shares, dots = wide(weights.mid), wide(dot.mid)
        if weights.absent is not None:
            shares = np.where(weights.absent, 0.0, shares)
        rest = 1 - shares.sum(axis=-1)
        keys, queries = shares.shape[-1], shares.shape[-2]
        off = np.abs(shares).sum(axis=-1) * (float(gammas(np.asarray(keys + 4), unit)))
        off += 4 * unit + (keys + 2) * OWN
        off = _plus_rows(off, weights.radius(), weights.absent)
        terms = np.abs(rest * dots)
        room = (off * np.abs(dots)).sum(axis=-1)
        if (radius := dot.radius()) is not None:
            room += ((np.abs(rest) + off) * radius).sum(axis=-1)
        relative = float(added_up(queries + 4, unit)) + (queries + 2) * OWN
        room = room * (1 + relative) + terms.sum(axis=-1) * relative + 4 * queries * self._least
        overflowing(room, terms.sum(axis=-1), self.precision.reach)
        usual = np.square(off * np.abs(dots) * 0.2).sum(axis=-1)
        usual += np.square(terms).sum(axis=-1) * (0.4 * unit) ** 2
        if dot.usual is not None:
            usual += np.square(rest * dot.usual).sum(axis=-1)
        mid = 0 - (rest * dots).sum(axis=-1)
        return self._stored(mid, room, np.sqrt(usual), store=self.precision.parameters)

    @quiet(all="ignore")
    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Range:
        """grad·(1 - t²), t = tanh(x/c) rounded; c is taken out and put back again."""
        p, unit = self.precision, self._unit
        grad, x = self._read(grad), self.used_again(x)
        rises, limit, absent = wide(grad.mid), float(cap), grad.absent
        inner = wide(x.mid) / limit
        if absent is not None:
            inner, rises = np.where(absent, 0.0, inner), np.where(absent, 0.0, rises)
        arch = 1 / np.square(np.cosh(np.minimum(np.abs(inner), 350.0)))
        off = np.full(arch.shape, 2 * (p.function + unit) + 5 * unit + OURS)
        if (radius := x.radius()) is not None:
            off += np.minimum(radius * (BENT / limit), 1.0) * (1 + 4 * unit)
        mid, size = rises * arch, np.abs(rises)
        room = size * off + np.abs(mid) * (4 * unit) + (2 + size) * self._least
        if (radius := grad.radius()) is not None:
            room += radius * (arch + off)
        usual: Data | None = size * (1.5 * unit)
        if x.usual is not None:
            usual = quadrature(usual, size * x.usual * (BENT / limit))
        if grad.usual is not None:
            usual = quadrature(usual, grad.usual * arch)
        if absent is not None:
            room = np.where(absent, 0.0, room)
            usual = None if usual is None else np.where(absent, 0.0, usual)
        return self._stored(mid, room, usual, absent=absent)

    # ------------------------------------------------------------------- the MLP

    @quiet(all="ignore")
    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Range:
        """Where rounding leaves it open on which side of a limit x is, either is allowed."""
        grad, x = self._read(grad), self.used_again(x)
        data, radius = wide(x.mid), x.radius()
        room = np.zeros(data.shape) if radius is None else radius
        beyond, either = np.zeros(data.shape, dtype=bool), np.zeros(data.shape, dtype=bool)
        for end, side in ((least, -1.0), (most, 1.0)):
            if end is not None:
                ahead = (data - float(end)) * side  # rounded: once
                beyond |= ahead > 0
                off = moved_limit(self.precision, end)
                either |= np.abs(ahead) <= (room + off) * (1 + 4 * OWN) + np.abs(data) * OWN
        mid, rad = wide(grad.mid), grad.radius()
        whole = np.abs(mid) if rad is None else np.abs(mid) + rad
        kept = np.zeros(mid.shape) if rad is None else rad
        kept = np.where(either, whole, np.where(beyond, 0.0, kept))
        usual = np.zeros(mid.shape) if grad.usual is None else grad.usual
        usual = np.where(either, np.maximum(usual, np.abs(mid)), np.where(beyond, 0.0, usual))
        return Range(np.where(beyond, 0.0, mid), kept, usual)

    # ------------------------------------------------------------------- experts

    def expert_dots(self, x: Array, grad: Array) -> Range:
        stacked = self.stack([self.row_dots(x[k], grad) for k in range(len(x))])
        turned: Range = stacked.each(lambda part: part.transpose(1, 0))
        return turned

    @quiet(all="ignore")
    def expert_shares_back(
        self,
        x: Array,
        chosen: Array,
        shares: Array,
        grad: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Range:
        """share·(grad - dot) and its kin, by the softmax of all experts or of the chosen alone.

        Where the softmax of all is normalised afterwards, experts that were not chosen get what
        rounding leaves of terms that cancel.  Where the choice is open, everything is.
        """
        kept, share, back = self._read(chosen), self.used_again(shares), self._read(grad)
        scores = self.used_again(x)
        factor = 1.0 if scale is None else float(scale)
        mask, rises = wide(kept.mid), wide(back.mid)
        parts = wide(share.mid) / factor
        dot = (parts * rises).sum(axis=-1, keepdims=True)
        sizes = np.abs(rises) * mask + (np.abs(parts * rises)).sum(axis=-1, keepdims=True)
        data = wide(scores.mid)
        if not alone:
            every = plain.shares(data, np.empty(data.shape))
            outer = np.maximum(every, np.abs(parts)) if normalised else every
            mid = (parts if normalised else every) * (rises * mask - dot) * factor
        elif normalised:
            total = (data * mask).sum(axis=-1, keepdims=True) + (0.0 if eps is None else float(eps))
            outer = np.broadcast_to(np.abs(mask / total), data.shape)
            mid = mask * (rises - dot) * (factor / total)
        else:
            outer, sizes, mid = mask, np.abs(rises), mask * rises * factor
        count = data.shape[-1]
        relative = float(added_up(2 * count + 12, self._unit)) + (count + 8) * OWN
        moves = self._relative_moves(scores, share, alone)
        whole = outer * sizes * abs(factor)
        room = whole * (relative + 2 * moves) + 8 * self._least * (1 + sizes + outer)
        if (radius := back.radius()) is not None:
            dots = (np.abs(parts) * radius).sum(axis=-1, keepdims=True)
            room += outer * (radius * mask + dots) * (abs(factor) * (1 + relative + 2 * moves))
        if (radius := kept.radius()) is not None:
            open_ = (radius > 0).any(axis=-1, keepdims=True)
            room = np.where(open_, inf, room)
        usual = whole * (self._unit + 0.5 * moves)
        if back.usual is not None:
            dots = np.sqrt(np.square(parts * back.usual).sum(axis=-1, keepdims=True))
            usual = np.hypot(usual, outer * (back.usual * mask + dots) * abs(factor))
        return self._stored(mid, room, usual)

    def _relative_moves(self, scores: Range, share: Range, alone: bool) -> Data:
        """How far the shares of a row may move, relative to themselves, by the radii they have."""
        unit = self._unit
        moved = np.full((len(scores), 1), 4 * unit)
        if (radius := scores.radius()) is not None:
            below = np.abs(wide(scores.mid))
            each = radius / np.where(below > radius, below - radius, np.nan) if alone else radius
            most = np.nan_to_num(each.max(axis=-1, keepdims=True), nan=inf, posinf=inf)
            moved = moved + np.expm1(np.minimum(2 * most, 700.0))
        if (radius := share.radius()) is not None:
            size = np.abs(wide(share.mid))
            each = np.divide(radius, size, out=np.zeros(size.shape), where=size > 0)
            moved = moved + each.max(axis=-1, keepdims=True)
        return moved


def _plus_rows(off: Data, radius: Data | None, absent: Data | None) -> Data:
    """The errors of rows, and the radii of their entries."""
    if radius is None:
        return off
    shown = radius if absent is None else np.where(absent, 0.0, radius)
    total: Data = off + shown.sum(axis=-1)
    return total
