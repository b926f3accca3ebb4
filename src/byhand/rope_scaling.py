"""Scaled RoPE: the angle per position of each pair, where it is no plain power of the base.

    linear     the usual angles divided by a factor
    ntk        a larger base, by the factor
    dynamic    the same in a text longer than `length`, by a factor that grows with the text
    llama3     slow pairs divided by the factor, fast ones not, and a blend of both between
    yarn       the same with a blend that is even over the pairs
    longrope   each pair divided by a factor of its own, other ones in a text longer than `length`

A pair is slow or fast by how often it turns in `length` positions.  The angles are exact
expressions; which band a pair belongs to is proven, with logarithms enclosed by rationals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, floor

from byhand.errors import InputError
from byhand.expression import (
    Call,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)
from byhand.language import _

KINDS = ("linear", "ntk", "dynamic", "llama3", "yarn", "longrope")
BY_LENGTH = ("dynamic", "longrope")  # whose angles depend on the length of the text
BEFORE_ONE = Fraction(1, 1000)  # the width of a blend between equal bounds, as libraries have it
DIGITS = (30, 120, 480, 1920)  # that comparisons are tried with
ONE = Number(Fraction(1))
Range = tuple[Fraction, Fraction]  # a number's lower and upper bound


@dataclass(frozen=True, slots=True)
class Scaling:
    """A rule that makes the angles of RoPE's pairs, of the base and the length of the text."""

    kind: str
    factor: Fraction = Fraction(1)
    length: int = 1  # that the model was first trained for
    slow: Fraction = Fraction(1)  # turns in `length` positions, up to which a pair is scaled
    fast: Fraction = Fraction(32)  # turns from which on it is not
    whole: bool = True  # yarn: the blend begins and ends at whole pairs
    short_factors: tuple[Fraction, ...] = ()
    long_factors: tuple[Fraction, ...] = ()

    def frequencies(self, base: Fraction, width: int, length: int) -> tuple[Expression, ...]:
        """The angle per position of each pair; `length` counts positions from 0 to the last."""
        return _frequencies(self, base, width, length if self.kind in BY_LENGTH else 1)

    def alike(self, one: int, other: int) -> bool:
        """Whether texts of both lengths have the same angles."""
        match self.kind:
            case "dynamic":
                return max(one, self.length) == max(other, self.length)
            case "longrope":
                return (one > self.length) == (other > self.length)
        return True

    def angles(self, base: Fraction, width: int, length: int) -> tuple[Expression, ...]:
        """The same, worked out anew: `frequencies` keeps them for the layers that share them."""
        usual = [_usual(base, place, width) for place in range(width // 2)]
        match self.kind:
            case "linear":
                return tuple(_over(angle, self.factor) for angle in usual)
            case "ntk":
                return tuple(_stretched(angle, width, self.factor) for angle in enumerate(usual))
            case "dynamic":
                by = self.factor * max(length, self.length) / self.length - (self.factor - 1)
                return tuple(_stretched(angle, width, by) for angle in enumerate(usual))
            case "longrope":
                factors = self.long_factors if length > self.length else self.short_factors
                return tuple(map(_over, usual, factors))
            case "llama3":
                return tuple(self._banded(base, width, angle) for angle in enumerate(usual))
        blend = self._blend(base, width)
        return tuple(
            _times(angle, _mixed(blend(place), self.factor)) for place, angle in enumerate(usual)
        )

    def _banded(self, base: Fraction, width: int, angle: tuple[int, Expression]) -> Expression:
        """llama3: f/factor below `slow` turns, f above `fast`, between them a blend by the turns.

        The blend is f·((1 - s)/factor + s) with s = (turns - slow)/(fast - slow).
        """
        place, usual = angle
        share = Fraction(2 * place, width)
        if self._turns_less(base, share, self.slow):
            return _over(usual, self.factor)
        if not self._turns_less(base, share, self.fast):
            return usual
        turns = Quotient(Product((Number(Fraction(self.length)), usual)), _two_pi())
        span = Number(self.fast - self.slow)
        fast = Quotient(Sum((turns, Negative(Number(self.slow)))), span)
        slow = Quotient(Sum((Number(self.fast), Negative(turns))), span)
        return _times(usual, Sum((_over(slow, self.factor), fast)))

    def _turns_less(self, base: Fraction, share: Fraction, turns: Fraction) -> bool:
        """Whether length·base^-share/2π < turns; never equal, since π is transcendental."""

        def above(digits: int) -> Range:
            low, high = _ln_two_pi(digits)
            ours, theirs = _ln(self.length / turns, digits), _ln(base, digits)
            least, most = sorted(share * end for end in theirs)
            return ours[0] - most - high, ours[1] - least - low

        return _sign(above) < 0

    def _blend(self, base: Fraction, width: int) -> Callable[[int], Expression]:
        """yarn: the share of the scaled angle in each pair, from 0 to 1.

        It grows evenly from the pair that turns `fast` times to the one that turns `slow` times.
        """
        start = self._pair(base, width, self.fast, floor)
        end = self._pair(base, width, self.slow, ceil)
        if _sign(start.within) < 0:
            start = _exactly(Fraction(0))
        last = Fraction(width - 1)
        if _sign(lambda digits: _less(end.within(digits), (last, last))) > 0:
            end = _exactly(last)
        if start.value == end.value:
            end = _plus(end, BEFORE_ONE)

        rises = _sign(lambda digits: _less(end.within(digits), start.within(digits)))

        def share(place: int) -> Expression:
            here = Fraction(place)
            match start.value, end.value:
                case Number(value=first), Number(value=behind):
                    return Number(
                        min(max((here - first) / (behind - first), Fraction(0)), Fraction(1))
                    )
            after = _sign(lambda digits: _less((here, here), start.within(digits))) * rises
            before = _sign(lambda digits: _less(end.within(digits), (here, here))) * rises
            if after <= 0 or before <= 0:
                return Number(Fraction(int(after > 0)))
            top = Sum((Number(here), Negative(start.value)))
            return Quotient(top, Sum((end.value, Negative(start.value))))

        return share

    def _pair(
        self, base: Fraction, width: int, turns: Fraction, rounded: Callable[[Fraction], int]
    ) -> _Bound:
        """Which pair turns so often in `length` positions: width·ln(length/(2π·turns))/(2·ln base).

        It is never whole, since π is transcendental, so that rounding it is decided.
        """

        def within(digits: int) -> Range:
            low, high = _ln_two_pi(digits)
            ours, theirs = _ln(self.length / turns, digits), _ln(base, digits)
            tops = ours[0] - high, ours[1] - low
            ends = [top * width / (2 * bottom) for top in tops for bottom in theirs]
            return min(ends), max(ends)

        if self.whole:
            for digits in DIGITS:
                least, most = within(digits)
                if rounded(least) == rounded(most):
                    return _exactly(Fraction(rounded(least)))
            raise _undecided()
        ratio = Quotient(Number(self.length / turns), _two_pi())
        top = Product((Number(Fraction(width)), Call("ln", ratio)))
        bottom = Product((Number(Fraction(2)), Call("ln", Number(base))))
        return _Bound(Quotient(top, bottom), cache(within))


@lru_cache(maxsize=32)
def _frequencies(
    scaling: Scaling, base: Fraction, width: int, length: int
) -> tuple[Expression, ...]:
    return scaling.angles(base, width, length)


def yarn_magnitude(
    factor: Fraction, top: Fraction | None = None, bottom: Fraction | None = None
) -> Expression | None:
    """What YaRN multiplies turned entries by: 0.1·ln(factor) + 1, or a quotient of two such."""
    if factor <= 1:
        return None
    if not top or not bottom:
        return _growing(factor, Fraction(1))
    return None if top == bottom else Quotient(_growing(factor, top), _growing(factor, bottom))


def longrope_magnitude(factor: Fraction, length: int) -> Expression | None:
    """What LongRoPE multiplies turned entries by: √(1 + ln(factor)/ln(length))."""
    if factor <= 1:
        return None
    share = Quotient(Call("ln", Number(factor)), Call("ln", Number(Fraction(length))))
    return Call("sqrt", Sum((ONE, share)))


def _growing(factor: Fraction, by: Fraction) -> Expression:
    return Sum((Product((Number(by / 10), Call("ln", Number(factor)))), ONE))


# ------------------------------------------------------------------ expressions


def _usual(base: Fraction, place: int, width: int) -> Expression:
    """base^(-2i/width), for pair i."""
    if place == 0 or base == 1:
        return ONE
    return Power(Number(base), Number(Fraction(-2 * place, width)))


def _stretched(angle: tuple[int, Expression], width: int, by: Fraction) -> Expression:
    """The angle of a base that is multiplied by `by`^(width/(width - 2))."""
    place, usual = angle
    if by == 1 or place == 0:
        return usual
    return Product((usual, Power(Number(by), Number(Fraction(-2 * place, width - 2)))))


def _over(x: Expression, factor: Fraction) -> Expression:
    if isinstance(x, Number):
        return Number(x.value / factor)
    return x if factor == 1 else Quotient(x, Number(factor))


def _times(x: Expression, by: Expression) -> Expression:
    if x == ONE:
        return by
    if by == ONE:
        return x
    return Product((by, x) if isinstance(by, Number) else (x, by))


def _mixed(share: Expression, factor: Fraction) -> Expression:
    """share/factor + 1 - share."""
    if isinstance(share, Number):
        return Number(share.value / factor + 1 - share.value)
    return Sum((_over(share, factor), ONE, Negative(share)))


def _two_pi() -> Expression:
    return Product((Number(Fraction(2)), Name("pi")))


# ------------------------------------------------------------------ bounds


@dataclass(frozen=True)
class _Bound:
    """A number, and rationals around it for any count of digits."""

    value: Expression
    within: Callable[[int], Range]


def _exactly(x: Fraction) -> _Bound:
    return _Bound(Number(x), lambda _digits: (x, x))


def _plus(bound: _Bound, x: Fraction) -> _Bound:
    def within(digits: int) -> Range:
        least, most = bound.within(digits)
        return least + x, most + x

    value = bound.value
    added = Number(value.value + x) if isinstance(value, Number) else Sum((value, Number(x)))
    return _Bound(added, within)


def _less(x: Range, y: Range) -> Range:
    """x - y."""
    return x[0] - y[1], x[1] - y[0]


def _sign(within: Callable[[int], Range]) -> int:
    """The sign of a number that is a rational or never 0."""
    for digits in DIGITS:
        least, most = within(digits)
        if least == most or least > 0 or most < 0:
            return (least > 0) - (most < 0)
    raise _undecided()


def _undecided() -> InputError:
    return InputError(
        _("a pair of RoPE cannot be told from the bound of its scaling"),
        expected=_("a difference in the first {count} digits").format(count=DIGITS[-1]),
        found=_("none"),
    )


@lru_cache(maxsize=64)
def _ln(x: Fraction, digits: int) -> Range:
    """ln x: decimal rounds a logarithm correctly, so the last digit is wrong by one at most."""
    found = [_ln_whole(part, digits) for part in (x.numerator, x.denominator)]
    return _less(*found)


@lru_cache(maxsize=64)
def _ln_whole(x: int, digits: int) -> Range:
    if x == 1:
        return Fraction(0), Fraction(0)
    value = Context(prec=digits).ln(Decimal(x))
    unit = Fraction(10) ** (value.adjusted() - digits + 1)
    return Fraction(value) - unit, Fraction(value) + unit


@lru_cache(maxsize=4)
def _ln_two_pi(digits: int) -> Range:
    """ln 2π, of π between two neighbours of 10^-digits by Machin's formula."""
    unit = 10 ** (digits + 7)  # room for what is cut off: under 3 units a term, and 16 times that
    pi = 16 * _arctan_of_inverse(5, unit) - 4 * _arctan_of_inverse(239, unit)
    cut = Fraction(1, 10**digits)
    near = Fraction(pi, unit)
    return _ln(2 * (near - cut), digits)[0], _ln(2 * (near + cut), digits)[1]


def _arctan_of_inverse(x: int, unit: int) -> int:
    """unit·arctan(1/x), to 3 units for each of its terms."""
    power, total, place = unit // x, unit // x, 1
    while power:
        power //= x * x
        place += 2
        total += -(power // place) if place % 4 == 3 else power // place
    return total
