"""Taylor coefficients of the elementwise functions around the points j/2^STEP, as integers.

A function f is tabled as f(x_j + Y·2^-STEP) = Σ_k c_k·Y^k with |Y| <= 1/2.  Every c_k is worked out
with Python integers in fixed point (`bits` after the point), all points at once.  A bound of its
error, in units of 2^-bits, comes with it: errors of operands are carried along, and every rounding
is counted.  Nothing here knows of limbs.

Where the series is cut, the rest is bounded by Cauchy's estimate: |f| <= M on the disc of radius r
around x_j gives |c_k| <= M·(2^-STEP/r)^k, so with |Y| <= 1/2 the terms from k on sum to at most
M·q^k/(1 - q), q = 2^(-STEP-1)/r.  M and r are stated and proven at each function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp as float_exp
from math import log2
from math import pi as float_pi
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.enclosed.limbs import integers
from byhand.numbers.enclosed.limbs.integers import Near, rational, whole

STEP = 8  # the points are 2^-STEP apart
Integers = Any  # an object array of Python integers, one for each point
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """c_k at the points 0, 1, … of one side: integers over 2^bits, with their errors."""

    terms: list[Integers]
    errors: list[int]
    bits: int


@dataclass(frozen=True, slots=True)
class Tabled:
    """A function that has a table.

    `parity`: the function of the table is even (+1) or odd (-1), so one side gives the other.
    `ramp`: the function is max(x, 0) plus what the table gives.  Beyond the last point the table
    gives 0, within `tail(x)`.
    """

    name: str
    parity: int
    ramp: bool
    tail: Callable[[float], float]  # log2 of a bound of |f| for every argument >= x
    rest: Callable[[Floats, int], Floats]  # log2 of a bound of the terms from k on, at |x_j| = x
    series: Callable[[int, int, int], Series]  # (last point, terms, bits)

    def last(self, low: int) -> int:
        """The last point of the table: beyond it, the function is less than 2^(low - 6)."""
        return _last_point(self, low)

    def terms(self, low: int, last: int) -> int:
        """How many terms leave less than 2^(low - 6) at every point."""
        points = np.arange(last + 1) / 2.0**STEP
        k = 2
        while self.rest(points, k).max() > low - 6:
            k += 1
        return k


@lru_cache(256)
def _last_point(function: Tabled, low: int) -> int:
    j = 1
    while function.tail((j + 0.49) / 2**STEP) > low - 6.01:
        j += 1 + j // 64
    return j


# --------------------------------------------------------------------------------- e^(-x²/2)


def _bell(last: int, terms: int, bits: int, height: Near) -> Series:
    """The coefficients of A(x) = height·e^(-x²/2): from A' = -xA,
    (k+1)·a_(k+1) = -4^-STEP·(j·a_k + a_(k-1)) in the variable Y.
    """
    start = _quadratic_exponentials(last, bits)
    first = [height * value for value in start]
    made = [np.array([value.mid for value in first], object)]
    errors = [max(value.error for value in first)]
    j = np.arange(last + 1).astype(object)
    before, error_before = np.zeros(last + 1, object), 0
    for k in range(terms - 1):
        following = -(j * made[k] + before >> 2 * STEP) // (k + 1)
        error = (last * errors[k] + error_before >> 2 * STEP) // (k + 1) + 4
        before, error_before = made[k], errors[k]
        made.append(following)
        errors.append(error)
    return Series(made, errors, bits)


def _quadratic_exponentials(last: int, bits: int) -> list[Near]:
    """e^(-j²·2^(-2·STEP-1)) for every point: each from the one before by a factor."""
    one = whole(1, bits)
    unit = Fraction(-1, 2 ** (2 * STEP + 1))
    factor, square = integers.exp(rational(unit, bits)), integers.exp(rational(2 * unit, bits))
    made = [one]
    for _j in range(last):
        made.append(made[-1] * factor)
        factor = factor * square
    return made


def _tail_integrals(bell: Series, at_zero: Near) -> Series:
    """R(x) = ∫_x^∞ A with R(0) given: r_k = -2^-STEP·a_(k-1)/k; r_0 step by step, at Y = 1."""
    terms: list[Integers] = []
    errors: list[int] = []
    for k, (a, error) in enumerate(zip(bell.terms, bell.errors, strict=True)):
        terms.append(-((a >> STEP) // (k + 1)))
        errors.append((error >> STEP) // (k + 1) + 3)
    steps: Integers = sum(terms)
    each = sum(errors) + 1  # 1 for the terms left out, see `_whole_step`
    first = [at_zero.mid]
    for step in steps[:-1]:
        first.append(first[-1] + step)
    scaled = [np.array(first, object), *terms]
    return Series(scaled, [at_zero.error + each * len(first), *errors], bell.bits)


def _times_argument(r: Series) -> Series:
    """The coefficients of -x·r(x): -(x_j·r_k + 2^-STEP·r_(k-1))."""
    j = np.arange(len(r.terms[0])).astype(object)
    made, errors = [], []
    for k, (term, error) in enumerate(zip(r.terms, r.errors, strict=True)):
        before = r.terms[k - 1] if k else 0
        error_before = r.errors[k - 1] if k else 0
        made.append(-((j * term + before) >> STEP))
        errors.append((len(j) * error + error_before >> STEP) + 2)
    return Series(made, errors, r.bits)


def _whole_step(bits: int) -> int:
    """How many terms give a step Y = 1 to 2^-bits.

    By the bound of `_gauss_rest`, |a_k| <= 2^12·2^(-9.5·k), so the terms after bits/9 + 3 of
    them sum to less than 2^(12 - 28.5 - bits)·2.
    """
    return bits // 9 + 4


def _gelu_series(last: int, terms: int, bits: int) -> Series:
    height = whole(1, bits) / integers.root(integers.pi(bits).times(2))
    more = max(terms, _whole_step(bits))
    bell = _bell(last, more, bits, height)
    half = Near(1 << (bits - 1), 0, bits)
    made = _times_argument(_tail_integrals(bell, half))
    return Series(made.terms[:terms], made.errors[:terms], bits)


def _gauss_rest(x: Floats, k: int) -> Floats:
    """log2 of the rest: on |z - x| <= r = 4, Re z² >= -16, so |A| <= 0.3990·e^8.

    Its tail integral is at most 1 + r·max|A|, and |z| <= x + r.
    """
    r = 4.0
    bound = (x + r) * (1 + r * 0.3990 * float_exp(8.0))
    return _cauchy(np.log2(bound), np.full_like(x, r), k)


def _cauchy(log_bound: Floats, radius: Floats, k: int) -> Floats:
    """log2 of M·q^k/(1 - q), a little enlarged for the roundings of these floats."""
    q = 2.0 ** (-STEP - 1) / radius
    if not (q <= 0.5).all():
        raise ArithmeticError("points too far apart for a Taylor series")
    bound: Floats = log_bound + k * np.log2(q) - np.log2(1 - q) + 0.01
    return bound


# --------------------------------------------------------------------------------- 1/(1 + e^w)


def _logistic(last: int, terms: int, bits: int, *, linear: Near, cubic: Near | None) -> Series:
    """S = 1/(1 + e^w) with w = linear·x + cubic·x³: S' = -w'·(S - S²), term by term."""
    start = _cubic_exponentials(last, bits, linear, cubic)
    one = whole(1, bits)
    first = [value / (one + value) for value in start]  # e^-w / (1 + e^-w)
    s = [np.array([value.mid for value in first], object)]
    errors = [max(value.error for value in first)]
    slopes, slope_errors = _slopes(last, bits, linear, cubic)
    steepest = [int(slope[-1]) + error for slope, error in zip(slopes, slope_errors, strict=True)]
    t: list[Integers] = []
    t_errors: list[int] = []
    unity = 1 << bits
    # Cauchy's estimate with `_logistic_rest`: true |s_k| <= 1, so those of S - S² are at most 2
    for k in range(terms - 1):
        square: Integers = 0
        error = errors[k] + 1
        for i in range(k // 2 + 1):
            twice = 1 if 2 * i == k else 2
            square = square + ((s[i] * s[k - i] * twice) >> bits)
            spread = unity * (errors[k - i] + errors[i]) + 3 * errors[i] * errors[k - i]
            error += (twice * spread >> bits) + 2
        t.append(s[k] - square)
        t_errors.append(error)
        following: Integers = 0
        error = 0
        for i in range(min(k + 1, len(slopes))):
            following = following + (slopes[i] * t[k - i] >> bits)
            spread = steepest[i] * t_errors[k - i] + 2 * unity * slope_errors[i]
            error += (spread >> bits) + 2
        s.append(-(following // (k + 1)))
        errors.append(error // (k + 1) + 2)
    return Series(s, errors, bits)


def _slopes(
    last: int, bits: int, linear: Near, cubic: Near | None
) -> tuple[list[Integers], list[int]]:
    """w' in the variable Y: 2^-STEP·(linear + 3·cubic·(x_j + Y·2^-STEP)²), by powers of Y."""
    j = np.arange(last + 1).astype(object)
    straight = linear.shifted(-STEP)
    first = np.array([straight.mid] * (last + 1), object)
    if cubic is None:
        return [first], [straight.error]
    bend = cubic.times(3).shifted(-3 * STEP)
    return (
        [first + bend.mid * j * j, 2 * bend.mid * j, np.array([bend.mid] * (last + 1), object)],
        [straight.error + bend.error * last * last, 2 * bend.error * last, bend.error],
    )


