"""The value of a tree of plain rational numbers, in bounded time.

Roots, exponentials and the other functions are not computed here: that is a number system's work.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from byhand.errors import ExpressionError
from byhand.expression.trees import (
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
    parts_of,
)
from byhand.expression.writing import write
from byhand.language import _

MOST_DIGITS = 4_000  # of a number: below the 4,300 at which Python stops reading and writing them
_MOST_BITS = MOST_DIGITS * 332 // 100  # 10^n has at least 3.32n bits


def too_large(found: str) -> ExpressionError:
    """The error for a number of more than MOST_DIGITS digits."""
    return ExpressionError(
        _("a number of more than {count} digits").format(count=f"{MOST_DIGITS:,}"),
        found=found if len(found) <= 40 else found[:39] + "…",
    )


def rational(tree: Expression) -> Fraction | None:
    """The exact value of a tree of rational numbers under + - · / and whole powers, else None.

    Refuses a division by zero, and a value of more than MOST_DIGITS digits before computing it.
    """
    match tree:
        case Number(value=v):
            return v
        case Name() | Entry() | Call():
            for part in parts_of(tree):
                rational(part)  # ln(1/0) is refused here too
            return None
        case Power(base=a, exponent=b):
            return _power(rational(a), rational(b))
    values = [rational(part) for part in parts_of(tree)]
    if isinstance(tree, Quotient) and values[1] == 0:
        raise ExpressionError(_("a division by zero"), found=write(tree)[:60])
    if None in values:
        return None
    known = [value for value in values if value is not None]
    match tree:
        case Negative():
            return -known[0]
        case Quotient():
            return _within_digits(known[0] / known[1])
        case Sum():
            return _fold(known, Fraction.__add__, Fraction(0))
        case Product():
            return _fold(known, Fraction.__mul__, Fraction(1))


def _fold(
    values: list[Fraction], combine: Callable[[Fraction, Fraction], Fraction], start: Fraction
) -> Fraction:
    total = start
    for value in values:
        total = _within_digits(combine(total, value))
    return total


def _bits(value: Fraction) -> int:
    """The bits of the longer of numerator and denominator."""
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _within_digits(value: Fraction) -> Fraction:
    if _bits(value) > _MOST_BITS:
        digits = _bits(value) * 3 // 10
        raise too_large(_("about {count} digits").format(count=f"{digits:,}"))
    return value


def _power(base: Fraction | None, exponent: Fraction | None) -> Fraction | None:
    if base == 0 and exponent is not None and exponent < 0:
        raise ExpressionError(_("a division by zero"), found=f"0^({exponent})")
    if base is None or exponent is None or exponent.denominator != 1:
        return None
    if exponent == 0:
        return Fraction(1)
    if abs(base) <= 1 and base.denominator == 1:  # however large the exponent is
        return abs(base) if exponent.numerator % 2 == 0 else base
    if (_bits(base) - 1) * abs(exponent.numerator) > _MOST_BITS:  # its least size in bits
        raise too_large(write(Power(Number(base), Number(exponent))))
    return _within_digits(base**exponent.numerator)
