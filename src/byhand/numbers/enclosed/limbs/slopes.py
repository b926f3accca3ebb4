"""The slopes of activations on limbs: tables of derivatives, and their radius rules.

An activation is max(x, 0) + h(x) with h tabled (`coefficients`).  Its slope is 1 where limb 0 of x
is not negative, else 0, plus h'(x).  On the right h is analytic, and on the left h(-x) = h(x), so
h'(-x) = -h'(x).  At the point 0 the series of the right side is used on both sides of it, with the
1, as the activation itself does.

Coefficients.  If h(x_j + Y·2^-STEP) = Σ c_k·Y^k, then h' = 2^STEP·Σ (k + 1)·c_(k+1)·Y^k.

The series cut after K terms.  Cauchy's estimate |c_k| <= M·(2^-STEP/r)^k gives, for |Y| <= 1/2 and
q = 2^(-STEP-1)/r <= 1/2, a rest of at most (M/r)·Σ_(k>=K) (k + 1)·q^k, and that is at most
(M/r)·(K + 1)·q^K/(1 - q)².  The rest of h itself is bounded by M·q^K/(1 - q), so that of h' by
(K + 1)·2^(STEP+1) times it, for 1/r = q·2^(STEP+1) <= 2^STEP and 1/(1 - q) <= 2.

Beyond the last point h' counts as 0.  With S = 1/(1 + e^w) or Q, the normal distribution's tail,
h = -x·S and h' = -S + x·w'·S·(1 - S), or -Q + x·φ: a difference of two numbers that are not
negative, so at most the larger one, and from 1 on that is the second one's bound: x·e^(-x²/2),
x·e^-x, x·w'·e^-w, all of which fall from 1 on.  Up to 1, |h'| <= 1.

The slopes of sigmoid and tanh are made of their own values, s·(1 - s) and 1 - t².  Where those err
by e, s·(1 - s) errs by e·|1 - s - s'| <= e·(1 + e), and t² by e·|t + t'| <= e·(2 + e).  That of
relu2 is 2·relu(x).

The radius.  |f'(x) - f'(y)| <= CURVES[f]·|x - y|, by a bound of the second derivative (a test
proves it with Arb); 1/(6√3) for sigmoid and 4/(3√3) for tanh, whose slopes are no further apart
than 1/4 and 1.  The slope of relu is 0 or 1 where the sign of x is known, that of a clamp where it
is known whether x is within the limits.  Elsewhere it is 1/2 with the radius 1/2.  A cap's slope is
that of tanh at x/cap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ldexp, log2

from byhand.numbers.enclosed.limbs import (
    arithmetic,
    coefficients,
    entrywise,
    functions,
    polynomials,
    roots,
)
from byhand.numbers.enclosed.limbs.arithmetic import (
    APPROX,
    PRODUCT,
    WIDTH,
    Digits,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.coefficients import CUBIC, LINEAR, STEP, Floats, Series, Tabled
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.functions import aligned, applied, arguments_of, on_grid, reach
from byhand.numbers.enclosed.limbs.polynomials import on_device, table_of
from byhand.numbers.enclosed.limbs.radii import Bound, plus, times
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry, constant

# The largest |second derivative| of each activation, rounded up.
CURVES = {
    "gelu": 0.7979, "gelu_tanh": 0.7979, "gelu_fast": 0.7979, "gelu_bloom": 0.7979,
    "silu": 0.5001, "quick_gelu": 0.8512, "sigmoid": 0.0963, "tanh": 0.7699,
}  # fmt: skip
APART = {"sigmoid": 0.25, "tanh": 1.0}  # no two slopes are further apart
KINDS = ("relu", "relu2", "identity", *CURVES)
MORE = 2 * STEP  # bits that the coefficients of h have beyond those of h'


def _derived(function: Tabled, tail: Callable[[float], float]) -> Tabled:
    """The table of h' from that of h; `tail` as in `Tabled`."""

    def series(last: int, terms: int, bits: int) -> Series:
        of = function.series(last, terms + 1, bits + MORE)
        made, errors = [], []
        for k in range(1, terms + 1):
            made.append((k * of.terms[k]) >> (MORE - STEP))
            errors.append((k * of.errors[k] >> (MORE - STEP)) + 2)
        return Series(made, errors, bits)

    def rest(x: Floats, k: int) -> Floats:
        bound: Floats = function.rest(x, k) + (log2(k + 1) + STEP + 1.01)
        return bound

    name = function.name + "'"
    return replace(function, name=name, parity=-1, ramp=False, tail=tail, rest=rest, series=series)


def _falling(x: float, steep: float, w: float) -> float:
    """log2 of x·steep·e^-w from 1 on; 0 up to 1."""
    return log2(x * steep) - w * 1.4426 + 0.01 if x > 1 else 0.0


def _gated(function: Tabled, linear: float, cubic: float = 0.0) -> Tabled:
    """The table for w = linear·x·(1 + cubic·x²)."""
    bend = linear * cubic
    return _derived(
        function, lambda x: _falling(x, linear + 3 * bend * x * x, linear * x + bend * x**3)
    )