def _cubic_exponentials(last: int, bits: int, linear: Near, cubic: Near | None) -> list[Near]:
    """e^(-w(x_j)): a constant factor of a factor of a factor, since w is a cubic in j."""
    straight = linear.shifted(-STEP)
    bend = cubic.shifted(-3 * STEP) if cubic is not None else whole(0, bits)
    # w(j+1) - w(j) = straight + bend(3j² + 3j + 1), whose differences are bend(6j + 6), 6·bend
    first = integers.exp(-(straight + bend))
    second, third = integers.exp(bend.times(-6)), integers.exp(bend.times(-6))
    made = [whole(1, bits)]
    for _j in range(last):
        made.append(made[-1] * first)
        first = first * second
        second = second * third
    return made


CUBIC = Fraction(44715, 1000000)  # of GELU's form with tanh


def _gelu_tanh_steepness(bits: int) -> Near:
    """2·√(2/π)."""
    return integers.root(whole(8, bits) / integers.pi(bits))


def _logistic_rest(
    x: Floats, k: int, linear: float, cubic: float, *, times_argument: bool
) -> Floats:
    """log2 of the rest.  Where |Im w| <= π/2, |1/(1 + e^w)| is at most 1 and at most e^(-Re w).

    On the disc |z - x| <= r both |Im w| and |w - w(x)| are at most r·(linear + 3·cubic·(x + r)²).
    """
    r = np.full_like(x, 0.49 * float_pi / linear)
    for _shrink in range(200):
        wide = r * (linear + 3 * cubic * (x + r) ** 2) > 0.499 * float_pi
        if not wide.any():
            break
        r[wide] *= 0.97
    bound = np.minimum(float_pi / 2 - linear * x - cubic * x**3, 0.0) * 1.4426
    return _cauchy(bound + (np.log2(x + r) if times_argument else 1.0), r, k)


