"""Least squares: factors and summands read off a claim, in units of the usual rounding error."""

from __future__ import annotations

import numpy as np

from byhand.checking.differences.closeness import Entries, Fitted
from byhand.checking.differences.difference import Difference, Floats

FEWEST = 3  # entries that must bear each factor out
LEAST = 2.0**-20  # the uncertainty of a factor does not shrink with it below this


def fitted_factor(entries: Entries) -> Fitted | None:
    """The factor between claimed and expected numbers; None where none can be told."""
    with np.errstate(all="ignore"):
        sure, told = entries.own / entries.room, entries.claimed / entries.room
        size, both = float(sure @ sure), float(sure @ told)
    if not 0 < size < np.inf or not np.isfinite(both):
        return None
    value = both / size
    return Fitted(value, max(abs(value), LEAST) / float(np.sqrt(size)))


def fitted_shift(entries: Entries) -> Fitted | None:
    """The summand between claimed and expected numbers."""
    with np.errstate(all="ignore"):
        weights = 1 / (np.square(entries.room) + np.square(entries.again))
        total = float(weights.sum())
        moved = float(weights @ (entries.claimed - entries.own))
    if not 0 < total < np.inf or not np.isfinite(moved):
        return None
    return Fitted(moved / total, float(np.sqrt(1 / total)))


def fitted_line(entries: Entries) -> tuple[Fitted, Fitted] | None:
    """The factor and the summand between claimed and expected numbers."""
    own, claimed = entries.own, entries.claimed
    with np.errstate(all="ignore"):
        weights = 1 / (np.square(entries.room) + np.square(entries.again))
        total = float(weights.sum())
        if not 0 < total < np.inf:
            return None
        middle, to = float(weights @ own) / total, float(weights @ claimed) / total
        spread = float(weights @ np.square(own - middle))
        if not 0 < spread < np.inf:
            return None
        slope = float(weights @ ((own - middle) * (claimed - to))) / spread
        off = float(np.sqrt(1 / spread))
        shift = Fitted(to - slope * middle, float(np.hypot(middle * off, np.sqrt(1 / total))))
    if not np.isfinite([slope, off, shift.value, shift.off]).all():
        return None
    return Fitted(slope, off), shift


def slice_factors(difference: Difference, axis: int) -> tuple[Floats, Floats] | None:
    """The factor of each slice along an axis, and one standard deviation; None: too few entries."""
    at = difference.finite
    rest = tuple(other for other in range(at.ndim) if other != axis)
    with np.errstate(all="ignore"):
        sure = np.where(at, difference.expected / difference.room, 0.0)
        told = np.where(at, difference.claimed / difference.room, 0.0)
        size = np.square(sure).sum(axis=rest)
        values = (sure * told).sum(axis=rest) / size
        offs = np.maximum(np.abs(values), LEAST) / np.sqrt(size)
    empty = ~(size > 0)
    counts = np.count_nonzero(sure, axis=rest)
    if empty.all() or counts[~empty].min() < FEWEST:
        return None
    values = np.where(empty, 1.0, values)
    offs = np.where(empty, np.inf, offs)
    return (values, offs) if np.isfinite(values).all() else None
