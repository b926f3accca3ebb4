"""The space, the entries and the quotients that all operations on exact-or-named values share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from byhand.errors import Undecided
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note, Numbers
from byhand.numbers.exact.names import ONE, Limits
from byhand.numbers.exact.read import admitted, evaluate
from byhand.numbers.exact.space import Space
from byhand.numbers.exact.value import How, Value
from byhand.numbers.exact.write import Writer

SIMPLE = 8  # terms of a form whose square is multiplied out


def array(entries: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """An object array of this shape."""
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result.reshape(shape)


class System(Numbers):
    """Rational numbers and names, in a space of their own."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__()
        self.space = Space(limits)

    @property
    def name(self) -> str:
        return "exact"

    # ------------------------------------------------------------------- values in and out

    def value(self, number: Fraction | int) -> Value:
        """A rational number as a value."""
        return self.space.value(number)

    def scalar(self, tree: Expression) -> Value:
        """The value of an expression such as sqrt(2)/2; an ExpressionError where it has none."""
        return evaluate(tree, self.space)

    def writer(self, width: int = 40) -> Writer:
        """A new writer; `width` is the longest sub-expression written in place of a letter."""
        return self.space.writer(width)

    def admit(self, data: Any) -> Array:
        """The array of these numbers, exactly: a float is a dyadic rational."""
        entries = np.asarray(data)
        if entries.dtype != object:
            entries = entries.astype(object)
        flat = [admitted(entry, self.space) for entry in entries.ravel()]
        return array(flat, entries.shape)

    def register(self, entry: Any) -> str:
        return entry.register if isinstance(entry, Value) else "exact"

    # ------------------------------------------------------------------- arrays

    def _each(self, function: Callable[..., Value], *xs: Array) -> Array:
        if any(x.shape != xs[0].shape for x in xs):
            xs = np.broadcast_arrays(*xs)
        flat = [function(*entries) for entries in zip(*(x.ravel() for x in xs), strict=True)]
        return array(flat, xs[0].shape)

    def _rows(self, function: Callable[[list[Value]], Value], x: Array) -> Array:
        rows = x.reshape(-1, x.shape[-1])
        return array([function(list(row)) for row in rows], x.shape[:-1])

    def _as_multiples_of_one_letter(self, row: list[Value]) -> None:
        """Makes entries that are multiples of one larger value c multiples of a letter from now on.

        Then their mean square is a rational times c², as a letter's square, and its root is |c|.
        Multiplied out, the square of a larger form would not always be recognised.  In two
        dimensions centred entries are c and -c, so a layernorm leaves just their signs.
        """
        named = [entry for entry in row if entry.q != 0]
        if named and all(entry.key == named[0].key for entry in named):
            roots = any(self.space.atoms[i].degree for i in named[0].atoms)
            if named[0].size > (2 if roots else SIMPLE):
                for entry in named:
                    self.space.letter(entry)

    # ------------------------------------------------------------------- quotients

    def _divided(self, row: Array, divisor: Value, place: tuple[int, ...]) -> list[Value]:
        if self.space.sign(divisor) != 0:
            inverse = self.space.inverse(divisor)
            return [self._quotient(entry, divisor, inverse) for entry in row]
        if any(self.space.sign(entry) for entry in row):
            raise Undecided(_("a row that is not zero cannot be divided by zero"))
        self.notes.append(Note("zero-variance", place))
        return [self.space.plain(fmpq(0)) for _entry in row]

    def _quotient(self, entry: Value, divisor: Value, inverse: Value) -> Value:
        quotient = self.space.total([(ONE, entry, inverse)], How("divide", entry, divisor))
        return self.space.settled(quotient)
