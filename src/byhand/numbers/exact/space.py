"""The space of values: one table of names, and every operation on values over it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from flint import arb, fmpq, fmpz

from byhand.errors import Undecided
from byhand.language import _
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact.angles import Angles
from byhand.numbers.exact.multiples import MultipleClass, Multiples
from byhand.numbers.exact.names import Limits
from byhand.numbers.exact.value import Atom, How, Value
from byhand.numbers.exact.write import Writer

if TYPE_CHECKING:
    from byhand.numbers.base import Printed, Within


class Space(Angles):
    """A field of real numbers with names; values of different spaces do not mix."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self._exponents: dict[object, Multiples] = {}
        self._logarithms: dict[fmpz, Atom] = {}
        self._roots: dict[object, Atom] = {}
        self._angles: dict[object, Multiples] = {}
        self._turns: dict[int, MultipleClass] = {}
        self._printed = 0

    def rename(self) -> None:
        """After a merge, registers atoms and multiples under the finer names too."""
        super().rename()
        for table in (self._exponents, self._angles):
            for multiples in list(table.values()):
                unit = self.fine(multiples.unit)
                if unit is not multiples.unit and unit.num is not None:
                    multiples.unit = unit
                    table.setdefault(unit.key, multiples)

    def printed(self, number: Printed | Within) -> Value:
        """A new name for a rounded number, or for another that is known within a radius."""
        radius = fmpq(number.radius.numerator, number.radius.denominator)
        return self._known_within(self.value(number.value), radius)

    def ranged(self, ball: arb, how: How | None = None) -> Value:
        """A new name for a number in this ball, about which nothing else is known."""
        known = Enclosure.of(ball)  # of a ball of absurd size, a larger one
        if isinstance(known.rad, float):
            raise Undecided(_("nothing is known of the value: it may be any number"))
        middle, radius = (fmpq(x.numerator, x.denominator) for x in (known.mid, known.rad))
        found = self._known_within(self.plain(middle), radius)
        return found if how is None else found.made(how)

    def _known_within(self, middle: Value, radius: fmpq) -> Value:
        self._printed += 1
        a = self.atom("printed", self._printed, middle)
        a.radius = radius
        a.enclosed = True
        return self.power(a)

    @cached_property
    def own_writer(self) -> Writer:
        """The writer behind str(value): a letter always means the same value."""
        return self.writer()

    def writer(self, width: int = 40) -> Writer:
        """A new writer, which gives its own letters."""
        return Writer(self, width)
