"""e^x on limbs, for x <= 1/4: a table of e^(j/256), times Taylor's polynomial of the distance.

The method of tables is Tang's ("Table-driven implementation of the exponential function in IEEE
floating-point arithmetic", ACM Transactions on Mathematical Software 15, 1989).

The argument stands on the aligned grid (polynomials.py): limb 0 is j.  The table's limbs weigh
2^(-10-22i) and those of the polynomial P, which is near 1, 2^(-20-22p), so their product falls on
the aligned grid: position q = i + p + 1 weighs 2^(-8-22q).

The error, in units of the result's grid, 2^(-8-22·last).  Table: rounded at 2^(-10-22·last), 1/8
and its own error below 2^-20.  Polynomial: polynomials.ERROR at 2^(-20-22·last), below 2^-9.
Both times a factor of at most e^(1/4 + 2^-9) < 1.3.  Products at positions last + 2 and beyond are
left out: T/4·(1 + 2^-6), T <= TERMS, else one position more is worked out.  Dropping position
last + 1: 1/2·(1 + 2^-20).  Below the last point the result is 0: 2^-6.  ERROR is the sum.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs import integers
from byhand.numbers.enclosed.limbs.arithmetic import BASE, WIDTH
from byhand.numbers.enclosed.limbs.coefficients import NEAR_ONE, STEP
from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.polynomials import (
    TERMS,
    Table,
    further,
    on_device,
    scaled_limbs,
    table_of,
    unit,
)

ERROR = TERMS / 4 * 1.02 + 0.75
MOST = 64  # the last point above 0: x <= 1/4
TABLE_WEIGHT, NEAR_WEIGHT = -10, -20


def evaluate(points: Array, near: Table, x: Array) -> Array:
    """e^x at aligned limbs (n, entries): limbs at positions 0 … last."""
    engine = engine_of(x)
    last = near.last
    value = scaled_limbs(near, x)
    table = engine.take(points, engine.index(x[0], points.shape[1] - 2 - MOST, points.shape[1]))
    size = last + 2 + further(last) - 1
    made = engine.empty((size + 1, x.shape[1]), x)
    made[0] = 0.0
    for place in range(size):
        low, high = max(0, place - last), min(last + 1, place + 1)
        if low < high:
            engine.diagonal(table, value, low, high, place, made[place + 1])
        else:
            made[place + 1] = 0.0
    # position q holds integers times 2^(-22(q - 1)), since both factors count from 0
    engine.carry_scaled(made, unit(-1), BASE)
    for q in range(last + 1):
        engine.scale(made[q], 1 / unit(q - 1), made[q])
    return made[: last + 1]


def last_point(last: int) -> int:
    """The last point below 0 of the table: beyond it, e^-x <= 2^-6 units."""
    return int((STEP + WIDTH * last + 6) / 1.4426 * 2**STEP) + 2


@lru_cache(32)
def points_of(last: int, reach: int) -> Any:
    """e^(j/256) for j = -reach … MOST as scaled limbs, (last + 1, columns).

    Before them is a column of zeros if these are all points; else, and after them, an unused
    column.
    """
    bits = -TABLE_WEIGHT + WIDTH * last
    work = bits + 64
    step = integers.exp(integers.rational(Fraction(-1, 2**STEP), work))
    value = integers.exp(integers.rational(Fraction(MOST, 2**STEP), work))
    mids, worst = [], 0
    for _j in range(MOST + reach + 1):
        mids.append(value.mid)
        worst = max(worst, value.error)
        value = value * step
    if worst >> 40:
        raise ArithmeticError("the table of exp is not as near as it must be")
    left = np.array([(mid + (1 << 63)) >> 64 for mid in mids[::-1]], object)
    rows: list[Any] = []
    half, mask = 1 << (WIDTH - 1), (1 << WIDTH) - 1
    for i in range(last, -1, -1):
        row = left if i == 0 else ((left + half) & mask) - half
        left = (left - row) >> WIDTH
        rows.append(row.astype(np.float64) * unit(i))
    table = np.array(rows[::-1])
    never = np.full((last + 1, 1), np.nan)
    zero = np.zeros((last + 1, 1)) if reach >= last_point(last) else never
    return np.concatenate([zero, table, never], axis=1)


def tables(last: int, reach: int, like: Array) -> tuple[Array, Table]:
    """The tables of `evaluate` for results to position `last` and limb 0 from -reach up."""
    points = on_device(points_of, (last, min(reach, last_point(last))), like)
    return points, on_device(table_of, (NEAR_ONE, last, 0, NEAR_WEIGHT), like)
