"""The float64 nearest to an exact-or-named value."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from byhand.numbers.base import nearest_float

if TYPE_CHECKING:
    from byhand.numbers.exact.value import Value

BEYOND = Fraction(2) ** 1024  # what float64 calls infinite
VANISHING = Fraction(1, 2**1075)  # below this, the nearest float64 is 0


def float_of(entry: Value) -> float:
    """The float64 nearest to a value; of an enclosed one, nearest to its middle.

    Proven wherever the value can be separated from the middle between two floats.
    """
    if (fraction := entry.fraction) is not None:
        return nearest_float(fraction)
    if entry.register == "enclosed":
        return nearest_float(Fraction(entry.interval(20)[0]))
    if not -BEYOND < entry < BEYOND:  # told apart first: e^(e^80) has more digits than fit anywhere
        return float("inf") if entry > 0 else float("-inf")
    if -VANISHING < entry < VANISHING:  # also what is not separated from 0
        return 0.0
    for digits in (20, 40, 80):
        text = entry.significant(digits)
        middle, unit = Fraction(text), _last_unit(text)
        low, high = nearest_float(middle - unit), nearest_float(middle + unit)
        if low == high:
            return low
    return nearest_float(middle)


def _last_unit(text: str) -> Fraction:
    """One unit of the last place of a decimal such as -0.250 or 1.5e-7."""
    mantissa, _e, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return Fraction(10) ** (int(exponent or 0) - places)
