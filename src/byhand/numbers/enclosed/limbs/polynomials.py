"""Tabled functions on limbs: the table row of the first limb, and Horner's rule in the others.

Arguments stand on the aligned grid: limb 0 has the weight 2^-STEP, so limb 0 *is* the number of the
nearest point of the table and the others are the distance to it, d, |d| <= 2^(-STEP-1).  With
Y = d·2^STEP the function is Σ c_k·Y^k (coefficients.py), and

    s_k = c_k + Y·s_(k+1)     for k = terms-1 … 0,     f = s_0.

Position p means the weight 2^(-STEP-22p).  Inside, limbs carry their weight ("scaled": a limb at
position p is an integer times 2^(-22p)), so that a carry is four operations.  The last terms are
worked in plain float64; the others in limbs, from the first position they reach to position
`last`, the grid of the result; products one position further.

The error, in units of the result's grid.  |Y| <= (1/2)(1 + 2^-21), so an error in s_k arrives in
s_0 times 2^-k (1 + 2^-17).  Each limb step errs by at most

    T/4·(1 + 2^-6)    products at positions last + 2 and beyond, T of them at last + 2, are left
                      out: |y_i·s_p| <= 2^42 (first limbs: 2^42·(1 + 2^-7)) units of the
                      position i + p; T <= TERMS, else one position more is worked out and T/4
                      becomes T·2^-24,
    1/2·(1 + 2^-21)   the position last + 1 is dropped after the carry: balanced,
    2^-20             c_k is rounded to position last + 1, and its own error.

Together Σ 2^-k·(TERMS/4 + 1/2 + …) < TERMS/2 + 1.04; the float terms start where they add less
than 2^-4 (`_first_float`); the terms left out and, beyond the last point, the tail add 2^-6 each.
ERROR is the sum, rounded up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.arithmetic import BASE, WIDTH
from byhand.numbers.enclosed.limbs.coefficients import STEP, Series, Tabled
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of

TERMS = 8  # products a position may leave out before another position is worked out
ERROR = TERMS / 2 + 1.25  # of `evaluate`, in units of the result's grid
GUARD = 96  # bits beyond the table's grid that its coefficients are worked out with
MOST = 40  # limbs: scaled limbs stay far from float64's smallest numbers


@dataclass(frozen=True, slots=True)
class Step:
    """One limb step: s_k from position `first`; its coefficient in rows of two limbs each."""

    first: int
    rows: slice = field(hash=False)  # slices have no hash in Python 3.11
    at: slice = field(hash=False)  # the places of the rows among positions first … last + 1


@dataclass(frozen=True, slots=True)
class Table:
    """The coefficients of one function at one precision, (rows, points), scaled."""

    rows: Array
    offset: int  # the column of the point 0; 0: there is one point alone
    floats: int  # rows of the terms worked in float64, the last term first
    steps: tuple[Step, ...]  # the limb steps in the order they are worked
    start: int  # the first position of the float terms' value
    last: int  # the last position of the result
    ramp: bool

    @property
    def first(self) -> int:
        """The first position of the result."""
        return self.steps[-1].first


def unit(position: int) -> float:
    """The unit of a position in scaled limbs."""
    return 2.0 ** (-WIDTH * position)


def evaluate(table: Table, x: Array, ramp: bool = True) -> Array:
    """f at aligned limbs (n, entries), position 0 first: limbs at positions 0 … last."""
    made = scaled_limbs(table, x, ramp)
    engine = engine_of(x)
    for p in range(1, table.last + 1):
        engine.scale(made[p], 1 / unit(p), made[p])
    return made


def without_ramp(table: Table, x: Array) -> Array:
    """f without its ramp, at aligned limbs."""
    return evaluate(table, x, ramp=False)


def scaled_limbs(table: Table, x: Array, ramp: bool = True) -> Array:
    """f at aligned limbs, as scaled limbs at positions 0 … last."""
    engine = engine_of(x)
    index = engine.index(x[0], table.offset, table.rows.shape[1]) if table.offset else None
    count = min(x.shape[0] - 1, table.last + 1)
    y = engine.empty((count, x.shape[1]), x)
    for i in range(count):
        engine.scale(x[i + 1], unit(i + 1), y[i])
    s = _float_terms(table, index, y, x)
    first = table.start
    for step in table.steps:
        s = _limb_step(table, step, first, s, y, index, x, ramp)
        first = step.first
    return s


def _coefficients(table: Table, rows: slice, index: Array | None) -> Array:
    """The rows' entries at the points; a table of one point has the same for all."""
    part = table.rows[rows]
    return part if index is None else engine_of(part).take(part, index)


