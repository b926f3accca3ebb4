"""Systems of forms: how numbers come in and out, and which letters stand for what."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any, ClassVar

import numpy as np

from byhand.expression import Expression
from byhand.numbers.base import Array
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact.space import Space
from byhand.numbers.forms.arithmetic import FLOAT64, Arithmetic
from byhand.numbers.forms.form import Form, ends, settled
from byhand.numbers.forms.places import Places
from byhand.numbers.forms.weights import enclosed, known_floats, known_numbers

LETTERED = 512  # ranges of weights that get letters of their own


class System(Places):
    """Forms in one arithmetic.

    Weights that are known within a radius have the letters 1, 2, …, in the order in which they are
    admitted; the letters of `given` follow.  After the first of those, ranges of weights that are
    admitted get no letter: they are plain errors.  So admit all weights first.
    """

    arithmetic: ClassVar[Arithmetic] = FLOAT64

    def __init__(self, lettered: int = LETTERED) -> None:
        super().__init__()
        self.lettered = lettered  # at most so many ranges of weights get letters
        self.weight_letters = 0  # how many have one
        self._closed = False  # whether letters of texts are in use
        self._space = Space()  # for the values of expressions
        self._constants: dict[Any, Form] = {}

    def admit(self, data: Any) -> Form:
        """Weights: one case, and letters of their own for what is known within a radius."""
        if isinstance(data, Form):
            return data
        entries = np.asarray(data)
        if entries.dtype != object:
            return known_floats(entries, self.arithmetic)
        first = self.weight_letters + 1
        free = range(first, first if self._closed else self.lettered + 1)
        form, taken = known_numbers(entries, self._space, self.arithmetic, free)
        self.weight_letters += taken
        return form

    def given(self, terms: Any, errors: Any = None) -> Form:
        """A form from terms (letter, case, …) of letters of the caller's own, the middle first.

        They are numbered after all letters of weights.  Terms are floats, or numbers of any kind
        that a weight may be, each taken exactly.  `errors` are bounds (case, …), if given.
        """
        self._closed = True
        own = np.asarray(terms)
        unsure = self.arithmetic.zeros((1, *own.shape[1:]))
        if own.dtype != object:
            own = known_floats(own, self.arithmetic).terms[0, 0]
        else:
            flat, rounding, _absent = enclosed(own.ravel(), self._space, self.arithmetic)
            own = flat.reshape(own.shape)
            unsure[0] = self.arithmetic.covered(rounding.reshape(own.shape), len(own)).sum(axis=0)
        if self.weight_letters and len(own) > 1:
            skipped = self.arithmetic.zeros((self.weight_letters, *own.shape[1:]))
            own = np.concatenate((own[:1], skipped, own[1:]))
        if errors is not None:
            more = np.asarray(errors, dtype=np.float64)
            unsure[0] += self.arithmetic.of_floats(more)
            self.arithmetic.covered(unsure, 2)
        return settled(own, unsure)

    def register(self, entry: Any) -> str:
        return "enclosed"

    def entries(self, value: Array) -> Array:
        """Enclosures of each entry, for all letters and all cases; masked ones are ABSENT."""
        low, high = ends(value)
        low, high = low.min(axis=0), high.max(axis=0)
        result = np.empty(low.shape, dtype=object)
        hidden = np.zeros(low.shape, bool) if value.absent is None else value.absent.all(axis=0)
        for place in np.ndindex(low.shape):
            if not hidden[place]:
                result[place] = _enclosure(float(low[place]), float(high[place]))
        return result

    def constant(self, value: Expression | Fraction) -> Form:
        """A number that belongs to the plan."""
        if value not in self._constants:
            entry = np.array([value], dtype=object)
            middle, error, _absent = enclosed(entry, self._space, self.arithmetic)
            self._constants[value] = Form(middle.reshape(1, 1), error.reshape(1, 1))
        return self._constants[value]


def _enclosure(low: float, high: float) -> Enclosure:
    if low == -inf or high == inf:
        return Enclosure(Fraction(0), inf)
    least, most = Fraction(low), Fraction(high)
    return Enclosure((least + most) / 2, (most - least) / 2)
