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
from byhand.proving.hulls import Embedding, Row, above, numbers_at

Key = str | tuple[int, int]  # of a letter: a variable's name, or (position, which of its hull)
Floats = npt.NDArray[np.float64]
ZERO = Fraction(0)
NUMBER = -1  # in place of one of the hull's: the place's number itself


class NoText(Exception):
    """A region without a text: some place has no token."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a place holds over some regions: middle + Σ letter · row ± error, also in floats."""

    middle: Row
    letters: tuple[tuple[Key, Row], ...]
    error: Row
    middles: Floats
    rows: Floats  # (letter, width)
    errors: Floats  # with what rounding to floats took away


class RegionForms:
    """The forms of the regions of one shape.  What a place holds is found once for its values."""

    def __init__(self, shape: Shape, embedding: Embedding) -> None:
        self.shape = shape
        self.embedding = embedding
        self._names = [
            place.value.names if isinstance(place.value, Whole) else None for place in shape.places
        ]
        self._first = [  # the first position that holds the same, whose letters are shared
            next(k for k, other in enumerate(shape.places) if _alike(other, place))
            for place in shape.places
        ]
        self._held: dict[tuple[Any, ...], Held] = {}

    def held(self, position: int, region: Region) -> Held:
        """What a position holds over a region."""
        names = self._names[position]
        place = self.shape.places[position]
        if names is None:
            key: tuple[Any, ...] = (position, numbers_at(place, region))
        else:
            key = (position, *(region.allowed[name] for name in names))
        if key not in self._held:
            self._held[key] = _held(place, self._first[position], region, self.embedding)
        return self._held[key]

    def of(self, regions: Sequence[Region], positions: range) -> tuple[Floats, Floats, list[Key]]:
        """The embeddings of these positions: terms (letter + 1, region, position, width), errors
        (region, position, width), and the key of each letter."""
        width = self.embedding.model.spec.d_model
        held = [[self.held(position, region) for region in regions] for position in positions]
        keys = dict.fromkeys(key for row in held for one in row for key, _row in one.letters)
        slots = {key: 1 + place for place, key in enumerate(keys)}
        terms = np.zeros((1 + len(slots), len(regions), len(positions), width))
        errors = np.zeros((len(regions), len(positions), width))
        for place, row in enumerate(held):
            for one, cases in _grouped(row):
                terms[0, cases, place] = one.middles
                errors[cases, place] = one.errors
                for (key, _exact), floats in zip(one.letters, one.rows, strict=True):
                    terms[slots[key], cases, place] = floats
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


def letter_at(values: Values, value: int) -> Fraction:
    """The letter of a variable, from -1 to 1, where the variable has this value."""
    low, high = values[0], values[-1]
    return Fraction(2 * value - low - high, high - low)


def _held(place: Place, position: int, region: Region, embedding: Embedding) -> Held:
    numbers = numbers_at(place, region)
    if not numbers:
        raise NoText
    hull = embedding.of(place, numbers)
    middle = list(hull.base)
    letters: list[tuple[Key, Row]] = []
    free: list[tuple[Key, Fraction, Fraction]] = []  # key, middle, reach: parts of the number
    if any(hull.slope):
        free = _parts(place.value, position, numbers, region)
    for key, centre, reach in free:
        middle = [m + centre * s for m, s in zip(middle, hull.slope, strict=True)]
        if reach:
            letters.append((key, tuple(reach * s for s in hull.slope)))
    for k, (direction, (low, high)) in enumerate(zip(hull.directions, hull.ends, strict=True)):
        centre, reach = (low + high) / 2, (high - low) / 2
        middle = [m + centre * d for m, d in zip(middle, direction, strict=True)]
        letters.append(((position, k), tuple(reach * d for d in direction)))
    return _in_floats(tuple(middle), tuple(letters), hull.error)


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


def _in_floats(middle: Row, letters: tuple[tuple[Key, Row], ...], error: Row) -> Held:
    width = len(middle)
    rounded = list(error)
    floats = []
    for row in (middle, *(row for _key, row in letters)):
        near = [float(x) for x in row]
        rounded = [e + abs(x - Fraction(y)) for e, x, y in zip(rounded, row, near, strict=True)]
        floats.append(near)
    return Held(
        middle,
        letters,
        error,
        np.array(floats[0]),
        np.array(floats[1:]).reshape(len(letters), width),
        np.array([above(e) for e in rounded]),
    )
