"""Ranges that decide nothing, because almost any value lies in them.

Bounds hold for the worst case of rounding.  Over many unclaimed steps they can grow as large as the
numbers themselves.  A claim within such bounds is undecided, not right.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byhand.checking.claims import Floats, Truths
from byhand.numbers.allowed import Judged


def almost_anything(judged: Judged, slack: Floats | float) -> Truths | None:
    """The entries whose range is as large as the values themselves; None if there are none."""
    with np.errstate(invalid="ignore"):
        room = np.asarray(judged.allowed - slack)
    return _larger_than_values(np.where(np.isnan(room), np.inf, room), judged, slack)


def usual_says_nothing(judged: Judged, times: float, slack: Floats | float) -> bool:
    """Whether `times` the usual error is as large as the values: nearness then decides nothing."""
    if judged.usual is None:
        return True
    usual = np.asarray(judged.usual) * times
    unknown = ~np.isfinite(usual)
    return _larger_than_values(np.where(unknown, np.inf, usual), judged, slack) is not None


def known_to_be_near(judged: Judged, times: float) -> bool:
    """Whether every claim is within `times` the usual error of the expected value.

    Where the usual error is unknown, a finite bound is enough.
    """
    if judged.usual is None:  # ids have `times` alone
        return judged.times is not None and judged.times <= times
    if (judged.times or 0.0) > times:
        return False
    known = np.isfinite(judged.usual) | np.isfinite(judged.allowed)
    return bool((known if judged.claimed is None else known | ~judged.claimed).all())


def _larger_than_values(room: Floats, judged: Judged, slack: Floats | float) -> Truths | None:
    """The rows where most entries' bounds exceed the values of the row and of the line.

    A row of zeros in a line of larger numbers only needs bounds below those numbers.
    """
    shape = judged.expected.shape
    if not judged.expected.size:
        return None
    where: Any = np.ones(shape, dtype=bool) if judged.claimed is None else judged.claimed
    last = shape[-1] if shape else 1
    there = where.reshape(-1, last)
    if not there.any():
        return None
    unit = _unit(judged.expected)  # so that squares of large numbers stay finite
    rows = np.broadcast_to(room / unit, shape).reshape(-1, last)
    values = np.square(judged.expected / unit).reshape(-1, last)
    written = np.where(np.isfinite(slack), slack, 0.0)  # infinite slack is undecided anyway
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
