"""Domains: the texts that a property is about, as regions of whole-number variables.

A *shape* is a text of one length.  Each of its *places* holds a whole number that variables give,
spelled as a token: a digit `a3`, a difference `s3 - a3`, or simply the id of a token.  A *region*
of a shape allows each variable some of its values.  A text belongs to a region if every place has
a token and every condition holds.  Regions are narrowed to values that some text may have, and
split until each is decided.  Nothing here knows a weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

Values = tuple[int, ...]  # ascending
TRIES = 10_000  # regions that are narrowed to find one text
COUNTED = 1_000_000  # assignments of variables that depend on each other, counted one by one


class Varies(Exception):
    """Not the same for all texts of a region; `names` are the variables it depends on, the most
    important first."""

    def __init__(self, *names: str) -> None:
        super().__init__(*names)
        self.names = names


class Reckoned(ABC):
    """A whole number that differs among the texts of a region, whoever reckons with it.

    The prover has `wholes.Range`, the checker of certificates another one.  Functions work on both.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def linear(self) -> Any:
        """Itself as a linear form, or None where it is not known as one."""

    @abstractmethod
    def each(self) -> Sequence[int] | None:
        """All its values, where it depends on one variable with few values; else None."""

    @abstractmethod
    def among(self, numbers: Iterable[int]) -> Sequence[int]:
        """Those of some numbers that it may be, ascending."""

    @abstractmethod
    def smaller(self, other: Any) -> Any:
        """The smaller of this and another number."""

    @abstractmethod
    def varies(self) -> Varies:
        """What to raise where one number is needed."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number that depends on variables linearly: constant + Σ factor · variable."""

    constant: int = 0
    factors: tuple[tuple[str, int], ...] = ()  # by name, none of them 0

    def at(self, values: Mapping[str, int]) -> int:
        """The number where every variable has one value."""
        return self.constant + sum(factor * values[name] for name, factor in self.factors)

    def ends(self, allowed: Mapping[str, Values]) -> tuple[int, int]:
        """The least and the largest number, where each variable is free to take its values."""
        low = high = self.constant
        for name, factor in self.factors:
            ends = factor * allowed[name][0], factor * allowed[name][-1]
            low, high = low + min(ends), high + max(ends)
        return low, high

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it depends on."""
        return tuple(name for name, _factor in self.factors)


@dataclass(frozen=True, slots=True)
class Computed:
    """A whole number that a function of all variables gives, such as a digit of a sum."""

    function: Callable[[Mapping[str, Any]], int]  # of numbers, or of `wholes.Range`s
    values: Values  # all that it may give
    source: str = ""  # how it was written
    among: Callable[[Region], Values] | None = None  # all that it may give in a region


@dataclass(frozen=True, slots=True)
class Place:
    """One position of a text.  A number without a token is no text of the domain."""

    value: Whole | Computed
    tokens: Mapping[int, int]  # number → token id

    @classmethod
    def of_token(cls, id: int) -> Place:
        """A position that always holds this token."""
        return cls(Whole(id), {id: id})


@dataclass(frozen=True, slots=True)
class Variable:
    """A whole number that texts differ in, and the values it may take."""

    name: str
    values: Values


@dataclass(frozen=True)
class Shape:
    """Texts of one length: places, variables, and conditions, each a number that is at least 0."""

    places: tuple[Place, ...]
    variables: tuple[Variable, ...] = ()
    conditions: tuple[Whole, ...] = ()
    after: int = 0  # places at the end that a continuation has added

    @property
    def whole(self) -> Region | None:
        """All texts of this shape, or None where there are none."""
        return Region(self, {one.name: one.values for one in self.variables}).narrowed()

    def followed_by(self, place: Place) -> Shape:
        """The same texts with one more position."""
        return replace(self, places=(*self.places, place), after=self.after + 1)

    @cached_property
    def limits(self) -> tuple[tuple[Whole, int, int], ...]:
        """(number, least, largest): what each number that is not free must lie within."""
        found: list[tuple[Whole, int, int]] = []
        for place in self.places:
            if isinstance(place.value, Whole) and place.tokens:
                found.append((place.value, min(place.tokens), max(place.tokens)))
        for number in self.conditions:
            found.append((number, 0, max(0, number.ends(self._all)[1])))
        return tuple(found)

    @cached_property
    def _all(self) -> dict[str, Values]:
        return {one.name: one.values for one in self.variables}


@dataclass(frozen=True)
class Region:
    """Some texts of a shape: for each variable, the values that it may take."""

    shape: Shape
    allowed: Mapping[str, Values] = field(default_factory=dict)

    @property
    def free(self) -> tuple[str, ...]:
        """The variables with more than one value."""
        return tuple(name for name, values in self.allowed.items() if len(values) > 1)

    @property
    def box(self) -> int:
        """How many assignments the region has, with or without a text."""
        return prod(map(len, self.allowed.values()))

    def narrowed(self) -> Region | None:
        """The region without values that no text has, as far as each limit alone shows; None where
        no text is left.

        A limit least ≤ Σ factor · variable ≤ largest leaves a variable the values with which the
        others can still meet it.  This is repeated until nothing changes.
        """
        allowed = dict(self.allowed)
        changed = True
        while changed:
            changed = False
            for number, least, largest in self.shape.limits:
                low, high = number.ends(allowed)
                if high < least or low > largest:
                    return None
                if low >= least and high <= largest:
                    continue
                for name, factor in number.factors:
                    own = factor * allowed[name][0], factor * allowed[name][-1]
                    rest_low, rest_high = low - min(own), high - max(own)
                    kept = tuple(
                        value
                        for value in allowed[name]
                        if rest_low + factor * value <= largest
                        and rest_high + factor * value >= least
                    )
                    if not kept:
                        return None
                    if len(kept) < len(allowed[name]):
                        allowed[name], changed = kept, True
                        low, high = number.ends(allowed)
        return Region(self.shape, allowed)

    def cut(self, name: str, first: Values) -> tuple[Region | None, Region | None]:
        """Two parts: a variable has one of these values, or one of its others."""
        others = tuple(value for value in self.allowed[name] if value not in first)
        parts = (
            Region(self.shape, {**self.allowed, name: some}).narrowed() if some else None
            for some in (first, others)
        )
        one, other = parts
        return one, other

    def values_at(self, place: Place) -> Values:
        """The numbers that a place may hold: those with a token, between its ends."""
        if isinstance(place.value, Computed):
            return place.value.among(self) if place.value.among else place.value.values
        low, high = place.value.ends(self.allowed)
        if len(place.value.factors) == 1:
            ((name, factor),) = place.value.factors
            own = {place.value.constant + factor * value for value in self.allowed[name]}
            return tuple(sorted(own.intersection(place.tokens)))
        return tuple(sorted(value for value in place.tokens if low <= value <= high))

    def first(self) -> dict[str, int] | None:
        """Some assignment that has a text, found by narrowing; None where none is found soon."""
        todo: list[Region | None] = [self.narrowed()]
        for _try in range(TRIES):
            if not todo:
                break
            region = todo.pop()
            if region is None:
                continue
            assigned = {one: values[0] for one, values in region.allowed.items()}
            if region.holds(assigned):
                return assigned
            if region.free:
                name = region.free[0]
                todo.extend(reversed(region.cut(name, region.allowed[name][:1])))
        return None

    def assignments(self) -> Iterator[dict[str, int]]:
        """Every assignment of values that has a text, in the order of the variables."""
        names = tuple(self.allowed)
        for values in product(*self.allowed.values()):
            assigned = dict(zip(names, values, strict=True))
            if self.holds(assigned):
                yield assigned

    def holds(self, assigned: Mapping[str, int]) -> bool:
        """Whether these values have a text: every place has a token, every condition is met."""
        return all(number.at(assigned) >= 0 for number in self.shape.conditions) and all(
            place.value.at(assigned) in place.tokens
            for place in self.shape.places
            if isinstance(place.value, Whole)
        )

    def text(self, assigned: Mapping[str, int]) -> tuple[int, ...]:
        """The token ids of one assignment."""
        return tuple(
            place.tokens[
                place.value.at(assigned)
                if isinstance(place.value, Whole)
                else int(place.value.function(assigned))
            ]
            for place in self.shape.places
        )

    @cached_property
    def texts(self) -> int | None:
        """How many assignments have a text, exactly; None where that takes too long to count.

        Variables that no place and no condition binds together are counted apart.
        """
        total = 1
        for part in self._parts():
            if part.box > COUNTED:
                return None
            total *= sum(1 for _assigned in part.assignments())
        return total

    def _parts(self) -> list[Region]:
        """The region as parts with variables of their own, which nothing binds together."""
        groups = {name: [name] for name in self.allowed}
        places = [p for p in self.shape.places if isinstance(p.value, Whole) and p.value.factors]
        conditions = [number for number in self.shape.conditions if number.factors]
        for number in (*(_whole(place) for place in places), *conditions):
            first, *others = number.names
            for other in others:
                if groups[other] is not groups[first]:
                    groups[first] += groups[other]
                    groups.update(dict.fromkeys(groups[other], groups[first]))
        parts: dict[int, tuple[list[str], list[Place], list[Whole]]] = {}
        for group in groups.values():
            parts[id(group)] = group, [], []
        for place in places:
            parts[id(groups[_whole(place).names[0]])][1].append(place)
        for number in conditions:
            parts[id(groups[number.names[0]])][2].append(number)
        return [
            Region(
                Shape(tuple(held), (), tuple(kept)), {name: self.allowed[name] for name in group}
            )
            for group, held, kept in parts.values()
        ]


def _whole(place: Place) -> Whole:
    assert isinstance(place.value, Whole)
    return place.value
