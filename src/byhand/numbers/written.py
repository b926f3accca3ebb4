"""The writing of decimals: the place of the point, and exponents where needed.

Only text is made here.  How near the text is to the truth is the affair of whoever chose the
digits: `exact.decimals` for exact and named values, `enclosed.enclosure` for enclosures.
How many digits somebody may ask for is said here, once for all of them.
"""

from __future__ import annotations

from math import isinf, isnan
from operator import index
from typing import Any, SupportsInt

from byhand.errors import UsageError
from byhand.language import _, whole

LONGEST = 30  # digits before or after the point, before a number is written with an exponent
MOST = 1_000  # digits that may be asked for


def asked(count: Any, least: int) -> int:
    """The count of digits as Python's own whole number: powers of NumPy's would overflow.

    A UsageError where it is none from `least` to MOST.

    >>> asked(3, 1)
    3
    """
    try:
        digits = -1 if isinstance(count, bool) else index(count)
    except TypeError:
        digits = -1
    if least <= digits <= MOST:
        return digits
    raise UsageError(
        _("{name} has a value that does not fit").format(name="count"),
        expected=_("a whole number from {least} to {most}").format(least=least, most=whole(MOST)),
        found=repr(count)[:40],
    )


def point(n: SupportsInt, places: int) -> str:
    """n / 10^places as text."""
    n = int(n)
    digits = str(abs(n)).rjust(places + 1, "0")
    text = digits[: len(digits) - places] + ("." + digits[len(digits) - places :]) * (places > 0)
    return "-" + text if n < 0 else text


def at_point(n: SupportsInt, places: int) -> str:
    """n / 10^places as text, with an exponent where it is very large or very small."""
    n = int(n)
    if 0 <= places <= LONGEST:
        return point(n, places)
    digits = str(abs(n))
    exponent = len(digits) - 1 - places
    mantissa = (digits[0] + "." + digits[1:]).rstrip("0").rstrip(".")
    return f"{'-' if n < 0 else ''}{mantissa}e{exponent}"


def with_digits(n: SupportsInt, digits: int, exponent: int) -> str:
    """n · 10^(exponent - digits + 1) as text, where n has so many digits: all of them are shown."""
    n = int(n)
    if -6 < exponent < digits:
        return point(n, digits - 1 - exponent)
    first, rest = divmod(abs(n), 10 ** (digits - 1))
    mantissa = f"{first}.{rest:0{digits - 1}d}" if digits > 1 else str(first)
    return f"{'-' if n < 0 else ''}{mantissa}e{exponent}"


def short(number: float) -> str:
    """A float as four decimals for ordinary sizes, four digits with an exponent for others.

    >>> short(-0.5), short(1e-7), short(123456.0), short(float("-inf")), short(-0.0)
    ('-0.5000', '1.000e-07', '1.235e+05', '-inf', '0.0000')
    """
    if isnan(number):
        return "nan"
    if isinf(number):
        return "inf" if number > 0 else "-inf"
    if number == 0:
        return "0.0000"
    if 1e-3 <= abs(number) < 1e5:
        return f"{number:.4f}"
    return f"{number:.3e}"
