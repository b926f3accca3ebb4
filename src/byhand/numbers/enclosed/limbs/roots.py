"""1/x and √x on limbs: a float64 start, and steps that each gain some 47 bits.

Newton's method with a fixed slope (Brent and Zimmermann, Modern Computer Arithmetic, 2010, 4.2).
Every step adds to y the residual times a fixed float64 factor f, nearly the reciprocal of the
residual's slope.  With f off by at most KAPPA relatively, an error ε of y becomes

    1/x    residual 1 - xy      f ≈ 1/x        ε·(1 - fx)             exactly
    √x     residual x - y²      f ≈ 1/(2√x)    ε·(1 - 2f√x) - f·ε²

and the square term is at most ε²/y·(1/2 + KAPPA) <= ε·KAPPA while ε <= KAPPA·y, so each step
multiplies ε by at most 2·KAPPA.  Rounding adds, in units of the working grid 2^w, w = low - 8:
the residual is worked to 2^-4 units over the largest f, the product with f to PRODUCT units.  What
these errors themselves add later is 2·KAPPA of them.  Where the result is so small that ε <=
KAPPA·y fails, ε is a few units of 2^w and the square term, ε²/y with y >= 2^(low-1), is below
2^(w - 2).  The steps are counted so that (2·KAPPA)^steps of the largest result is below
a unit of 2^w.  Altogether less than 4 units of 2^w, and HALF of 2^low from the last rounding.

Few numbers go through here (one a row), so this is written plainly on Digits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, frexp, sqrt
from typing import Any

from byhand.numbers.enclosed.limbs.arithmetic import (
    HALF,
    WIDTH,
    Digits,
    add,
    approx,
    cut,
    from_integers,
    multiply,
    regrid,
    subtract,
)
from byhand.numbers.enclosed.limbs.engine import Array, engine_of

# approx(x) is off by 2^-51 and each of at most three further float operations by 2^-53; the root
# halves what it is given.
KAPPA = 2.0**-49
GAIN = 48  # -log2(2·KAPPA)
ERROR = HALF + 4 * 2.0**-8
GUARD = 8  # bits of the working grid below the result's


def reciprocal(x: Digits, low: int) -> Digits:
    """1/x for 2^-900 <= x <= 2^-low, on the grid 2^low: ERROR·2^low."""
    values, least, most = _positive(x, most=-low)
    start = 1.0 / values
    one = one_like(x.limbs)
    w = low - GUARD
    # |1 - xy| <= x·ε, ε <= KAPPA/x + 4·2^w
    size = max(-47, _exponent(most) + w + 3)

    def residual(y: Digits, to: int) -> Digits:
        return subtract(one, multiply(x, y), to, _top(size, to))

    return _refined(start, start, 1 / least, 0.5 / most, 1 / least, residual, low)


def root(x: Digits, low: int) -> Digits:
    """√x for 0 <= x, on the grid 2^low: ERROR·2^low; √0 is 0 exactly."""
    engine = x.engine
    values = approx(x)
    least, most = engine.range(values)
    if least < 0:
        raise ValueError("a root of a negative number")
    start = engine.root(values)
    large = start >= 2.0 ** (low - 1)  # what is smaller is 0 to half a unit
    start = engine.where(large, start, 0.0)
    factor = engine.where(large, 0.5 / engine.where(large, start, 1.0), 0.0)
    w = low - GUARD
    high = _exponent(sqrt(most))
    # |x - y²| <= 3·√x·ε, ε <= KAPPA·√x + 4·2^w
    size = max(2 * high - 45, high + w + 5, 2 * low)

    def residual(y: Digits, to: int) -> Digits:
        return subtract(x, multiply(y, y), to, _top(size, to))

    steepest = 0.5 / max(sqrt(least), 2.0 ** (low - 1))
    flattest = 0.25 / max(sqrt(most), 2.0**low)
    return _refined(start, factor, sqrt(most), flattest, steepest, residual, low)


_ones: dict[Any, Digits] = {}


def one_like(like: Array) -> Digits:
    """The number 1, on the device of `like`."""
    key = engine_of(like).device_of(like)
    if key not in _ones:
        _ones[key] = from_integers([1], 0, like)
    return _ones[key]


def _positive(x: Digits, most: int) -> tuple[Array, float, float]:
    """The values as floats, and their range."""
    values = approx(x)
    range = x.engine.range(values) if x.size else (1.0, 1.0)
    if not 2.0**-900 <= range[0] <= range[1] <= 2.0**most * (1 + 2.0**-50):
        raise ValueError(f"not between 2^-900 and 2^{most}: {range}")
    return values, *range


def _exponent(value: float) -> int:
    """value·(1 + 2^-40) <= 2^exponent."""
    return frexp(value * (1 + 2.0**-40))[1] if value else -2000


def _top(size: int, low: int) -> int:
    """The top that holds numbers up to 2^size on the grid 2^low."""
    return low + WIDTH * max(1, -(-(size + 1 - low) // WIDTH))


def _refined(
    start: Array,
    factor: Array,
    largest: float,
    flattest: float,
    steepest: float,
    residual: Callable[[Digits, int], Digits],
    low: int,
) -> Digits:
    """y, from `start`, plus factor·residual(y) again and again.

    `largest` bounds y; the factors that are not 0 are between `flattest` and `steepest`.
    """
    w = low - GUARD
    size, steep = _exponent(largest), _exponent(steepest)
    y = cut(start, _top(size, w), w)
    finest = frexp(flattest)[1] - 54  # every factor is a multiple of this: the cut is exact
    f = cut(factor, _top(steep, finest), finest)
    for _step in range(ceil(max(0, size - GAIN - w) / GAIN)):
        r = residual(y, w - steep - 4)
        y = add(y, multiply(f, r, w), w, _top(size, w))
    return regrid(y, _top(size, low), low)