LINEAR = (8 / float_pi) ** 0.5

GELU = Tabled(
    "gelu",
    parity=+1,
    ramp=True,
    tail=lambda x: -(x * x) / 2 * 1.4426,  # x·Q(x) <= φ(x) < e^(-x²/2)
    rest=_gauss_rest,
    series=_gelu_series,
)


def _gated(name: str, steep: Callable[[int], Near], near: float, bend: Fraction) -> Tabled:
    """x/(1 + e^-w) with w = steep·(x + bend·x³); `near` is `steep` as a float.

    x·e^-w falls from 1 on, where w' >= 1; up to 1 it is below 1.
    """

    def series(last: int, terms: int, bits: int) -> Series:
        linear = steep(bits)
        cubic = linear * rational(bend, bits) if bend else None
        return _times_argument(_logistic(last, terms, bits, linear=linear, cubic=cubic))

    def tail(x: float) -> float:
        return log2(x) - near * (x + float(bend) * x**3) * 1.4426 if x > 1 else 0.0

    def rest(x: Floats, k: int) -> Floats:
        return _logistic_rest(x, k, near, near * float(bend), times_argument=True)

    return Tabled(name, parity=+1, ramp=True, tail=tail, rest=rest, series=series)


def _times(factor: Fraction) -> Callable[[int], Near]:
    return lambda bits: rational(factor, bits)


