"""Distances of floats from enclosed arrays, as array code."""

from __future__ import annotations

from math import inf, ldexp
from typing import Any

import numpy as np

from byhand.numbers.enclosed.distance import Apart
from byhand.numbers.enclosed.limbs.arithmetic import (
    APPROX,
    HALF,
    WIDTH,
    approx,
    from_floats,
    subtract,
)
from byhand.numbers.enclosed.limbs.radii import plus
from byhand.numbers.enclosed.limbs.values import Enclosed

LARGEST = 2.0**999  # the largest float that becomes digits
LEAST = 2.0**-1000  # more than what rounding to the smallest floats may cost
DOWN = 1 - 2.0**-48  # covers the few roundings of float64 below


def floats_near(value: Enclosed) -> tuple[Any, Any]:
    """A float near each entry, and a bound of its distance from every x of the entry's set."""
    engine = value.digits.engine
    near = np.array(engine.to_numpy(value.approx), dtype=np.float64)
    radii = np.zeros(near.shape) if value.box is None else engine.to_numpy(value.box)
    with np.errstate(over="ignore"):
        radii = (radii + np.abs(near) * (2 * APPROX)) * (1 + 2.0**-48) + LEAST
    if value.hidden is not None:
        hidden = value.hidden
        hidden = hidden if isinstance(hidden, np.ndarray) else engine.to_numpy(hidden)
        near, radii = np.where(hidden, 0.0, near), np.where(hidden, 0.0, radii)
    return near, radii


def apart_from(value: Enclosed, floats: Any) -> Apart:
    """Lower bounds of the distances of floats from every x of each entry's set.

    The floats are subtracted from the midpoints exactly, or, where they are finer than the
    midpoints, with an error far below the radius.
    """
    engine = value.digits.engine
    fits = np.abs(floats) < LARGEST  # which NaN is not
    low = value.digits.low - WIDTH
    given = engine.constant(np.where(fits, floats, 0.0), like=value.digits.limbs)
    digits, exact = from_floats(given, low)
    middles = engine.to_numpy(abs(approx(subtract(digits, value.digits)))) * (1 - 2 * APPROX)
    box = None if value.box is None else engine.to_numpy(value.box)
    radii = plus(0.0 if exact else HALF * ldexp(1.0, low), box)
    sizes = plus(np.abs(engine.to_numpy(value.approx)) * (1 + 2 * APPROX), box)
    with np.errstate(invalid="ignore", over="ignore"):
        least = np.maximum(middles - radii, 0.0) * DOWN
        beyond = np.maximum(np.abs(floats) - sizes, 0.0) * DOWN  # finite, but without digits
    least = np.where(fits, least, np.where(np.isfinite(floats), beyond, inf))
    if value.hidden is not None:
        hidden = value.hidden
        hidden = hidden if isinstance(hidden, np.ndarray) else engine.to_numpy(hidden)
        least, sizes = np.where(hidden, 0.0, least), np.where(hidden, 0.0, sizes)
    mantissas, exponents = np.frexp(least)
    largest, tops = np.frexp(sizes)
    return Apart(mantissas, exponents.astype(np.int64), largest, tops.astype(np.int64))
