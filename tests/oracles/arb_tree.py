"""Expression trees evaluated in plain Arb balls, with nothing of byhand's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add, mul

from flint import arb, ctx, fmpq

from byhand.expression import (
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)

Leaf = Callable[[Name | Entry], arb]

FUNCTIONS: Mapping[str, Callable[[arb], arb]] = {
    "exp": arb.exp,
    "ln": arb.log,
    "sin": arb.sin,
    "cos": arb.cos,
    "tanh": arb.tanh,
    "erf": arb.erf,
    "relu": lambda x: x.max(arb(0)),
    "step": lambda x: arb(1) if x > 0 else arb(0) if x <= 0 else arb(0.5, 0.5),
    "sqrt": arb.sqrt,
}


def constant(name: Name | Entry) -> arb:
    """The leaves that every tree may have: e and π."""
    known = {"e": lambda: arb(1).exp(), "pi": arb.pi}
    assert isinstance(name, Name), name
    return known[name.text]()


def ball_of(
    tree: Expression,
    leaf: Leaf = constant,
    functions: Mapping[str, Callable[[arb], arb]] = FUNCTIONS,
) -> arb:
    """Returns a ball that contains the value of the tree, at the working precision."""

    def ball(tree: Expression) -> arb:
        match tree:
            case Number(value=v):
                return arb(fmpq(v.numerator, v.denominator))
            case Name() | Entry():
                return leaf(tree)
            case Negative(of=x):
                return -ball(x)
            case Sum(terms=terms):
                return reduce(add, map(ball, terms), arb(0))
            case Product(factors=factors):
                return reduce(mul, map(ball, factors), arb(1))
            case Quotient(top=a, bottom=b):
                return ball(a) / ball(b)
            case Power(base=Name(text="e"), exponent=x):
                return ball(x).exp()
            case Power(base=a, exponent=Number(value=n)) if n.denominator == 1 and abs(n) <= 64:
                # One factor at a time: a ball that straddles zero has no logarithm.
                power = reduce(mul, [ball(a)] * abs(n.numerator), arb(1))
                return power if n >= 0 else 1 / power
            case Power(base=a, exponent=b):
                return ball(a) ** ball(b)
            case Call(function=function, argument=x):
                return functions[function](ball(x))

    return ball(tree)


def precise_ball(tree: Expression, bits: int = 600) -> arb:
    """Returns a ball, computed with so many bits, that contains the value of the tree."""
    with ctx.workprec(bits):
        return ball_of(tree)
