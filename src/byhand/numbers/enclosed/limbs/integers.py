"""Real numbers as Python integers in fixed point, each with a proven error: constants and tables.

`Near(mid, error)` at `bits` stands for a real number x with |x·2^bits - mid| <= error.  All
arithmetic is on integers; every rounding is counted in the error, upwards.  Slow and plain:
arrays of numbers live in `arithmetic`.  `value_of` works out an expression tree.

>>> value_of(Call("sqrt", Number(Fraction(2))), 20)
(1482910, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, log

from byhand.errors import InputError
from byhand.expression import (
    Call,
    Entry,
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

LIMIT = 1 << 15  # bits after which a value that may still be 0 is given up


class TooNear(ArithmeticError):
    """More bits are needed: a divisor or an argument may lie where there is no value."""


@dataclass(frozen=True, slots=True)
class Near:
    """The real numbers x with |x·2^bits - mid| <= error."""

    mid: int
    error: int
    bits: int

    def __add__(self, other: Near) -> Near:
        return Near(self.mid + other.mid, self.error + other.error, self.bits)

    def __sub__(self, other: Near) -> Near:
        return Near(self.mid - other.mid, self.error + other.error, self.bits)

    def __neg__(self) -> Near:
        return Near(-self.mid, self.error, self.bits)

    def __mul__(self, other: Near) -> Near:
        # xy - ab = a(y - b) + b(x - a) + (x - a)(y - b); >> rounds down, by less than 1
        spread = abs(self.mid) * other.error + abs(other.mid) * self.error
        spread += self.error * other.error
        return Near((self.mid * other.mid) >> self.bits, (spread >> self.bits) + 2, self.bits)

    def __truediv__(self, other: Near) -> Near:
        # x/y - a/b = ((x - a)b - a(y - b)) / (by), and |y| >= |b| - its error
        least = abs(other.mid) - other.error
        if least <= 0:
            raise TooNear
        spread = self.error * abs(other.mid) + abs(self.mid) * other.error
        error = (spread << self.bits) // (abs(other.mid) * least) + 2
        return Near((self.mid << self.bits) // other.mid, error, self.bits)

    def times(self, factor: int) -> Near:
        """The number times an integer."""
        return Near(self.mid * factor, self.error * abs(factor), self.bits)

    def over(self, divisor: int) -> Near:
        """Divided by a positive integer."""
        return Near(self.mid // divisor, self.error // divisor + 2, self.bits)

    def shifted(self, k: int) -> Near:
        """Times 2^k."""
        if k >= 0:
            return Near(self.mid << k, self.error << k, self.bits)
        return Near(self.mid >> -k, (self.error >> -k) + 2, self.bits)

    def at(self, bits: int) -> Near:
        """The same number at another, smaller count of bits."""
        moved = self.shifted(bits - self.bits)
        return Near(moved.mid, moved.error, bits)

    @property
    def below(self) -> int:
        """An integer that the number is not below."""
        return self.mid - self.error

    @property
    def above(self) -> int:
        """An integer that the number is not above."""
        return self.mid + self.error


def whole(value: int, bits: int) -> Near:
    """An integer, exactly."""
    return Near(value << bits, 0, bits)


def rational(value: Fraction, bits: int) -> Near:
    """A rational number, rounded down to the grid."""
    mid, rest = divmod(value.numerator << bits, value.denominator)
    return Near(mid, 1 if rest else 0, bits)


# --------------------------------------------------------------------------------- constants


def _arctan_inverse(n: int, bits: int) -> Near:
    """arctan(1/n): the alternating series; every term is rounded down, the rest is below 1."""
    total, power, k = 0, (1 << bits) // n, 0
    while power:
        total += power // (2 * k + 1) * (1 if k % 2 == 0 else -1)
        power //= n * n
        k += 1
    return Near(total, 2 * k + 3, bits)


@lru_cache(64)
def pi(bits: int) -> Near:
    """π = 16·arctan(1/5) - 4·arctan(1/239), by Machin's formula of 1706."""
    work = bits + 32
    value = _arctan_inverse(5, work).times(16) - _arctan_inverse(239, work).times(4)
    return value.at(bits)


