"""Gradients through norms and softmax, row by row, with their radius rules.

softmax_back        p·(g - m), m = Σ p·g of the row; entry by entry
                        |p'|·(r_g + r_m) + r_p·(|g' - m'| + r_g + r_m).
                    A row that sees one key has the share 1 whatever its score: its gradient is 0.
normalize_back      g/s: rho_g/(s' - r_s) + ‖g'‖·r_s/(s'·(s' - r_s)), the rule of quotients.
divisor_back        -m/s, and root_back g/(2s): the same for one number of each row.
mean_square_back    g·2x/d: with c = 2g/d, |c'|·rho_x + r_c·(‖x'‖ + rho_x).
center_back         -Σ g: √d·rho, by Cauchy and Schwarz, or the sum of the entries' radii.
mean_back           g/d in d entries: r/d each, and so r/√d for the row.
sinks_back          -Σ_query s·m, with s = 1 - Σ p the sink's own share: s errs by Σ r_p, and the
                    sum is a dot product (`sums`).
"""

from __future__ import annotations

import math

from byhand.numbers.enclosed.limbs import arithmetic, known_zeros, norms, roots
from byhand.numbers.enclosed.limbs.arithmetic import (
    PRODUCT,
    QUOTIENT,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.norms import root_above, root_below
from byhand.numbers.enclosed.limbs.radii import Bound, length, over, plus, times, total
from byhand.numbers.enclosed.limbs.sums import row_dots, shown
from byhand.numbers.enclosed.limbs.system import GUARD, System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin, by_entry, constant

Places = list[tuple[int, ...]]


def softmax_back(system: System, weights: Enclosed, grad: Enclosed, dot: Enclosed) -> Enclosed:
    """weights·(grad - dot), absent where a weight is."""
    hidden = weights.hidden
    known = known_zeros.sums_to_zero(weights, grad, dot)
    shares, grads = shown(weights, _alone(weights) if known else None), shown(grad, hidden)
    row = by_entry(_column(dot.digits), None if dot.exact else dot.box[..., None])
    less = arithmetic.subtract(grads.digits, row.digits)
    sizes, moved = abs(shares.approx) * NEAR, plus(grads.box, row.box)
    apart = abs(arithmetic.approx(less)) * NEAR
    carried = plus(times(sizes, moved), times(shares.box, plus(apart, moved)))
    if carried is not None:
        carried = carried + constant(less, less.shape, 0.0)
    exact = shares.digits.low + less.low
    low = max(exact, system.grid(None if carried is None else length(carried), less.shape[-1]))
    digits = without_empty_limbs(arithmetic.multiply(shares.digits, less, low))
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None
    origin = Origin("softmax_back", weights) if known else None
    box = plus(carried, local)
    if box is None:
        return Enclosed(digits, hidden=hidden, origin=origin)
    if isinstance(box, float):
        box = constant(digits, digits.shape, box)

    def zeros() -> Array:
        flat = known_zeros.zeros_of(grads) & known_zeros.zeros_of(dot)[..., None]
        return known_zeros.zeros_of(shares) | flat

    return Enclosed(digits, lambda: length(box), box=box, hidden=hidden, origin=origin, zeros=zeros)


def sinks_back(system: System, weights: Enclosed, dot: Enclosed) -> Enclosed:
    """-Σ_query (1 - Σ_key weights)·dot, one number for each head."""
    shares = shown(weights)
    sums = arithmetic.total(shares.digits, -1)
    rest = arithmetic.subtract(roots.one_like(sums.limbs), sums)
    own = by_entry(rest, None if shares.exact else total(shares.box))
    made = row_dots(system, own, dot)
    return _moved(made, arithmetic.negate(made.digits), 1.0)


def _alone(weights: Enclosed) -> Array:
    """True for each entry of a row that sees at most one key: its share does not change."""
    engine = weights.digits.engine
    if weights.hidden is None:
        return weights.approx == weights.approx if weights.width == 1 else None
    alone = (~weights.hidden).sum(-1) <= 1
    return engine.broadcast(alone[..., None], weights.shape)


def _column(x: Digits) -> Digits:
    """One number for each row, as an array of rows of one entry."""
    return Digits(x.limbs[..., None], x.top)


def normalize_back(system: System, grad: Enclosed, by: Enclosed) -> tuple[Enclosed, Places]:
    """grad/by; and the rows that are zero over zero, which become zero."""
    return norms.normalize(system, grad, by)


def quotient(system: System, top: Enclosed, by: Enclosed) -> Enclosed:
    """top/by, one number for each row; 0/0 is 0 where both are known to be just that."""
    ball = None if top.exact else top.box
    rows = Enclosed(_column(top.digits), ball, zeros=_column_zeros(top))
    made, _zero = norms.normalize(system, rows, by)
    digits = Digits(made.digits.limbs[..., 0], made.digits.top)
    if made.exact:
        return Enclosed(digits)
    zeros = (lambda: made.zeros[..., 0]) if made.has_zeros else None
    return by_entry(digits, made.ball, zeros=zeros)


def _column_zeros(x: Enclosed) -> known_zeros.Zeros:
    return (lambda: x.zeros[..., None]) if x.has_zeros else None


def divisor_back(system: System, dot: Enclosed, by: Enclosed) -> Enclosed:
    """-dot/by."""
    made = quotient(system, dot, by)
    return _moved(made, arithmetic.negate(made.digits), 1.0)


def root_back(system: System, grad: Enclosed, root: Enclosed) -> Enclosed:
    """grad/(2·root)."""
    made = quotient(system, grad, root)
    return _moved(made, arithmetic.shift(made.digits, -1), 0.5)


def _moved(x: Enclosed, digits: Digits, size: float) -> Enclosed:
    """Other digits, exactly x's but for a sign and a power of two."""
    box = None if x.exact else times(x.box, size)
    return by_entry(digits, box, zeros=known_zeros.same(x))


def mean_square_back(system: System, grad: Enclosed, x: Enclosed) -> Enclosed:
    """grad·2x/width, row by row."""
    width = x.width
    known = None if grad.exact else over(times(2.0, grad.box), float(width))
    share = times(abs(grad.approx) * NEAR, 2.0 / width * (1 + 2.0**-50))
    ball = plus(times(share, x.ball), times(known, plus(x.norms, x.ball)))
    low = system.grid(ball, width)
    # so fine that a row moves by less than the grid
    reach = math.frexp(x.digits.engine.largest(x.norms))[1]
    fine = low - max(0, reach) - GUARD
    factor = arithmetic.over_integer(arithmetic.shift(grad.digits, 1), width, fine)
    exact = x.digits.low + factor.low
    low = max(low, exact)
    digits = without_empty_limbs(arithmetic.multiply(x.digits, _column(factor), low))
    off = QUOTIENT * math.ldexp(1.0, fine)
    ball = plus(ball, times(plus(x.norms, x.ball), off))
    local = PRODUCT * math.ldexp(1.0, low) if low > exact else None
    made = system.rounded(ball, local, digits)
    return Enclosed(digits, made, zeros=_product_zeros(grad, x))


def _product_zeros(row: Enclosed, x: Enclosed) -> known_zeros.Zeros:
    """Of rows times a number each."""
    if not (row.has_zeros or x.has_zeros):
        return None
    return lambda: known_zeros.zeros_of(row)[..., None] | known_zeros.zeros_of(x)


def center_back(grad: Enclosed) -> Enclosed:
    """-Σ grad of each row."""
    digits = arithmetic.negate(arithmetic.total(grad.digits, -1))
    if grad.exact:
        return Enclosed(digits)
    box = total(grad.box) if grad.has_box else times(grad.ball, root_above(grad.width))
    return by_entry(digits, box, zeros=known_zeros.every(grad))


def mean_back(system: System, grad: Enclosed, width: int) -> Enclosed:
    """grad/width, in each of `width` entries."""
    ball = None if grad.exact else over(grad.box, root_below(width))
    low = system.grid(ball, width)
    quotient_of = arithmetic.over_integer(grad.digits, width, low)
    digits = _column(quotient_of).broadcast(*grad.shape, width)
    local = QUOTIENT * math.ldexp(1.0, low)
    made = system.rounded(ball, local, digits)
    zeros = None
    if grad.has_zeros:
        engine = digits.engine

        def spread_out() -> Array:
            return engine.broadcast(grad.zeros[..., None], (*grad.shape, width))

        zeros = spread_out

    def box() -> Bound:
        each = None if grad.exact else over(grad.box, float(width))[..., None]
        return plus(each, local) + constant(digits, digits.shape, 0.0)

    return Enclosed(digits, made, box=box, zeros=zeros)
