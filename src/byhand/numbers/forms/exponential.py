"""e^x in float64 with a proven error; no library's exponential is trusted.

x = k·ln 2 + r with |r| ≤ 0.3467, and e^r by its series up to r^13/13!.  numbers/README.md adds the
errors up: fewer than 6 units of 2^-53, and 8 are allowed for.
"""

from __future__ import annotations

from math import factorial, inf

import numpy as np

from byhand.numbers.forms.rounding import FLOOR, Data

LEAST, MOST = -700.0, 709.0  # e^-700 is below FLOOR; e^709 is the last power that is a float64
RELATIVE = 2.0**-50
PER_LN2 = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # 32 bits: its products with whole numbers are exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")  # ln 2 less that, rounded
SERIES = tuple(1.0 / factorial(k) for k in range(12, -1, -1))


def power(x: Data) -> Data:
    """e^x within RELATIVE of itself; 0 below LEAST, where e^x < FLOOR; ∞ above MOST."""
    within = np.clip(x, LEAST, MOST)
    turns = np.rint(within * PER_LN2)
    rest = within - turns * LN2_HIGH
    rest -= turns * LN2_LOW
    result: Data = rest * (1.0 / factorial(13))
    for coefficient in SERIES[:-1]:
        result += coefficient
        result *= rest
    result += 1.0
    exponents = turns.astype(np.int64)
    exponents += 1023
    exponents <<= 52
    result *= exponents.view(np.float64)
    if not (within == x).all():
        result[x < LEAST] = 0.0
        result[x > MOST] = inf
    return result


def power_above(x: Data) -> Data:
    """At least e^x."""
    result = power(x)
    result *= 1 + 2 * RELATIVE
    result += FLOOR
    return result


def power_below(x: Data) -> Data:
    """At most e^x; not negative, and finite."""
    result = power(np.minimum(x, MOST))
    result *= 1 - 2 * RELATIVE
    return result


def logarithm(x: Data) -> tuple[Data, Data]:
    """ln x and a bound of its error; infinite where x is not between 2^-1000 and 2^1000.

    A library's logarithm y is only a guess: ln x = y + ln(1 + r) with r = x·e^-y - 1, and
    ln(1 + r) is within r² of r.
    """
    known = (x > FLOOR) & (x < 1 / FLOOR)
    inside = np.where(known, x, 1.0)
    guess = np.log(inside)
    rest = inside * power(-guess) - 1.0
    value = guess + rest
    error = rest * rest * 1.01 + np.abs(value) * 2.0**-52 + 2.0**-47
    return value, np.where(known & (np.abs(rest) < 0.5), error, inf)
