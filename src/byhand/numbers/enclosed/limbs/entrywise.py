"""Operations entry by entry, and heads put together, with their radius rules.

rescale    |by|·rho.
soft_cap   rho, since the slope of c·tanh(x/c) lies between 0 and 1; and no more than 2c for an
           entry, since nothing is beyond ±c.
clamp      rho, since the slope is 0 or 1; 0 for an entry that is proven to be beyond a limit.
weigh      s·x - s'·x' = s'·(x - x') + (s - s')·x: so |s'|·rho + r·(‖x'‖ + rho).
beside     √(rho_x² + rho_y²), as of heads side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from byhand.numbers.enclosed.limbs import arithmetic, functions, indexing, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import (
    APPROX,
    PRODUCT,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.constants import Constant
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.radii import Bound, length, plus, spread, times
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, by_entry, constant
from byhand.numbers.enclosed.limbs.weights import Weight


def raised(system: System, x: Enclosed, more: Constant) -> Enclosed:
    """x plus a constant."""
    exact = arithmetic.add(x.digits, more.digits(x.digits.limbs))
    ball = system.rows(plus(x.ball, spread(more.error or None, x.width)), exact)
    box = (lambda: plus(x.box, more.error or None)) if x.has_box and not x.exact else None
    return system.settled(without_empty_limbs(exact), ball, box=box)


# ------------------------------------------------------------------ caps and limits


def soft_cap(system: System, x: Enclosed, cap: Fraction) -> Enclosed:
    """c·tanh(x/c)."""
    digits, local = capped(x.digits, cap, system.grid(x.ball, x.width))
    return within_limits(system, x, digits, local, slope=1.0, apart=2 * upward(cap))


def capped(x: Digits, cap: Fraction, low: int) -> functions.Made:
    """c·tanh(x/c) on the grid 2^low, and a bound of its error.

    tanh's own slope is at most 1, so that an error of x/c, and one of tanh, count c times.
    """
    size, most = arithmetic.magnitude(x), upward(cap)
    fine = low - max(0, math.frexp(most)[1]) - 2
    inverse = Constant.of(1 / cap, 4 - fine + max(0, math.frexp(size)[1]))
    inner = arithmetic.multiply(x, inverse.digits(x.limbs), fine)
    off = plus(PRODUCT * math.ldexp(1.0, fine), times(size, inverse.error))
    bent, error = functions.activation("tanh", without_empty_limbs(inner), fine)
    factor = Constant.of(cap, max(0, -low) + 8)
    made = arithmetic.multiply(bent, factor.digits(x.limbs), low)
    local = plus(times(most, plus(off, error)), times(factor.error, plus(1.0, error)))
    return without_empty_limbs(made), plus(local, PRODUCT * math.ldexp(1.0, low))


def within_limits(
    system: System, x: Enclosed, digits: Digits, local: float, *, slope: float, apart: float
) -> Enclosed:
    """The value of a function of x of which no two values are further apart than `apart`."""
    engine = digits.engine

    def narrowed(bound: Bound, most: float) -> Bound:
        return None if bound is None else engine.clip(times(bound, slope), None, most)

    ball = narrowed(x.ball, apart * math.sqrt(x.width) * (1 + 2.0**-50))
    box = None if x.exact else (lambda: plus(narrowed(x.box, apart), local))
    return Enclosed(digits, system.rounded(ball, local, digits), box=box)


def upward(value: Fraction) -> float:
    """A float not below the positive number."""
    return math.nextafter(float(value), math.inf)


def clamp(system: System, x: Enclosed, least: Fraction | None, most: Fraction | None) -> Enclosed:
    """x within limits: min(x, c) is c - relu(c - x), and max(x, c) is c + relu(x - c)."""
    digits, off, apart = x.digits, 0.0, list[Digits]()
    if least is not None:
        limit = system.constant(least)
        known = limit.digits(digits.limbs)
        apart.append(arithmetic.subtract(known, x.digits))
        digits = arithmetic.add(known, functions.relu(arithmetic.subtract(digits, known)))
        off = limit.error
    if most is not None:
        limit = system.constant(most)
        known = limit.digits(digits.limbs)
        apart.append(arithmetic.subtract(x.digits, known))
        digits = arithmetic.subtract(known, functions.relu(arithmetic.subtract(known, digits)))
        off = max(off, limit.error)  # neither max nor min moves by more than one of its arguments
    ball = system.rows(plus(x.ball, spread(off or None, x.width)), digits)
    reaches_zero = (least is None or least <= 0) and (most is None or most >= 0)
    zeros = known_zeros.same(x) if reaches_zero and not x.exact else None

    def box() -> Bound:
        bound = plus(x.box, off)
        for beyond in apart:
            sure = arithmetic.approx(beyond) > bound * (1 + 8 * APPROX)
            bound = digits.engine.where(sure, off, bound)
        return bound

    made = without_empty_limbs(digits)
    return system.settled(made, ball, box=None if x.exact else box, zeros=zeros)


# ------------------------------------------------------------------ rows and heads


def weigh(system: System, x: Enclosed, by: Enclosed) -> Enclosed:
    """Each row times its one number, (pos, 1)."""
    sizes = abs(by.approx) * NEAR
    unsure = by.box
    carried = times(sizes[..., 0], x.ball)
    if unsure is not None:
        carried = plus(carried, times(unsure[..., 0], plus(x.norms, x.ball)))
    exact = x.digits.low + by.digits.low
    low = max(exact, system.grid(carried, x.width))
    digits = without_empty_limbs(arithmetic.multiply(x.digits, by.digits, low))
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None

    def box() -> Bound:
        each = times(sizes, x.box)
        if unsure is not None:
            each = plus(each, times(unsure, plus(abs(x.approx) * NEAR, x.box)))
        return plus(each, local)

    ball = system.rounded(carried, local, digits)
    return Enclosed(
        digits,
        ball,
        box=box if ball is not None and (x.has_box or by.has_box) else None,
        zeros=known_zeros.one_of(x, by),
    )


def beside(x: Enclosed, y: Enclosed) -> Enclosed:
    """The parts of each head, one behind the other; a y of one head is that of all."""
    lead = x.shape[:-1]
    digits = arithmetic.stack([x.digits, y.digits.broadcast(*lead, y.width)], axis=-1)
    if x.exact and y.exact:
        return Enclosed(digits)
    engine = digits.engine

    def each(part: Enclosed, bound: Bound, shape: tuple[int, ...]) -> Array:
        known = constant(part.digits, part.shape[: len(shape)], 0.0) if bound is None else bound
        return engine.broadcast(known, shape)

    def balls() -> Array:
        both = [each(part, part.ball, lead)[None] for part in (x, y)]
        return length(engine.concatenate(both), 0)

    def boxes() -> Array:
        both = [each(part, part.box, (*lead, part.width)) for part in (x, y)]
        return engine.concatenate(both, len(lead))

    def zeros() -> Array:
        both = [
            engine.broadcast(known_zeros.zeros_of(part), (*lead, part.width)) for part in (x, y)
        ]
        return engine.concatenate(both, len(lead))

    boxed, zeroed = x.has_box or y.has_box, x.has_zeros or y.has_zeros
    return Enclosed(digits, balls, box=boxes if boxed else None, zeros=zeros if zeroed else None)


def bucket_scores(
    system: System, table: Weight | Enclosed, buckets: Sequence[Sequence[int]]
) -> Enclosed:
    """table[bucket, head] for each query and key, (head, query, key)."""
    places = [bucket for row in buckets for bucket in row]
    square = len(buckets), len(buckets[0])
    if isinstance(table, Weight):
        rows = system.settled(table.rows(places))
    else:
        rows = indexing.rows(table, places)
    digits = rows.digits.reshape(*square, rows.width).moveaxis(2, 0).contiguous()
    if rows.exact:
        return Enclosed(digits)
    box = digits.engine.moveaxis(rows.box.reshape(*square, rows.width), 2, 0)
    return by_entry(digits, box)
