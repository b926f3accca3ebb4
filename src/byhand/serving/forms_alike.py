"""Exact values of two passes compared by their form.

Each pass has a number space of its own, so `==` cannot be asked.  A form is written here without
the space: a rational, times a fraction of polynomials in names, each name by its function and the
form of what it is of.  The same form is the same number; another form is another number, or one
that only a proof could show to be the same.
"""

from __future__ import annotations

from typing import Any

from byhand.numbers.exact.value import Atom, Value


class Forms:
    """The forms of values, each as a small number: equal numbers are equal forms."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._atoms: dict[tuple[int, int], int] = {}  # of a space, an atom
        self._spaces: dict[int, Any] = {}  # kept, so that no id is given twice

    def same(self, one: Value, other: Value) -> bool:
        """Whether two values have the same form, and so are the same number."""
        if one.fraction is not None or other.fraction is not None:
            return bool(one.fraction == other.fraction)
        if one.q != other.q or len(one.atoms) != len(other.atoms):
            return False
        if not one.ball().overlaps(other.ball()):  # seen at once, and most often
            return False
        if _coefficients(one) != _coefficients(other):
            return False
        return self.of(one) == self.of(other)

    def of(self, value: Value) -> int:
        """The number of a value's form."""
        if value.num is None or value.den is None:
            return self._number(("rational", str(value.q)))
        atoms = [self._atom(value.space.atoms[at], value.space) for at in value.atoms]
        return self._number(
            ("fraction", str(value.q), _terms(value.num, atoms), _terms(value.den, atoms))
        )

    def _atom(self, atom: Atom, space: Any) -> int:
        known = self._atoms.get((id(space), atom.id))
        if known is not None:
            return known
        self._spaces[id(space)] = space
        argument = None if atom.argument is None else self.of(atom.argument)
        wide = None
        if atom.wide is not None:
            wide = frozenset(
                (tuple(sorted(self._atom(space.atoms[at], space) for at in factors)), str(q))
                for factors, q in atom.wide.items()
            )
        # A printed number is known by its interval alone, which does not say which one it is.
        own = (id(space), atom.id) if atom.kind == "printed" else ()
        radius = None if atom.radius is None else str(atom.radius)
        found = self._number((atom.kind, argument, wide, atom.degree, atom.turn, radius, own))
        self._atoms[id(space), atom.id] = found
        return found

    def _number(self, form: Any) -> int:
        return self._numbers.setdefault(form, len(self._numbers))


def _coefficients(value: Value) -> tuple[list[Any], ...]:
    return tuple(sorted(p.coeffs()) for p in (value.num, value.den) if p is not None)


def _terms(polynomial: Any, atoms: list[int]) -> frozenset[Any]:
    """The terms of a polynomial, whatever order its names have."""
    return frozenset(
        (tuple(sorted((atoms[i], e) for i, e in enumerate(exponents) if e)), str(coefficient))
        for exponents, coefficient in polynomial.to_dict().items()
    )
