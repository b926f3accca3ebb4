"""Whole numbers over a region: arithmetic that keeps what is the same for all texts of it.

A `Range` is a linear form of variables plus an integer that is known only between two ends.
Python's own operators work on it, so that one function of the variables serves for single texts and
for regions.  Whatever is not the same for all texts of the region raises `Varies`, or is a Range; a
plain number holds for every text.  `words` has the same for tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import gcd
from typing import Any

from byhand.proving.domain import Reckoned, Region, Values, Whole
from byhand.proving.domain import Varies as Varies

MANY = 4096  # values of one variable that are tried one by one


def ranges_of(region: Region) -> dict[str, Any]:
    """Every variable of a region as a number to reckon with: an int where it has one value."""
    over = _Over(region)
    return {
        name: values[0] if len(values) == 1 else Range(Whole(0, ((name, 1),)), over)
        for name, values in region.allowed.items()
    }


class _Over:
    """What is known of linear forms over one region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.allowed = region.allowed

    @cached_property
    def limits(self) -> dict[tuple[tuple[str, int], ...], tuple[int, int]]:
        """Σ factor · variable → its ends, where the shape says more than the variables do."""
        known: dict[tuple[tuple[str, int], ...], tuple[int, int]] = {}
        for number, least, largest in self.region.shape.limits:
            for sign in (1, -1) if len(number.factors) > 1 else ():
                form = tuple(sorted((name, sign * factor) for name, factor in number.factors))
                ends = sorted(sign * (end - number.constant) for end in (least, largest))
                before = known.get(form, (ends[0], ends[1]))
                known[form] = max(before[0], ends[0]), min(before[1], ends[1])
        return known

    def ends(self, form: Whole) -> tuple[int, int]:
        """Two numbers between which the form lies for every text."""
        low, high = form.ends(self.allowed)
        if len(form.factors) > 1 and (known := self.limits.get(tuple(sorted(form.factors)))):
            low, high = max(low, known[0] + form.constant), min(high, known[1] + form.constant)
        return low, high

    def spans(self, form: Whole) -> dict[str, int]:
        """How far each variable moves the form."""
        return {
            name: abs(factor) * (self.allowed[name][-1] - self.allowed[name][0])
            for name, factor in form.factors
        }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Range(Reckoned):
    """A whole number of each text of a region: a linear form, plus something from `low` to `high`.

    `about` says which variables that something depends on, the most important first.
    """

    form: Whole
    over: _Over
    low: int = 0
    high: int = 0
    about: tuple[str, ...] = ()

    # ----------------------------------------------------------------------- what is known

    @property
    def ends(self) -> tuple[int, int]:
        """Two numbers between which it lies for every text."""
        low, high = self.over.ends(self.form)
        return low + self.low, high + self.high

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it depends on, the most important first."""
        spans = self.over.spans(self.form)
        own = sorted(spans, key=lambda name: -spans[name])
        rest = [name for name in self.about if name not in spans]
        slack_first = self.high - self.low > max(spans.values(), default=0)
        return (*rest, *own) if slack_first else (*own, *rest)

    @property
    def linear(self) -> Whole | None:
        """The linear form that it is, where nothing else is added."""
        return self.form if self.low == self.high == 0 else None

    def each(self) -> Values | None:
        """All its values, where it is a form of one variable with few values; else None."""
        if self.low == self.high and len(self.form.factors) == 1:
            ((name, factor),) = self.form.factors
            values = self.over.allowed[name]
            if len(values) <= MANY:
                start = self.form.constant + self.low
                return tuple(start + factor * value for value in values)
        return None

    def among(self, numbers: Iterable[int]) -> Values:
        """Those of some numbers that it may be, ascending."""
        each = self.each()
        if each is not None:
            return tuple(sorted(set(each).intersection(numbers)))
        low, high = self.ends
        return tuple(sorted({number for number in numbers if low <= number <= high}))

    def varies(self) -> Varies:
        """What to raise where one number is needed."""
        return Varies(*self.names)

    # ----------------------------------------------------------------------- sums and multiples

    def _made(self, form: Whole, low: int, high: int, about: tuple[str, ...] = ()) -> Any:
        """The number: an int where it is the same for all texts."""
        if low == high:
            form, low, high, about = Whole(form.constant + low, form.factors), 0, 0, ()
        if not form.factors and low == high:
            return form.constant
        return Range(form, self.over, low, high, about)

    def _between(self, low: int, high: int, about: Sequence[str]) -> Any:
        return self._made(Whole(0), low, high, tuple(dict.fromkeys(about)))

    def _scaled(self, by: int) -> Any:
        if by == 0:
            return 0
        factors = tuple((name, factor * by) for name, factor in self.form.factors)
        low, high = sorted((self.low * by, self.high * by))
        return self._made(Whole(self.form.constant * by, factors), low, high, self.about)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            form = Whole(self.form.constant + other, self.form.factors)
            return Range(form, self.over, self.low, self.high, self.about)
        if not isinstance(other, Range):
            return NotImplemented
        factors = dict(self.form.factors)
        for name, factor in other.form.factors:
            factors[name] = factors.get(name, 0) + factor
        form = Whole(
            self.form.constant + other.form.constant,
            tuple((name, factor) for name, factor in factors.items() if factor),
        )
        about = tuple(dict.fromkeys((*self.about, *other.about)))
        return self._made(form, self.low + other.low, self.high + other.high, about)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._scaled(-1)

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        return self + -other if isinstance(other, int | Range) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, int) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            return self._scaled(int(other))
        if not isinstance(other, Range):
            return NotImplemented
        corners = [x * y for x in self.ends for y in other.ends]
        return self._between(min(corners), max(corners), (*self.names, *other.names))

    __rmul__ = __mul__

    def __abs__(self) -> Any:
        low, high = self.ends
        if low >= 0:
            return self
        return -self if high <= 0 else self._between(0, max(-low, high), self.names)

    def smaller(self, other: Any) -> Any:
        """The smaller of this and another number."""
        apart = self - other
        if not isinstance(apart, Range):
            return self if apart <= 0 else other
        low, high = apart.ends
        if high <= 0 or low >= 0:
            return self if high <= 0 else other
        own, its = self.ends, other.ends if isinstance(other, Range) else (other, other)
        return self._between(min(own[0], its[0]), min(own[1], its[1]), apart.names)

    # ----------------------------------------------------------------------- quotients

    def __floordiv__(self, by: Any) -> Any:
        if isinstance(by, Range):
            raise by.varies()
        if not isinstance(by, int):
            return NotImplemented
        if by < 0:
            return -self // -by
        each = self.each()
        if each is not None and len(found := {value // by for value in each}) == 1:
            return found.pop()
        multiple, rest = self._parted(by)
        if isinstance(rest, int):
            return multiple + rest // by
        low, high = (end // by for end in rest.ends)
        return multiple + (low if low == high else self._between(low, high, rest.names))

    def __mod__(self, by: Any) -> Any:
        if isinstance(by, Range):
            raise by.varies()
        if not isinstance(by, int):
            return NotImplemented
        if by < 0:
            return -(-self % -by)
        each = self.each()
        if each is not None and len(found := {value % by for value in each}) == 1:
            return found.pop()
        _multiple, rest = self._parted(by)
        if isinstance(rest, int):
            return rest % by
        low, high = (end // by for end in rest.ends)
        if low == high:
            return rest - low * by
        values = each and {value % by for value in each}
        low, high = (min(values), max(values)) if values else (0, by - 1)
        return self._between(low, high, rest.names)

    def _parted(self, by: int) -> tuple[Any, Any]:
        """Numbers G and R with by · G + R equal to this one, where R is as narrow as can be."""
        quotients = {name: (2 * factor + by) // (2 * by) for name, factor in self.form.factors}
        multiple = tuple((name, q) for name, q in quotients.items() if q)
        rest = tuple(
            (name, factor - by * quotients[name])
            for name, factor in self.form.factors
            if factor != by * quotients[name]
        )
        return (
            self._made(Whole(0, multiple), 0, 0),
            self._made(Whole(self.form.constant, rest), self.low, self.high, self.about),
        )

    def __divmod__(self, by: Any) -> Any:
        return self // by, self % by

    def __rfloordiv__(self, other: Any) -> Any:
        raise self.varies()

    __rmod__ = __rdivmod__ = __rfloordiv__

    # ----------------------------------------------------------------------- decisions

    def _sign(self, other: Any) -> tuple[int, int, Any] | None:
        """The ends of this number minus another, and that number; None for no number."""
        if not isinstance(other, int | Range):
            return None
        apart = self - other
        return (apart, apart, apart) if isinstance(apart, int) else (*apart.ends, apart)

    def __lt__(self, other: Any) -> Any:
        found = self._sign(other)
        if found is None:
            return NotImplemented
        low, high, apart = found
        if high < 0 or low >= 0:
            return high < 0
        raise apart.varies()

    def __le__(self, other: Any) -> Any:
        found = self._sign(other)
        if found is None:
            return NotImplemented
        low, high, apart = found
        if high <= 0 or low > 0:
            return high <= 0
        raise apart.varies()

    def __gt__(self, other: Any) -> Any:
        found = self <= other
        return not found

    def __ge__(self, other: Any) -> Any:
        found = self < other
        return not found

    def __eq__(self, other: Any) -> Any:
        found = self._sign(other)
        if found is None:
            return False  # a number is no word
        low, high, apart = found
        if isinstance(apart, int):
            return apart == 0
        if low > 0 or high < 0 or apart._never_zero():
            return False
        raise apart.varies()

    def _never_zero(self) -> bool:
        each = self.each()
        if each is not None:
            return 0 not in each
        step = gcd(*(factor for _name, factor in self.form.factors))
        return self.low == self.high and (self.form.constant + self.low) % step != 0

    def __ne__(self, other: Any) -> Any:
        return not self == other

    def __bool__(self) -> bool:
        return bool(self != 0)

    def _one(self, *_others: Any) -> Any:
        """Where one number is needed: what is a Range is not one."""
        raise self.varies()

    __hash__ = __int__ = __index__ = __float__ = _one
    __str__ = __repr__ = __format__ = _one
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _one
    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _one
    __truediv__ = __rtruediv__ = __len__ = __iter__ = __getitem__ = __contains__ = _one


def least(numbers: Iterable[Any]) -> Any:
    """The least of some numbers, Ranges among them."""
    return reduce(lambda one, other: other if one is other else _smaller(one, other), numbers)


def largest(numbers: Iterable[Any]) -> Any:
    """The largest of some numbers, Ranges among them."""
    return -least([-number for number in numbers])


def _smaller(one: Any, other: Any) -> Any:
    if isinstance(one, Reckoned):
        return one.smaller(other)
    return other.smaller(one) if isinstance(other, Reckoned) else min(one, other)
