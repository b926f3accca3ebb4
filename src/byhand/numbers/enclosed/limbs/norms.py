"""LayerNorm and RMSNorm, step by step, with the radius of the whole.

The plan writes a norm as mean, centered, variance, std, normalized.  Step by step, radii would grow
as if these were independent; but the real `normalized` is a function of the real x alone.  So every
value remembers which one it was made of (`Origin`), together with `local`: how far its midpoint may
be from the operation done exactly on the *midpoints* of its source.  Then

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

Where the origin is not known, plain quotient rules are used.  Sums of squares are exact; roots and
inverses, one for each row, are Python integers, or array code where the rows are on a device.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.numbers.enclosed.limbs import arithmetic, roots
from byhand.numbers.enclosed.limbs.arithmetic import (
    HALF,
    PRODUCT,
    QUOTIENT,
    WIDTH,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of
from byhand.numbers.enclosed.limbs.products import EXACT
from byhand.numbers.enclosed.limbs.radii import (
    Bound,
    exponent_of,
    length,
    less,
    over,
    plus,
    times,
)
from byhand.numbers.enclosed.limbs.radii import (
    root as root_of,
)
from byhand.numbers.enclosed.limbs.values import Enclosed, Origin

if TYPE_CHECKING:
    from byhand.numbers.enclosed.limbs.operations import Limbs


def constant(digits: Digits, shape: tuple[int, ...], value: float) -> Array:
    """An array of one number, where the digits are."""
    return digits.engine.zeros(shape, digits.limbs) + value


def by_entry(digits: Digits, box: Bound, origin: Origin | None = None) -> Enclosed:
    """A value known entry by entry: one number for each row of something."""
    if box is None:
        return Enclosed(digits, origin=origin)
    return Enclosed(digits, lambda: length(box), box=box, origin=origin)


def root_below(width: int) -> float:
    """A number not above √width."""
    return math.sqrt(width) * (1 - 2.0**-52)


def root_above(width: int) -> float:
    return math.sqrt(width) * (1 + 2.0**-52)


def empty_rows(digits: Digits) -> Array:
    """True for each row (last axis) of zeros."""
    return digits.engine.empty_rows(digits.limbs)


# ------------------------------------------------------------------ the operations


def mean(system: Limbs, x: Enclosed) -> Enclosed:
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


def center(system: Limbs, x: Enclosed, mean: Enclosed) -> Enclosed:
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
        zero = empty_rows(exact)
        loc = math.sqrt(x.width) * (1 + 2.0**-50) * HALF * math.ldexp(1.0, low)
        local = exact.engine.where(zero, 0.0 * constant(exact, zero.shape, 0.0), loc)
        exact = arithmetic.regrid(exact, low=low)
        ball = plus(ball, local)
    return Enclosed(without_empty_limbs(exact), ball)


def mean_square(system: Limbs, x: Enclosed) -> Enclosed:
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


def root(system: Limbs, x: Enclosed, eps: Fraction) -> Enclosed:
    source = x.origin.source if x.origin is not None and x.origin.kind == "mean_square" else None
    finest = -system.bits
    if source is not None:
        finest = min(finest, source.digits.low)
    engine = x.digits.engine
    digits, rounding = (one_by_one if engine is NUMPY else at_once)(x.digits, eps, finest)
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


Roots = tuple[Digits, Array]  # and how far each may be off


def one_by_one(x: Digits, eps: Fraction, finest: int) -> Roots:
    """√(x + eps) by Python's integers, to the grid 2^finest and a limb more."""
    values = np.asarray(arithmetic.to_integers(x), object).ravel().tolist()
    least = min((abs(v) for v in values if v), default=0)
    low = min(_grid(x.low + least.bit_length() if least else 0, eps, finest), x.low // 2)
    made = [_root(v, x.low, eps, low) for v in values]
    digits = arithmetic.from_integers([value for value, _exact in made], low, x.limbs)
    unit = math.ldexp(1.0, max(low, -1000))
    rounding = np.array([0.0 if exact else unit for _value, exact in made]).reshape(x.shape)
    return digits.reshape(*x.shape), x.engine.constant(rounding, x.limbs)


def at_once(x: Digits, eps: Fraction, finest: int) -> Roots:
    """The same by array code.

    Of eps the multiple of 2^(2·low) below it is taken: the root of the whole part has the same
    whole part.
    """
    engine, near = x.engine, arithmetic.approx(x)
    least = engine.least_above_zero(near)
    low = _grid(math.frexp(least)[1] if least < math.inf else 0, eps, finest)
    if x.low < 2 * low or not x.size or engine.range(near)[0] < 0:
        return one_by_one(x, eps, finest)
    value, whole = x, True
    if eps:
        scaled = eps / Fraction(2) ** (2 * low)
        whole = scaled.denominator == 1
        key = eps, low, engine.device_of(x.limbs)
        if key not in _kept:
            _kept[key] = arithmetic.from_integers([math.floor(scaled)], 2 * low, x.limbs)
        value = arithmetic.add(x, _kept[key])
    found = roots.root(value, low)
    digits, exact = _floored(found, arithmetic.subtract(arithmetic.multiply(found, found), value))
    rounding = constant(digits, digits.shape, math.ldexp(1.0, max(low, -1000)))
    return digits, engine.where(exact, 0.0, rounding) if whole else rounding


def _floored(found: Digits, excess: Digits) -> tuple[Digits, Array]:
    """The multiples of 2^low not above the real numbers, and where they are those numbers.

    What is found is off by at most roots.ERROR < 1, so it is right, or one too large, and then
    what it says is in excess: 0 only where nothing was rounded.
    """
    beyond = arithmetic.approx(excess)  # has the sign of what it approximates
    found.limbs[-1] -= found.engine.where(beyond > 0, 1.0 + 0.0 * beyond, 0.0)
    return Digits(arithmetic.carry(found.limbs), found.top), beyond == 0.0


def _grid(head: int, eps: Fraction, finest: int) -> int:
    """The grid of roots of numbers from 2^head on."""
    if eps:
        head = max(head, _exponent(eps))
    return finest - WIDTH + min(0, head // 2 - 1)


def _root(value: int, start: int, eps: Fraction, low: int) -> tuple[int, bool]:
    """⌊√(value·2^start + eps) / 2^low⌋, and whether that is all of it."""
    shift = start - 2 * low
    top = (value << shift if shift >= 0 else 0) * eps.denominator
    if shift < 0:
        raise ArithmeticError("a root on a grid that is too coarse")
    more = eps.numerator << (-2 * low) if low <= 0 else eps.numerator >> (2 * low)
    whole, rest = divmod(top + more, eps.denominator)
    found = math.isqrt(max(whole, 0))
    exact = rest == 0 and found * found == whole and (low <= 0 or eps == 0)
    return found, exact


def _exponent(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def normalize(system: Limbs, x: Enclosed, by: Enclosed) -> tuple[Enclosed, list[tuple[int, ...]]]:
    """The quotient, and the rows that are zero over zero: known to be, and taken to be zero."""
    engine = x.digits.engine
    like = x.digits.limbs
    width = x.width
    middle = arithmetic.approx(by.digits)
    below = middle * (1 - 2.0**-50)
    origin = by.origin
    known = origin is not None and origin.kind == "root" and origin.source is x
    local = origin.local if known and origin is not None else None
    spread_of_by = local if known else by.box

    # what of the radius comes with x and with the divisor
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
    zero = empty_rows(x.digits) & (middle == 0.0)
    if not x.exact:
        zero = zero & (x.ball == 0.0)
    if spread_of_by is not None:
        zero = zero & (spread_of_by == 0.0)

    ball = plus(carried, moved)
    if ball is None and not engine.holds(middle > 0):
        ball = constant(x.digits, zero.shape, 0.0)
    if ball is not None:
        ball = engine.where(middle > 0, ball, INFINITE)
        ball = engine.where(zero, 0.0 * below, ball)
    inverse, off = _inverse(system, by.digits, ball, width, like)
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
    return Enclosed(without_empty_limbs(digits), ball), engine.places(zero)


INFINITE = math.inf


def _zero_where(bound: Bound, cause: Bound) -> Bound:
    """The bound, zero where its cause is: 0/0 came from dividing nothing by nothing."""
    if bound is None or cause is None:
        return bound
    return engine_of(bound).where(cause == 0.0, 0.0 * cause, bound)


def _inverse(
    system: Limbs, by: Digits, ball: Bound, width: int, like: Array
) -> tuple[Digits, Array]:
    """(1/by, how far each may be off), as fine as the radius of the result asks for; 0 for 1/0."""
    engine = engine_of(like)
    target = math.ldexp(1.0, -system.bits)
    if ball is not None and math.prod(ball.shape):
        least = engine.least_above_zero(ball)
        target = max(target, least) if least < INFINITE else target

    def grid(exponent: int) -> int:
        """For divisors below 2^exponent."""
        size = math.ldexp(1.0, min(900, exponent))
        return exponent_of(target / (math.sqrt(width) * size)) - 8

    if engine is not NUMPY and by.size:
        least, most = engine.range(arithmetic.approx(by))
        low = grid(math.frexp(most * (1 + 2.0**-40))[1])
        if least >= 2.0**-900 and most <= 2.0 ** min(900, -low):
            return _inverse_at_once(by, low)
    values = np.asarray(arithmetic.to_integers(by), object).ravel().tolist()
    low = grid(by.low + max((v for v in values if v > 0), default=1).bit_length())
    shift = -low - by.low
    made, off = [], []
    for value in values:
        whole, rest = divmod(1 << max(0, shift), value) if value > 0 else (0, 0)
        made.append(whole)
        off.append(math.ldexp(1.0, max(low, -1000)) if rest else 0.0)
    if shift < 0:
        raise ArithmeticError("an inverse on a grid that is too coarse")
    inverse = arithmetic.from_integers(made, low, like).reshape(*by.shape)
    errors = engine_of(like).constant(np.array(off).reshape(by.shape), like)
    return inverse, errors


def _inverse_at_once(by: Digits, low: int) -> tuple[Digits, Array]:
    """The same by array code."""
    found = roots.reciprocal(by, low)
    product = arithmetic.multiply(found, by)
    inverse, exact = _floored(found, arithmetic.subtract(product, roots.one_like(by.limbs)))
    unit = constant(by, by.shape, math.ldexp(1.0, max(low, -1000)))
    return inverse, by.engine.where(exact, 0.0, unit)


# ------------------------------------------------------------------ exact sums of squares


def row_squares(x: Digits) -> Digits:
    """Σ x² over the last axis, exactly: all pairs of limbs as one small product for each row."""
    engine = x.engine
    if engine is not NUMPY:
        return _row_squares_elsewhere(x)
    rows = engine.contiguous(engine.moveaxis(x.limbs, 0, x.ndim - 1))  # (…, n, d)
    norms = engine.largest(length(rows)) if x.size else 0.0
    if x.n * norms * norms * (1 + 2.0**-40) >= EXACT:
        half = x.shape[-1] // 2
        return arithmetic.add(row_squares(x[..., :half]), row_squares(x[..., half:]))
    pairs = rows @ rows.swapaxes(-1, -2)  # (…, n, n)
    sums = engine.zeros((2 * x.n, *x.shape[:-1]), x.limbs)
    for i in range(x.n):
        for j in range(x.n):
            sums[i + j + 1] += pairs[..., i, j]
    return arithmetic.settle(sums, 2 * x.top)


def _row_squares_elsewhere(x: Digits) -> Digits:
    """The same for rows cut into parts so short that no certificate is asked for.

    A part of the length `short` gives at most n·short·2^42·(1 + 2^-19) < EXACT along a diagonal;
    the sums of the parts are carried before they are added.
    """
    engine: Any = x.engine
    n, rows, wide = x.n, x.size // max(1, x.shape[-1]), x.shape[-1]
    short = 1 << int(math.log2(EXACT / (n * 2.0**42 * (1 + 2.0**-19))))
    parts = max(1, -(-wide // short))
    laid = x.limbs.reshape(n, rows, wide)
    if parts * short != wide:
        more = engine.zeros((n, rows, parts * short - wide), x.limbs)
        laid = engine.concatenate([laid, more], 2)
    laid = laid.reshape(n, rows * parts, short).swapaxes(0, 1)  # (parts of rows, n, short)
    pairs = laid @ laid.swapaxes(1, 2)
    sums = pairs.reshape(-1, n * n) @ _diagonals(n, x.limbs)
    carried = arithmetic.carry(engine.contiguous(sums.swapaxes(0, 1)))
    whole = carried.reshape(2 * n, rows, parts).sum(2)
    return arithmetic.settle(whole.reshape(2 * n, *x.shape[:-1]), 2 * x.top)


_kept: dict[Any, Any] = {}  # small numbers and tables, for each device


def _diagonals(n: int, like: Array) -> Array:
    """(n·n, 2n): 1 where a pair of limbs belongs to a place of the product; exact, as sums are."""
    key = n, engine_of(like).device_of(like)
    if key not in _kept:
        one, other = np.divmod(np.arange(n * n), n)
        belongs = (one + other + 1)[:, None] == np.arange(2 * n)
        _kept[key] = engine_of(like).constant(belongs.astype(np.float64), like)
    return _kept[key]
