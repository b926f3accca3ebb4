"""The largest terms of a sum, with the sum of the others, and the largest entries of table rows.

Terms and entries are ordered by floats near them, which proves nothing.  Ranges, which rounded
weights give, are ordered only where they do not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import isnan
from typing import Any

import numpy as np

from byhand.explaining.approximations import Floats, floats_near
from byhand.explaining.attribution import Attribution, Term
from byhand.numbers.base import Numbers

LARGEST = 1e300  # the largest size: a sum of many is still finite
FOREMOST = 3  # largest columns listed for each row
MOST_ROWS = 6  # clearest rows that are listed
ALIKE = 1e-9  # of the row's spread: two entries that are nearer count as equal


@dataclass(frozen=True)
class Foremost:
    """Some terms, largest first or in spine order, and the sum of all the others.

    `sizes` are finite floats near the terms and near `rest`, for drawing and ordering.
    """

    terms: tuple[Term, ...]
    sizes: tuple[float, ...]
    others: tuple[Term, ...] = ()  # the terms whose sum is `rest`
    rest: Any = None  # a value (1, 1) of the numbers
    rest_size: float = 0.0


def foremost(attribution: Attribution, most: int | None = None) -> Foremost:
    """The `most` largest terms of an attribution with one position and one column."""
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
    """A finite float near each term of an attribution with one position and column; 0 where the
    term is missing or NaN."""
    numbers = attribution.trace.numbers
    return [
        0.0 if term.missing is not None else _size(numbers, term.value)
        for term in attribution.terms
    ]


def _size(numbers: Numbers, value: Any) -> float:
    size = float(floats_near(numbers, value)[0, 0])
    return 0.0 if isnan(size) else max(-LARGEST, min(size, LARGEST))


# ------------------------------------------------------------------ the entries of tables


def strongest_of(near: Floats, room: Floats, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The columns with the largest entries of each row, as token ids.  Masked entries are left out;
    a row whose entries are all alike, or may be, has none."""
    found = []
    for row, around in zip(near, room, strict=True):
        known = np.flatnonzero(~np.isnan(row))
        if _alike(row[known], around[known]):
            known = known[:0]
        order = known[np.argsort(-row[known], kind="stable")]
        found.append(tuple(columns[place] for place in order[:FOREMOST].tolist()))
    return tuple(found)


def _alike(row: Floats, room: Floats) -> bool:
    """Whether several entries are as good as equal, or may be."""
    if len(row) < 2 or not np.isfinite(row).all():
        return False
    apart = (row - room).max() - (row + room).min()
    return bool(apart <= ALIKE * np.abs(row).max())


def clearest(near: Floats, room: Floats) -> list[tuple[int, int]]:
    """(row, largest column) of the rows whose largest entry is furthest above the row's middle.

    Rows whose two largest entries are alike, or may be, and rows that are not finite are left out.
    """
    found = []
    for place, (row, around) in enumerate(zip(near, room, strict=True)):
        known = row[~np.isnan(row)]
        if len(known) < 2 or not np.isfinite(known).all():
            continue
        second, first = np.partition(known, -2)[-2:].tolist()
        spread = first - float(known.min())
        column = int(np.nanargmax(row))
        others = np.delete(row + around, column)
        ahead = min(first - second, row[column] - around[column] - float(np.nanmax(others)))
        if ahead > ALIKE * max(spread, abs(first)):
            found.append((first - float(np.median(known)), place, column))
    found.sort(key=lambda entry: -entry[0])
    return sorted((place, column) for _lead, place, column in found[:MOST_ROWS])