@lru_cache(64)
def ln2(bits: int) -> Near:
    """ln 2 = Σ 2/((2k+1)·3^(2k+1)); the terms left out sum to less than the last power."""
    work = bits + 32
    total, power, k = 0, (2 << work) // 3, 0
    while power:
        total += power // (2 * k + 1)
        power //= 9
        k += 1
    return Near(total, 2 * k + 3, work).at(bits)


# --------------------------------------------------------------------------------- functions


def exp(x: Near) -> Near:
    """e^x: x less a multiple of ln 2, halved until small, Taylor's series, squared again."""
    bits = x.bits
    if x.mid >> bits > 1 << 24:
        raise TooNear  # beyond e^16777216
    if x.above >> bits < -bits:  # e^x < 2^-bits
        return Near(0, 1, bits)
    whole_part = max(0, (x.mid >> bits) * 3 // 2)  # bits of e^x before the point, or more
    halvings = isqrt(bits) // 2 + 4
    work = bits + whole_part + 2 * halvings + 32
    wide = Near(x.mid << (work - bits), x.error << (work - bits), work)
    k = wide.mid // ln2(work).mid
    rest = (wide - ln2(work).times(k)).shifted(-halvings)  # 0 <= rest < 2^-halvings, nearly
    total = term = whole(1, work)
    n = 0
    while term.mid:
        n += 1
        term = (term * rest).over(n)
        total = total + term
    # the terms left out: |rest| <= 1/2, so they sum to less than the bound of the last one
    total = Near(total.mid, total.error + abs(term.mid) + term.error + 1, work)
    for _half in range(halvings):
        total = total * total
    return total.shifted(k).at(bits)


def ln(x: Near) -> Near:
    """ln x = y + ln(x·e^-y), where y is a float's logarithm and the rest a short series."""
    if x.below <= 0:
        raise TooNear
    bits = x.bits
    work = bits + 64
    size = x.mid.bit_length()
    head = x.mid >> max(0, size - 60)
    guess = log(head) + max(0, size - 60) * log(2.0) - bits * log(2.0)
    start = rational(Fraction(guess), work)
    wide = Near(x.mid << 64, x.error << 64, work)
    t = wide * exp(-start) - whole(1, work)
    most = abs(t.mid) + t.error
    if most >> (work - 4):  # |t| >= 1/16: x is hardly known
        raise TooNear
    total, power, n = start, t, 1
    while power.mid or n == 1:
        total = total + (power.over(n) if n % 2 else -power.over(n))
        power = power * t
        n += 1
    # the terms left out: at most Σ |power|·|t|^i <= 2·|power|
    total = Near(total.mid, total.error + 2 * (abs(power.mid) + power.error) + 1, work)
    return total.at(bits)


def root(x: Near) -> Near:
    """√x, between the roots of the ends."""
    if x.below < 0:
        if x.above >= 0:
            raise TooNear
        raise InputError(_("no real root of a negative number"))
    least, most = isqrt(x.below << x.bits), isqrt(x.above << x.bits) + 1
    mid = (least + most) // 2
    return Near(mid, most - mid, x.bits)


def cos_sin(x: Near) -> tuple[Near, Near]:
    """(cos x, sin x): x less a multiple of π/2, halved until small, series, doubled again."""
    bits = x.bits
    halvings = isqrt(bits) // 2 + 4
    work = bits + 2 * halvings + 32
    # the multiple of π/2 is taken off with as many bits more as it has itself
    wide = work + abs(x.mid).bit_length()
    quarter = pi(wide).shifted(-1)
    lifted = Near(x.mid << (wide - bits), x.error << (wide - bits), wide)
    k = (2 * lifted.mid + quarter.mid) // (2 * quarter.mid)
    rest = (lifted - quarter.times(k)).at(work).shifted(-halvings)
    square = rest * rest
    cos = term = whole(1, work)
    n = 0
    while term.mid:
        n += 2
        term = -(term * square).over(n * (n - 1))
        cos = cos + term
    cos = Near(cos.mid, cos.error + abs(term.mid) + term.error + 1, work)
    sin = term = rest
    n = 1
    while term.mid or n == 1:
        n += 2
        term = -(term * square).over(n * (n - 1))
        sin = sin + term
    sin = Near(sin.mid, sin.error + abs(term.mid) + term.error + 1, work)
    one = whole(1, work)
    for _half in range(halvings):
        cos, sin = (cos * cos).times(2) - one, (sin * cos).times(2)
    cos, sin = cos.at(bits), sin.at(bits)
    return ((cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos))[k % 4]


def erf(x: Near) -> Near:
    """erf x = 2x·e^(-x²)/√π · Σ (2x²)^n / (1·3·5⋯(2n+1)): no term has another sign."""
    bits = x.bits
    if (abs(x.mid) - x.error) ** 2 >> (2 * bits) > bits:  # 1 - erf|x| <= e^(-x²) < 2^-bits
        return Near((1 if x.mid > 0 else -1) << bits, 1, bits)
    square = x * x
    total = term = whole(1, bits)
    n = 0
    # once 2x² <= (2n+1)/2 the terms left out sum to less than the last
    while term.mid or ((square.above >> bits) + 1) * 4 >= 2 * n + 1:
        n += 1
        term = (term * square).times(2).over(2 * n + 1)
        total = total + term
    total = Near(total.mid, total.error + abs(term.mid) + term.error + 1, bits)
    return (x.times(2) * exp(-square) * total) / root(pi(bits))


def power(base: Near, exponent: Near) -> Near:
    """base^exponent for a positive base."""
    return exp(exponent * ln(base))


def whole_power(base: Near, exponent: int) -> Near:
    """The power of an integer exponent."""
    if exponent < 0:
        return whole(1, base.bits) / whole_power(base, -exponent)
    made = whole(1, base.bits)
    for digit in bin(exponent)[2:]:
        made = made * made
        if digit == "1":
            made = made * base
    return made


def _tanh(x: Near) -> Near:
    small = exp(Near(-2 * abs(x.mid), 2 * x.error, x.bits))
    one = whole(1, x.bits)
    value = (one - small) / (one + small)
    return value if x.mid >= 0 else -value


def _relu(x: Near) -> Near:
    if x.mid >= 0:
        return x
    return Near(0, max(0, x.above), x.bits)


def _step(x: Near) -> Near:
    if x.mid > x.error:
        return whole(1, x.bits)
    if x.above <= 0:
        return whole(0, x.bits)
    raise TooNear


FUNCTIONS: dict[str, Callable[[Near], Near]] = {
    "sqrt": root,
    "exp": exp,
    "ln": ln,
    "sin": lambda x: cos_sin(x)[1],
    "cos": lambda x: cos_sin(x)[0],
    "tanh": _tanh,
    "erf": erf,
    "relu": _relu,
    "step": _step,
}


# --------------------------------------------------------------------------------- expressions


def value_of(tree: Expression, bits: int) -> tuple[int, int]:
    """(integer, error): the value of the tree times 2^bits is within the error of the integer.

    The error is at most 1.  The tree has numbers, e and π, no other names.
    """
    work = max(bits, 0) + 32
    while work < LIMIT + 2 * max(bits, 0):
        try:
            value = near(tree, work)
            if value.error >> (work - bits - 1) == 0:  # half a unit, and half for rounding
                half = 1 << (work - bits - 1)
                return (value.mid + half) >> (work - bits), 1
        except TooNear:
            pass
        work += work // 2
    raise InputError(_("a value could not be told with {bits} bits").format(bits=LIMIT))


def near(tree: Expression, bits: int) -> Near:
    """The value of the tree, as near as `bits` give it."""
    match tree:
        case Number(value=value):
            return rational(value, bits)
        case Name(text="pi"):
            return pi(bits)
        case Name(text="e"):
            return exp(whole(1, bits))
        case Negative(of=x):
            return -near(x, bits)
        case Sum(terms=terms):
            made = whole(0, bits)
            for part in terms:
                made = made + near(part, bits)
            return made
        case Product(factors=factors):
            made = whole(1, bits)
            for part in factors:
                made = made * near(part, bits)
            return made
        case Quotient(top=top, bottom=bottom):
            return near(top, bits) / near(bottom, bits)
        case Power(base=base, exponent=Number(value=value)) if value.denominator == 1:
            return whole_power(near(base, bits), value.numerator)
        case Power(base=Name(text="e"), exponent=exponent):
            return exp(near(exponent, bits))
        case Power(base=base, exponent=exponent):
            return power(near(base, bits), near(exponent, bits))
        case Call(function=function, argument=argument) if function in FUNCTIONS:
            return FUNCTIONS[function](near(argument, bits))
        case Name() | Entry() | Call():
            raise InputError(_("{what} has no value here").format(what=tree))
