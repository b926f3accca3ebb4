"""Fixed-point numbers in limbs of 22 bits, whole arrays at a time, and their exact arithmetic.

A value is Σ_i limbs[i]·2^(top - 22(i+1)); the limbs are integers held in float64, balanced:
|limb| <= 2^21 (the first limb: <= 2^21 + 1).  One exponent `top` for the whole array, any
integer.  Everything is exact unless a `low` makes it round; then |result - exact| <= HALF·2^low
for every entry.  Functions that are not rational live in functions.py; products of matrices in
products.py; radii elsewhere.

Why it is exact.  Balanced limbs multiply to at most 2^42·(1 + 2^-20), so sums of 1000 products
stay below 2^53, where float64 adds integers exactly.  A power of two times a float is exact as
long as it neither over- nor underflows.  `carry` splits v = 2^22·rint(v/2^22) + rest with
|rest| <= 2^21: each of its operations is exact for |v| < 2^52.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ldexp
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.limbs.array_code import (
    approx_program,
    carried,
    carry_program,
    carry_with_program,
    divided,
    horner,
    move_program,
    placed,
    product_program,
    products,
    quotient_program,
    sum_program,
)
from byhand.numbers.enclosed.limbs.conversions import (
    cut,
    from_floats,
    from_integers,
    to_fractions,
    to_integers,
)
from byhand.numbers.enclosed.limbs.digits import BALANCED, BASE, SMALL, WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import Array, engine_of

__all__ = [  # with what is read of `digits` and `conversions` together with them
    "APPROX", "BALANCED", "BASE", "HALF", "PRODUCT", "QUOTIENT", "SMALL", "WIDTH", "Digits",
    "add", "approx", "carry", "carry_with", "cut", "from_floats", "from_integers",
    "is_quotient", "is_zero", "magnitude", "multiply", "negate", "over_integer",
    "products", "regrid", "settle", "settled", "shift", "stack", "subtract",
    "to_fractions", "to_integers", "total", "without_empty_limbs",
]  # fmt: skip

# What rounding to the grid 2^low costs, in units of 2^low.  The limbs left out are balanced: at
# most (1/2)(1 + 2^-22 + …) units.  Where they had to be carried first, only three of them were; the
# others, at most 2^43 in size, are below 2^43·2^-88·(1 + 2^-21).
HALF = 0.5 * (1 + 2.0**-20)
# The same for a product that leaves out diagonals, at most 500 terms each: those more than two
# limbs below the grid, together at most 500·2^42·(1 + 2^-20)·2^-66 < 2^-15.
PRODUCT = HALF + 2.0**-15
# The same for a quotient by an integer, whose last rest is less than one unit one limb lower.
QUOTIENT = HALF + 2.0**-22
# |approx(x) - x| <= APPROX·|x|.  Horner's rule from the last limb: one rounding in each step.  A
# limb that is not 0 gives a sum of at least 1/2 - 2^-22 of its unit, against which the roundings
# before it, of a number below 2^22 units one limb down, are below 2^-53·(1/2 + 2^-20): so at most
# 2^-53 for the last step and 2^-53·(1 + 2^-18) for all before it.
APPROX = 2.0**-51


# --------------------------------------------------------------------------------- carrying


def carry(limbs: Array) -> Array:
    """Balances all limbs but the first, in place; the first takes what is left.

    Exact for |limb| < 2^52.
    """
    if kernels.usable(limbs) and _by_kernel(carry_program, (), [limbs], [], len(limbs), limbs):
        return limbs
    return carried(limbs)


def carry_with(limbs: Array, more: Array) -> Array:
    """Balances limbs + more, in place in `limbs`; `more` may be broadcast."""
    if kernels.usable(limbs) and _by_kernel(
        carry_with_program, (), [limbs, more], [], len(limbs), limbs
    ):
        return limbs
    limbs += more
    return carry(limbs)


def _by_kernel(
    program: kernels.Program,
    settings: tuple[Any, ...],
    arrays: Sequence[Array],
    powers: Sequence[int],
    n: int,
    out: Array,
) -> bool:
    return kernels.run(program, settings, arrays, powers, n, out) is not None


def settle(limbs: Array, top: int) -> Digits:
    """Carries, and adds limbs in front while the first is too large.  Waits for the device."""
    return settled(carry(limbs), top)


def settled(limbs: Array, top: int) -> Digits:
    """Adds limbs in front while the first is too large, for carried limbs."""
    engine = engine_of(limbs)
    while True:
        if engine.fits(limbs[0, ...], BALANCED):
            return Digits(limbs, top)
        limbs = engine.concatenate([engine.zeros((1, *limbs.shape[1:]), limbs), limbs])
        carry(limbs[:2])
        top += WIDTH


def without_empty_limbs(x: Digits) -> Digits:
    """The same numbers without the limbs at the front that are zero everywhere."""
    first = x.engine.empty_in_front(x.limbs)
    return Digits(x.limbs[first:], x.top - WIDTH * first) if first else x


# --------------------------------------------------------------------------------- grids


def regrid(x: Digits, top: int | None = None, low: int | None = None) -> Digits:
    """The same values on the grid 2^low, rounded where it is coarser: HALF·2^low.

    Without `top`: the smallest that is not below x's.  With one: top - low is a multiple of 22,
    and the values are known to fit, |value| <= 2^(top - 1).
    """
    low = x.low if low is None else low
    if top is None:
        n = max(1, -(-(x.top - low) // WIDTH))
    else:
        n, rest = divmod(top - low, WIDTH)
        if rest or n < 1:
            raise ValueError(f"no whole number of limbs between 2^{top} and 2^{low}")
    return Digits(_moved(x, low, n), low + WIDTH * n)


@dataclass(frozen=True, slots=True)
class Move:
    """Where limbs go on another grid."""

    n: int  # limbs there
    first: int  # the place of the first limb, counted from the first of the n
    below: int  # limbs below the grid that have to be carried first
    shift: int  # every limb times 2^shift

    @staticmethod
    def of(grid: int, count: int, low: int, n: int) -> Move:
        """The move of `count` limbs on the grid 2^grid to n limbs on the grid 2^low."""
        places, shift = divmod(grid - low, WIDTH)  # the last limb moves up by places
        # Balanced limbs are rounded by leaving the rest of them out; others are carried first.
        below = min(3, max(0, -places)) if shift else 0
        return Move(n, n - places - count, below, shift)

    @property
    def places(self) -> tuple[int, int, int, bool]:
        """The numbers that tell a program where limbs go."""
        return self.n, self.first, self.below, self.shift != 0

    @property
    def powers(self) -> list[int]:
        """The exponent of two to multiply by, where there is one."""
        return [self.shift] if self.shift else []


def _moved(x: Digits, low: int, n: int) -> Array:
    """The limbs on the grid 2^low, n of them."""
    move = Move.of(x.low, x.n, low, n)
    if kernels.usable(x.limbs):
        made = kernels.run(move_program, (move.places,), [x.limbs], move.powers, n)
        if made is not None:
            return made
    return placed(x.limbs, move.places, 2.0**move.shift)


def magnitude(x: Digits) -> float:
    """An upper bound of |value| over the array, at most 2^-19 too large relatively."""
    first = x.engine.empty_in_front(x.limbs)
    head = x.limbs[first : first + 3]
    largest = x.engine.largest(horner(head))
    if largest == 0.0 and first + 3 >= x.n:
        return 0.0
    # what follows the head is below one unit of its last limb
    bound = largest * (1 + 2.0**-50) + SMALL ** (head.shape[0] - 1)
    return ldexp(bound, x.top - WIDTH * (first + 1))


def approx(x: Digits) -> Array:
    """The values as float64: |approx(x) - x| <= APPROX·|x| (no value beyond float64's range)."""
    if kernels.usable(x.limbs):
        made = kernels.run(approx_program, (), [x.limbs], [x.top - WIDTH], 1)
        if made is not None:
            return made[0]
    total = horner(x.limbs)
    total *= ldexp(1.0, x.top - WIDTH)
    return total


# --------------------------------------------------------------------------------- arithmetic


def negate(x: Digits) -> Digits:
    """-x, exactly."""
    return Digits(-x.limbs, x.top)


def shift(x: Digits, k: int) -> Digits:
    """x·2^k, exactly and without work."""
    return Digits(x.limbs, x.top + k)


def add(x: Digits, y: Digits, low: int | None = None, top: int | None = None) -> Digits:
    """x + y, on the finer of the two grids unless `low` is given (then HALF·2^low).

    Waits for the device to see how large the sum is, unless `top` says it, as in `regrid`.
    """
    return _sum(x, y, 1.0, low, top)


def subtract(x: Digits, y: Digits, low: int | None = None, top: int | None = None) -> Digits:
    """x - y; as `add`."""
    return _sum(x, y, -1.0, low, top)


def _sum(x: Digits, y: Digits, sign: float, low: int | None, last_top: int | None) -> Digits:
    finer = min(x.low, y.low)
    n = max(1, -(-(max(x.top, y.top) - finer) // WIDTH))
    top = finer + WIDTH * n
    if last_top is not None:
        low = finer if low is None else low
        last = Move.of(finer, n, low, (last_top - low) // WIDTH)
        if last.n < 1 or low + WIDTH * last.n != last_top:
            raise ValueError(f"no whole number of limbs between 2^{last_top} and 2^{low}")
        return Digits(_added(x, y, sign, finer, n, last), last_top)
    limbs = _added(x, y, sign, finer, n)
    made = settled(limbs, top)
    return made if low is None or low == finer else regrid(made, low=low)


def _added(x: Digits, y: Digits, sign: float, low: int, n: int, last: Move | None = None) -> Array:
    """x + sign·y in n carried limbs on a grid that holds both; then moved by `last`."""
    if kernels.usable(x.limbs) and kernels.usable(y.limbs):
        moves = [Move.of(part.low, part.n, low, n) for part in (x, y)]
        moves += [] if last is None else [last]
        settings = (sign, *(move.places for move in moves))
        powers = [power for move in moves for power in move.powers]
        made = kernels.run(sum_program, settings, [x.limbs, y.limbs], powers, moves[-1].n)
        if made is not None:
            return made
    top = low + WIDTH * n
    one, other = _aligned(x, low, top), _aligned(y, low, top)
    shape = np.broadcast_shapes(x.shape, y.shape)
    limbs = x.engine.empty((n, *shape), one)
    for i in range(n):  # limb by limb, so that shapes broadcast
        limbs[i] = other[i]
        if sign < 0:
            limbs[i] *= sign
        limbs[i] += one[i]
    carry(limbs)
    return limbs if last is None else placed(limbs, last.places, 2.0**last.shift)


def _aligned(x: Digits, low: int, top: int) -> Array:
    return x.limbs if (x.low, x.top) == (low, top) else regrid(x, top, low).limbs


def over_integer(x: Digits, divisor: int, low: int) -> Digits:
    """x / divisor, an integer from 1 to 2^29, on the grid 2^low: QUOTIENT·2^low.

    Long division, limb by limb: v = limb + 2^22·rest, quotient rint(v/divisor), and the rest is
    exact whichever way the division rounded.  |rest| <= divisor·(1/2 + 2^-20).
    """
    if not 1 <= divisor <= 1 << 29:
        raise ValueError(f"a divisor outside 1 to 2^29: {divisor}")
    places = max(0, -(-(x.low - low) // WIDTH)) + 1  # one limb beyond the grid
    count, made = x.n + places, None
    if kernels.usable(x.limbs):
        made = kernels.run(quotient_program, (divisor, count), [x.limbs], [], count)
    if made is None:
        made = carried(divided(x.limbs, divisor, count))
    # a quotient by 2 or more needs no further limb in front
    whole = settled(made, x.top) if divisor == 1 else Digits(made, x.top)
    return regrid(whole, low=low)


def is_quotient(quotient: Digits, divisor: int, x: Digits) -> Array:
    """True where quotient·divisor is x exactly; the quotient stands on a grid no coarser than x's.

    Carried, only zero has no limb that is not 0.
    """
    raised = Digits(carry(quotient.limbs * float(divisor)), quotient.top)
    n = max(quotient.n, -(-(x.top - quotient.low) // WIDTH))
    return is_zero(_added(raised, x, -1.0, quotient.low, n))


def is_zero(limbs: Array) -> Array:
    """True for each entry whose limbs are all 0."""
    size = abs(limbs)
    return (size.max(0) if isinstance(size, np.ndarray) else size.amax(0)) == 0.0


def total(x: Digits, axis: int) -> Digits:
    """The exact sum over one axis of at most 2^29 entries."""
    axis = axis % x.ndim
    if x.shape[axis] > 1 << 29:
        raise ValueError("too many terms for an exact sum of limbs")
    return settle(x.limbs.sum(axis + 1), x.top)


def multiply(x: Digits, y: Digits, low: int | None = None) -> Digits:
    """x·y, entry by entry; exact, or with `low` on that grid: PRODUCT·2^low."""
    top, full = x.top + y.top, x.n + y.n
    if low is None:
        keep = full
    else:
        keep = min(full, max(1, -(-(top - low) // WIDTH)) + 2)  # two limbs to round
    if kernels.usable(x.limbs) and kernels.usable(y.limbs):
        move = None
        if low is not None:
            move = Move.of(top - WIDTH * keep, keep, low, max(1, -(-(top - low) // WIDTH)))
        places, powers = (None, []) if move is None else (move.places, move.powers)
        n = keep if move is None else move.n
        both = [x.limbs, y.limbs]
        found = kernels.run(product_program, (keep, places), both, powers, n)
        if found is not None:
            return Digits(found, top if low is None else low + WIDTH * n)
    limbs = products(x.limbs, y.limbs, keep)
    made = Digits(carry(limbs), top)
    return made if low is None else regrid(made, low=low)


def stack(parts: Sequence[Digits], axis: int = 0) -> Digits:
    """Arrays one after another along an axis, on their finest common grid."""
    low = min(part.low for part in parts)
    n = max(1, -(-(max(part.top for part in parts) - low) // WIDTH))
    top = low + WIDTH * n
    moved = [_aligned(part, low, top) for part in parts]
    axis = axis % parts[0].ndim
    return Digits(parts[0].engine.concatenate(moved, axis + 1), top)
