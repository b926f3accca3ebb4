"""The operations of an optimizer on limbs, entry by entry, with their radius rules.

Gradients are small and their squares smaller.  So here a grid follows the narrowest entry of the
result, and may be as fine as squares of gradients need (2^(-2·bits) and some more).

sum_squares    |‖x‖² - ‖x'‖²| <= rho·(2‖x'‖ + rho), rho the length of all radii.
norm           √: r/√a' or √r, whichever is less.
clip_factor    min(1, limit/s) falls with s: the ends of s give the ends of the result.
scale_by       |b'|·r_x + r_b·(|x'| + r_x).
blend          Σ |c|·r, and |x'| times the error of a constant; of squares r·(2|y'| + r).
root_plus      |√a - √a'| = |a - a'|/(√a + √a') <= r/√a', and <= √r.
divide         x/y - x'/y' = (x - x')/y - (x'/y')·(y - y')/y, so (r_x + |x'/y'|·r_y)/(y' - r_y);
               infinite where y' <= r_y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from byhand.numbers.enclosed.limbs import arithmetic, known_zeros, norms, roots
from byhand.numbers.enclosed.limbs.arithmetic import (
    HALF,
    PRODUCT,
    WIDTH,
    Digits,
    from_integers,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.constants import Constant
from byhand.numbers.enclosed.limbs.radii import Bound, length, less, over, plus, root, times
from byhand.numbers.enclosed.limbs.row_functions import row_squares
from byhand.numbers.enclosed.limbs.sums import reshaped
from byhand.numbers.enclosed.limbs.system import FINEST, System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, by_entry, constant, entries_of

DOWN = 1 - 2.0**-50  # factor from an approximation to a lower bound


def _grid(system: System, radius: Bound, exact: int) -> int:
    """The grid for entries of these radii; no finer than where the result is exact."""
    return max(exact, system.grid(radius, 1, max(FINEST, -2 * system.bits - 128)))


def _made(
    digits: Digits, carried: Bound, local: float | None, zeros: known_zeros.Zeros
) -> Enclosed:
    """A value with bounds for each entry: what it carries along, and its rounding."""
    box = plus(carried, local)
    if isinstance(box, float):
        box = constant(digits, digits.shape, box)
    return by_entry(without_empty_limbs(digits), box, zeros=zeros)


# ------------------------------------------------------------------ norm and clipping


def sum_squares(system: System, x: Enclosed) -> Enclosed:
    """The sum of the squares of all entries, shape (1,)."""
    rows = reshaped(x, (math.prod(x.shape[:-1]), x.width))
    digits = arithmetic.total(row_squares(rows.digits), 0).reshape(1)
    if x.exact:
        return Enclosed(digits)
    whole, off = (length(bound.reshape(1, -1)) for bound in (rows.norms, rows.ball))
    carried = times(off, plus(times(2.0, whole), off))
    low = _grid(system, carried, digits.low)
    local = HALF * math.ldexp(1.0, low) if low > digits.low else None
    zeros = (lambda: rows.zeros.all().reshape(1)) if rows.has_zeros else None
    return _made(arithmetic.regrid(digits, low=low), carried, local, zeros)


def norm(system: System, squares: Sequence[Enclosed]) -> Enclosed:
    """The root of the sum of numbers of shape (1,)."""
    whole = added(system, squares)
    return norms.root(system, whole, Fraction(0))


def clip_factor(system: System, norm: Enclosed, limit: Fraction, eps: Fraction) -> Enclosed:
    """The smaller of 1 and limit/(norm + eps), shape (1,)."""
    known = entries_of(norm)[0]
    if not known.rad < math.inf:
        return by_entry(norm.digits, norm.box)  # nothing is known, and nothing is claimed
    ends = (_factor(end + eps, limit) for end in (known.mid + known.rad, known.mid - known.rad))
    low, high = ends
    grid = min(0, math.frexp(float(high))[1]) - system.bits - 2 * WIDTH
    middle = round((low + high) / 2 / Fraction(2) ** grid)
    off = (high - low) / 2 + Fraction(2) ** grid
    digits = from_integers([middle], grid, norm.digits.limbs)
    if low == high == 1:
        return Enclosed(from_integers([1], 0, norm.digits.limbs))
    return by_entry(digits, constant(digits, (1,), float(off) * (1 + 2.0**-50) + 2.0**-1000))


def _factor(norm: Fraction, limit: Fraction) -> Fraction:
    return Fraction(1) if norm <= limit else limit / norm


def scale_by(system: System, x: Enclosed, by: Enclosed) -> Enclosed:
    """x times one number, `by` of shape (1,)."""
    sizes, size = abs(x.approx) * NEAR, abs(by.approx) * NEAR
    carried = plus(times(size, x.box), times(by.box, plus(sizes, x.box)))
    exact = x.digits.low + by.digits.low
    low = _grid(system, carried, exact)
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None
    return _made(arithmetic.multiply(x.digits, by.digits, low), carried, local, known_zeros.same(x))


# ------------------------------------------------------------------ running means


def added(system: System, terms: Sequence[Enclosed]) -> Enclosed:
    """The sum of arrays of one shape, as fine as the narrowest entry needs."""
    carried = plus(*(term.box for term in terms))
    digits = reduce(arithmetic.add, (term.digits for term in terms))
    low = _grid(system, carried, digits.low)
    local = None
    if low > digits.low:
        digits, local = arithmetic.regrid(digits, low=low), HALF * math.ldexp(1.0, low)
    return _made(digits, carried, local, known_zeros.all_of(terms))


def times_constant(system: System, x: Enclosed, factor: Constant) -> Enclosed:
    """x·c."""
    if factor.power is not None:
        return system.scaled(x, factor)
    sizes = abs(x.approx) * NEAR
    carried = times(x.box, factor.size)
    if factor.error:
        carried = plus(carried, times(sizes, factor.error))
    digits = factor.digits(x.digits.limbs)
    exact = x.digits.low + digits.low
    low = _grid(system, carried, exact)
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None
    return _made(arithmetic.multiply(x.digits, digits, low), carried, local, known_zeros.same(x))


def squared(system: System, x: Enclosed) -> Enclosed:
    """x², entry by entry."""
    carried = None
    if not x.exact:
        carried = times(x.box, plus(times(2.0, abs(x.approx) * NEAR), x.box))
    exact = 2 * x.digits.low
    low = _grid(system, carried, exact)
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None
    return _made(arithmetic.multiply(x.digits, x.digits, low), carried, local, known_zeros.same(x))


# ------------------------------------------------------------------ the change of a weight


def root_plus(system: System, x: Enclosed, eps: Constant) -> Enclosed:
    """√x + eps of numbers that are not negative."""
    engine = x.digits.engine
    near = engine.clip(x.approx, 0.0, None)
    digits = Digits(engine.where(x.approx < 0.0, 0.0, x.digits.limbs), x.digits.top)
    carried = None
    if not x.exact:
        one, other = over(x.box, engine.root(near) * DOWN), root(x.box)
        carried = engine.where(one < other, one, other)
    low = _grid(system, carried, FINEST)
    found = roots.root(digits, low)
    more = eps.digits(x.digits.limbs)
    local = plus(roots.ERROR * math.ldexp(1.0, low), eps.error)
    zeros = known_zeros.same(x) if eps.integer == 0 and not eps.error else None
    return _made(arithmetic.add(found, more), carried, local, zeros)


def divide(system: System, x: Enclosed, y: Enclosed) -> Enclosed:
    """x/y, where y is above 0; infinite radii where that is not known."""
    engine, near = x.digits.engine, y.approx
    below = less(near * DOWN, y.box)
    good = below > 0
    safe = y.digits
    if not engine.holds(good):
        ones = engine.where(good, 0.0, 1.0 + 0.0 * near)
        safe = Digits(engine.where(good, y.digits.limbs, 0.0), y.digits.top)
        safe = arithmetic.add(safe, Digits(ones[None], WIDTH))
    sizes = abs(x.approx) * NEAR
    share = over(sizes, near * DOWN)
    carried = None
    if not (x.exact and y.exact):
        carried = plus(over(x.box, below), over(times(share, y.box), below))
        carried = engine.where(good, carried, math.inf)
    low = _grid(system, carried, FINEST)
    furthest = math.frexp(engine.largest(sizes))[1]
    highest = math.frexp(engine.largest(arithmetic.approx(safe)) * (1 + 2.0**-40))[1]
    fine = min(low - max(0, furthest) - 4, -highest)
    inverse = roots.reciprocal(safe, fine)
    off = times(sizes, roots.ERROR * math.ldexp(1.0, fine))
    exact = x.digits.low + inverse.low
    low = max(low, exact)
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None
    zeros = (lambda: x.zeros & good) if x.has_zeros else None
    return _made(arithmetic.multiply(x.digits, inverse, low), plus(carried, off), local, zeros)
