"""The array code of limb arithmetic, for arrays and for recorded rows of a kernel.

Nothing here reads the values of entries, so that `gpu.kernels` can record it.  `arithmetic` uses it
and says why it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.digits import BASE, SMALL
from byhand.numbers.enclosed.limbs.engine import Array, engine_of

Place = tuple[int, int, int, bool]  # of a Move


def carried(limbs: Array) -> Array:
    """The limbs, balanced in place but for the first."""
    engine = engine_of(limbs)
    over, back = (engine.empty(limbs.shape[1:], limbs) for _ in range(2))
    for i in range(limbs.shape[0] - 1, 0, -1):
        engine.carry(limbs[i, ...], limbs[i - 1, ...], BASE, over, back)
    return limbs


def placed(limbs: Array, places: tuple[int, int, int, bool], factor: Any) -> Array:
    """The limbs on another grid: moved by whole limbs, then times a power of two."""
    n, first, below, shifted = places
    engine, count = engine_of(limbs), limbs.shape[0]
    made = engine.zeros((n + below, *limbs.shape[1:]), limbs)
    for i in range(count):
        if first + i <= 0:  # limbs above the new top are small numbers, since the value fits
            made[0] *= BASE
            made[0] += limbs[i]
        elif first + i < n + below:
            made[first + i] = limbs[i]
    if first + count <= 0:
        made[0] *= BASE ** (1 - first - count)
    if shifted:
        made *= factor
        carried(made)
    return made[:n]


def horner(limbs: Array) -> Array:
    """Σ limbs[i]·2^(-22i) in float64."""
    total = limbs[-1] * 1.0
    for i in range(limbs.shape[0] - 2, -1, -1):
        total *= SMALL
        total += limbs[i]
    return total


def divided(x: Array, divisor: int, count: int) -> Array:
    """The limbs of the quotient, not carried."""
    engine = engine_of(x)
    limbs = engine.zeros((count, *x.shape[1:]), x)
    rest: Any = None
    for i in range(count):
        value: Any = x[i] * 1.0 if i < x.shape[0] else None
        if rest is not None:
            value = rest * BASE if value is None else value + rest * BASE
        quotient = engine.rint(value / float(divisor))
        rest = value - quotient * float(divisor)
        limbs[i] = quotient
    return limbs


def products(x: Array, y: Array, keep: int) -> Array:
    """The first `keep` limbs of the product, not carried: limb 0 empty, limb d = Σ x_i·y_(d-1-i).

    What is left out is below (terms)·2^42 units of the first limb left out.
    """
    engine = engine_of(x)
    shape = np.broadcast_shapes(tuple(x.shape[1:]), tuple(y.shape[1:]))
    made = engine.empty((keep, *shape), x)
    made[0] = 0.0
    for d in range(keep - 1):
        first, last = max(0, d - y.shape[0] + 1), min(x.shape[0], d + 1)
        if first < last:
            engine.diagonal(x, y, first, last, d, made[d + 1, ...])
        else:
            made[d + 1] = 0.0
    return made


# ------------------------------------------------------------------ programs of kernels


def carry_program(arrays: Sequence[Any], powers: Sequence[Any]) -> Any:
    """As `carried`."""
    return carried(arrays[0])


def carry_with_program(arrays: Sequence[Any], powers: Sequence[Any]) -> Any:
    """The sum of two arrays of limbs, carried."""
    limbs, more = arrays
    limbs += more
    return carried(limbs)


def move_program(arrays: Sequence[Any], powers: Sequence[Any], places: Place) -> Any:
    """As `placed`."""
    return placed(arrays[0], places, powers[0] if powers else None)


def cut_program(arrays: Sequence[Any], powers: Sequence[Any], count: int) -> Any:
    """As `_cut`, for at most 40 limbs: what underflows is far below the last of them."""
    rest = arrays[0][0] * powers[0]
    made = rest.engine.zeros((count,), rest)
    for i in range(count):
        made[i] = rest.engine.rint(rest)
        rest = (rest - made[i]) * BASE
    return made


def approx_program(arrays: Sequence[Any], powers: Sequence[Any]) -> Any:
    """The values as floats."""
    total = horner(arrays[0])
    total *= powers[0]
    return total[None]


def sum_program(
    arrays: Sequence[Any],
    powers: Sequence[Any],
    sign: float,
    one: Place,
    other: Place,
    last: Place | None = None,
) -> Any:
    """x + sign·y on a common grid, carried, and moved to the last grid."""
    left = list(powers)
    moved = [
        placed(part, places, left.pop(0) if places[3] else None)
        for part, places in zip(arrays, (one, other), strict=True)
    ]
    limbs = moved[1]
    if sign < 0:
        limbs *= sign
    limbs += moved[0]
    carried(limbs)
    return limbs if last is None else placed(limbs, last, left.pop(0) if last[3] else None)


def quotient_program(arrays: Sequence[Any], powers: Sequence[Any], divisor: int, count: int) -> Any:
    """As `divided`, carried."""
    return carried(divided(arrays[0], divisor, count))


def product_program(
    arrays: Sequence[Any], powers: Sequence[Any], keep: int, places: Place | None
) -> Any:
    """As `products`, carried, and moved where a grid is given."""
    x, y = arrays
    limbs = carried(products(x, y, keep))
    return limbs if places is None else placed(limbs, places, powers[0] if powers else None)
