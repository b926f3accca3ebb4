"""The number of a float format that is nearest to an exact value, each rounded once.

Rationals are rounded by integer arithmetic; named values (√2/2) by enclosures that are made
narrower until both ends round to the same number.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import inf, isfinite, ldexp
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from byhand.errors import InputError, Undecided
from byhand.expression import Expression, write
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed
from byhand.numbers.floats.formats import FLOAT64, FORMATS, NARROWER, Data, Format, narrowed

if TYPE_CHECKING:
    from flint import arb

    from byhand.numbers.exact import Value

PRECISIONS = (64, 128, 256, 512, 1024, 2048, 4096)  # bits of the enclosures, one after the other


def nearest(value: Fraction | int, form: Format) -> float:
    """The number of the format nearest to a rational, ties to even; infinite beyond its range."""
    top, bottom = abs(value.numerator), value.denominator
    if top == 0:
        return 0.0
    exponent = top.bit_length() - bottom.bit_length()  # 2^(exponent-1) < |value| < 2^(exponent+1)
    if top << max(-exponent, 0) < bottom << max(exponent, 0):
        exponent -= 1
    unit = max(exponent, form.least) - form.bits + 1  # of the last place: 2^unit
    count = round(Fraction(top << max(-unit, 0), bottom << max(unit, 0)))  # ties to even
    size = inf if count >> form.bits - 1 and _beyond(count, unit, form) else ldexp(count, unit)
    return size if value > 0 else -size


def _beyond(count: int, unit: int, form: Format) -> bool:
    return unit + count.bit_length() - 1 > form.most


def nearest_value(value: Value, form: Format) -> float:
    """The number of the format nearest to an exact-or-named value: proven, or Undecided."""
    if value.fraction is not None:
        return nearest(value.fraction, form)
    for bits in PRECISIONS:
        low, high = (_bound(end, form) for end in _ends(value.ball(bits)))
        if low == high:
            return low
    # it lies very near the middle of two neighbours: algebra may know that it is the middle
    middle = (Fraction(low) + Fraction(high)) / 2
    side = value.space.compare(value, value.space.value(middle))
    return nearest(middle, form) if side == 0 else low if side < 0 else high


def _ends(ball: arb) -> tuple[arb, arb]:
    if not ball.is_finite():
        raise Undecided(_("the value is not enclosed"), found=ball.str(6))
    return ball.lower(), ball.upper()


def _bound(end: arb, form: Format) -> float:
    """An end of an enclosure, rounded; extreme exponents are handled first."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    size = mantissa.bit_length() + exponent
    if mantissa == 0 or size < form.least - form.bits - 1:
        return 0.0
    if size > form.most + 2:
        return inf if mantissa > 0 else -inf
    return nearest(mantissa * Fraction(2) ** exponent, form)


@lru_cache(maxsize=1024)
def constant(value: Expression | Fraction, form: Format) -> Any:
    """A constant of the plan, such as 1/√8 or an eps: the nearest number, as a NumPy scalar.

    >>> from byhand.numbers.floats.formats import FORMATS
    >>> print(constant(Fraction(1, 10), FORMATS["float16"]))
    0.1
    """
    if isinstance(value, Fraction):
        near = nearest(value, form)
    else:
        from byhand.numbers.exact import Exact  # rarely needed

        near = nearest_value(Exact().scalar(value), form)
    return form.dtype.type(near)


def admitted(data: Any, form: Format) -> Data:
    """The array in the format, or unchanged where it is in a narrower one; masks stay.

    Other arrays are rounded, each entry once.  A finite entry that is too large for the format is
    an InputError.  The caller must silence overflow warnings.
    """
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.MaskedArray(admitted(data.data, form), mask=data.mask)
    values = np.asarray(data)
    if values.dtype == form.dtype or values.dtype in NARROWER[form.dtype]:
        return values
    known = any(values.dtype == other.dtype for other in FORMATS.values())
    rounded = narrowed(values, form.dtype) if known else nearest_entries(values, form)
    error = too_large(values, rounded, form)
    if error is not None:
        raise error
    return rounded


def nearest_entries(data: Data, form: Format) -> Data:
    """An array of Fraction, Expression, Printed, ABSENT or numbers, each rounded once.

    A rounded decimal is taken as it is printed; ABSENT entries are masked, with -∞ below the mask.
    """
    flat = data.ravel()
    floats = np.fromiter((_nearest_entry(x, form) for x in flat), dtype=FLOAT64, count=flat.size)
    result = floats.reshape(data.shape).astype(form.dtype)  # each is a number of the format
    absent = np.fromiter((x is ABSENT for x in flat), dtype=bool, count=flat.size)
    if not absent.any():
        return result
    return np.ma.MaskedArray(result, mask=absent.reshape(data.shape))


def _nearest_entry(entry: Any, form: Format) -> float:
    if entry is ABSENT:
        return -inf
    if isinstance(entry, Printed):
        return nearest(entry.value, form)
    if isinstance(entry, Expression):
        return float(constant(entry, form))
    if isinstance(entry, Fraction):
        return nearest(entry, form)
    if isinstance(entry, Integral):  # NumPy's integers are
        return nearest(int(entry), form)
    if isinstance(entry, str) or not hasattr(entry, "__float__"):
        raise InputError(_("not a number"), found=repr(entry)[:60])
    if not isfinite(entry):
        return float(entry)
    whole = getattr(entry, "as_integer_ratio", float(entry).as_integer_ratio)
    return nearest(Fraction(*whole()), form)


def too_large(data: Data, rounded: Data, form: Format) -> InputError | None:
    """The error for a finite number that the format cannot hold; None where all fit."""
    odd = ~np.isfinite(np.ma.getdata(rounded)) & ~np.ma.getmaskarray(rounded)
    for index in map(tuple, np.argwhere(odd)):
        entry = data[index]
        if isinstance(entry, Expression | Fraction | Printed) or isfinite(entry):
            return InputError(
                _("the entry [{index}] is too large for {format}").format(
                    index=",".join(map(str, index)), format=form.name
                ),
                expected=_("at most {most}").format(most=f"{form.largest:.5g}"),
                found=_shown(entry),
            )
    return None


def _shown(entry: Any) -> str:
    if isinstance(entry, Printed):
        entry = entry.value
    text = write(entry) if isinstance(entry, Expression) else str(entry)
    return text if len(text) <= 60 else text[:59] + "…"
