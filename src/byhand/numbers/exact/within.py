"""Operations on values that are known only within ranges, where a decision stays open.

A rounded 0.0 may be 0.  Then a variance may be 0 too, and a sum of powers of e may be too wide a
ball to divide by.  The result is then a range (`enclosed.ranges`), and the value becomes a name
that lies in it.  This is not for exact or named numbers: their undecided cases stay undecided.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb, ctx, fmpq

from byhand.errors import Undecided
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.functions import ACTIVATIONS as BALL_FUNCTIONS
from byhand.numbers.enclosed.balls.slopes import SLOPES as BALL_SLOPES
from byhand.numbers.exact import activations, slopes
from byhand.numbers.exact.names import ONE
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import How, Value

BITS = 128  # more would say nothing: the ranges are wide


def enclosed(*values: Value) -> bool:
    """Whether one of the values depends on a number that is known only to its decimals."""
    return any(v.register == "enclosed" for v in values)


def balls(values: Sequence[Value]) -> list[arb]:
    """A ball that contains each value, with few bits."""
    return [v.ball(BITS) for v in values]


def mean_of_squares(space: Space, row: list[Value], share: fmpq) -> Value:
    """share · Σ x², which is not negative even where its form does not show it."""
    found = space.dot(row, row, share)
    if not enclosed(found) or found.ball(BITS) > 0:
        return found
    with ctx.workprec(BITS):
        squares = [ranges.power(x, 2) for x in balls(row)]
        return space.bounded(found, sum(squares[1:], squares[0]) * arb(share))


def root(space: Space, x: Value) -> Value:
    """√x, for x ≥ 0; where x may be 0, a name with its range."""
    try:
        return space.sqrt(x)
    except Undecided:
        if not enclosed(x):
            raise
        with ctx.workprec(BITS):
            return space.ranged(ranges.root(x.ball(BITS)), How("sqrt", x))


def limited(
    space: Space, row: Sequence[Value], found: list[Value], eps: Fraction, *, centered: bool
) -> list[Value]:
    """The entries of a row over the root of its mean square, each within the range of the row.

    `found` are the quotients; it is empty where the root may be 0.
    """
    with ctx.workprec(BITS):
        shift = arb(fmpq(eps.numerator, eps.denominator))
        limits = ranges.normalized(balls(row), shift, centered=centered)
        if not found:
            return [space.ranged(limit) for limit in limits]
        return [_bounded(space, v, limit) for v, limit in zip(found, limits, strict=True)]


def softmax_row(space: Space, scores: list[Value]) -> list[Value]:
    """The softmax of one row; its weights add up to exactly 1, and none leaves 0 … 1."""
    try:
        found = activations.softmax_row(space, scores)
    except Undecided:
        if not enclosed(*scores):
            raise
        found = []
    if not enclosed(*scores) or (found and all(_share(v.ball(BITS)) for v in found)):
        return found
    differences = [space.subtract(score, scores[0]) for score in scores]
    with ctx.workprec(BITS):
        limits = ranges.shares(balls(differences))
        if found:
            return [_within(space, v, limit) for v, limit in zip(found, limits, strict=True)]
        return [
            space.ranged(limit, How("softmax", scores, position=k))
            for k, limit in enumerate(limits)
        ]


def _share(ball: arb) -> bool:
    return bool(ball >= 0 and ball <= 1)


def _within(space: Space, v: Value, limit: arb) -> Value:
    """The value, bounded by the limit too."""
    return space.bounded(v, limit) if enclosed(v) else v


def _bounded(space: Space, v: Value, limit: arb) -> Value:
    """The value, bounded by the limit too if that is much narrower."""
    return space.bounded(v, limit) if enclosed(v) and space.says_more(limit, v) else v


def activated(space: Space, kind: str, x: Value) -> Value:
    """The activation of x; where its form is too wide to divide by, its range."""
    try:
        found = activations.ACTIVATIONS[kind](space, x)
        if not enclosed(x) or found.ball(BITS).is_finite():
            return found
    except Undecided:
        if not enclosed(x):
            raise
    with ctx.workprec(BITS):
        return space.ranged(BALL_FUNCTIONS[kind]()(x.ball(BITS)), How(kind, x))


# ----------------------------------------------------------------------- learning


def sloped(space: Space, kind: str, x: Value) -> Value:
    """The slope of a smooth activation at x; where its form is too wide, its range."""
    try:
        found = slopes.SLOPES[kind](space, x)
    except Undecided:
        if not enclosed(x):
            raise
    else:
        if not enclosed(found):
            return found
    with ctx.workprec(BITS):
        limit = BALL_SLOPES[kind]()(x.ball(BITS))
        return space.ranged(limit, How(kind, x))


def step(space: Space, x: Value) -> tuple[Value, bool]:
    """(1 above 0, else 0; decided): where a rounded number leaves the sign open, from 0 to 1."""
    try:
        return space.step(x), True
    except Undecided:
        if not enclosed(x):
            raise
        return space.ranged(ranges.ANY_SHARE, How("step", x)), False


def clipped(space: Space, size: Value, limit: Value) -> Value:
    """The smaller of 1 and limit/size; where rounded numbers leave it open, its range."""
    try:
        if space.compare(size, limit) <= 0:
            return space.plain(ONE)
        return space.divide(limit, size)
    except Undecided:
        if not enclosed(size):
            raise
        with ctx.workprec(BITS):
            return space.ranged(ranges.clipped(size.ball(BITS), limit.ball(BITS)))


def loss(space: Space, share: Value, scores: Sequence[Value] | None, target: int) -> Value:
    """-ln of a share; of an enclosed share, bounded by its scores too."""
    how = How("loss", share)
    found = None
    try:
        found = space.ln(share).times(-ONE, how)
    except Undecided:
        if scores is None or not enclosed(share):
            raise
    if scores is None or (found is not None and not enclosed(found)):
        assert found is not None
        return found
    differences = [space.subtract(score, scores[target]) for score in scores]
    with ctx.workprec(BITS):
        limit = ranges.surprise(balls(differences), target)
        return space.ranged(limit, how) if found is None else _within(space, found, limit)
