"""Functions of forms in Arb, entry by entry, by the rules that `functions` and `smooth` have.

A function is given the middle and the radius of an entry, both numbers, and gives a line with its
remainder, or just a range.  Balls hold what is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from flint import arb

from byhand.numbers.enclosed.balls.functions import ACTIVATIONS
from byhand.numbers.enclosed.balls.slopes import SLOPES
from byhand.numbers.forms.arithmetic import PRECISE
from byhand.numbers.forms.form import Form, settled
from byhand.numbers.forms.smooth import FUNCTIONS, RISING

ZERO, ONE, INFINITE = arb(0), arb(1), arb("inf")

Line = tuple[arb, arb, arb]  # value at the middle, slope, remainder
Range = tuple[arb, arb]
Bend = Callable[[arb, arb], Line | Range]


def bent(x: Form, bend: Bend) -> Form:
    """The function of each entry; the remainder of a line is shared out by letters."""
    letters = x.letters + 1
    terms, errors = (PRECISE.zeros((letters, *x.terms.shape[1:])) for _part in range(2))
    for place in np.ndindex(x.terms.shape[1:]):
        own, unsure = padded(x.terms[:, *place], letters), padded(x.errors[:, *place], letters)
        unsure[0] = unsure[0] + arb(own[0].rad())
        parts = [unsure[0], *(abs(t) + e for t, e in zip(own[1:], unsure[1:], strict=True))]
        far = sum(parts, ZERO).upper()
        found = bend(own[0].mid(), far) if far.is_finite() else (-INFINITE, INFINITE)
        if len(found) == 2:
            terms[0, *place], errors[0, *place] = within(*found)
            continue
        value, slope, remainder = found
        terms[:, *place] = [value, *(term * slope for term in own[1:])]
        spread = shared_out(remainder, parts)
        errors[:, *place] = [abs(slope) * e + r for e, r in zip(unsure, spread, strict=True)]
    return settled(terms, errors)


def padded(numbers: Iterable[arb], count: int) -> list[arb]:
    """The numbers, and zeros up to so many."""
    known = list(numbers)
    return known + [ZERO] * (count - len(known))


def shared_out(remainder: arb, parts: Sequence[arb]) -> list[arb]:
    """The remainder in proportion to these parts; all of it to the first where there are none."""
    shares = [part.mid() for part in parts]
    whole = sum(shares, ZERO)
    if not (whole > 0 and whole.is_finite()):
        return [remainder, *[ZERO] * (len(parts) - 1)]
    return [remainder * share / whole for share in shares]


def within(low: arb, high: arb) -> tuple[arb, arb]:
    """The middle of a range, a number, and how far it reaches."""
    middle = ((low + high) / 2).mid()
    if not middle.is_finite():
        return ZERO, INFINITE
    return middle, (high - middle).max(middle - low).upper()


def _line(middle: arb, slope: arb, bottom: arb, top: arb, least: arb, most: arb) -> Line | Range:
    """The line of f, where bottom ≤ f(t) - slope·t ≤ top; or its range, if that is narrower."""
    half = ((top - bottom) / 2).upper()
    if not half < (most - least) / 2:
        return least, most
    return slope * middle + (top + bottom) / 2, slope, half


# ----------------------------------------------------------------------- the functions


def _relu(middle: arb, far: arb) -> Line:
    low, high = (middle - far).lower(), (middle + far).upper()
    if low >= 0:
        return middle, ONE, ZERO
    if high <= 0:
        return ZERO, ZERO, ZERO
    slope = (high / (high - low)).mid()
    half = ((1 - slope) * high).max(-slope * low).upper() / 2
    return slope * middle + half, slope, half.upper()


def _root(middle: arb, far: arb) -> Line | Range:
    low, high = (middle - far).lower().max(ZERO), (middle + far).upper().max(ZERO)
    if high == 0:
        return ZERO, ZERO, ZERO
    least, most = low.sqrt(), high.sqrt()
    if far == 0:
        return most, ZERO, ZERO
    slope = (1 / (least + most)).mid()
    bottom = (least - slope * low).min(most - slope * high)
    return _line(middle, slope, bottom, 1 / (4 * slope), least, most)


def _reciprocal(middle: arb, far: arb) -> Line | Range:
    low, high = (middle - far).lower(), (middle + far).upper()
    if not low > 0:
        return -INFINITE, INFINITE
    if far == 0:
        return 1 / middle, ZERO, ZERO
    slope = (-1 / (low * high)).mid()
    top = (1 / low - slope * low).max(1 / high - slope * high)
    return _line(middle, slope, 2 * (-slope).sqrt(), top, 1 / high, 1 / low)


def _surprise(middle: arb, far: arb) -> Line | Range:
    low, high = (middle - far).lower(), (middle + far).upper()
    if not low > 0:
        return -INFINITE, INFINITE
    least, most = -high.log(), -low.log()
    if far == 0:
        return most, ZERO, ZERO
    slope = ((least - most) / (high - low)).mid()
    if not slope < 0:
        return least, most
    top = (most - slope * low).max(least - slope * high)
    return _line(middle, slope, 1 + (-slope).log(), top, least, most)


@lru_cache(maxsize=16)
def _smooth(kind: str, _bits: int) -> Bend:
    """The bend of gelu, silu or their like; constants belong to one working precision."""
    value_at, slope_at, known = ACTIVATIONS[kind](), SLOPES[kind](), FUNCTIONS[kind]
    depth, curved = arb(known.depth), arb(known.bent)

    def bend(middle: arb, far: arb) -> Line | Range:
        value, steep = value_at(middle), slope_at(middle)
        tangent = ((curved / 2 * far + steep.rad()) * far).upper()
        low, high = (middle - far).lower(), (middle + far).upper()
        ramp, line, half = _relu(middle, far)  # f is at most `depth` below relu
        near = (half + depth / 2).upper()
        best = (value, steep.mid(), tangent)
        if near < tangent:
            best = (ramp - depth / 2, line, near)
        at_low, at_high = value_at(low), value_at(high)
        least = -depth
        if high < known.least[0] or low > known.least[1]:
            least = at_low.min(at_high).lower()
        most = at_low.max(at_high).upper()
        return best if not (most - least) / 2 < best[2] else (least, most)

    return bend


@lru_cache(maxsize=16)
def _rising(kind: str, _bits: int) -> Bend:
    """The bend of sigmoid or tanh."""
    value_at, slope_at, curved = ACTIVATIONS[kind](), SLOPES[kind](), arb(RISING[kind].bent)

    def bend(middle: arb, far: arb) -> Line | Range:
        steep = slope_at(middle)
        tangent = ((curved / 2 * far + steep.rad()) * far).upper()
        least = value_at((middle - far).lower()).lower()
        most = value_at((middle + far).upper()).upper()
        if not tangent < (most - least) / 2 and far > 0:
            return least, most
        return value_at(middle), steep.mid(), tangent

    return bend


def relu(x: Form) -> Form:
    """max(0, x)."""
    return bent(x, _relu)


def root(x: Form) -> Form:
    """√x of numbers that are not negative."""
    return bent(x, _root)


def reciprocal(x: Form) -> Form:
    """1/x of positive numbers; nothing is claimed where x may be 0 or less."""
    return bent(x, _reciprocal)


def surprise(x: Form) -> Form:
    """-ln x of shares; nothing is claimed where a share may be 0."""
    return bent(x, _surprise)


def activated(x: Form, kind: str, bits: int) -> Form:
    """gelu, silu or their like."""
    return bent(x, _smooth(kind, bits))


def risen(x: Form, kind: str, bits: int) -> Form:
    """sigmoid or tanh; of a number that is not known, all that it can be."""
    found = bent(x, _rising(kind, bits))
    low, high = RISING[kind].limits
    middle, far = within(arb(low), arb(high))
    for place in np.ndindex(found.terms.shape[1:]):
        if not found.errors[0, *place].is_finite():
            found.terms[:, *place], found.errors[:, *place] = ZERO, ZERO
            found.terms[0, *place], found.errors[0, *place] = middle, far
    return found


def at_most_root(x: Form, width: int) -> Form:
    """x, where no entry of a row over the root of its mean square is beyond √width."""
    most = arb(width).sqrt().upper()
    for place in np.ndindex(x.terms.shape[1:]):
        if not sum(x.errors[:, *place], ZERO) < most:
            x.terms[:, *place], x.errors[:, *place] = ZERO, ZERO
            x.errors[0, *place] = most
    return x
