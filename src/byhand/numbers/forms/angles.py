"""Sines and cosines as forms: worked out by Arb once for each plan."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx, fmpq

from byhand.numbers.forms.arithmetic import BITS, Arithmetic
from byhand.numbers.forms.form import Form, radius


def _powers(base: Fraction, width: int, count: int) -> list[arb]:
    """base^(-2i/width)."""
    log = arb(fmpq(base.numerator, base.denominator)).log()
    return [(log * arb(fmpq(-2 * i, width))).exp() for i in range(count)]


def _form(balls: list[arb], shape: tuple[int, ...], arithmetic: Arithmetic) -> Form:
    pairs = [arithmetic.of_ball(ball) for ball in balls]
    middles, errors = (arithmetic.array(part) for part in zip(*pairs, strict=True))
    return Form(middles.reshape(1, 1, *shape), errors.reshape(1, 1, *shape))


@lru_cache(maxsize=64)
def waves(
    positions: tuple[int, ...], width: int, base: Fraction, arithmetic: Arithmetic, bits: int = BITS
) -> Form:
    """sin and cos of position / base^(2i/width), at entries 2i and 2i + 1."""
    with ctx.workprec(bits):
        frequencies = _powers(base, width, (width + 1) // 2)
        both = [part for p in positions for f in frequencies for part in (f * p).sin_cos()]
        found = _form(both, (len(positions), 2 * len(frequencies)), arithmetic)
    return found.each(lambda part: np.ascontiguousarray(part[..., :width]))


@lru_cache(maxsize=64)
def turns(
    positions: tuple[int, ...], width: int, base: Fraction, arithmetic: Arithmetic, bits: int = BITS
) -> tuple[Form, Form]:
    """The cosines and sines of position · base^(-2i/width)."""
    with ctx.workprec(bits):
        return _turned(positions, _powers(base, width, width // 2), arithmetic)


def given_turns(
    positions: tuple[int, ...], frequencies: Form, arithmetic: Arithmetic, bits: int = BITS
) -> tuple[Form, Form]:
    """The same with given frequencies.  A range of theirs has no letter behind a cosine."""
    if bits not in (kept := frequencies.kept.setdefault(positions, {})):
        with ctx.workprec(bits):
            pairs = zip(frequencies.terms[0, 0], radius(frequencies)[0], strict=True)
            balls = [arb(middle) + arb(0, arb(far).upper()) for middle, far in pairs]
            kept[bits] = _turned(positions, balls, arithmetic)
    found: tuple[Form, Form] = kept[bits]
    return found


def _turned(
    positions: tuple[int, ...], frequencies: list[arb], arithmetic: Arithmetic
) -> tuple[Form, Form]:
    both = [(f * p).sin_cos() for p in positions for f in frequencies]
    shape = len(positions), len(frequencies)
    return (
        _form([cos for _sin, cos in both], shape, arithmetic),
        _form([sin for sin, _cos in both], shape, arithmetic),
    )
