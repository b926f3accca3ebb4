"""The line of working of a value, as a person writes it before simplifying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import fmpq

from byhand.expression import (
    Call,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)
from byhand.numbers.exact.value import Value

Short = Callable[[Value], Expression]
E = Name("e")
ONE = Number(Fraction(1))
FUNCTIONS = ("sqrt", "ln", "exp", "sin", "cos", "tanh", "erf", "relu", "step")


def worked_form(value: Value, short: Short) -> Expression | None:
    """The line of working that made this value, its parts written by `short`; None without one."""
    how = value.how
    if how is None:
        return None
    match how.operation, how.parts:
        case "softmax", (scores,):
            if len(scores) == 1:
                return ONE
            powers = tuple(Power(E, short(score)) for score in scores)
            return Quotient(powers[how.position], Sum(powers))
        case "linear", (coefficients, xs):
            return sum_of(
                [term(c, [short(x)]) for c, x in zip(coefficients, xs, strict=True) if c != 0]
            )
        case "mean", (xs,):
            return over(sum_of([short(x) for x in xs]), len(xs))
        case "dot", (xs, ys, scale, *more):
            return sum_of([scaled(dot(xs, ys, short), scale), *map(short, more)])
        case "scores", (xs, ys, factor, *more):
            tree = scores_form(dot(xs, ys, short), factor, short)
            return sum_of([tree, *(term(c, [short(x)]) for c, x in more)])
        case "blend", (products,):
            return sum_of([blended(c, x, y, short) for c, x, y in products])
        case "divide", (a, b):
            return Quotient(short(a), short(b))
        case "gelu", (x, inner):
            return Quotient(Product((short(x), Sum((ONE, short(inner))))), Number(Fraction(2)))
        case "loss", (p,):
            return Negative(Call("ln", short(p)))
        case function, (x,) if function in FUNCTIONS:
            return Power(E, short(x)) if function == "exp" else Call(function, short(x))
    return None


def dot(xs: Sequence[Value], ys: Sequence[Value], short: Short) -> Expression:
    """x₁·y₁ + x₂·y₂ + …, with squares where both factors are one value."""
    terms: list[Expression] = []
    for x, y in zip(xs, ys, strict=True):
        if x is y:
            terms.append(Power(short(x), Number(Fraction(2))))
        else:
            terms.append(Product((short(x), short(y))))
    return sum_of(terms)


def blended(c: fmpq, x: Value, y: Value, short: Short) -> Expression:
    """c·x, or c·x² where x stands twice."""
    return term(c, [Power(short(x), Number(Fraction(2))) if x is y else short(x)])


def scores_form(tree: Expression, factor: Value, short: Short) -> Expression:
    """A dot product times its scale: over √d where the scale is 1/√d."""
    if factor.num is None:
        return scaled(tree, factor.q)
    inverse = factor.space.divide(factor.space.plain(fmpq(1)), factor)
    if inverse.num is not None and inverse.is_name and inverse.q == 1:
        return Quotient(tree, short(inverse))
    return Product((tree, short(factor)))


def sum_of(terms: list[Expression]) -> Expression:
    """The sum of some trees; 0 where there are none."""
    if not terms:
        return Number(Fraction(0))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def term(c: fmpq, factors: list[Expression]) -> Expression:
    """A rational coefficient times some factors."""
    size = Number(Fraction(int(abs(c).p), int(c.q)))
    pieces = factors if size == ONE else [size, *factors]
    tree = pieces[0] if len(pieces) == 1 else Product(tuple(pieces))
    return Negative(tree) if c < 0 else tree


def scaled(tree: Expression, c: fmpq) -> Expression:
    """A tree times a positive rational."""
    if c.p == 1:
        return over(tree, int(c.q))
    return Product((Number(Fraction(int(c.p), int(c.q))), tree))


def over(tree: Expression, n: int) -> Expression:
    """A tree over a whole number."""
    return tree if n == 1 else Quotient(tree, Number(Fraction(n)))
