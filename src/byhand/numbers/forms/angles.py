"""Sines and cosines as forms: worked out by Arb once for each plan, and rounded to float64."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from byhand.numbers.forms.form import Form
from byhand.numbers.forms.weights import BITS, nearest_to_ball


def _frequencies(base: Fraction, width: int, count: int) -> list[arb]:
    """base^(-2i/width)."""
    log = arb(fmpq(base.numerator, base.denominator)).log()
    return [(log * arb(fmpq(-2 * i, width))).exp() for i in range(count)]


def _form(balls: list[arb], shape: tuple[int, ...]) -> Form:
    numbers = np.array([nearest_to_ball(ball) for ball in balls]).reshape(*shape, 2)
    return Form(numbers[None, None, ..., 0], numbers[None, None, ..., 1])


@lru_cache(maxsize=64)
def waves(positions: tuple[int, ...], width: int, base: Fraction) -> Form:
    """sin and cos of position / base^(2i/width), at entries 2i and 2i + 1."""
    with ctx.workprec(BITS):
        frequencies = _frequencies(base, width, (width + 1) // 2)
        both = [part for p in positions for f in frequencies for part in (f * p).sin_cos()]
    found = _form(both, (len(positions), 2 * len(frequencies)))
    return found.each(lambda part: np.ascontiguousarray(part[..., :width]))


@lru_cache(maxsize=64)
def _turns(positions: tuple[int, ...], turning: tuple[Any, ...]) -> tuple[Form, Form]:
    shape = len(positions), len(turning)
    with ctx.workprec(BITS):
        both = [(arb(*f) * p).sin_cos() for p in positions for f in turning]
    return _form([cos for _sin, cos in both], shape), _form([sin for sin, _cos in both], shape)


@lru_cache(maxsize=64)
def _powers(base: Fraction, width: int) -> tuple[tuple[arb, arb], ...]:
    with ctx.workprec(BITS):
        return tuple((f.mid(), f.rad()) for f in _frequencies(base, width, width // 2))


def turns(
    positions: tuple[int, ...], width: int, base: Fraction, given: Form | None
) -> tuple[Form, Form]:
    """The cosines and sines of position · frequency.

    Ranges of given frequencies are errors here: no letter of theirs goes through a cosine.
    """
    if given is None:
        return _turns(positions, _powers(base, width))
    if len(given.terms) == 1 and not given.errors.any():
        return _turns(positions, tuple((f, 0.0) for f in given.terms[0, 0].tolist()))
    wide = np.abs(given.terms[1:]).sum(axis=0)[0] + given.errors.sum(axis=0)[0]
    wide = wide * (1 + 2.0**-40)
    return _turns(positions, tuple(zip(given.terms[0, 0].tolist(), wide.tolist(), strict=True)))
