"""Losses and the gradient of the logits on ranges: from shares, or through log-softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.allowed.precisions import OWN, Precision
from byhand.numbers.allowed.ranges import TYPICAL, Data, Range, added_up, gamma, wide
from byhand.numbers.allowed.rounding import Rounding, quiet
from byhand.numbers.base import Array
from byhand.numbers.floats.learning import for_each_row

SMALLEST = 1e-300  # a share that float64 hardly holds: its logarithm is not asked for


class Losses(Rounding):
    """loss, losses, average, loss_back."""

    @quiet(all="ignore")
    def loss(self, probs: Array, *, target: int) -> Range:
        """-ln p, or the logarithm of the sum of exponentials less the logit."""
        return self._surprise(self._read(probs), np.array([len(probs.mid) - 1]), [target])

    @quiet(all="ignore")
    def losses(self, probs: Array, targets: Sequence[int]) -> Range:
        ids = np.asarray(targets)
        away = ids == UNCOUNTED
        found = self._surprise(self._read(probs), np.arange(len(ids)), np.where(away, 0, ids))
        if not away.any():
            return found
        for part in (found.mid, found.rad, found.usual):
            assert part is not None
            part[away] = 0.0
        found.absent = away
        return found

    def _surprise(self, probs: Range, rows: Data, ids: Data | Sequence[int]) -> Range:
        """-ln of one share of each of these rows."""
        p = self.precision.island
        radius = probs.radius()
        share = wide(probs.mid)[rows, ids]
        mid = 0 - np.log(share)
        unit = p.work.half
        rad = np.abs(mid) * (p.function + 8 * unit + 4 * OWN) + 2 * OWN
        off = np.zeros(len(share)) if radius is None else radius[rows, ids]
        if radius is None or probs.claimed:  # computed from the logits, not from `probs`
            rad += _from_logits(self.precision, probs.shape[-1])
            off = off + _small_shares(self.precision)
        rad += np.where(off < share, -np.log1p(-off / share), np.inf)
        usual = np.abs(mid) * unit + 4 * unit + self.precision.store.half * TYPICAL
        if probs.usual is not None:
            usual = np.hypot(usual, probs.usual[rows, ids] / share)
        return self._stored(mid, rad, usual)

    @quiet(all="ignore")
    def logprobs(self, x: Array, targets: Sequence[int]) -> Range:
        """x_t less the logarithm of the sum of exponentials, or the logarithm of a share.

        Logits within r of these move ln Σ e^x by at most ln Σ p·e^r.
        """
        x, p = self._unrounded(x), self.precision.island
        ids = np.asarray(targets)
        away = ids == UNCOUNTED
        rows, ids = np.arange(len(ids)), np.where(away, 0, ids)
        logits, radius = wide(x.mid), x.radius()
        most = logits.max(axis=-1)
        powers = np.exp(logits - most[:, None])
        total = powers.sum(axis=-1)
        whole = most + np.log(total)
        mid = (logits[rows, ids] - most) - np.log(total)
        sizes = np.abs(mid) + 2 * (np.abs(logits[rows, ids]) + np.abs(most) + np.log(total))
        unit, width = p.work.half, logits.shape[-1]
        rad = sizes * (4 * unit + 8 * OWN) + np.abs(mid) * p.function + width * 2 * OWN
        rad += _from_logits(self.precision, width)
        usual = (
            (np.abs(mid) + np.abs(whole)) * unit + 4 * unit + self.precision.store.half * TYPICAL
        )
        shares = powers / total[:, None]
        if radius is not None:
            with_most = np.log1p((shares * np.expm1(radius)).sum(axis=-1) * (1 + width * 2 * OWN))
            rad += radius[rows, ids] + with_most
        if x.usual is not None:
            own = x.usual[rows, ids] * (1 - shares[rows, ids])
            moved = np.sqrt(np.square(shares * x.usual).sum(axis=-1))
            usual = np.hypot(usual, np.hypot(own, moved))
        found = self._stored(mid, rad, usual)
        if not away.any():
            return found
        for part in (found.mid, found.rad, found.usual):
            assert part is not None
            part[away] = 0.0
        found.absent = away
        return found

    @quiet(all="ignore")
    def average(self, losses: Array) -> Range:
        """Added in the working format at the worst: some libraries do that even in 16 bits."""
        losses = self._read(losses)
        p = self.precision.island
        counted = slice(None) if losses.absent is None else ~losses.absent
        data, radius = wide(losses.mid)[counted], losses.radius()
        n = len(data)
        size = np.abs(data).mean(keepdims=True)
        relative = float(added_up(n + 2, p.work.half)) + (n + 2) * OWN
        if losses.claimed:  # the mean may be that of losses that were not rounded yet
            relative += self.precision.store.half
        rad = size * relative + n * p.work.least
        if radius is not None:
            rad += radius[counted].mean() * (1 + relative)
        usual = size * (TYPICAL * p.rows.half)
        if losses.usual is not None:
            moved = np.sqrt(np.square(losses.usual[counted]).mean(keepdims=True) / n)
            usual = np.hypot(usual, moved)
        return self._stored(data.mean(keepdims=True), rad, usual)

    @quiet(all="ignore")
    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Range:
        """p - 1 over n, p from the shares or as the exponential of a stored logarithm.

        1/n may be rounded first, and so may p - 1.
        """
        probs = self._read(probs)
        p, store = self.precision.island, self.precision.store.half
        unit = p.work.half
        ids = for_each_row(targets, len(probs))
        counted = np.flatnonzero(ids != UNCOUNTED)
        share, radius = wide(probs.mid)[counted], probs.radius()
        n, width = len(counted), share.shape[-1]
        hot = np.zeros(share.shape)
        hot[np.arange(n), ids[counted]] = 1.0
        logs = -np.log(np.maximum(share, SMALLEST))
        relative = logs * (2 * unit) + (p.function + (4 + 2 * log(width)) * unit + 8 * OWN)
        relative += gamma(width, p.rows.half)
        if radius is None or probs.claimed:
            relative += _from_logits(self.precision, width)
        room = share * np.expm1(relative)
        off = np.zeros(1) if radius is None else radius[counted]
        room += (off + _small_shares(self.precision)) * (1 + relative)
        room += (share + hot) * (4 * unit + 2 * OWN) + np.abs(share - hot) * store
        room += n * p.work.least  # of p/n
        spread = share * ((0.5 + 0.3 * logs) * unit) + hot * (TYPICAL * unit)
        spread += p.work.least
        if probs.usual is not None:
            spread = np.hypot(spread, probs.usual[counted])
        mid, rad, usual = np.zeros((3, *probs.shape))
        mid[counted], rad[counted], usual[counted] = (share - hot) / n, room / n, spread / n
        return self._stored(mid, rad, usual)


def _from_logits(p: Precision, width: int) -> float:
    """How far a claimed share may be, relative to itself, from the one that was used."""
    island = p.island
    apart = gamma(2 * width, island.rows.half) + p.store.half
    return apart + 3 * island.function + (8 + 4 * log(width)) * island.work.half


def _small_shares(p: Precision) -> float:
    """What a small share lost when it was stored, and before."""
    return 2 * p.island.work.least + p.store.least
