"""Rational multiples of one value, in classes whose members are written with one name.

e^x, e^(2x) and e^(x/3) are powers of e^(x/3).  But e^x and e^(x/1000) share no name: the powers
would be huge.  So the multiples of x fall into classes within which the powers stay small.
"""

from __future__ import annotations

from math import lcm

from flint import fmpq

from byhand.numbers.exact.value import Atom, Value


class MultipleClass:
    """The multiples unit · base · k/divisor, k an integer; the names are those of k = 1."""

    def __init__(self, number: int, base: fmpq) -> None:
        self.number = number
        self.base = base
        self.divisor = 1
        self.largest = 0  # the largest |k| in use
        self.atom: Atom | None = None  # e^x, or 2cos x
        self.other: Atom | None = None  # 2sin x, where that is not a polynomial in 2cos x


class Multiples:
    """All classes of the multiples of one value, `unit`."""

    def __init__(self, unit: Value) -> None:
        self.unit = unit
        self.classes: list[MultipleClass] = []

    def find(self, ratio: fmpq, most: int) -> tuple[MultipleClass, int, int]:
        """(class, k, finer): unit · ratio is k times the value named by the class, made finer.

        A class takes a multiple if all its powers stay within `most`.  Its powers and divisor only
        grow, so it never takes a multiple that it once refused: a multiple always finds the same
        class.
        """
        for found in self.classes:
            share = ratio / found.base
            divisor = lcm(int(share.q), found.divisor)
            finer = divisor // found.divisor
            k = int(share * divisor)
            largest = max(abs(k), found.largest * finer)
            if largest <= most:
                found.largest = largest
                return found, k, finer
        found = MultipleClass(len(self.classes), abs(ratio))
        found.largest = 1
        self.classes.append(found)
        return found, 1 if ratio > 0 else -1, 1

    def named(self, found: MultipleClass) -> Value:
        """The argument of the names of a class: unit · base / divisor."""
        return self.unit.times(found.base / found.divisor)
