"""Random forms of any width and size, and single numbers taken out of them.

A choice fixes every letter, and for every entry where in its errors the number is.  An operation on
the chosen numbers, in Arb balls, must give a number that lies in the operation's form at the same
letters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.forms import Form, Forms

BITS = 2048
CASES = 2
Call = Callable[..., Any]


def random_form(
    numbers: Forms,
    random: Random,
    shape: tuple[int, ...],
    *,
    letters: int,
    size: float,
    wide: float,
) -> Form:
    """Middles of about this size, coefficients and errors of about `wide`; some of them are 0."""

    def some(scale: float, count: int, often: float) -> Any:
        flat = [
            random.gauss(0, 1) * scale if random.random() < often else 0.0
            for _entry in range(count * CASES * int(np.prod(shape)))
        ]
        return np.array(flat).reshape(count, CASES, *shape)

    terms = np.concatenate((some(size, 1, 0.9), some(wide, letters, 0.7)))
    errors = np.abs(some(wide / 4, letters + 1, random.choice((0.0, 0.3))))
    form = numbers.given(terms)
    return Form(form.terms, numbers.arithmetic.of_floats(errors))


def choices(form_letters: int, random: Random, count: int) -> Iterator[list[Fraction]]:
    """The corners of few letters, and numbers between."""
    for choice in range(count):
        corner = [1 - 2 * (choice >> letter & 1) for letter in range(form_letters)]
        inner = [Fraction(random.randrange(-100, 101), 100) for _letter in range(form_letters)]
        yield [Fraction(one) for one in (corner if choice < 2**form_letters else inner)]


def chosen(form: Form, letters: list[Fraction], case: int, random: Random) -> Any:
    """One number of each entry, exactly: at these letters, somewhere within its errors."""
    result = np.empty(form.shape, dtype=object)
    for index in np.ndindex(form.shape):
        place = (slice(None), case, *index)
        number = sum(
            exactly(term) * letter
            for term, letter in zip(form.terms[place], [Fraction(1), *letters], strict=True)
        )
        lean = random.choice((-1, 1, 0, random.random()))
        result[index] = number + sum(exactly(e) for e in form.errors[place]) * Fraction(lean)
    return result


def exactly(number: Any) -> Fraction:
    """A float, or an Arb number, as a fraction."""
    if isinstance(number, arb):
        man, exp = map(int, number.mid().man_exp())
        return Fraction(man) * Fraction(2) ** exp
    return Fraction(float(number))


def missed(
    numbers: Forms, call: Call, forms: list[Form], random: Random, count: int
) -> Iterator[str]:
    """Numbers of the operation that are not in its form, as text."""
    result = call(numbers, *forms)
    letters = max(form.letters for form in forms)
    for choice in choices(letters, random, count):
        for case in range(CASES):
            balls = Balls(BITS)
            single = [
                balls.admit(chosen(form, choice[: form.letters], case, random)) for form in forms
            ]
            real = balls._balls(call(balls, *single))
            for index, ball in np.ndenumerate(real):
                value: Any = ball
                if value is ABSENT:
                    assert result.absent[0][index]
                elif value.is_finite() and not holds(result, choice, case, index, value):
                    yield f"{list(index)} of case {case} at {list(map(str, choice))}: {value}"


def holds(
    form: Form, letters: list[Fraction], case: int, index: tuple[int, ...], ball: arb
) -> bool:
    """Whether a number is within the errors of the form's terms at these letters."""
    place: Any = (slice(None), min(case, form.cases - 1), *index)
    with ctx.workprec(2 * BITS):
        value = ball
        for term, letter in zip(form.terms[place], [Fraction(1), *letters], strict=False):
            value = value - arb(term) * fmpq(letter.numerator, letter.denominator)
        room = sum(map(arb, form.errors[place]), arb(0))
        return bool(value.abs_lower() <= room.upper()) or not room.is_finite()
