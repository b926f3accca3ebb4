"""Weights as forms: what is known only within a radius gets a letter of its own.

A float64 is itself; 1/3, √2/2 or e^80 is the nearest float64 with a proven error.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, nextafter
from numbers import Rational
from typing import Any

import numpy as np
from flint import arb, ctx

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Within, nearest_float
from byhand.numbers.exact.read import evaluate
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import Value
from byhand.numbers.forms.form import Form

BITS = 160  # of the balls from which floats and their errors are taken


def exact_floats(data: Any) -> Form:
    """Floats of any format, as they are."""
    values = np.asarray(data).astype(np.float64)
    if not np.isfinite(values).all():
        found = values[~np.isfinite(values)].ravel()[0]
        raise InputError(_("not a finite number"), found=str(float(found)))
    terms = values.reshape(1, 1, *values.shape)
    return Form(terms, np.zeros(terms.shape))


def known_numbers(data: Any, space: Space, free: range) -> tuple[Form, int]:
    """The form of an array of entries, and how many of the free letters it has taken.

    Where there are more ranges than free letters, none of this array gets one: they are errors.
    """
    entries = np.asarray(data, dtype=object)
    flat = entries.ravel()
    ranges = [place for place, entry in enumerate(flat) if isinstance(entry, Printed | Within)]
    lettered = 0 < len(ranges) <= len(free)
    terms = np.zeros((free.start + len(ranges) if lettered else 1, flat.size))
    errors = np.zeros((1, flat.size))
    absent = np.zeros(flat.size, dtype=bool)
    for place, entry in enumerate(flat):
        if entry is ABSENT:
            absent[place] = True
        elif isinstance(entry, Printed | Within):
            terms[0, place], errors[0, place] = nearest(entry.value)
        else:
            terms[0, place], errors[0, place] = nearest(_number(entry, space))
    for letter, place in enumerate(ranges, start=free.start):
        wide, error = nearest(flat[place].radius)
        if lettered:
            terms[letter, place] = wide
        errors[0, place] = nextafter(errors[0, place] + error + wide * (not lettered), inf)
    shape = entries.shape
    form = Form(terms.reshape(-1, 1, *shape), errors.reshape(1, 1, *shape))
    if absent.any():
        form.absent = absent.reshape(1, *shape)
    return form, len(ranges) if lettered else 0


def _number(entry: Any, space: Space) -> Fraction | Value | float:
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


def nearest(number: Fraction | Value | float) -> tuple[float, float]:
    """A float64 and a bound of its distance from the number; infinite beyond float64's range."""
    if isinstance(number, float):
        return number, 0.0
    if isinstance(number, Fraction):
        found = nearest_float(number)
        if not isfinite(found):
            return 0.0, inf
        apart = nearest_float(abs(number - Fraction(found)))
        return found, nextafter(apart, inf) if number != Fraction(found) else 0.0
    return nearest_to_ball(number.ball(BITS))


def nearest_to_ball(ball: arb) -> tuple[float, float]:
    """A float64 and a bound of its distance from every number of the ball."""
    if not ball.is_finite() or not ball.abs_upper() < 2.0**1000:
        return 0.0, inf
    found = float(ball.mid())
    with ctx.workprec(BITS):
        apart = (ball - found).abs_upper()
        return found, 0.0 if apart == 0 else nextafter(nextafter(float(apart), inf), inf)
