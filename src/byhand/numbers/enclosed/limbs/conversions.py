"""Digits from floats and Python integers, and back.

Exact, unless a `low` makes it round: then |result - exact| <= HALF·2^low (`arithmetic`).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import frexp, ldexp
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.limbs.array_code import cut_program
from byhand.numbers.enclosed.limbs.digits import WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of


def from_floats(array: Array, low: int | None = None) -> tuple[Digits, bool]:
    """Floats of any format as digits, and whether that was exact.

    Without `low`: as many limbs as it takes, always exact.  With one: rounded, HALF·2^low.
    Waits for the device.
    """
    engine = engine_of(array)
    rest = engine.floats(array)
    largest = engine.largest(rest)
    if not largest < 2.0**1000:
        raise ValueError("only floats below 2^1000 have digits here")
    exponent = frexp(largest)[1] if largest else (low or 0)
    if low is None:
        top, count = exponent + 1, None
    else:
        count = max(1, -(-(exponent + 1 - low) // WIDTH))
        top = low + WIDTH * count
    limbs = _cut(rest, top, count)
    return Digits(limbs, top), engine.largest(rest) == 0


def cut(array: Array, top: int, low: int) -> Digits:
    """Float64 numbers of at most 2^(top - 1) in size, rounded to the grid 2^low: HALF·2^low."""
    n, rest = divmod(top - low, WIDTH)
    if rest or n < 1:
        raise ValueError(f"no whole number of limbs between 2^{top} and 2^{low}")
    if kernels.usable(array):
        made = kernels.run(cut_program, (n,), [array[None]], [WIDTH - top], n)
        if made is not None:
            return Digits(made, top)
    return Digits(_cut(array * 1.0, top, n), top)


def _cut(rest: Array, top: int, count: int | None) -> Array:
    """Limbs of floats, `count` or as many as needed; the remainder stays in `rest`."""
    engine = engine_of(rest)
    made: list[Array] = []
    raised = 0  # rest holds the remainder times 2^raised, so that it never underflows
    while len(made) < count if count is not None else not made or engine.largest(rest) > 0:
        weight = top - WIDTH * (len(made) + 1)
        if weight + raised < -400:
            rest *= 2.0**400
            raised += 400
        limb = engine.rint(rest * ldexp(1.0, -(weight + raised)))
        rest -= limb * ldexp(1.0, weight + raised)
        made.append(limb)
    # rint leaves |rest| <= 1/2 of a unit, so every limb but the first is balanced already
    return engine.concatenate([limb[None] for limb in made])


def from_integers(integers: Iterable[int], low: int, like: Array | None = None) -> Digits:
    """A row of Python integers times 2^low; on the device of `like`, else in NumPy."""
    left = list(integers)
    largest = max((abs(value) for value in left), default=0)
    n = max(1, -(-((largest.bit_length()) + 1) // WIDTH))
    limbs = np.zeros((n, len(left)))
    half, mask = 1 << (WIDTH - 1), (1 << WIDTH) - 1
    for place, value in enumerate(left):
        for i in range(n - 1, 0, -1):
            limb = ((value + half) & mask) - half
            limbs[i, place] = limb
            value = (value - limb) >> WIDTH
        limbs[0, place] = value
    engine = NUMPY if like is None else engine_of(like)
    return Digits(engine.constant(limbs, like), low + WIDTH * n)


def to_integers(x: Digits) -> Any:
    """The values over 2^low: an object array of Python integers."""
    limbs = x.engine.to_numpy(x.limbs)
    total = np.zeros(x.shape, object)
    for limb in limbs:
        total = total * (1 << WIDTH) + limb.astype(np.int64).astype(object)
    return total


def to_fractions(x: Digits) -> Any:
    """The values: an object array of Fractions."""
    unit = Fraction(2) ** x.low
    integers = np.asarray(to_integers(x), object)
    made = np.empty(integers.shape, object)
    for index, value in np.ndenumerate(integers):
        made[index] = value * unit
    return made
