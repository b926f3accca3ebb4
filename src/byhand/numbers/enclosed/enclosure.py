"""The proven set of one number, and the interface of every system of enclosures.

Both systems give an entry to the outside as an `Enclosure`: a rational midpoint and radius, and
proven decimals.  No system computes with it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor, inf, log2
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from byhand.display import Shown
from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.base import Array, Numbers, nearest_float
from byhand.numbers.enclosed.distance import Apart
from byhand.numbers.written import LONGEST, MOST, asked, with_digits

Real = int | float | Fraction | Decimal | str
Logs = npt.NDArray[np.float64]
WIDEST = 2**20  # the largest binary exponent; more extreme numbers get a wider enclosure
LOG2_OF_10 = log2(10)
LOG10_OF_2 = 1 / LOG2_OF_10
SLACK = 2.0**-20  # far above the error of logarithms of floats


@dataclass(frozen=True, slots=True)
class Enclosure(Shown):
    """The numbers within `rad` of `mid`: the real value is proven to be one of them.

    >>> third = Enclosure(Fraction(1, 3), Fraction(1, 10**7))
    >>> third.contains("0.33333335"), third.contains(0.3), third.significant(12)
    (True, False, '0.333333')
    """

    mid: Fraction
    rad: Fraction | float  # infinite, as a float, where nothing is known

    @classmethod
    def of(cls, ball: Any) -> Enclosure:
        """Returns an enclosure of an Arb ball: the same set, unless its size is extreme."""
        if not ball.is_finite():
            return EVERYTHING
        man, exp = map(int, ball.mid().man_exp())
        rad_man, rad_exp = map(int, ball.rad().man_exp())
        if max(exp + man.bit_length(), rad_exp + rad_man.bit_length()) > WIDEST:
            return EVERYTHING
        if min(exp, rad_exp) < -WIDEST:  # of a zero the exponent is 0
            return cls(*_less_absurd(man, exp, rad_man, rad_exp))
        return cls(dyadic(man, exp), dyadic(rad_man, rad_exp))

    @property
    def lower(self) -> Fraction | float:
        """No number of the set is smaller; -∞ where nothing is known."""
        return -inf if self.rad == inf else self.mid - self.rad

    @property
    def upper(self) -> Fraction | float:
        """No number of the set is larger; ∞ where nothing is known."""
        return inf if self.rad == inf else self.mid + self.rad

    @property
    def exact(self) -> bool:
        """Whether the set holds exactly one number."""
        return self.rad == 0

    def contains(self, x: Real | Enclosure) -> bool:
        """Whether a number lies in the set; a string is the decimal or fraction it says.

        For another enclosure: whether all of its numbers do.
        """
        if isinstance(x, Enclosure):
            return self.lower <= x.lower and x.upper <= self.upper
        try:
            number = rational(x)
        except (OverflowError, ValueError):  # infinite, or not a number
            return False
        return bool(self.rad == inf or abs(number - self.mid) <= self.rad)

    def overlaps(self, other: Real | Enclosure) -> bool:
        """Whether the two sets have a number in common; a number is a set of its own."""
        if not isinstance(other, Enclosure):
            return self.contains(other)
        return self.lower <= other.upper and other.lower <= self.upper

    def __float__(self) -> float:
        """The float nearest to the midpoint; Undecided where nothing is known of the number."""
        if self.rad == inf:
            raise _nothing_known()
        return nearest_float(self.mid)

    def __int__(self) -> int:
        """The number rounded towards 0: proven, or Undecided."""
        if self.rad == inf:
            raise _nothing_known()
        if int(self.lower) != int(self.upper):
            raise Undecided(
                _("the number is not known narrowly enough to be a whole number"), found=repr(self)
            )
        return int(self.lower)

    # ------------------------------------------------------------------- decimals

    def proves(self, digits: int) -> bool:
        """Whether `digits` significant digits are proven, within one unit of the last place."""
        return self.rad == 0 or self._rounded(digits) is not None

    def significant(self, digits: int) -> str:
        """`digits` significant digits, less than one unit of the last place from the real value.

        It has fewer digits where fewer are proven, and the middle and the radius where none is: `0
        ± 3e-41`.  A plain "0" is exactly zero.
        """
        digits = asked(digits, 1)
        if self.mid == 0 and self.rad == 0:
            return "0"
        for count in range(self._most(digits), 0, -1):
            found = self._rounded(count)
            if found is not None:
                n, exponent = found
                return with_digits(-n if self._negative else n, count, exponent)
        return " ± ".join(self.interval(digits))

    @property
    def _negative(self) -> bool:
        return self.mid < 0

    def _most(self, digits: int) -> int:
        """An upper bound of the digits that can be proven."""
        if self.rad == 0:
            return digits
        if self.mid == 0 or self.rad == inf:
            return 0
        return min(digits, decimal_exponent(abs(self.mid)) - decimal_exponent(self.rad) + 1)

    def _rounded(self, digits: int) -> tuple[int, int] | None:
        """(n, exponent): n of so many digits, such that every |x| is less than 1 from it.

        The unit is 10^(exponent - digits + 1).  None where the set is too wide for that.
        """
        if self.mid == 0 or self.rad == inf:
            return None
        size = abs(self.mid)
        exponent = decimal_exponent(size)
        top, bottom = scaled(size, digits - 1 - exponent)
        n = (2 * top + bottom) // (2 * bottom)
        if n == 10**digits:
            n, exponent, bottom = n // 10, exponent + 1, bottom * 10
        wide, by = scaled(self.rad, digits - 1 - exponent)
        proven = abs(n * bottom - top) * by + wide * bottom < bottom * by
        return (n, exponent) if proven else None

    def decimal(self, digits: int) -> str:
        """The older word for `significant`."""
        return self.significant(digits)

    def places(self, count: int) -> str:
        """So many digits behind the point: less than one unit of the last place from the real
        value.  Fewer where fewer are proven; where none is, the middle and the radius.  Numbers
        of more than 30 digits before the point come as by `significant`."""
        count = asked(count, 0)
        if abs(self.mid) >= 10**LONGEST:
            return self.significant(min(count + 1, MOST))
        if self.rad != inf:
            for places in range(count, -1, -1):
                if 2 * Fraction(self.rad) * 10**places < 1:
                    top, bottom = scaled(abs(self.mid), places)
                    digits = str((2 * top + bottom) // (2 * bottom)).zfill(places + 1)
                    text = digits[:-places] + "." + digits[-places:] if places else digits
                    return "-" * (self.mid < 0 and int(digits) != 0) + text
        return " ± ".join(self.interval())

    def interval(self, digits: int = 20) -> tuple[str, str]:
        """Decimals (middle, radius): every number of the set lies within radius of middle.

        The middle has no digits beyond the radius, and at most `digits` significant ones.
        """
        if self.rad == inf:
            return "0", "∞"
        known = [] if self.mid == 0 else [digits - 1 - decimal_exponent(abs(self.mid))]
        if self.rad != 0:
            known.append(-decimal_exponent(self.rad))
        if not known:
            return "0", "0"
        places = known[-1] if self.mid == 0 else min(known)
        top, bottom = scaled(self.mid, places)
        middle = (2 * top + bottom) // (2 * bottom)
        wide, by = scaled(self.rad, places)
        far = abs(middle * bottom - top) * by + wide * bottom
        if far == 0:
            while middle % 10 == 0:
                middle, places = middle // 10, places - 1
        return _written(middle, places) if middle else "0", upward(far, bottom * by, places)

    def __repr__(self) -> str:
        middle, radius = self.interval()
        return f"[{middle}]" if radius == "0" else f"[{middle} ± {radius}]"


def absurd(ball: Any) -> bool:
    """Whether a ball is finite, but too small or too large to be written out as fractions."""
    if not ball.is_finite():
        return False
    man, exp = map(int, ball.mid().man_exp())
    return exp + man.bit_length() > WIDEST or exp < -WIDEST


EVERYTHING = Enclosure(Fraction(0), inf)


def _nothing_known() -> Undecided:
    return Undecided(_("nothing is known of this number: its radius is infinite"))


def _less_absurd(man: int, exp: int, rad_man: int, rad_exp: int) -> tuple[Fraction, Fraction]:
    """A midpoint and a radius of a larger set, whose ends can be written out."""
    rad = Fraction(0)
    if rad_man:
        far = max(rad_exp + rad_man.bit_length(), -WIDEST)
        rad = dyadic(rad_man, rad_exp) if rad_exp >= -WIDEST else dyadic(1, far)
    if exp >= -WIDEST:
        return dyadic(man, exp), rad
    return Fraction(0), rad + dyadic(1, max(exp + man.bit_length(), -WIDEST))


def dyadic(man: int, exp: int) -> Fraction:
    """man · 2^exp."""
    return Fraction(man << exp) if exp >= 0 else Fraction(man, 1 << -exp)


def rational(x: Any) -> Fraction:
    """The number exactly: a float is the dyadic rational it is, a string what it says."""
    if isinstance(x, int | float | Fraction | Decimal | str):
        return Fraction(x)
    return Fraction(x) if hasattr(x, "numerator") else Fraction(float(x))


def scaled(x: Fraction | float, places: int) -> tuple[int, int]:
    """x · 10^places as a quotient, not reduced: reducing extreme numbers takes long."""
    top, bottom = x.as_integer_ratio()
    return (top * 10**places, bottom) if places >= 0 else (top, bottom * 10**-places)


def decimal_exponent(x: Fraction | float) -> int:
    """e with 10^e ≤ x < 10^(e+1), of x > 0."""
    return exponent_of(*x.as_integer_ratio())


def exponent_of(top: int, bottom: int) -> int:
    """e with 10^e ≤ top/bottom < 10^(e+1); both are positive."""
    about = (_log2(top) - _log2(bottom)) * LOG10_OF_2
    if abs(about - round(about)) > 1e-6:
        return floor(about)
    e = round(about)  # a float does not tell on which side
    low, high = (top, bottom * 10**e) if e >= 0 else (top * 10**-e, bottom)
    return e if low >= high else e - 1


def _log2(n: int) -> float:
    more = max(n.bit_length() - 64, 0)
    return log2(n >> more) + more


def binary_size(x: Fraction | float) -> float:
    """log2 of x ≥ 0, however small or large; right to SLACK."""
    if x in (0, inf):
        return -inf if x == 0 else inf
    top, bottom = x.as_integer_ratio()
    return _log2(top) - _log2(bottom)


def upward(top: int, bottom: int, places: int = 0) -> str:
    """A decimal of at most two significant digits, not below top/bottom · 10^-places ≥ 0."""
    if top == 0:
        return "0"
    finer = 1 - exponent_of(top, bottom)
    above, below = (top * 10**finer, bottom) if finer >= 0 else (top, bottom * 10**-finer)
    n, places = -(-above // below), places + finer
    while n % 10 == 0:
        n, places = n // 10, places - 1
    return _written(n, places)


def _written(n: int, places: int) -> str:
    """n / 10^places with all its digits."""
    count = len(str(abs(n)))
    return with_digits(n, count, count - 1 - places)


class Enclosing(Numbers):
    """The interface of systems of enclosures, beyond the operations.

    `bits` is its working precision.  `at` gives the same system at another precision; the weights
    that one of them has admitted serve the other as well.
    """

    uniform: ClassVar[str | None] = "enclosed"
    limit: ClassVar[int]  # the largest precision that is tried
    bits: int

    @abstractmethod
    def at(self, bits: int) -> Self:
        """The same system at another precision."""

    @abstractmethod
    def magnitudes(self, value: Array) -> tuple[Logs, Logs]:
        """log2 of |midpoint| and of the radius, entry by entry, right to SLACK.

        -∞ is zero (a radius of -∞: known exactly), +∞ an infinite radius; masked entries are
        exact zeros.
        """

    def missing(self, value: Array, digits: int) -> Logs:
        """How many bits each entry lacks to prove so many digits (see `bits_missing`)."""
        return bits_missing(*self.magnitudes(value), digits)

    @abstractmethod
    def in_floats(self, value: Array) -> tuple[Logs, Logs]:
        """A float64 near each entry, and a bound of its distance from the real number.

        The bound is infinite where nothing is known.  Masked entries are 0, at distance 0.
        """

    @abstractmethod
    def apart(self, value: Array, floats: Logs) -> Apart:
        """Lower bounds of the distances of floats from the set of each entry.

        A bound is less than 1 part in 2^40 below the smallest distance, unless that is below the
        radius.
        """

    def register(self, entry: Any) -> str:
        """Every entry is enclosed."""
        return "enclosed"


def bits_missing(middles: Logs, radii: Logs, digits: int) -> Logs:
    """How many bits narrower each radius must be to prove so many significant digits.

    At most 0 only where they are proven: then the radius is below half a unit of the last place.
    +∞ where the radius is infinite.  The arguments are `Enclosing.magnitudes`.
    """
    with np.errstate(invalid="ignore"):
        first = np.floor(middles * LOG10_OF_2 - SLACK)  # the power of ten of the first digit
        unit = (first - (digits - 1)) * LOG2_OF_10
        missing = radii + 1 - unit + 2 * SLACK
    missing = np.where(np.isneginf(radii), -inf, missing)
    return np.where(np.isposinf(radii), inf, missing)