def _float_terms(table: Table, index: Array | None, y: Array, x: Array) -> Array:
    """The last terms in float64, cut into limbs at positions start … last."""
    engine = engine_of(x)
    terms = _coefficients(table, slice(0, table.floats), index)
    value = engine.empty(x.shape[1:], x)
    value[...] = terms[0]
    if y.shape[0] and table.floats > 1:
        near = y[0] if y.shape[0] == 1 else y[0] + y[1]
        for k in range(1, table.floats):
            value *= near
            value += terms[k]
    elif table.floats > 1:
        value[...] = terms[table.floats - 1]
    made = engine.empty((table.last + 1 - table.start, *value.shape), x)
    for p in range(table.start, table.last):
        limb = made[p - table.start]
        engine.round_to(value, unit(p), limb)
        value -= limb
    engine.round_to(value, unit(table.last), made[-1])
    return made


def _limb_step(
    table: Table,
    step: Step,
    before: int,
    s: Array,
    y: Array,
    index: Array | None,
    x: Array,
    ramp: bool,
) -> Array:
    """c_k + Y·s, carried; in the last step with the ramp, where there is one."""
    engine = engine_of(x)

    size = table.last + 1 + further(table.last) - step.first
    made = engine.empty((size, x.shape[1]), x)
    for place in range(size):
        # Σ y_i·s_p with i + p = q; y[i - 1] and s[p - before] hold them
        of = step.first + place - 1 - before
        low, high = max(0, of - s.shape[0] + 1), min(y.shape[0], of + 1)
        if low < high:
            engine.diagonal(y, s, low, high, of, made[place])
        else:
            made[place] = 0.0
    part = made[step.at]
    part += _coefficients(table, step.rows, index)
    if ramp and table.ramp and step is table.steps[-1]:
        up = engine.positive(x[0])
        for p in range(min(table.last + 2, y.shape[0] + 1)):
            engine.multiply_add(made[p - step.first], up, x[0] if p == 0 else y[p - 1])
    engine.carry_scaled(made, unit(step.first), BASE)
    return made[: table.last + 1 - step.first]


def further(last: int) -> int:
    """How many positions beyond the result's grid products are worked out."""
    return 1 if last <= TERMS else 2


# --------------------------------------------------------------------------------- tables


def table_of(function: Tabled, last: int, points: int | None, weight: int = -STEP) -> Table:
    """The table of a function for results to position `last`; up to `points`, else all.

    Positions weigh 2^(weight - 22p); the results of most functions go with their arguments.
    """
    if last >= MOST:
        raise ValueError(f"results of more than {MOST} limbs")
    full = function.last(weight - WIDTH * last)
    return _table(function, last, full if points is None else min(points, full), weight)


@lru_cache(24)
def _table(function: Tabled, last: int, reach: int, weight: int) -> Table:
    low = weight - WIDTH * last
    series = function.series(reach, function.terms(low, reach), -low + WIDTH + GUARD)
    if max(series.errors) >> GUARD:
        raise ArithmeticError(f"the table of {function.name} is not as near as it must be")
    return _built(function, series, last, whole=reach == function.last(low))


