"""How far floats are from enclosed arrays, as array code: for models of real size."""

from __future__ import annotations

from math import inf, ldexp
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs import APPROX, HALF, WIDTH, approx, from_floats, subtract
from byhand.numbers.enclosed.radii import plus
from byhand.numbers.enclosed.values import Enclosed

LARGEST = 2.0**999  # that has digits


def differences_of(value: Enclosed, floats: Any) -> Any:
    """Upper bounds of |float - x| for every x of each entry's set, as float64; 0 where masked.

    The floats are subtracted from the midpoints exactly, or, where they are finer than those, with
    an error far below the radius.
    """
    engine = value.digits.engine
    fits = np.abs(floats) < LARGEST  # which NaN is not
    low = value.digits.low - WIDTH
    given = engine.constant(np.where(fits, floats, 0.0), like=value.digits.limbs)
    digits, exact = from_floats(given, low)
    apart = abs(approx(subtract(digits, value.digits))) * (1 + 2 * APPROX)
    bound = plus(apart, None if exact else HALF * ldexp(1.0, low), value.box)
    found = np.where(fits, engine.to_numpy(bound), inf)
    if value.hidden is not None:
        hidden = value.hidden
        found[hidden if isinstance(hidden, np.ndarray) else engine.to_numpy(hidden)] = 0.0
    return found
