"""The classes of expression trees, and functions that walk a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

FUNCTIONS = ("sqrt", "exp", "ln", "sin", "cos", "tanh", "erf", "relu", "step")


@dataclass(frozen=True, slots=True)
class Number:
    """A rational constant."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Name:
    """e, pi, or a letter that stands for a definition."""

    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a step or weight: block.0.attn.scores[1,2,0]."""

    address: str
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Negative:
    of: Expression


@dataclass(frozen=True, slots=True)
class Sum:
    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Product:
    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    top: Expression
    bottom: Expression


@dataclass(frozen=True, slots=True)
class Power:
    base: Expression
    exponent: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A function of FUNCTIONS applied; √x is Call("sqrt", x), and step(x) is 1 above 0, else 0."""

    function: str
    argument: Expression


Expression = Number | Name | Entry | Negative | Sum | Product | Quotient | Power | Call

ONE = Number(Fraction(1))


def parts_of(tree: Expression) -> tuple[Expression, ...]:
    """The trees directly below."""
    match tree:
        case Number() | Name() | Entry():
            return ()
        case Negative(of=x) | Call(argument=x):
            return (x,)
        case Sum(terms=parts) | Product(factors=parts):
            return parts
        case Quotient(top=a, bottom=b) | Power(base=a, exponent=b):
            return (a, b)


def leaves(tree: Expression) -> Iterator[Number | Name | Entry]:
    """The numbers, names and entries of a tree, from left to right."""
    if isinstance(tree, Number | Name | Entry):
        yield tree
    for part in parts_of(tree):
        yield from leaves(part)


def substitute(tree: Expression, change: Callable[[Name | Entry], Expression]) -> Expression:
    """The tree with every name and entry replaced by what `change` makes of it."""
    match tree:
        case Number():
            return tree
        case Name() | Entry():
            return change(tree)
        case Negative(of=x):
            return Negative(substitute(x, change))
        case Call(function=f, argument=x):
            return Call(f, substitute(x, change))
        case Sum(terms=parts):
            return Sum(tuple(substitute(part, change) for part in parts))
        case Product(factors=parts):
            return Product(tuple(substitute(part, change) for part in parts))
        case Quotient(top=a, bottom=b):
            return Quotient(substitute(a, change), substitute(b, change))
        case Power(base=a, exponent=b):
            return Power(substitute(a, change), substitute(b, change))
