"""LayerNorm and RMSNorm, step by step, with the radius of the whole.

The plan writes a norm as mean, centered, variance, std, normalized.  Step by step, radii would grow
as if these were independent; but the real `normalized` is a function of the real x alone.  So every
value remembers its source (`Origin`), together with `local`.  `local` bounds the distance of its
midpoint from the exact operation on the *midpoints* of its source.  Then

    |real - midpoint| <= |f(real source) - f(midpoints of the source)| + local

and for the first part the Lipschitz constant of the whole f is used.  With rho the Euclidean radius
of a row of d entries:

mean           |mean x - mean y| <= ‖x - y‖/√d, by Cauchy and Schwarz.
center         x - mean x is an orthogonal projection: ‖Px - Py‖ <= ‖x - y‖.  The midpoint of the
               mean is off by local, which moves the row by √d·local.
mean_square    |‖x‖² - ‖y‖²| <= ‖x - y‖·(‖x‖ + ‖y‖) <= rho·(2‖y‖ + rho), over d.
root           s(x) = √(‖x‖²/d + eps) = ‖(x, √(d·eps))‖/√d is a norm of an affine map:
               |s(x) - s(y)| <= ‖x - y‖/√d.
normalize      x/s(x) is √d·z/‖z‖ without its last entry, where z = (x, √(d·eps)).  To divide by the
               norm is to project to the ball of radius m = min(‖z‖, ‖z'‖) and to divide by m; a
               projection to a convex set brings no two points further apart.  So
               ‖x/s(x) - y/s(y)‖ <= ‖x - y‖/min(s(x), s(y)) <= rho/(s(y) - rho/√d).

Where the origin is not known, plain quotient rules are used.  Roots, inverses and exact sums of
squares of rows are in `row_functions`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from byhand.numbers.enclosed.limbs import arithmetic, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import (
    HALF,
    PRODUCT,
    QUOTIENT,
    WIDTH,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.engine import engine_of
from byhand.numbers.enclosed.limbs.radii import (
    Bound,
    largest,
    less,
    over,
    plus,
    slack,
    spread,
    times,
)
from byhand.numbers.enclosed.limbs.radii import root as root_of
from byhand.numbers.enclosed.limbs.row_functions import (
    inverses_of_rows,
    roots_of_rows,
    row_squares,
)
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, Origin, by_entry, constant
from byhand.numbers.enclosed.limbs.weights import Weight

UNEVEN = 1.5  # a gain this far above its root mean square goes into the next matrix's norm


def root_below(width: int) -> float:
    """A number not above √width."""
    return math.sqrt(width) * (1 - 2.0**-52)


def root_above(width: int) -> float:
    """A number not below √width."""
    return math.sqrt(width) * (1 + 2.0**-52)


# ------------------------------------------------------------------ the operations


def mean(system: System, x: Enclosed) -> Enclosed:
    """The mean of each row; radius rho/√d."""
    low = min(x.digits.low, -system.bits if x.exact else x.digits.low) - WIDTH
    total = arithmetic.total(x.digits, -1)
    digits = arithmetic.over_integer(total, x.width, low)
    divides = arithmetic.is_quotient(digits, x.width, total)
    engine = digits.engine
    unit = constant(digits, digits.shape, QUOTIENT * math.ldexp(1.0, low))
    local = engine.where(divides, 0.0 * unit, unit)
    known = None if x.exact else over(x.ball, root_below(x.width))
    if known is None and engine.holds(divides):
        return Enclosed(digits, origin=Origin("mean", x))
    return by_entry(digits, plus(known, local), Origin("mean", x, local))


def center(system: System, x: Enclosed, mean: Enclosed) -> Enclosed:
    """The rows less their means; radius rho plus the error of the mean."""
    origin = mean.origin
    if origin is not None and origin.kind == "mean" and origin.source is x:
        off = origin.local
    else:
        off = mean.box
    ball = plus(x.ball, times(root_above(x.width), off))
    shifted = Digits(mean.digits.limbs[..., None], mean.digits.top)
    exact = arithmetic.subtract(x.digits, shifted)
    low = max(exact.low, system.grid(ball, x.width))
    if low > exact.low:
        zero = exact.engine.empty_rows(exact.limbs)
        loc = math.sqrt(x.width) * (1 + 2.0**-50) * HALF * math.ldexp(1.0, low)
        local = exact.engine.where(zero, 0.0 * constant(exact, zero.shape, 0.0), loc)
        exact = arithmetic.regrid(exact, low=low)
        ball = plus(ball, local)
    return Enclosed(without_empty_limbs(exact), ball)


def mean_square(system: System, x: Enclosed) -> Enclosed:
    """The mean of the squares of each row."""
    squares = row_squares(x.digits)
    finest = 2 * min(x.digits.low, -system.bits) if x.exact else 2 * x.digits.low
    low = finest - WIDTH
    digits = arithmetic.over_integer(squares, x.width, low)
    divides = arithmetic.is_quotient(digits, x.width, squares)
    unit = constant(digits, digits.shape, QUOTIENT * math.ldexp(1.0, max(low, -1000)))
    local = digits.engine.where(divides, 0.0 * unit, unit)
    if x.exact and digits.engine.holds(divides):
        return Enclosed(digits, origin=Origin("mean_square", x))
    known = None
    if not x.exact:
        twice = plus(times(2.0, x.norms), x.ball)
        known = over(times(x.ball, twice), float(x.width))
    return by_entry(digits, plus(known, local), Origin("mean_square", x, local))


def root(system: System, x: Enclosed, eps: Fraction) -> Enclosed:
    """√(x + eps) of one number for each row."""
    source = x.origin.source if x.origin is not None and x.origin.kind == "mean_square" else None
    finest = -system.bits
    if source is not None:
        finest = min(finest, source.digits.low)
    engine = x.digits.engine
    digits, rounding = roots_of_rows(x.digits, eps, finest)
    below = arithmetic.approx(digits) * (1 - 2.0**-50)
    off = None
    if source is None:
        off = x.box
    elif x.origin is not None:
        off = x.origin.local
    local = rounding
    if off is not None:
        # |√a - √b| <= |a - b|/√a, and <= √|a - b|
        one, other = over(off, below), root_of(off)
        moved = engine.where(one < other, one, other)
        local = plus(moved, rounding)
    if source is None:
        if x.exact and engine.holds(rounding == 0.0):
            return Enclosed(digits)
        return by_entry(digits, local)
    origin = Origin("root", source, local)
    if source.exact and engine.holds(local == 0.0):
        return Enclosed(digits, origin=origin)
    known = None if source.exact else over(source.ball, root_below(source.width))
    return by_entry(digits, plus(known, local), origin)


def normalize(system: System, x: Enclosed, by: Enclosed) -> tuple[Enclosed, list[tuple[int, ...]]]:
    """The quotient, and the rows that are known to be zero over zero, which become zero."""
    engine = x.digits.engine
    width = x.width
    middle = arithmetic.approx(by.digits)
    below = middle * (1 - 2.0**-50)
    origin = by.origin
    known = origin is not None and origin.kind == "root" and origin.source is x
    local = origin.local if known and origin is not None else None
    spread_of_by = local if known else by.box

    # the parts of the radius from x and from the divisor
    sure = less(below, spread_of_by)
    if known:
        carried = None
        if not x.exact:
            carried = over(x.ball, less(sure, over(x.ball, root_below(width))))
        # ‖c‖/s(c) <= √d, so a divisor that is off by `local` moves the row by √d·local/divisor
        moved = None if local is None else times(root_above(width), over(local, below))
        moved = _zero_where(moved, local)
    else:
        carried = None if x.exact else over(x.ball, sure)
        moved = None
        if spread_of_by is not None:
            moved = times(x.norms, over(spread_of_by, sure), over(1.0 + 0 * below, below))
            moved = _zero_where(moved, spread_of_by)

    # rows of zeros over zero, both known to be just that
    zero = x.digits.engine.empty_rows(x.digits.limbs) & (middle == 0.0)
    if not x.exact:
        zero = zero & (x.ball == 0.0)
    if spread_of_by is not None:
        zero = zero & (spread_of_by == 0.0)

    ball = plus(carried, moved)
    if ball is None and not engine.holds(middle > 0):
        ball = constant(x.digits, zero.shape, 0.0)
    if ball is not None:
        ball = engine.where(middle > 0, ball, math.inf)
        ball = engine.where(zero, 0.0 * below, ball)
    inverse, off = inverses_of_rows(by.digits, system.bits, ball, width)
    ball = plus(ball, times(x.norms, off))
    low = system.grid(ball, width)
    wide = Digits(inverse.limbs[..., None], inverse.top)
    exact = x.digits.low + inverse.low
    low = max(low, exact)
    digits = arithmetic.multiply(x.digits, wide, low)
    if low > exact:
        rounding = math.sqrt(width) * (1 + 2.0**-50) * PRODUCT * math.ldexp(1.0, low)
        nothing = constant(digits, digits.shape[:-1], 0.0)
        ball = plus(ball, engine.where(zero, nothing, rounding))
    return (
        Enclosed(without_empty_limbs(digits), ball, zeros=_quotient_zeros(x, sure)),
        engine.places(zero),
    )


def _quotient_zeros(x: Enclosed, sure: Bound) -> known_zeros.Zeros:
    """Of entries over a divisor that is not 0, and of rows of zeros over any."""
    if not x.has_zeros:
        return None
    return lambda: x.zeros & ((sure > 0)[..., None] | x.zeros.all(-1)[..., None])


def _zero_where(bound: Bound, cause: Bound) -> Bound:
    """The bound, zero where its cause is zero: there, 0/0 made it infinite."""
    if bound is None or cause is None:
        return bound
    return engine_of(bound).where(cause == 0.0, 0.0, bound)


def affine(system: System, x: Enclosed, gain: Weight | None, bias: Weight | None) -> Enclosed:
    """x·gain + bias; radius max|gain|·rho, entry by entry |gain_j| times the radius.

    A gain of (head, 1, d_head) has a largest entry for each head.
    """
    factor: Bound = None if gain is None else gain.largest
    if gain is not None and gain.ndim > 1:
        factor = times(largest(abs(x.digits.engine.floats(gain.floats))), slack(gain.roundings))
    ball = x.ball if factor is None else times(x.ball, factor)
    digits, exact = x.digits, x.digits.low
    if gain is not None:
        exact += gain.digits.low
    if bias is not None:
        exact = min(exact, bias.digits.low)
    coarse = ball
    if gain is not None and _uneven(gain):  # most entries are far narrower than the ball
        coarse = times(x.ball, gain.typical)
    low = max(exact, system.grid(coarse, x.width))
    error: Bound = None
    if gain is not None:
        inner = low if bias is None else min(low, max(bias.digits.low, low - 1))
        inner = max(inner, digits.low + gain.digits.low)
        if inner > digits.low + gain.digits.low:
            error = PRODUCT * math.ldexp(1.0, inner)
        digits = without_empty_limbs(arithmetic.multiply(digits, gain.digits, inner))
    if bias is not None:
        finer = min(digits.low, bias.digits.low)
        digits = without_empty_limbs(arithmetic.add(digits, bias.digits, max(low, finer)))
        if low > finer:
            error = plus(error, HALF * math.ldexp(1.0, low))
    local = system.rows(spread(error, digits.shape[-1]), digits)

    def box() -> Bound:
        radius = x.box
        if gain is not None:
            sizes = abs(x.digits.engine.floats(gain.floats))
            radius = times(radius, sizes * slack(1) if gain.roundings else sizes)
        return plus(radius, error)

    origin = None
    if gain is not None and _uneven(gain):
        origin = Origin("affine", x, local, gain)
    return Enclosed(
        digits,
        system.rows(plus(ball, local), digits),
        box=box if x.has_box else None,
        origin=origin,
        zeros=known_zeros.same(x) if bias is None else None,
    )


def _uneven(gain: Weight) -> bool:
    """Whether a gain stretches some entries much more than others."""
    return gain.ndim == 1 and gain.largest > UNEVEN * gain.typical