def _built(function: Tabled, series: Series, last: int, whole: bool) -> Table:
    # sizes are told in units of position last + 1, GUARD bits above those of the series
    coefficients = [(term + (1 << (GUARD - 1))) >> GUARD for term in series.terms]
    terms = len(coefficients)
    totals = [0] * (terms + 1)  # of |c_k|·2^-k from k on: bounds of |s_k|
    for k in range(terms - 1, -1, -1):
        largest = int(max(coefficients[k].max(), -coefficients[k].min()))
        totals[k] = largest + (totals[k + 1] >> 1) + 2
    split = _first_float(totals, terms)
    rows: list[Any] = []
    powers: list[int] = []
    for k in range(terms - 1, split - 1, -1):
        rows.append(coefficients[k].astype(np.float64) * unit(last + 1))
        powers.append(k)
    steps: list[Step] = []
    for k in range(split - 1, -1, -1):
        first = _first_position(totals[k], last) if k else 0
        count = -(-(last + 2 - first) // 2)
        at = slice((last + 1 - first) % 2, last + 2 - first, 2)
        steps.append(Step(first, slice(len(rows), len(rows) + count), at))
        rows.extend(_rows(coefficients[k], last, count))
        powers.extend([k] * count)
    right = np.array(rows)
    signs = np.array([function.parity * (-1.0) ** k for k in powers])
    left = right[:, :0:-1] * signs[:, None]
    end = np.full((len(rows), 1), 0.0 if whole else np.nan)  # nobody reads beyond a part
    table, offset = right, 0
    if right.shape[1] > 1:
        table = np.concatenate([end, left, right, end], axis=1)
        offset = left.shape[1] + 1
    start = _first_position(totals[split], last)
    return Table(table, offset, terms - split, tuple(steps), start, last, function.ramp)


_elsewhere: dict[Any, Any] = {}


def on_device(make: Callable[..., Any], arguments: tuple[Any, ...], like: Array) -> Any:
    """make(*arguments), an array or a table, on the device of `like`; remembered there."""
    engine = engine_of(like)
    made = make(*arguments)
    if engine is NUMPY:
        return made
    key = (make, arguments, engine.device_of(like))
    if key not in _elsewhere:
        if isinstance(made, Table):
            _elsewhere[key] = replace(made, rows=engine.constant(made.rows, like))
        else:
            _elsewhere[key] = engine.constant(made, like)
    return _elsewhere[key]


def _first_float(totals: list[int], terms: int) -> int:
    """The first k >= 1 whose s_k float64 gives so well that s_0 errs by less than 2^-4 units.

    Horner's rule with m terms, each coefficient and each operation rounded: (2m + 2)·2^-53 of
    `totals`.  Y is taken from two limbs: off by less than 2^-44.9, which s_k sees at most
    m·totals[k + 1]-fold.  A unit of the result is 2^22 units of position last + 1.
    """
    for k in range(1, terms):
        m = terms - k
        error = (2 * m + 2) * 2.0**-53 * totals[k] + m * 2.0**-44.9 * totals[k + 1]
        if error * 1.01 * 2.0**-k < 2.0 ** (WIDTH - 4):
            return k
    return terms - 1


def _first_position(total: int, last: int) -> int:
    """The first position that holds numbers up to `total` units of position last + 1."""
    position = last
    most = (1 << (WIDTH - 1)) + (1 << (WIDTH - 8))  # a first limb may be 2^-7 too large
    while position > 0 and (total >> WIDTH * (last + 1 - position)) + 64 > most:
        position -= 1
    return position


def _rows(values: Any, last: int, count: int) -> list[Any]:
    """Integers in units of position last + 1 as scaled rows of two limbs, the highest first."""
    half, mask = 1 << (2 * WIDTH - 1), (1 << 2 * WIDTH) - 1
    made: list[Any] = []
    for i in range(count):
        row = values if i == count - 1 else ((values + half) & mask) - half
        values = (values - row) >> 2 * WIDTH
        made.append(row.astype(np.float64) * unit(last + 1 - 2 * i))
    return made[::-1]
