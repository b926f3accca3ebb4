"""Sizes of errors as text: shares of the allowed error, multiples of the usual one, ulps."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from math import ceil, floor, inf, isfinite, log10
from typing import Any

from byhand.document.words import whole
from byhand.language import _
from byhand.numbers.written import LONGEST

HUNDREDTH, LITTLE = 0.01, "<0.01"
MOST_PLACES = 17
SLIP = 1e-4  # per cent: rounding of a share in float32 does not round it up


# ------------------------------------------------------------------ shares of what is allowed


def share_text(share: float) -> str:
    """A share of the allowed error: in per cent up to 100 %, then as a multiple."""
    if share != share or share == inf:
        return "∞"
    if share > 1:
        return excess_text(share)
    if share == 0:
        return "0%"
    per_cent = share * 100
    if per_cent < 0.1:
        return "<0.1%"
    if per_cent < 10:
        return f"{ceil(per_cent * 10 - SLIP) / 10:g}%"
    return f"{ceil(per_cent - SLIP)}%"


def excess_text(share: float) -> str:
    """A multiple of the bound; never 1× for an error beyond it."""
    if not isfinite(share):
        return "∞"
    if share < 10:
        return f"{max(share, 1.01):.2f}".rstrip("0").rstrip(".") + "×"
    return times_text(share) + "×"


def times_text(times: float) -> str:
    """A factor, to two or three digits."""
    if not isfinite(times):
        return "∞"
    if times < 10:
        return f"{times:.1f}"
    if times < 100_000:
        return whole(round(times))
    return _short(f"{times:.1e}")


# ------------------------------------------------------------------ floats


def as_text(found: Any) -> str:
    """The shortest decimal that reads back to the float, written like proven digits."""
    number = Decimal(str(found))
    if not number.is_finite():
        return str(found)
    if not number:
        return "0"
    exponent = number.as_tuple().exponent
    if -6 < number.adjusted() < LONGEST and int(exponent) <= 0:  # zeros would look like digits
        text = f"{number:f}"
        return text.removesuffix(".0")
    sign, digits, _exponent = number.normalize().as_tuple()
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' * sign}{mantissa}e{number.adjusted()}"


def number_text(value: float, unit: float) -> str:
    """A number written to about a unit, in few characters."""
    if not isfinite(value):
        return str(value)
    if not unit or not isfinite(unit):
        return as_text(value)
    places = max(-floor(log10(unit)), 0)
    if value and abs(value) < 1e-5:
        digits = max(floor(log10(abs(value))) - floor(log10(unit)), 0)
        return f"{value:.{min(digits, MOST_PLACES)}e}".replace("e-0", "e-")
    if places > MOST_PLACES or abs(value) >= 1e15:
        return as_text(value)
    return f"{value:.{places}f}"


def size_text(size: float) -> str:
    """A bound to two digits."""
    if not isfinite(size):
        return "∞"
    if not size:
        return "0"
    if 1e-3 <= size < 1e5:
        return f"{size:.2g}" if size < 100 else whole(round(size))
    return _short(f"{size:.1e}")


def _short(number: str) -> str:
    """1.0e-07 as 1e-7."""
    for long, short in ((".0e", "e"), ("e-0", "e-"), ("e+0", "e"), ("e+", "e")):
        number = number.replace(long, short)
    return number


# ------------------------------------------------------------------ units of the last place


def ulps(error: float) -> str:
    """An error in ulps, rounded up, but for the tiny excess of a proven bound."""
    return _written(error * (1 - 2.0**-30), ceil)


def ulps_below(error: float) -> str:
    """A lower bound of an error in ulps, rounded down."""
    return _written(error, floor)


def at_least(error: float) -> str:
    """The proven lower bound of an error that may be larger."""
    return f"≥ {ulps_below(error)}" if error >= HUNDREDTH else "> 0"


def _written(error: float, to_whole: Callable[[float], int]) -> str:
    if not isfinite(error):
        return "∞"
    if error < HUNDREDTH:
        return LITTLE if error else "0"
    if error < 10:
        return f"{to_whole(error * 100) / 100:.2f}"
    if error < 100_000:
        return whole(to_whole(error))
    unit = 10 ** (floor(log10(error)) - 1)
    return f"{to_whole(error / unit) * unit:.1e}".replace("e+0", "e").replace("e+", "e")


def same(least: float, most: float) -> bool:
    """Whether two bounds of an error have the same text."""
    return ulps(most) in (ulps(least), LITTLE)


def bounded(least: float, most: float) -> str:
    """An error between two bounds; ? if nothing is known of it."""
    if same(least, most):
        return ulps(most)
    if least >= HUNDREDTH:
        return at_least(least)
    return f"≤ {ulps(most)}" if isfinite(most) else at_least(least) if least > 0 else "?"


def right_digits(count: float) -> str:
    """How many digits are right, rounded down."""
    return f"{floor(count * 10) / 10:.1f}" if isfinite(count) else _("all")


# ------------------------------------------------------------------ sizes between bounds


def between(least: float, most: float) -> str:
    """A size between two bounds to three digits; ≤ where they do not agree on them."""
    if not isfinite(most):
        return "?"
    low, high = (_three(size) for size in (least, most))
    return high if low == high else f"≤ {_short(f'{_above(most):.2e}')}"


def between_shares(least: float, most: float) -> str:
    """The same of a share, in per cent."""
    found = between(100 * least, 100 * most)
    return found if found == "?" else f"{found}%"


def _three(size: float) -> str:
    if not size:
        return "0"
    if 1e-3 <= size < 1e4:
        places = max(2 - floor(log10(size)), 0)
        return f"{size:.{places}f}"
    return _short(f"{size:.2e}")


def _above(size: float) -> float:
    """The size rounded up to three digits."""
    if not size:
        return 0.0
    unit = Decimal(10) ** (floor(log10(size)) - 2)
    return float((Decimal(size) / unit).to_integral_value(ROUND_CEILING) * unit)
