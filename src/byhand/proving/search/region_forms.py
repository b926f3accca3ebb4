"""Regions as forms: the embeddings of many regions of one shape, with letters for what is free.

A letter stands for a variable, between the ends of its values, or for a number of a place's hull.
Regions lie side by side as the cases of one form.  A letter that a region does not have is 0 in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.proving.domain import Computed, Place, Region, Shape, Values, Whole
from byhand.proving.search.hulls import Embedding, Row, above, numbers_at

Key = str | tuple[int, int]  # of a letter: a variable's name, or (position, which of its hull)
Floats = npt.NDArray[np.float64]
ZERO = Fraction(0)
NUMBER = -1  # in place of one of the hull's: the place's number itself


class NoText(Exception):
    """A region without a text: some place has no token."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a place holds over some regions: a middle, a row for each letter, and errors."""

    keys: tuple[Key, ...]
    exact: tuple[Any, Floats]  # rows (letter + 1, width) of fractions, errors
    floats: tuple[Floats, Floats]  # the same rounded, and errors that cover the rounding


class RegionForms:
    """The forms of the regions of one shape.  What a place holds is found once for its values."""

    def __init__(self, shape: Shape, embedding: Embedding) -> None:
        self.shape = shape
        self.embedding = embedding
        self._names = [
            place.value.names if isinstance(place.value, Whole) else None for place in shape.places
        ]
        self.linear = [position for position, names in enumerate(self._names) if names]
        self._first = [  # the first position that holds the same, whose letters are shared
            next(k for k, other in enumerate(shape.places) if _alike(other, place))
            for place in shape.places
        ]
        self._held: dict[tuple[Any, ...], Held] = {}

    def held(self, position: int, region: Region) -> Held:
        """What a position holds over a region; NoText where it has no token."""
        names = self._names[position]
        place = self.shape.places[position]
        if names is None:
            key: tuple[Any, ...] = (position, numbers_at(place, region))
        else:
            key = (position, *(region.allowed[name] for name in names))
        if key not in self._held:
            self._held[key] = _held(place, self._first[position], region, self.embedding)
        return self._held[key]

    def of(
        self, regions: Sequence[Sequence[Held]], *, exact: bool = False
    ) -> tuple[Any, Any, list[Key]]:
        """The embeddings of regions, each given as what its positions hold: terms (letter + 1,
        region, position, width), errors (region, position, width), and the key of each letter.
        Exact terms are fractions."""
        width = self.embedding.model.spec.d_model
        held = list(zip(*regions, strict=True))
        keys = dict.fromkeys(key for row in held for one in row for key in one.keys)
        slots = {key: 1 + place for place, key in enumerate(keys)}
        shape = 1 + len(slots), len(regions), len(held), width
        terms: Any = np.full(shape, ZERO, dtype=object) if exact else np.zeros(shape)
        errors = np.zeros(shape[1:])
        for place, row in enumerate(held):
            for one, cases in _grouped(row):
                rows, unsure = one.exact if exact else one.floats
                terms[0, cases, place] = rows[0]
                errors[cases, place] = unsure
                for key, values in zip(one.keys, rows[1:], strict=True):
                    terms[slots[key], cases, place] = values
        return terms, errors, list(slots)


def _grouped(row: Sequence[Held]) -> list[tuple[Held, Any]]:
    """What a place holds, each once, with the cases in which it does."""
    if all(one is row[0] for one in row):
        return [(row[0], slice(None))]
    found: dict[int, tuple[Held, list[int]]] = {}
    for case, one in enumerate(row):
        found.setdefault(id(one), (one, []))[1].append(case)
    return list(found.values())


def variables_of(key: Key, shape: Shape) -> tuple[str, ...]:
    """The variables that a letter stands for; none where a function of them all gives a number."""
    if isinstance(key, str):
        return (key,)
    value = shape.places[key[0]].value
    return value.names if isinstance(value, Whole) else ()


def _alike(one: Place, other: Place) -> bool:
    return one is other or (one.value == other.value and one.tokens == other.tokens)


def _held(place: Place, position: int, region: Region, embedding: Embedding) -> Held:
    numbers = numbers_at(place, region)
    if not numbers:
        raise NoText
    hull = embedding.of(place, numbers)
    middle = list(hull.base)
    letters: dict[Key, Row] = {}
    free: list[tuple[Key, Fraction, Fraction]] = []  # key, middle, reach: parts of the number
    if any(hull.slope):
        free = _parts(place.value, position, numbers, region)
    for key, centre, reach in free:
        middle = [m + centre * s for m, s in zip(middle, hull.slope, strict=True)]
        if reach:
            letters[key] = tuple(reach * s for s in hull.slope)
    for k, (direction, (low, high)) in enumerate(zip(hull.directions, hull.ends, strict=True)):
        centre, reach = (low + high) / 2, (high - low) / 2
        middle = [m + centre * d for m, d in zip(middle, direction, strict=True)]
        letters[position, k] = tuple(reach * d for d in direction)
    return _with_floats(tuple(letters), (tuple(middle), *letters.values()), hull.error)


def _parts(
    value: Whole | Computed, position: int, numbers: Values, region: Region
) -> list[tuple[Key, Fraction, Fraction]]:
    """A place's number as parts, each a letter's: its key, its middle, and how far it reaches."""
    if isinstance(value, Computed):
        low, high = numbers[0], numbers[-1]
        return [((position, NUMBER), Fraction(low + high, 2), Fraction(high - low, 2))]
    found: list[tuple[Key, Fraction, Fraction]] = [("", Fraction(value.constant), ZERO)]
    for name, factor in value.factors:
        low, high = region.allowed[name][0], region.allowed[name][-1]
        found.append((name, Fraction(factor * (low + high), 2), Fraction(factor * (high - low), 2)))
    return found


def _with_floats(keys: tuple[Key, ...], rows: Sequence[Row], error: Row) -> Held:
    near = [[float(x) for x in row] for row in rows]
    apart = list(error)
    for row, floats in zip(rows, near, strict=True):
        apart = [e + abs(x - Fraction(y)) for e, x, y in zip(apart, row, floats, strict=True)]
    exact = np.empty((len(rows), len(error)), dtype=object)
    exact[:] = rows
    least, most = (np.array([above(e) for e in errors]) for errors in (error, apart))
    return Held(keys, (exact, least), (np.array(near), most))
