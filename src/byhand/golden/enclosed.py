"""Enclosures as floats: a float64 for every number, and a radius that covers its rounding.

A program that reads golden files works in floats.  So the radius is that of the enclosure plus the
distance of its midpoint from the float, rounded up.  The true value lies within `radius` of
`value`, both as float64.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, nextafter, ulp
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.base import ABSENT, nearest_float
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.worked import Worked

Floats = npt.NDArray[np.float64]


def in_floats(worked: Worked, absent: float) -> tuple[Floats, Floats]:
    """(values, radii) of a step; a masked entry is `absent`, with radius 0."""
    if not isinstance(worked.array, np.ndarray):
        return _whole_arrays(worked, absent)
    pairs = [(absent, 0.0) if entry is ABSENT else pair(entry) for _at, entry in worked.entries()]
    both = np.asarray(pairs, dtype=np.float64).reshape(*worked.step.shape, 2)
    return np.ascontiguousarray(both[..., 0]), np.ascontiguousarray(both[..., 1])


def _whole_arrays(worked: Worked, absent: float) -> tuple[Floats, Floats]:
    """The same for limbs, whole arrays at a time: a value may be a few units of its last place from
    the midpoint, which the radius includes."""
    from byhand.numbers.enclosed.limbs.arithmetic import APPROX
    from byhand.numbers.enclosed.limbs.radii import plus, times
    from byhand.numbers.enclosed.limbs.values import NEAR

    numbers: Any = worked.numbers
    value = numbers.enclosed(worked.value)
    engine = value.digits.engine
    values = np.array(engine.to_numpy(value.approx), dtype=np.float64)
    with np.errstate(over="ignore"):
        lost = times(np.abs(values) * NEAR, APPROX)
        radii = plus(None if value.box is None else engine.to_numpy(value.box), lost)
    radii = np.where(np.isfinite(values), radii, inf)
    if value.hidden is not None:
        hidden = np.asarray(engine.to_numpy(value.hidden))
        values, radii = np.where(hidden, absent, values), np.where(hidden, 0.0, radii)
    return values, np.ascontiguousarray(radii)


def printed_radii(worked: Worked) -> Floats | None:
    """The radii of a step in exact numbers, some of which are ranges; None where none is a range.

    The radius of the others is their rounding to float64.
    """
    if worked.whole or worked.numbers.uniform is not None or worked.step.op == "argmax":
        return None
    entries = [entry for _index, entry in worked.entries()]
    if not any(_is_range(entry) for entry in entries):
        return None
    radii = [0.0 if entry is ABSENT else _radius(entry) for entry in entries]
    return np.asarray(radii, dtype=np.float64).reshape(worked.step.shape)


def _is_range(entry: Any) -> bool:
    return getattr(entry, "register", None) == "enclosed"


def _radius(entry: Any) -> float:
    value = nearest_float(entry)
    if not _is_range(entry):
        return upward(Fraction(ulp(value)))
    middle, radius = entry.interval(20)
    if not isfinite(value) or radius == "inf":
        return inf
    return upward(Fraction(radius) + abs(Fraction(middle) - Fraction(value)))


def pair(entry: Enclosure) -> tuple[float, float]:
    """(value, radius): the float64 nearest to the midpoint, and a bound of the true distance."""
    value = nearest_float(entry.mid)
    if value in (inf, -inf) or entry.rad == inf:
        return value, inf
    return value, upward(entry.rad + abs(entry.mid - Fraction(value)))


def upward(x: Fraction | Any) -> float:
    """The least float64 that is not below x ≥ 0."""
    try:
        found = float(x)
    except OverflowError:
        return inf
    return found if found == inf or Fraction(found) >= x else nextafter(found, inf)
