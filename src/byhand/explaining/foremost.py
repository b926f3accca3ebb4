"""The terms of a sum that matter most, the others added up: so that a short list still closes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import isnan
from typing import Any

import numpy as np

from byhand.explaining.approximations import floats_near
from byhand.explaining.attribution import Attribution, Term
from byhand.numbers.base import Numbers

LARGEST = 1e300  # of a size: many of them still have a sum


@dataclass(frozen=True)
class Foremost:
    """Some terms, largest first or as the spine has them, and what all the others add up to.

    `sizes` are finite floats near the terms and near `rest`: they serve to draw and to order.
    """

    terms: tuple[Term, ...]
    sizes: tuple[float, ...]
    others: tuple[Term, ...] = ()  # which `rest` adds up
    rest: Any = None  # a value (1, 1) of the numbers
    rest_size: float = 0.0


def foremost(attribution: Attribution, most: int | None = None) -> Foremost:
    """Of an attribution with one position and one column at most so many terms."""
    terms = tuple(term for term in attribution.terms if term.missing is None)
    numbers = attribution.trace.numbers
    near = [size for size, term in zip(sizes(attribution), attribution.terms, strict=True)
            if term.missing is None]  # fmt: skip
    if most is None or len(terms) <= most:
        return Foremost(terms, tuple(near))
    order = np.argsort([-abs(size) for size in near], kind="stable")
    shown, others = order[: most - 1], sorted(order[most - 1 :])
    rest = reduce(numbers.add, (terms[place].value for place in others))
    return Foremost(
        tuple(terms[place] for place in shown),
        tuple(near[place] for place in shown),
        tuple(terms[place] for place in others),
        rest,
        _size(numbers, rest),
    )


def sizes(attribution: Attribution) -> list[float]:
    """A finite float near each term of an attribution with one position and one column; 0 where it
    is missing or no number."""
    numbers = attribution.trace.numbers
    return [
        0.0 if term.missing is not None else _size(numbers, term.value)
        for term in attribution.terms
    ]


def _size(numbers: Numbers, value: Any) -> float:
    size = float(floats_near(numbers, value)[0, 0])
    return 0.0 if isnan(size) else max(-LARGEST, min(size, LARGEST))
