"""What all lines of working share: the plan, its given ids and masks, pieces of expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from byhand.expression import ONE, Entry, Expression, Name, Negative, Number, Product, Quotient, Sum
from byhand.parameters import parameters
from byhand.plan import WEIGHT, Plan

Index = tuple[int, ...]
E = Name("e")
TWO = Number(Fraction(2))


@dataclass(frozen=True)
class Lines:
    """The entries of a plan as expressions of each other.

    `given` holds the ids of given steps (tokens, target, targets).  `absent` says whether an entry
    is masked, by the mask or by a table of scores, or does not count.
    """

    plan: Plan
    given: Mapping[str, Any]
    absent: Callable[[str, Index], bool]

    def shape(self, address: str) -> tuple[int, ...]:
        """The shape of a step or of a weight."""
        if address.startswith(WEIGHT):
            return self._weight_shapes[address.removeprefix(WEIGHT)]
        return self.plan[address].shape

    @cached_property
    def _weight_shapes(self) -> dict[str, tuple[int, ...]]:
        return {parameter.name: parameter.shape for parameter in parameters(self.plan.spec)}


def number(value: int) -> Number:
    """A whole number."""
    return Number(Fraction(value))


def added(terms: Iterable[Expression]) -> Expression:
    """The sum of some terms; 0 where there are none."""
    found = tuple(terms)
    return Sum(found) if found else number(0)


def times(factor: Fraction, x: Expression) -> Expression:
    """A rational number times an expression, as a person writes it: x, -x, 3·x, -3·x."""
    size = abs(factor)
    tree = x if size == 1 else Product((Number(size), x))
    return Negative(tree) if factor < 0 else tree


def scaled(products: Sequence[Expression], scale: Expression | None) -> Expression:
    """The sum of products times a scale, or over √d where the scale is 1/√d."""
    total = added(products)
    match scale:
        case None:
            return total
        case Quotient(top=top, bottom=bottom) if top == ONE:
            return Quotient(total, bottom)
    return Product((total, scale))


def cell(weight: str, layout: str, source: int, target: int) -> Entry:
    """The entry of a matrix that leads from one input to one output."""
    return Entry(weight, (source, target) if layout == "in_out" else (target, source))
