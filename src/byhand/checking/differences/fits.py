"""Least squares: factors and summands read off a claim, in units of the usual rounding error."""

from __future__ import annotations

import numpy as np

from byhand.checking.differences.closeness import Fitted
from byhand.checking.differences.difference import Difference, Floats, Truths

FEWEST = 3  # entries that must bear each factor out
LEAST = 2.0**-20  # the uncertainty of a factor does not shrink with it below this


def fitted_factor(difference: Difference, at: Truths) -> Fitted | None:
    """The factor between claimed and expected numbers at some entries; None where none can be."""
    own, claimed, room = difference.expected[at], difference.claimed[at], difference.room[at]
    with np.errstate(all="ignore"):
        sure = own / room
        size = float(sure @ sure)
        value = float(sure @ (claimed / room)) / size if size else np.nan
        off = max(abs(value), LEAST) / np.sqrt(size) if size else np.nan
    return Fitted(value, float(off)) if np.isfinite(value) and np.isfinite(off) else None


def fitted_shift(difference: Difference, at: Truths, room: Floats) -> Fitted | None:
    """The summand between claimed and expected numbers at some entries."""
    with np.errstate(all="ignore"):
        weights = 1 / np.square(room[at])
        total = float(weights.sum())
        moved = float(weights @ (difference.claimed[at] - difference.expected[at]))
    if not 0 < total < np.inf or not np.isfinite(moved):
        return None
    value = moved / total
    return Fitted(value, float(np.sqrt(1 / total)))


def slice_factors(difference: Difference, axis: int) -> tuple[Floats, Floats] | None:
    """The factor of each slice along an axis, and one standard deviation; None: too few entries."""
    at = difference.finite
    with np.errstate(all="ignore"):
        sure = np.where(at, difference.expected / difference.room, 0.0)
        told = np.where(at, difference.claimed / difference.room, 0.0)
        rest = tuple(other for other in range(sure.ndim) if other != axis)
        size = np.square(sure).sum(axis=rest)
        values = (sure * told).sum(axis=rest) / size
        offs = np.maximum(np.abs(values), LEAST) / np.sqrt(size)
    empty = ~(size > 0)
    if empty.all() or (at & (difference.expected != 0)).sum(axis=rest)[~empty].min() < FEWEST:
        return None
    values = np.where(empty, 1.0, values)
    offs = np.where(empty, np.inf, offs)
    return (values, offs) if np.isfinite(values).all() else None


def fitted_line(difference: Difference) -> tuple[Fitted, Fitted] | None:
    """The factor and the summand between claimed and expected numbers of the whole line."""
    at = difference.finite
    own, claimed = difference.expected[at], difference.claimed[at]
    with np.errstate(all="ignore"):
        weights = 1 / np.square(difference.room[at])
        total = float(weights.sum())
        if not 0 < total < np.inf:
            return None
        middle, to = float(weights @ own) / total, float(weights @ claimed) / total
        spread = float(weights @ np.square(own - middle))
        if not spread > 0:
            return None
        slope = float(weights @ ((own - middle) * (claimed - to))) / spread
        off = float(np.sqrt(1 / spread))
        shift = Fitted(to - slope * middle, float(np.hypot(middle * off, np.sqrt(1 / total))))
    if not np.isfinite([slope, off, shift.value, shift.off]).all():
        return None
    return Fitted(slope, off), shift
