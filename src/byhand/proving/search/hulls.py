"""Hulls: the rows of the embedding that a place may hold, with as few free numbers as possible.

Over a region a place holds one of some tokens.  Their rows are written as

    row = base + slope · number + Σ λ_k · direction_k ± error

where `number` is the place's own whole number, linear in the variables.  Columns that are affine in
it use it alone, so that relations between variables, such as b = s - a, cancel by algebra.  What is
left gets numbers λ of its own: the affine hull of the rows, of the smallest dimension.  Everything
is rational.  A row that is not (√2/2, or a rounded decimal) is taken near its middle, and the
distance goes into the error; so does what tells the rows from their hull, where that is tiny.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np

from byhand.model import Model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.proving.domain import Place, Region, Values, Whole
from byhand.proving.reading.wholes import Varies, ranges_of

BITS = 256  # of the middles of numbers that are not rational
TINY = Fraction(1, 2**200)  # what tells rows from their hull, beside their size, and is an error
ZERO = Fraction(0)

Row = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Hull:
    """The rows of some tokens; every λ_k lies between its `ends`."""

    base: Row
    slope: Row  # times the place's number; all zero where that is not used
    directions: tuple[Row, ...]
    ends: tuple[tuple[Fraction, Fraction], ...]  # of each λ
    weights: tuple[Row, ...]  # the λ of each token's row
    error: Row


class Embedding:
    """The rows of a model's embedding as rational numbers, and their hulls, each found once."""

    def __init__(self, model: Model, moved: Fraction = ZERO) -> None:
        self.model = model
        self.moved = moved
        self._rows: dict[int, tuple[Row, Row]] = {}
        self._hulls: dict[tuple[Any, ...], Hull] = {}

    def row(self, token: int) -> tuple[Row, Row]:
        """The middle of a token's row, and how far each entry may be from it."""
        if token not in self._rows:
            numbers = Balls(BITS)
            table = self.model.weights["embed.token"].data[[token]]
            scale = self.model.spec.embed_scale
            if scale is None and (table.dtype != object or _rational(table.flat)):
                middles = tuple(Fraction(x) for x in table[0].tolist())
                self._rows[token] = middles, (self.moved,) * len(middles)
            else:
                balls = numbers.entries(numbers.embed(numbers.admit(table), [0], scale=scale))[0]
                self._rows[token] = (
                    tuple(one.mid for one in balls),
                    tuple(Fraction(one.rad) + self.moved for one in balls),
                )
        return self._rows[token]

    def of(self, place: Place, values: Values) -> Hull:
        """The hull of a place's rows for these numbers."""
        key = (values, tuple(place.tokens[value] for value in values))
        if key not in self._hulls:
            self._hulls[key] = hull(values, [self.row(place.tokens[value]) for value in values])
        return self._hulls[key]


def numbers_at(place: Place, region: Region) -> Values:
    """The numbers that a place may hold over a region."""
    if isinstance(place.value, Whole):
        return region.values_at(place)
    try:
        return (int(place.value.function(ranges_of(region))),)
    except Varies:
        return place.value.values


def _rational(entries: Any) -> bool:
    return all(isinstance(entry, Fraction | int) for entry in entries)


def hull(numbers: Sequence[int], rows: Sequence[tuple[Row, Row]]) -> Hull:
    """The smallest hull of rows (middle, radius) that belong to these numbers, in order."""
    middles = [middle for middle, _radius in rows]
    width = len(middles[0])
    size = max((abs(x) for row in middles for x in row), default=ZERO)
    slope, base, rest = [ZERO] * width, list(middles[0]), list[int]()
    for column in range(width):
        entries = [row[column] for row in middles]
        steep = _line(numbers, entries, size * TINY)
        if steep is None:
            rest.append(column)
        else:
            slope[column], base[column] = steep, entries[0] - steep * numbers[0]
    points = [[row[column] - base[column] for column in rest] for row in middles]
    pivots, weights = _spanned(points, size * TINY)
    directions = []
    for pivot in pivots:
        direction = [ZERO] * width
        for place, column in enumerate(rest):
            direction[column] = points[pivot][place]
        directions.append(tuple(direction))
    ends = tuple((min(own), max(own)) for own in zip(*weights, strict=True))
    error = [ZERO] * width
    for number, (middle, radius), own in zip(numbers, rows, weights, strict=True):
        for column in range(width):
            made = base[column] + slope[column] * number
            made += sum(w * d[column] for w, d in zip(own, directions, strict=True))
            error[column] = max(error[column], abs(middle[column] - made) + radius[column])
    return Hull(
        tuple(base), tuple(slope), tuple(directions), ends, tuple(map(tuple, weights)), tuple(error)
    )


def _line(numbers: Sequence[int], entries: Sequence[Fraction], tiny: Fraction) -> Fraction | None:
    """The slope of entries that lie on a line over the numbers; None where they do not."""
    if all(entry == entries[0] for entry in entries):
        return ZERO
    first, run = entries[0], numbers[-1] - numbers[0]
    rise = entries[-1] - first
    for number, entry in zip(numbers, entries, strict=True):
        if abs((entry - first) * run - rise * (number - numbers[0])) > tiny * abs(run):
            return None
    return rise / run


def _spanned(
    points: Sequence[Sequence[Fraction]], tiny: Fraction
) -> tuple[list[int], list[list[Fraction]]]:
    """Some points that span all of them, and for each point its weights: point = Σ weight · pivot.

    Points that floats already show to be independent span themselves.
    """
    count = len(points)
    if not points or not points[0]:
        return [], [[] for _point in points]
    found = [place for place in range(count) if any(abs(x) > tiny for x in points[place])]
    floats = np.array([[float(x) for x in points[place]] for place in found])
    if found and np.linalg.matrix_rank(floats) == len(found):
        own = {place: k for k, place in enumerate(found)}
        return found, [
            [Fraction(own.get(place) == k) for k in range(len(found))] for place in range(count)
        ]
    pivots: list[int] = []
    reduced: list[tuple[list[Fraction], int, list[Fraction]]] = []  # row, its column, its weights
    weights: list[list[Fraction]] = []
    for place in range(count):
        row, used = list(points[place]), [ZERO] * len(pivots)
        for known, column, by in reduced:
            factor = row[column] / known[column]
            if factor:
                row = [x - factor * y for x, y in zip(row, known, strict=True)]
                used = [u + factor * (by[k] if k < len(by) else 0) for k, u in enumerate(used)]
        column = max(range(len(row)), key=lambda k: abs(row[k]))
        if abs(row[column]) > tiny:
            reduced.append((row, column, [*(-u for u in used), Fraction(1)]))
            pivots.append(place)
            used = [ZERO] * (len(pivots) - 1) + [Fraction(1)]
        weights.append(used)
    return pivots, [[*own, *[ZERO] * (len(pivots) - len(own))] for own in weights]


def above(x: Fraction) -> float:
    """A float that is at least x."""
    near = float(x)
    return near if Fraction(near) >= x else nextafter(near, inf)
