"""The checker's regions: texts by values of variables, and whole numbers that differ in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from byhand.proving.domain import Place, Reckoned, Shape, Varies, Whole

COUNTED = 1_000_000  # assignments that are counted one by one
ENDLESS = 10**100


class Area:
    """Some texts of a shape: for each variable, the values that it may have in one of them."""

    def __init__(self, shape: Shape, allowed: Mapping[str, Sequence[int]]) -> None:
        self.shape, self.allowed = shape, {name: tuple(allowed[name]) for name in allowed}
        held = [(p.value, p.tokens) for p in shape.places if isinstance(p.value, Whole)]
        self.limits = [(number, min(tokens), max(tokens)) for number, tokens in held]
        self.limits += [(number, 0, ENDLESS) for number in shape.conditions]
        self.empty = not self._narrow()

    def _narrow(self) -> bool:
        """Drops values that no text has, as far as each limit alone shows; false: none is left."""
        before = None
        while all(self.allowed.values()) and before != self.allowed:
            before = dict(self.allowed)
            for number, least, most in self.limits:
                low, high = self.ends(number.factors, number.constant)
                if low > most or high < least:
                    return False
                for name, factor in number.factors if low < least or high > most else ():
                    others = [one for one in number.factors if one[0] != name]
                    low, high = self.ends(others, number.constant)
                    self.allowed[name] = tuple(
                        value
                        for value in self.allowed[name]
                        if low + factor * value <= most and high + factor * value >= least
                    )
                    if not self.allowed[name]:
                        return False
        return all(self.allowed.values())

    def ends(self, factors: Iterable[tuple[str, int]], constant: int) -> tuple[int, int]:
        """The least and the largest value of constant + Σ factor · variable."""
        low = high = constant
        for name, factor in factors:
            both = factor * self.allowed[name][0], factor * self.allowed[name][-1]
            low, high = low + min(both), high + max(both)
        return low, high

    def cut(self, name: str, first: Collection[int]) -> tuple[Area, Area]:
        """The texts in which a variable has one of these values, and all the others."""
        own = self.allowed[name]
        one, other = [v for v in own if v in first], [v for v in own if v not in first]
        return (
            Area(self.shape, {**self.allowed, name: one}),
            Area(self.shape, {**self.allowed, name: other}),
        )

    @property
    def box(self) -> int:
        """How many assignments there are, with or without a text."""
        return 0 if self.empty else prod(map(len, self.allowed.values()))

    def assignments(self) -> Iterator[dict[str, int]]:
        """Every assignment that has a text: each place a token, each condition met."""
        held = [(p.value, p.tokens) for p in self.shape.places if isinstance(p.value, Whole)]
        for values in () if self.empty else product(*self.allowed.values()):
            one = dict(zip(self.allowed, values, strict=True))
            met = all(number.at(one) >= 0 for number in self.shape.conditions)
            if met and all(number.at(one) in tokens for number, tokens in held):
                yield one

    @property
    def texts(self) -> int | None:
        """How many assignments have a text; None where that takes too long to count."""
        total, todo = int(not self.empty), list(self.allowed)
        while todo and total:  # variables that depend on each other are counted together
            group = {todo[0]}
            bound = [set(number.names) for number, _least, _most in self.limits]
            while more := {name for names in bound if names & group for name in names} - group:
                group |= more
            values = {name: self.allowed[name] for name in todo if name in group}
            if prod(map(len, values.values())) > COUNTED:
                return None
            shape = Shape(
                tuple(place for place in self.shape.places if group & names_of(place)),
                (),
                tuple(number for number in self.shape.conditions if group & {*number.names}),
            )
            total *= sum(1 for _one in Area(shape, values).assignments())
            todo = [name for name in todo if name not in group]
        return total

    @cached_property
    def variables(self) -> dict[str, Any]:
        """Every variable: its value, or a `Span` where it has several."""
        return {
            name: own[0] if len(own) == 1 else Span(self, {name: 1}, 0, 0)
            for name, own in self.allowed.items()
        }

    def number(self, place: Place) -> Any:
        """The number that a place holds: an int, a `Span`, or None where it is not linear."""
        try:
            return held(place, self.variables)
        except Varies:
            return None


def held(place: Place, values: Mapping[str, Any]) -> Any:
    """The number that a place holds where the variables have these values."""
    return (
        place.value.at(values) if isinstance(place.value, Whole) else place.value.function(values)
    )


def names_of(place: Place) -> set[str]:
    """The variables that a place depends on linearly."""
    return {*place.value.names} if isinstance(place.value, Whole) else set()


class Span(Reckoned):
    """A whole number that differs among the texts of an area: Σ factor · variable + a rest.

    The rest lies between two ends and depends on the variables `about`.  What is the same for all
    texts is a number or a truth value; where one is needed and it is not the same, `Varies` is
    raised.
    """

    def __init__(
        self, area: Area, factors: Mapping[str, int], low: int, high: int, about: Iterable[str] = ()
    ) -> None:
        self.area, self.factors, self.low, self.high = area, factors, low, high
        own = sorted(factors, key=lambda name: -abs(factors[name]))
        self.names = tuple(dict.fromkeys((*own, *(about if low < high else ()))))

    def made(self, factors: Mapping[str, int], low: int, high: int, about: Iterable[str]) -> Any:
        """Another one over the same area; an int where it is the same for all texts."""
        factors = {name: factor for name, factor in factors.items() if factor}
        return Span(self.area, factors, low, high, about) if factors or low < high else low

    @property
    def linear(self) -> Span | None:
        """Itself, where its rest is one number."""
        return self if self.low == self.high else None

    def each(self) -> list[int] | None:
        """All that it may be, where it depends on one variable linearly."""
        if len(self.factors) != 1 or self.low != self.high:
            return None
        ((name, factor),) = self.factors.items()
        return sorted(self.low + factor * value for value in self.area.allowed[name])

    @cached_property
    def ends(self) -> tuple[int, int]:
        """Two numbers between which it lies for every text, by its variables or by a limit."""
        low, high = self.area.ends(self.factors.items(), 0)
        for number, least, most in self.area.limits:
            if dict(number.factors) == self.factors:
                low, high = max(low, least - number.constant), min(high, most - number.constant)
        return low + self.low, high + self.high

    def among(self, numbers: Iterable[int]) -> list[int]:
        """Those of some numbers that it may be, in their order."""
        own = self.each() or range(self.ends[0], self.ends[1] + 1)
        return sorted(number for number in numbers if number in own)

    @property
    def points(self) -> list[int]:
        """Numbers that show its sign and its quotients: its ends, and 0 where it may be 0."""
        return self.each() or [*self.ends, *self.among([0])]

    def varies(self) -> Varies:
        """What to raise where one number is needed."""
        return Varies(*self.names)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            return self.made(self.factors, self.low + other, self.high + other, self.names)
        if not isinstance(other, Span):
            return NotImplemented
        names = {**self.factors, **other.factors}
        sums = {name: self.factors.get(name, 0) + other.factors.get(name, 0) for name in names}
        ends = self.low + other.low, self.high + other.high
        return self.made(sums, *ends, (*self.names, *other.names))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            factors = {name: factor * other for name, factor in self.factors.items()}
            low, high = sorted((self.low * other, self.high * other))
            return self.made(factors, low, high, self.names)
        if not isinstance(other, Span):
            return NotImplemented
        corners = [one * two for one in self.ends for two in other.ends]
        return self.made({}, min(corners), max(corners), (*self.names, *other.names))

    def __divmod__(self, by: Any) -> tuple[Any, Any]:
        """Multiples go out; what is left may lie between two multiples for all texts."""
        if not isinstance(by, int) or by <= 0:
            raise self.varies()
        parts = {name: (2 * factor + by) // (2 * by) for name, factor in self.factors.items()}
        rest = self - self.made(parts, 0, 0, ()) * by
        floors = [one // by for one in ([rest] if isinstance(rest, int) else rest.points)]
        first, last = min(floors), max(floors)
        names = () if isinstance(rest, int) else rest.names
        left = rest - first * by if first == last else self.made({}, 0, by - 1, names)
        return self.made(parts, first, last, names), left

    def compared(self, other: Any, test: Callable[[int, int], bool]) -> Any:
        """The one answer for all texts."""
        if not isinstance(other, int | Span):  # a number is no word, and neither more nor less
            return test is ne if test in (eq, ne) else NotImplemented
        apart = self - other
        answers = {test(one, 0) for one in ([apart] if isinstance(apart, int) else apart.points)}
        if len(answers) > 1:
            raise apart.varies()
        return answers.pop()

    def smaller(self, other: Any) -> Any:
        """The smaller of this and another number."""
        return self if self.compared(other, le) else other

    def _one(self, *_others: Any) -> Any:
        raise self.varies()

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, int | Span) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __abs__(self) -> Any:
        return -self.smaller(-self)

    def __floordiv__(self, by: Any) -> Any:
        return divmod(self, by)[0]

    def __mod__(self, by: Any) -> Any:
        return divmod(self, by)[1]

    def __bool__(self) -> bool:
        return bool(self.compared(0, ne))

    def __lt__(self, other: Any) -> Any:
        return self.compared(other, lt)

    def __le__(self, other: Any) -> Any:
        return self.compared(other, le)

    def __gt__(self, other: Any) -> Any:
        return self.compared(other, gt)

    def __ge__(self, other: Any) -> Any:
        return self.compared(other, ge)

    def __eq__(self, other: Any) -> Any:
        return self.compared(other, eq)

    def __ne__(self, other: Any) -> Any:
        return self.compared(other, ne)

    __hash__ = __int__ = __index__ = __str__ = __rfloordiv__ = __rmod__ = _one