BEND = float(CUBIC)
TABLES = {
    "gelu": _derived(coefficients.GELU, lambda x: _falling(x, 1.0, x * x / 2)),
    "gelu_tanh": _gated(coefficients.GELU_TANH, LINEAR, BEND),
    "gelu_fast": _gated(coefficients.GELU_FAST, 2 * 0.7978845608, BEND),
    "gelu_bloom": _gated(coefficients.GELU_BLOOM, 2 * 0.79788456, BEND),
    "silu": _gated(coefficients.SILU, 1.0),
    "quick_gelu": _gated(coefficients.QUICK_GELU, 1.702),
}
ERROR = polynomials.ERROR  # in units of the result's grid: the 1 is added exactly


def slope(system: System, x: Enclosed, kind: str) -> Enclosed:
    """The derivative of the activation at each entry."""
    if kind == "identity":
        return Enclosed(_filled(x.digits.engine.zeros(x.shape, x.digits.limbs) + 1.0, 0))
    if kind == "relu":
        return _step(x)
    if kind == "relu2":
        made: Enclosed = system.activate(x, kind="relu")
        return system.scaled(made, system.constant(Fraction(2)))
    if kind in APART:
        return _from_values(system, x, kind)
    ball = times(x.ball, CURVES[kind])
    low = system.grid(ball, x.width)
    digits = without_empty_limbs(tabled(kind, x.digits, low))
    local = ERROR * ldexp(1.0, low)

    def box() -> Bound:
        return times(x.box, CURVES[kind]) + local

    made = system.rounded(ball, local, digits)
    return Enclosed(digits, made, box=box if x.has_box and not x.exact else None)


def tabled(kind: str, x: Digits, low: int) -> Digits:
    """f'(x) on the grid 2^low: ERROR·2^low."""
    arguments, (least, most) = arguments_of(x)
    last = (-STEP - aligned(low)) // WIDTH
    table = on_device(table_of, (TABLES[kind], last, reach(max(-least, most))), x.limbs)
    limbs = applied(polynomials.evaluate, (table,), arguments, last)
    limbs[0] += x.engine.positive(arguments[0]) * 2.0**STEP
    return on_grid(limbs, low)


def _from_values(system: System, x: Enclosed, kind: str) -> Enclosed:
    """s·(1 - s) of sigmoid, 1 - t² of tanh."""
    low = min(-8, system.grid(times(x.ball, CURVES[kind]), x.width))
    value, error = functions.activation(kind, x.digits, low - 4)
    one = roots.one_like(value.limbs)
    if kind == "sigmoid":
        digits = arithmetic.multiply(value, arithmetic.subtract(one, value), low)
        off = times(error, plus(1.0, error))
    else:
        digits = arithmetic.subtract(one, arithmetic.multiply(value, value, low))
        off = times(error, plus(2.0, error))
    local = plus(off, PRODUCT * ldexp(1.0, low))
    digits = without_empty_limbs(digits)
    return entrywise.within_limits(system, x, digits, local, slope=CURVES[kind], apart=APART[kind])


def cap_slope(system: System, x: Enclosed, cap: Fraction) -> Enclosed:
    """1 - tanh²(x/cap)."""
    return slope(system, system.scaled(x, system.constant(1 / cap)), "tanh")


def clamp_slope(
    system: System, x: Enclosed, least: Fraction | None, most: Fraction | None
) -> Enclosed:
    """1 within the limits, which belong to it, else 0; [0, 1] where that is open."""
    within, beyond, sure = x.approx == x.approx, x.approx != x.approx, x.exact
    for limit, below in ((least, True), (most, False)):
        if limit is None:
            continue
        known = system.constant(limit)
        sides = x.digits, known.digits(x.digits.limbs)
        over = arithmetic.approx(arithmetic.subtract(*(reversed(sides) if below else sides)))
        unsure = (0.0 * abs(over) if x.exact else x.box) + known.error
        unsure = unsure * (1 + 8 * APPROX)
        within, beyond = within & (-over >= unsure), beyond | (over > unsure)
        sure = sure and not known.error
    return Enclosed(_filled(1.0 * within, 0)) if sure else _decided(x, within, beyond)


def _step(x: Enclosed) -> Enclosed:
    """The slope of relu: 1 above 0, else 0; [0, 1] where the sign is open."""
    engine, near = x.digits.engine, x.approx
    if x.exact:
        return Enclosed(_filled(engine.positive(near) - 1.0 * (near == 0.0), 0))
    # the sign of near is that of the midpoint, and |near| is within APPROX of its size
    above, below = near > x.box * (1 + 4 * APPROX), dead(x)
    return _decided(x, above, below)


def _decided(x: Enclosed, one: Array, zero: Array) -> Enclosed:
    """1 or 0 where that is known, [0, 1] elsewhere."""
    engine = x.digits.engine
    halves = 2.0 * one + 1.0 * ~(one | zero)
    box = engine.where(one | zero, constant(x.digits, x.shape, 0.0), 0.5)
    return by_entry(_filled(halves, -1), box, zeros=zero)


def dead(x: Enclosed) -> Array:
    """True where relu(x) and its slope are known to be 0: no number of the enclosure is above 0."""
    return -x.approx >= x.box * (1 + 4 * APPROX)


def _filled(values: Array, low: int) -> Digits:
    """Small integers times 2^low."""
    return Digits(values[None], low + WIDTH)