SILU = _gated("silu", _times(Fraction(1)), 1.0, Fraction(0))
QUICK_GELU = _gated("quick_gelu", _times(Fraction(1702, 1000)), 1.702, Fraction(0))
GELU_TANH = _gated("gelu_tanh", _gelu_tanh_steepness, LINEAR, CUBIC)
# gelu_tanh with √(2/π) as some models write it
GELU_FAST, GELU_BLOOM = (
    _gated(name, _times(2 * Fraction(digits)), 2 * float(digits), CUBIC)
    for name, digits in (("gelu_fast", "0.7978845608"), ("gelu_bloom", "0.79788456"))
)


def _sigmoid_series(last: int, terms: int, bits: int) -> Series:
    """-S(x), which is 1/(1 + e^-x) less its step at 0, on the right; it is odd."""
    made = _logistic(last, terms, bits, linear=whole(1, bits), cubic=None)
    return Series([-term for term in made.terms], made.errors, bits)


SIGMOID = Tabled(
    "sigmoid",
    parity=-1,
    ramp=False,  # `functions.sigmoid` adds the step
    tail=lambda x: -x * 1.4426,  # 1/(1 + e^x) < e^-x
    rest=lambda x, k: _logistic_rest(x, k, 1.0, 0.0, times_argument=False),
    series=_sigmoid_series,
)


# --------------------------------------------------------------------------------- sin, cos, e^x


def _circular(last: int, terms: int, bits: int, *, ahead: int) -> Series:
    """sin (ahead 0) or cos (ahead 1): the k-th derivative is sin of a quarter turn more each."""
    cos_step, sin_step = integers.cos_sin(rational(Fraction(1, 2**STEP), bits))
    cos, sin = whole(1, bits), whole(0, bits)
    points = []
    for _j in range(last + 1):
        points.append((sin, cos))
        cos, sin = cos * cos_step - sin * sin_step, sin * cos_step + cos * sin_step
    values = [np.array([point[i].mid for point in points], object) for i in range(2)]
    error = max(part.error for point in points for part in point)
    made, errors, factorial = [], [], 1
    for k in range(terms):
        factorial *= max(k, 1)
        turned = values[(k + ahead) % 2] * (1 if (k + ahead) % 4 < 2 else -1)
        made.append((turned >> STEP * k) // factorial)
        errors.append((error >> STEP * k) // factorial + 3)
    return Series(made, errors, bits)


def _circular_rest(x: Floats, k: int) -> Floats:
    """log2 of the rest: on |z - x| <= 4, |sin z| and |cos z| are at most e^4."""
    return _cauchy(np.full_like(x, 4 * 1.4427), np.full_like(x, 4.0), k)


def _exp_series(last: int, terms: int, bits: int) -> Series:
    """e^Y' around 0 alone: 2^(-STEP·k)/k!."""
    made, errors, factorial = [], [], 1
    for k in range(terms):
        factorial *= max(k, 1)
        made.append(np.array([(1 << bits - STEP * k) // factorial], object))
        errors.append(1)
    return Series(made, errors, bits)


def _never(x: float) -> float:
    return -1e9 if x > 1 else 0.0


# Arguments of these are reduced before: nothing is ever beyond the last point.
SIN = Tabled("sin", -1, False, _never, _circular_rest, lambda *of: _circular(*of, ahead=0))
COS = Tabled("cos", +1, False, _never, _circular_rest, lambda *of: _circular(*of, ahead=1))
NEAR_ONE = Tabled("exp", +1, False, lambda x: -1e9, _circular_rest, _exp_series)
