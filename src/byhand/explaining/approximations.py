"""Floats near the values of any number system, for ordering and measuring, not for proofs.

Proofs are made by `lens.rank` or by the number system itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.enclosed.enclosure import Enclosing

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
BITS = 64  # of the balls whose middles are rounded to floats


def floats_near(numbers: Numbers, value: Any) -> Floats:
    """Floats near the numbers, NaN where an entry is absent."""
    if hasattr(value, "digits"):
        limbs: Any = numbers  # too many to convert one by one
        value = limbs.enclosed(value)
        engine = value.digits.engine
        near: Floats = np.array(engine.to_numpy(value.approx), dtype=np.float64)
        if value.hidden is not None:
            near[np.asarray(engine.to_numpy(value.hidden))] = np.nan
        return near
    entries = numbers.entries(value)
    if isinstance(entries, np.ma.MaskedArray):
        filled = np.ma.filled(np.ma.asarray(entries).astype(np.float64), np.nan)
        return np.asarray(filled, dtype=np.float64)
    entries = np.asarray(entries)
    if entries.dtype != object:
        return entries.astype(np.float64)
    near = np.array([near_entry(entry) for entry in entries.ravel()], dtype=np.float64)
    return near.reshape(entries.shape)


def near_entry(entry: Any) -> float:
    """A float near one entry; NaN where it is absent."""
    if entry is ABSENT:
        return float("nan")
    if (fraction := getattr(entry, "fraction", None)) is not None:
        entry = fraction
    elif hasattr(entry, "ball"):
        return float(entry.ball(BITS).mid())
    try:
        return float(getattr(entry, "mid", entry))  # of an enclosure of any width
    except OverflowError:  # a Fraction beyond the range
        return float("inf") if entry > 0 else float("-inf")


def absent(numbers: Numbers, value: Any) -> Flags:
    """True where an entry is masked."""
    if hasattr(value, "digits"):
        if value.hidden is None:
            return np.zeros(value.shape, dtype=np.bool_)
        hidden = np.asarray(value.digits.engine.to_numpy(value.hidden), dtype=np.bool_)
        return np.broadcast_to(hidden, value.shape)
    entries = numbers.entries(value)
    if isinstance(entries, np.ma.MaskedArray):
        return np.ma.getmaskarray(entries)
    entries = np.asarray(entries)
    if entries.dtype != object:
        return np.zeros(entries.shape, dtype=np.bool_)
    return np.array([entry is ABSENT for entry in entries.ravel()]).reshape(entries.shape)


def bounds(numbers: Numbers, value: Any) -> tuple[Floats, Floats] | None:
    """Floats proven to be below and above each entry of enclosures; None for other numbers."""
    if not isinstance(numbers, Enclosing):
        return None
    near = floats_near(numbers, value)
    _sizes, radii = numbers.magnitudes(value)
    with np.errstate(over="ignore", invalid="ignore"):
        # a radius is right to 2^-20 of its logarithm, a middle to a few units of the last place
        room = np.exp2(radii) * (1 + 2.0**-18) + np.abs(near) * 2.0**-48 + 2.0**-1070
        low, high = near - room, near + room
    unknown = ~np.isfinite(near) | np.isposinf(radii)
    return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)


def room_around(numbers: Numbers, value: Any) -> Floats:
    """How far an entry may lie from the float near it, for ranges and enclosures; else 0."""
    near = floats_near(numbers, value)
    found = bounds(numbers, value)
    if found is not None:
        low, high = found
        with np.errstate(invalid="ignore"):
            return np.asarray(np.fmax(high - near, near - low))
    room = np.zeros(near.shape)
    entries = np.asarray(numbers.entries(value))
    if entries.dtype == object and hasattr(numbers, "writer"):
        flat = [_radius(entry) for entry in entries.ravel()]
        room = np.array(flat, dtype=np.float64).reshape(near.shape)
    return room


def _radius(entry: Any) -> float:
    """The radius of an exact-or-named number: 0, unless weights are known only within ranges."""
    if entry is ABSENT or entry.register != "enclosed":
        return 0.0
    return float(entry.ball(BITS).rad())
