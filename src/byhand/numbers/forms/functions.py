"""Functions of forms: a slope, and a bound of how far the function is from the line.

f(x) = value + slope·(x - middle) ± remainder for every x between the ends.  The slope may be any
float: the remainder is proven for the slope that is used.  Where f's own range is no wider than
the remainder, the range takes the place of the line.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from byhand.numbers.forms.exponential import logarithm
from byhand.numbers.forms.form import Form, ends, settled
from byhand.numbers.forms.rounding import FLOOR, UNIT, Data, quiet, slack, total


def bent(x: Form, value: Data, slope: Data, remainder: Data) -> Form:
    """The form value + slope·(x - middle) ± remainder; the remainder is shared out by letters."""
    terms = x.terms * slope
    terms[0] = value
    errors = x.errors * np.abs(slope)
    if not np.isfinite(errors.sum()):
        np.copyto(errors, 0.0, where=(slope == 0) & np.isinf(x.errors))
    if x.letters:
        errors = _shared_out(x, errors, remainder)
    else:
        errors[0] += remainder
    if len(terms) > 1:
        size = total(np.abs(terms[1:]))
        errors[0] += size * UNIT + FLOOR * (size != 0)
    errors *= slack(x.letters + 12)
    return settled(terms, errors)


def _shared_out(x: Form, errors: Data, remainder: Data) -> Data:
    """The errors plus the remainder, in proportion to what each letter moves x."""
    parts = np.zeros((x.letters + 1, *x.terms.shape[1:]))
    parts[: len(x.errors)] = x.errors
    parts[1 : len(x.terms)] += np.abs(x.terms[1:])
    whole = total(parts)
    some = (whole > 2.0**-900) & np.isfinite(whole) & np.isfinite(remainder)
    parts *= np.where(some, remainder / np.where(some, whole, 1.0), 0.0)
    parts[0] += np.where(some, whole * 2.0**-1070, remainder)  # what the quotient may have lost
    parts[: len(errors)] += errors
    return parts


def ranged(found: Form, low: Data, high: Data, where: Data) -> Form:
    """The form, but for some entries just the numbers from `low` to `high`, without letters."""
    if not where.any():
        return found
    middle = np.where(where, low * 0.5 + high * 0.5, 0.0)
    far = np.maximum(high - middle, middle - low) * slack(2) + FLOOR
    terms, errors = found.terms, found.errors
    np.copyto(terms, 0.0, where=where)
    np.copyto(terms[0], middle, where=where)
    np.copyto(errors, 0.0, where=where)
    np.copyto(errors[0], far, where=where)
    return settled(terms, errors, found.absent)


@quiet
def relu(x: Form) -> Form:
    """max(0, x).  Across zero, the slope is that of the chord, high/(high - low).

    relu(x) - slope·x is convex, 0 at 0, and largest at an end.
    """
    low, high = ends(x)
    slope = np.where(low >= 0, 1.0, np.clip(high / (high - low), 0.0, 1.0))
    slope[(high <= 0) | ~np.isfinite(slope)] = 0.0
    most = np.maximum((1 - slope) * high, -slope * low) * slack(3)
    most = np.where((low >= 0) | (high <= 0), 0.0, most + FLOOR)
    half = most * 0.5
    value = x.terms[0] * slope + half
    rounding = np.where(half > 0, np.abs(x.terms[0]) * UNIT + (np.abs(value) + half) * UNIT, 0.0)
    return bent(x, value, slope, half + rounding)


@quiet
def root(x: Form) -> Form:
    """√x of numbers that are not negative: x may reach below 0, its real values do not.

    With the chord's slope 1/(√low + √high), √x is above the chord by at most
    (√high - √low)²/(4(√high + √low)).
    """
    low, high = ends(x)
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    least, most = np.sqrt(low) * (1 - 2**-52), np.sqrt(high) * (1 + 2**-51)
    whole = least + most
    slope = np.where((whole > 0) & np.isfinite(whole), 1.0 / whole, 0.0)
    # √t - slope·t for t from low to high: at most 1/(4·slope), where √t = 1/(2·slope), if that is
    # between the ends; at least the smaller of its values at the ends
    at_ends = _line_from(least, slope, low), _line_from(most, slope, high)
    bottom = np.minimum(at_ends[0][0], at_ends[1][0])
    inside = np.where(slope > 0, 0.25 / np.where(slope > 0, slope, 1.0), 0.0) * slack(2)
    top = np.maximum(np.maximum(at_ends[0][1], at_ends[1][1]), inside)
    return _between(x, slope, bottom, top, least, most, exact=(high == 0) & (low == 0))


def _line_from(value: Data, slope: Data, at: Data) -> tuple[Data, Data]:
    """Bounds of value - slope·at."""
    line = slope * at
    room = (np.abs(value) + np.abs(line)) * 2.0**-50 + FLOOR
    return value - line - room, value - line + room


def _between(
    x: Form, slope: Data, bottom: Data, top: Data, least: Data, most: Data, exact: Data
) -> Form:
    """The form of a function f with bottom ≤ f(t) - slope·t ≤ top and least ≤ f(t) ≤ most."""
    half = (top - bottom) * 0.5
    line = x.terms[0] * slope
    value = line + (top * 0.5 + bottom * 0.5)
    room = (np.abs(line) + np.abs(top) + np.abs(bottom)) * 2.0**-50 + FLOOR
    remainder = np.where(exact, 0.0, half * slack(2) + room)
    value = np.where(exact, 0.0, value)
    found = bent(x, value, slope, remainder)
    narrower = ~exact & ~(remainder < (most - least) * 0.5)
    return ranged(found, least, most, narrower)


@quiet
def reciprocal(x: Form) -> Form:
    """1/x of positive numbers; nothing is claimed where x may be 0 or less.

    With the chord's slope -1/(low·high), 1/x is below the chord by at most (1/√low - 1/√high)².
    """
    low, high = ends(x)
    good = (low > 0) & np.isfinite(high)
    low, high = np.where(good, low, 1.0), np.where(good, high, 1.0)
    least, most = (1 / high) * (1 - 2**-52), (1 / low) * (1 + 2**-52)
    slope = -least * most
    slope = np.where(np.isfinite(slope), slope, 0.0)
    # 1/t - slope·t is convex: largest at an end, at least 2·√(-slope)
    at_low, at_high = _line_from(most, slope, low), _line_from(least, slope, high)
    top = np.maximum(at_low[1], at_high[1])
    bottom = 2 * np.sqrt(-slope) * (1 - 2**-50)
    nothing = np.zeros(good.shape, dtype=bool)
    found = _between(x, slope, bottom, top, least, most, exact=nothing)
    return ranged(found, np.where(good, least, -inf), np.where(good, most, inf), ~good)


@quiet
def surprise(x: Form) -> Form:
    """-ln x of shares; nothing is claimed where a share may be 0.

    With the chord's slope α, -ln t - α·t is convex: largest at an end, at least 1 + ln(-α).
    """
    low, high = ends(x)
    low = np.maximum(low, 0.0)
    (at_low, low_error), (at_high, high_error) = logarithm(low), logarithm(high)
    least, most = -at_high - high_error, -at_low + low_error
    slope = np.where(high > low, (at_low - at_high) / (high - low), -1 / high)
    slope = np.where(np.isfinite(slope) & (slope < 0), slope, -1.0)
    middle, error = logarithm(-slope)
    line_low, line_high = _line_from(most, slope, low), _line_from(-at_high, slope, high)
    top = np.maximum(line_low[1], line_high[1] + high_error)
    nothing = np.zeros(low.shape, dtype=bool)
    return _between(x, slope, 1 + middle - error - 2.0**-52, top, least, most, exact=nothing)


def at_most_root(x: Form, width: int) -> Form:
    """x, where no entry of a row over the root of its mean square is beyond √width."""
    most = np.full(x.terms.shape[1:], sqrt(width) * slack(2))
    return ranged(x, -most, most, ~(total(x.errors) < most))
