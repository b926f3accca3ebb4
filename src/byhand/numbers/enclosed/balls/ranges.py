"""Functions of wide balls, for which plain ball arithmetic gives no useful bound.

A ball around 0 has no inverse, and one around a wide range of powers of e holds 0 as well.  These
functions look at the ends of their arguments, which are numbers, and use that each is monotone
between them.  Every one returns balls that contain the value for all numbers in its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from flint import arb

ANY_SHARE = arb(0.5, 0.5)  # from 0 to 1
WIDE = 2.0**-10  # a radius from which the ends are looked at one by one


def narrow(x: arb) -> bool:
    """Whether some digits of x are known: then plain ball arithmetic suffices."""
    return bool(x.is_finite() and x.rad() <= WIDE * x.abs_lower())


def between(low: arb, high: arb) -> arb:
    """Returns a ball that contains every number from some of `low` to some of `high`."""
    return low.union(high)


def from_zero(high: arb) -> arb:
    """Returns a ball that contains every number from 0 to `high`, which is not negative."""
    return between(arb(0), high).nonnegative_part()


def power(x: arb, e: int) -> arb:
    """Returns a ball that contains the e-th power, e > 0, of every number in x.

    FLINT's own power of a ball around 0 is not a number; and an even power is not negative.
    """
    if not x.is_finite() or not x.contains(0):
        return x**e
    low, high = x.lower() ** e, x.upper() ** e
    return between(low, high) if e % 2 else from_zero(low.max(high))


def root(x: arb) -> arb:
    """Returns a ball that contains the roots of the numbers in x that are not negative."""
    if not x.is_finite() or x > 0 or x < 0:
        return x.sqrt()
    return from_zero(x.upper().max(arb(0)).sqrt())


def increasing(function: Callable[[arb], arb], x: arb) -> arb:
    """Returns a ball that contains the values of a function that does not fall."""
    if not x.is_finite() or x.rad() < WIDE:
        return function(x)
    return between(function(x.lower()), function(x.upper()))


def limited(x: arb, least: arb | None, most: arb | None) -> arb:
    """Returns a ball that contains every number in x, or the limit that it is beyond."""
    if not x.is_finite():
        return x if least is None or most is None else between(least, most)
    if least is not None:
        x = least if x <= least else x if x >= least else x.max(least)
    if most is not None:
        x = most if x >= most else x if x <= most else x.min(most)
    return x


def clipped(size: arb, limit: arb) -> arb:
    """Returns a ball that contains the smaller of 1 and limit/size, for sizes in a ball.

    A size is not negative, though its ball may reach below 0; the quotient falls with the size.
    """
    if not size.is_finite():
        return ANY_SHARE

    def factor(size: arb) -> arb:
        return (limit / size).min(arb(1)) if size > 0 else arb(1)

    return between(factor(size.lower()), factor(size.upper()))


# ----------------------------------------------------------------------- norms


def normalized(row: Sequence[arb], eps: arb, *, centered: bool) -> list[arb]:
    """Returns balls that contain x / √(mean(x²) + eps) for all rows of numbers in these balls.

    0/0 counts as 0.  The quotient grows with its own entry; the squares of the others, at least
    those that a `centered` row must have, make it smaller.  So none is beyond √width.
    """
    width = len(row)
    if not all(x.is_finite() for x in row):
        return [arb(0, arb(width).sqrt().upper())] * width
    squares = [power(x, 2) for x in row]
    least = _others([square.lower().max(arb(0)) for square in squares])
    most = _others([square.upper() for square in squares])

    def quotient(x: arb, others: arb) -> arb:
        if x == 0:
            return arb(0)
        own = x * x
        if centered:
            others = others.max(own / (width - 1)) if width > 1 else arb("inf")
        below = (own + others) / width + eps
        return x / below.sqrt() if below.is_finite() else arb(0)

    return [
        between(
            quotient(x.lower(), few if x.lower() < 0 else many),
            quotient(x.upper(), few if x.upper() > 0 else many),
        )
        for x, few, many in zip(row, least, most, strict=True)
    ]


def _others(numbers: Sequence[arb]) -> list[arb]:
    """For each place, the sum of the other numbers."""
    before = list(accumulate(numbers, initial=arb(0)))
    after = list(accumulate(reversed(numbers), initial=arb(0)))[::-1]
    return [x + y for x, y in zip(before[:-1], after[1:], strict=True)]


# ----------------------------------------------------------------------- softmax


def shares(row: Sequence[arb]) -> list[arb]:
    """Returns balls that contain the softmax of all rows of numbers in these balls.

    A share is smallest where its own score is, and the others are at their largest.
    """
    if not all(score.is_finite() for score in row):
        return [ANY_SHARE] * len(row)
    top = _largest(row)
    low = [(score.lower() - top).exp() for score in row]
    high = [(score.upper() - top).exp() for score in row]
    return [
        between(_part(own, most), _part(best, least)).intersection(ANY_SHARE)
        for own, best, least, most in zip(low, high, _others(low), _others(high), strict=True)
    ]


def _part(own: arb, others: arb) -> arb:
    """own / (own + others), both positive."""
    share = own / (own + others)
    return share if share.is_finite() else ANY_SHARE


def surprise(row: Sequence[arb], place: int) -> arb:
    """Returns a ball that contains -ln of the softmax at a place, for all rows in these balls."""
    if not all(score.is_finite() for score in row):
        return arb(0, "inf")
    own, others = row[place], [score for k, score in enumerate(row) if k != place]

    def surprised(reference: arb, rivals: list[arb]) -> arb:
        """ln(1 + Σ e^(rival - reference)), by the largest of the exponents."""
        exponents = [arb(0), *(rival - reference for rival in rivals)]
        top = _largest(exponents)
        powers = [(exponent - top).exp() for exponent in exponents]
        return top + sum(powers[1:], powers[0]).log()

    return between(
        surprised(own.upper(), [score.lower() for score in others]),
        surprised(own.lower(), [score.upper() for score in others]),
    )


def _largest(row: Sequence[arb]) -> arb:
    """The largest midpoint: a number."""
    top = row[0].mid()
    for score in row:
        if score.mid() > top:
            top = score.mid()
    return top
