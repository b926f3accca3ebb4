"""Arrays of affine forms, for many cases at once, and what can be asked of them.

An entry of a form is  terms[0] + Σ terms[l]·ε_l ± Σ errors,  where every letter ε_l lies between -1
and 1.  Whatever the letters are, the real value is within the errors of the rest.  `terms` and
`errors` have axes (letter, case, …): letter 0 of `terms` is the middle; errors[l] is what the
curvature of functions costs because of letter l, errors[0] is rounding, and what no letter causes.
An array with fewer letters or errors than another has zeros there.  One case stands for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import ctx

from byhand.numbers.forms.arithmetic import SPARE, arithmetic_of
from byhand.numbers.forms.rounding import Data, Truths, quiet, slack, total


@dataclass(eq=False, slots=True)
class Form:
    """An array of affine forms.  Terms are finite; errors are not negative, and may be infinite."""

    terms: Data  # (letters + 1, cases, *shape)
    errors: Data  # (1, cases, *shape), or with one row for each letter
    absent: Truths | None = None  # (cases or 1, *shape): masked scores and weights
    made: tuple[Any, ...] = ()  # the operation that made it, and its sources, where that helps
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # of weights, for later use

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the plan knows: without letters and cases."""
        return self.terms.shape[2:]

    @property
    def ndim(self) -> int:
        """The number of axes that the plan knows."""
        return self.terms.ndim - 2

    @property
    def cases(self) -> int:
        """How many cases there are; 1 stands for any number."""
        return int(self.terms.shape[1])

    @property
    def letters(self) -> int:
        """How many letters the array may depend on."""
        return max(len(self.terms), len(self.errors)) - 1

    def __len__(self) -> int:
        return self.shape[0]

    def each(self, view: Callable[[Data], Data]) -> Form:
        """The form with `view` applied to each of its arrays; it may touch the last axes alone."""
        absent = None if self.absent is None else view(self.absent)
        return Form(view(self.terms), view(self.errors), absent)

    def aligned(self, ndim: int) -> Form:
        """The same with axes of length 1 in front, so that it has `ndim` of them."""
        if self.ndim == ndim:
            return self
        ones = (1,) * (ndim - self.ndim)
        return self.each(
            lambda part: part.reshape(*part.shape[: -self.ndim or None], *ones, *self.shape)
        )


@quiet
def settled(terms: Data, errors: Data, absent: Truths | None = None) -> Form:
    """The form of these arrays; where a term is not finite, nothing is claimed."""
    arithmetic_of(terms).settled(terms, errors)
    return Form(terms, errors, absent)


def negative(x: Form) -> Form:
    """-x."""
    return Form(-x.terms, x.errors, x.absent)


def plus(x: Data, y: Data) -> Data:
    """The sum of two arrays by letter, as a new array."""
    if len(x) == len(y):
        return x + y
    if len(x) < len(y):
        x, y = y, x
    shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
    result = np.empty((len(x), *shape), dtype=x.dtype)
    np.add(x[: len(y)], y, out=result[: len(y)])
    result[len(y) :] = x[len(y) :]
    return result


# ----------------------------------------------------------------------- what can be asked


def sizes(x: Form) -> Data:
    """Σ |term| of each entry, not rounded upward: (cases, *shape)."""
    return total(np.abs(x.terms))


@quiet
def radius(x: Form) -> Data:
    """How far an entry may be from its middle: (cases, *shape)."""
    found = total(x.errors)
    if len(x.terms) > 1:
        found = found + total(np.abs(x.terms[1:]))
    return found if found.dtype == object else found * slack(len(x.terms) + len(x.errors))


@quiet
def ends(x: Form) -> tuple[Data, Data]:
    """Float64 bounds (low, high) of each entry, rounded outward: (cases, *shape), both."""
    return arithmetic_of(x.terms).spread(x.terms[0], radius(x))


def influence(x: Form) -> Data:
    """By which letter how much of an entry's width comes: (letters, cases, *shape), float64.

    |coefficient| plus what curvature costs because of the letter.  It is no bound: a measure.
    """
    nearly = arithmetic_of(x.terms).nearly
    both = np.zeros((x.letters + 1, *x.terms.shape[1:]))
    both[1 : len(x.terms)] = np.abs(nearly(x.terms[1:]))
    both[1 : len(x.errors)] += nearly(x.errors[1:])
    return both[1:]


def take_cases(x: Form, places: Sequence[int] | npt.NDArray[np.intp]) -> Form:
    """The cases at these places, in this order; a place may come several times.

    A form of one case stands for all: it stays as it is.
    """
    if x.cases == 1 and (x.absent is None or len(x.absent) == 1):
        return x
    chosen = np.asarray(places, dtype=np.intp)
    absent = x.absent
    if absent is not None and len(absent) > 1:
        absent = absent[chosen]
    if x.cases == 1:
        return Form(x.terms, x.errors, absent)
    return Form(x.terms[:, chosen], x.errors[:, chosen], absent)


@quiet
def differences(rows: Form, ahead: npt.NDArray[np.intp]) -> Form:
    """The forms of x[ahead] - x[j] for each entry j of a row; `ahead` is one index per case.

    What both entries share cancels before any bound is taken.
    """
    places = np.asarray(ahead, dtype=np.intp)
    cases = np.arange(len(places)) if rows.cases > 1 else np.zeros(len(places), dtype=np.intp)
    leading, errors = (part[:, cases, places, None] for part in (rows.terms, rows.errors))
    arithmetic = arithmetic_of(rows.terms)
    with ctx.workprec(SPARE):
        terms, unsure = leading - rows.terms, errors + rows.errors
        own = (slice(None), np.arange(len(places)), places)
        terms[own], unsure[own] = terms[own] * 0, unsure[own] * 0  # x - x is 0
        if arithmetic.rounded(1):
            unsure[0] += total(np.abs(terms)) * arithmetic.rounded(1)
        return settled(terms, arithmetic.covered(unsure, len(terms) + 4))
