"""The share of a normal distribution below x, Φ(x), in float64 with a proven error.

Taylor polynomials of Φ around points 1/8 apart, from Arb; the remainder of each is Arb's enclosure
of the next coefficient over the whole cell.  gelu(x) is x·Φ(x).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from flint import arb, ctx

from byhand.numbers.forms.rounding import FLOOR, UNIT, Data

STEPS = 8  # points in a unit
LAST = 39  # Φ(-39) is below 2^-1000
DEGREE = 12


@lru_cache(maxsize=1)
def _table() -> tuple[Data, Data]:
    """Coefficients (power, point) of Q(y) = Φ(-y) around y = point/STEPS, and errors by point."""
    points = LAST * STEPS + 1
    coefficients, errors = np.empty((DEGREE + 1, points)), np.empty(points)
    with ctx.workprec(160):
        half_cell = arb(1) / (2 * STEPS)
        wide = arb(0, half_cell)
        for point in range(points):
            center = arb(point) / STEPS
            exact = _tail_series(center, DEGREE + 1)
            rest = _tail_series(center + wide, DEGREE + 2)[DEGREE + 1] * half_cell ** (DEGREE + 1)
            found = [float(exact[k].mid()) for k in range(DEGREE + 1)]
            coefficients[:, point] = found
            lost = rest.abs_upper()
            size = arb(0)
            for k, c in enumerate(found):
                lost += (exact[k] - c).abs_upper() * half_cell**k
                size += abs(arb(c)) * half_cell**k
            # Horner: every coefficient is multiplied and added at most DEGREE + 1 times
            lost += size * (2 * DEGREE + 4) * arb(2) ** -53
            errors[point] = float(lost.upper()) * (1 + 2.0**-40) + FLOOR
    return coefficients, errors


def _tail_series(center: arb, length: int) -> list[arb]:
    """The series of Q(y) = erfc(y/√2)/2 around a point, or a ball of points.

    Q′ = -φ, and φ′ = -y·φ gives the coefficients of φ one by one.
    """
    density = [(-center * center / 2).exp() / (2 * arb.pi()).sqrt()]
    for k in range(length - 2):
        before = density[k - 1] if k else arb(0)
        density.append(-(center * density[k] + before) / (k + 1))
    return [(center / arb(2).sqrt()).erfc() / 2, *(-a / (k + 1) for k, a in enumerate(density))]


def normal_share(x: Data) -> tuple[Data, Data]:
    """Φ(x) and a bound of its error, entry by entry."""
    coefficients, errors = _table()
    y = np.minimum(np.abs(x), float(LAST))
    points = np.rint(y * STEPS)
    rest = y - points / STEPS  # exact: both are multiples of y's last place, or of 1/8
    places = points.astype(np.intp)
    tail: Data = np.take(coefficients[DEGREE], places)
    for k in range(DEGREE - 1, -1, -1):
        tail *= rest
        tail += np.take(coefficients[k], places)
    share = np.where(x >= 0, 1 - tail, tail)
    return share, errors[places] + share * (2 * UNIT) + FLOOR
