"""Roots, inverses and exact sums of squares, one number for each row.

They are worked out by Python integers, or by array code where the rows are on a device.  Both give
the multiple of the grid just below the real number, and say where it is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs import arithmetic, roots
from byhand.numbers.enclosed.limbs.arithmetic import WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, engine_of
from byhand.numbers.enclosed.limbs.joined_limbs import EXACT
from byhand.numbers.enclosed.limbs.radii import Bound, exponent_of, length
from byhand.numbers.enclosed.limbs.values import constant

Roots = tuple[Digits, Array]  # and a bound of each error


def roots_of_rows(x: Digits, eps: Fraction, finest: int) -> Roots:
    """√(x + eps) to the grid 2^finest and a limb more, and a bound of each error."""
    return (one_by_one if x.engine is NUMPY else at_once)(x, eps, finest)


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

    eps is rounded down to a multiple of 2^(2·low), which does not change the whole part of the
    root.
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
    """The largest multiples of 2^low not above the real numbers, and where they are exact.

    `found` is off by at most roots.ERROR < 1, so it is right or one too large; then `excess` is
    positive.  `excess` is 0 only where nothing was rounded.
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
    """⌊√(value·2^start + eps) / 2^low⌋, and whether it is exact."""
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


def inverses_of_rows(by: Digits, bits: int, ball: Bound, width: int) -> tuple[Digits, Array]:
    """(1/by, a bound of each error), as fine as the radius of the result needs; 0 for 1/0."""
    engine = by.engine
    target = math.ldexp(1.0, -bits)
    if ball is not None and math.prod(ball.shape):
        least = engine.least_above_zero(ball)
        target = max(target, least) if least < math.inf else target

    def grid(exponent: int) -> int:
        """The grid for divisors below 2^exponent."""
        size = math.ldexp(1.0, min(900, exponent))
        return exponent_of(target / (math.sqrt(width) * size)) - 8

    if engine is not NUMPY and by.size:
        least, most = engine.range(arithmetic.approx(by))
        low = grid(math.frexp(most * (1 + 2.0**-40))[1])
        if least >= 2.0**-900 and most <= 2.0 ** min(900, -low):
            return _inverse_at_once(by, low)
    values = np.asarray(arithmetic.to_integers(by), object).ravel().tolist()
    low = grid(by.low + max((v for v in values if v > 0), default=1).bit_length())
    low = min(low, -by.low)  # quotients by small numbers may have a wide radius
    shift = -low - by.low
    made, off = [], []
    for value in values:
        whole, rest = divmod(1 << shift, value) if value > 0 else (0, 0)
        made.append(whole)
        off.append(math.ldexp(1.0, max(low, -1000)) if rest else 0.0)
    inverse = arithmetic.from_integers(made, low, by.limbs).reshape(*by.shape)
    errors = engine.constant(np.array(off).reshape(by.shape), by.limbs)
    return inverse, errors


def _inverse_at_once(by: Digits, low: int) -> tuple[Digits, Array]:
    """The same by array code."""
    found = roots.reciprocal(by, low)
    product = arithmetic.multiply(found, by)
    inverse, exact = _floored(found, arithmetic.subtract(product, roots.one_like(by.limbs)))
    unit = constant(by, by.shape, math.ldexp(1.0, max(low, -1000)))
    return inverse, by.engine.where(exact, 0.0, unit)


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
    """The same for rows cut into parts so short that no certificate is needed.

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
