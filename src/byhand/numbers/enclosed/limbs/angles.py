"""sin and cos on limbs, and the angles of RoPE and of sinusoidal positions.

x less a multiple q of π/2 is at most π/4 + 2^-20 in size; q comes from a float and need not be
nearest.  π/2 is two limbs finer than the result's grid, so that q <= 2^29 times its rounding is
below 2^-14 units.  Then come the tables of sin and cos (polynomials.py), each with its ERROR, and a
turn of q quarters, which is exact.

Frequencies are base^(-2i/width) or given as expressions, fractions or floats, worked out by
integers.py; the product with a position, below 2^28, is exact.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ldexp
from math import pi as float_pi
from typing import Any

from byhand.errors import InputError
from byhand.expression import Expression, Number, Power
from byhand.language import _
from byhand.numbers.enclosed.gpu.decisions import outside_the_pass
from byhand.numbers.enclosed.limbs import integers, polynomials
from byhand.numbers.enclosed.limbs.arithmetic import (
    WIDTH,
    Digits,
    approx,
    carry,
    from_integers,
    multiply,
    regrid,
)
from byhand.numbers.enclosed.limbs.coefficients import COS, SIN, STEP
from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.functions import aligned, applied
from byhand.numbers.enclosed.limbs.polynomials import evaluate, on_device, table_of

# Slope at most 1: the reduced argument is off by HALF·2^-44 units and q's share of π/2 by 2^-14.
SINE_COSINE = polynomials.ERROR + 2.0**-13
# A frequency is off by 1 unit 2^-16 below the result's grid over the largest position.
ANGLES = SINE_COSINE + 2.0**-15
LARGEST = 2.0**28  # the largest argument


def sine_cosine(x: Digits, low: int) -> tuple[Digits, Digits]:
    """(sin x, cos x) for |x| <= 2^28, on the grid 2^low: SINE_COSINE·2^low."""
    engine = x.engine
    values = approx(x)
    if engine.largest(values) > LARGEST:
        raise InputError(_("an angle is too large"), expected=_("at most 2^28"))
    grid = aligned(low)
    fine = grid - 2 * WIDTH
    quarter = _half_pi(-fine)
    turns = engine.rint(values * (2 / float_pi))
    top = fine + WIDTH * max(quarter.n, -(-(x.top - fine) // WIDTH))
    limbs = regrid(x, top, fine).limbs * 1.0
    for i in range(1, quarter.n + 1):
        limbs[-i] -= turns * float(quarter.limbs[-i, 0])
    rest = regrid(Digits(carry(limbs), top), WIDTH - STEP, fine).limbs
    last = (-STEP - grid) // WIDTH
    sine, cosine = (
        applied(evaluate, (on_device(table_of, (function, last, None), x.limbs),), rest, last)
        for function in (SIN, COS)
    )
    quadrant = turns - 4 * engine.rint(turns * 0.25 - 0.375)  # 0, 1, 2 or 3
    odd = (quadrant == 1) | (quadrant == 3)
    down = 1 - 2 * engine.positive(quadrant - 2)  # sin(x + π) = -sin x
    left = 1 - 2 * engine.positive(0.5 - abs(quadrant - 1.5) + 0.25)
    made = engine.where(odd, cosine, sine) * down, engine.where(odd, sine, cosine) * left
    results = (Digits(part, WIDTH - STEP) for part in made)
    first, second = (part if part.low == low else regrid(part, low=low) for part in results)
    return first, second


@lru_cache(16)
def _half_pi(bits: int) -> Digits:
    """π/2 on the grid 2^-bits, off by little more than half a unit."""
    value = integers.pi(bits + 32)
    return from_integers([(value.mid + (1 << 32)) >> 33], -bits)


def turns(
    positions: Sequence[int],
    width: int,
    base: Fraction,
    frequencies: Sequence[Any] | None,
    low: int,
    like: Array | None = None,
) -> tuple[Digits, Digits]:
    """(cos, sin) of position · frequency, each (pos, width/2), on the grid 2^low: ANGLES·2^low.

    The frequencies are base^(-2i/width) or given: expressions, fractions or floats.
    """
    furthest = max((abs(position) for position in positions), default=0)
    if furthest >= LARGEST:
        raise InputError(_("positions go up to 2^28"), found=str(furthest))
    bits = -aligned(low) + 16 + furthest.bit_length()
    if frequencies is None:
        rates = tuple(_usual(base, i, width, bits) for i in range(width // 2))
    else:
        rates = tuple(integers.value_of(_tree(entry), bits)[0] for entry in frequencies)
    every = from_integers(rates, -bits, like)
    places = from_integers(positions, 0, like)
    angles = multiply(places.reshape(len(positions), 1), every.reshape(1, len(rates)))
    sine, cosine = sine_cosine(angles, low)
    return cosine, sine


@lru_cache(4096)
def _usual(base: Fraction, i: int, width: int, bits: int) -> int:
    return integers.value_of(Power(Number(base), Number(Fraction(-2 * i, width))), bits)[0]


def _tree(entry: Any) -> Expression:
    """A frequency as it is given, as a tree: a rational number, or an expression already."""
    if isinstance(entry, int | Fraction):
        return Number(Fraction(entry))
    try:
        return Number(Fraction(float(entry)))
    except (TypeError, ValueError):
        tree: Expression = entry
        return tree


def known_rates(values: Sequence[Any], bits: int, like: Array) -> tuple[Digits, float]:
    """Angles per position on the grid 2^-bits, and a bound of their error; remembered."""
    key = ("rates", tuple(values), bits, engine_of(like).device_of(like))
    if key not in _rates:

        def make() -> tuple[Digits, float]:
            found = [integers.value_of(_tree(entry), bits) for entry in values]
            digits = from_integers([value for value, _error in found], -bits, like)
            worst = max((error for _value, error in found), default=0)
            return digits, ldexp(float(worst), -bits)

        _rates[key] = outside_the_pass(make)
        if len(_rates) > REMEMBERED:
            _rates.popitem(last=False)
    return _rates[key]


REMEMBERED = 64  # tables of turns
_rates: OrderedDict[Any, tuple[Digits, float]] = OrderedDict()
_turns: OrderedDict[Any, tuple[Digits, Digits, float]] = OrderedDict()


def shared_turns(
    positions: Sequence[int],
    width: int,
    base: Fraction,
    given: Sequence[Any] | None,
    low: int,
    like: Array,
) -> tuple[Digits, Digits, float]:
    """(cos, sin, error) as `turns` gives them, cached, since all layers share them."""
    rates = None if given is None else tuple(given)
    key = (tuple(positions), width, base, rates, low, engine_of(like).device_of(like))
    if key not in _turns:
        cos, sin = outside_the_pass(
            lambda: turns(positions, width, base, low=low, frequencies=rates, like=like)
        )
        _turns[key] = cos, sin, ANGLES * ldexp(1.0, low)
        if len(_turns) > REMEMBERED:
            _turns.popitem(last=False)
    return _turns[key]
