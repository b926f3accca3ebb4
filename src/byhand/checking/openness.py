"""Ranges that say nothing, because they would let almost any value pass.

Bounds hold at the worst that rounding can do.  Over many steps that nobody claimed they grow until
they are as large as the numbers themselves: then a claim within them is not right, it is open.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.checking.claims import Floats, Truths
from byhand.numbers.allowed import Judged


def almost_anything(judged: Judged, slack: Floats | float) -> Truths | None:
    """The entries whose range is as large as the values themselves; None: there are none."""
    with np.errstate(invalid="ignore"):
        room = np.asarray(judged.allowed - slack)
    return _larger_than_values(np.where(np.isnan(room), np.inf, room), judged, slack)


def usual_says_nothing(judged: Judged, times: float, slack: Floats | float) -> bool:
    """Whether so many times the usual error is as large as the values: nearness means nothing."""
    if judged.usual is None:
        return True
    usual = np.asarray(judged.usual) * times
    unknown = ~np.isfinite(usual)
    return _larger_than_values(np.where(unknown, np.inf, usual), judged, slack) is not None


def known_to_be_near(judged: Judged, times: float) -> bool:
    """Whether all claims are as near to what is expected as so many times the usual error; where
    that is not known, within a bound that has an end."""
    if judged.usual is None:  # of ids, the times say it
        return judged.times is not None and judged.times <= times
    if (judged.times or 0.0) > times:
        return False
    known = np.isfinite(judged.usual) | np.isfinite(judged.allowed)
    return bool((known if judged.claimed is None else known | ~judged.claimed).all())


def _larger_than_values(room: Floats, judged: Judged, slack: Floats | float) -> Truths | None:
    """The rows where the room of most entries exceeds the values of the row and of the line.

    A row of zeros in a line of larger numbers is known well enough by a room below those.
    """
    shape = judged.expected.shape
    if not judged.expected.size:
        return None
    where: Any = np.ones(shape, dtype=bool) if judged.claimed is None else judged.claimed
    last = shape[-1] if shape else 1
    there = where.reshape(-1, last)
    if not there.any():
        return None
    unit = _unit(judged.expected)  # squares of large numbers would be infinite, and nothing open
    rows = np.broadcast_to(room / unit, shape).reshape(-1, last)
    values = np.square(judged.expected / unit).reshape(-1, last)
    written = np.where(np.isfinite(slack), slack, 0.0)  # what is endless is open anyway
    typical = max(np.sqrt(values[there].mean()), 4 * float(np.max(written / unit)))
    some = there.any(axis=-1)
    open_rows = np.zeros(len(rows), dtype=bool)
    with np.errstate(invalid="ignore"):
        counts = np.maximum(there.sum(axis=-1), 1)
        sizes = np.sqrt(np.where(there, values, 0.0).sum(axis=-1) / counts)
    half = _medians(rows, there, some)
    open_rows[some] = half > np.maximum(sizes[some], typical)
    if np.median(rows[there]) > typical:
        open_rows |= some
    if not open_rows.any():
        return None
    found: Truths = (there & open_rows[:, None]).reshape(shape)
    return found


def _unit(values: Floats) -> float:
    """A power of two near the largest finite value, so that dividing by it rounds nothing."""
    sizes = np.abs(values[np.isfinite(values)])
    _part, exponent = np.frexp(np.max(sizes, initial=0.0))
    return float(np.ldexp(1.0, np.clip(exponent, -1000, 1000)))


def _medians(rows: Floats, there: Truths, some: Truths) -> Floats:
    """The median of the claimed entries of each row that has any."""
    if there.all():
        return np.median(rows, axis=-1)
    return np.array([np.median(rows[at][there[at]]) for at in np.flatnonzero(some)])
