"""Weights as forms: what is known only within a radius gets a letter of its own."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from numbers import Rational
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Within
from byhand.numbers.exact.read import evaluate
from byhand.numbers.exact.space import Space
from byhand.numbers.forms.arithmetic import Arithmetic, Number
from byhand.numbers.forms.form import Form
from byhand.numbers.forms.rounding import Data


def known_floats(data: Any, arithmetic: Arithmetic) -> Form:
    """Floats of any format, as they are."""
    values = np.asarray(data).astype(np.float64)
    if not np.isfinite(values).all():
        found = values[~np.isfinite(values)].ravel()[0]
        raise InputError(_("not a finite number"), found=str(float(found)))
    terms = arithmetic.of_floats(values)[None, None]
    return Form(terms, arithmetic.zeros(terms.shape))


def known_numbers(data: Any, space: Space, arithmetic: Arithmetic, free: range) -> tuple[Form, int]:
    """The form of an array of entries, and how many of the free letters it has taken.

    Where there are more ranges than free letters, none of this array gets one: they are errors.
    """
    entries = np.asarray(data, dtype=object)
    flat = entries.ravel()
    middles, unsure, absent = enclosed(flat, space, arithmetic)
    ranges = [place for place, entry in enumerate(flat) if isinstance(entry, Printed | Within)]
    lettered = 0 < len(ranges) <= len(free)
    terms = arithmetic.zeros((free.start + len(ranges) if lettered else 1, flat.size))
    errors = arithmetic.zeros((1, flat.size))
    terms[0], errors[0] = middles, unsure
    for letter, place in enumerate(ranges, start=free.start):
        wide, error = arithmetic.of_number(flat[place].radius)
        errors[0, place] += error
        if lettered:
            terms[letter, place] = wide
        else:
            errors[0, place] += wide
    if ranges:
        arithmetic.covered(errors, 2)
    form = Form(terms.reshape(-1, 1, *entries.shape), errors.reshape(1, 1, *entries.shape))
    if absent.any():
        form.absent = absent.reshape(1, *entries.shape)
    return form, len(ranges) if lettered else 0


def enclosed(flat: Data, space: Space, arithmetic: Arithmetic) -> tuple[Data, Data, Data]:
    """The numbers, of ranges the middles, their errors, and where there is no number."""
    absent = np.array([entry is ABSENT for entry in flat], dtype=bool)
    found = [
        arithmetic.of_number(0.0 if entry is ABSENT else number_of(entry, space)) for entry in flat
    ]
    return (
        arithmetic.array([middle for middle, _error in found]),
        arithmetic.array([error for _middle, error in found]),
        absent,
    )


def number_of(entry: Any, space: Space) -> Number:
    """The number of an entry, exactly; of a range its middle."""
    if isinstance(entry, Printed | Within):
        return entry.value
    if isinstance(entry, Expression):
        value = evaluate(entry, space)
        return value if value.fraction is None else value.fraction
    if isinstance(entry, Rational):
        return Fraction(entry)
    if isinstance(entry, str) or not hasattr(entry, "__float__"):
        raise InputError(_("not a number"), found=repr(entry)[:60])
    number = float(entry)
    if not isfinite(number):
        raise InputError(_("not a finite number"), found=str(number))
    return number
