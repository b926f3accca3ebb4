"""An independent evaluation of expression trees: plain Arb balls, nothing of byhand's numbers."""

from __future__ import annotations

from flint import arb, ctx, fmpq

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


def rational(q) -> arb:
    return arb(fmpq(q.numerator, q.denominator))


def ball_of(tree: Expression, bits: int = 600) -> arb:
    """A ball, computed with so many bits, that contains the value of the tree."""
    before = ctx.prec
    ctx.prec = bits
    try:
        return _ball(tree)
    finally:
        ctx.prec = before


def _ball(tree: Expression) -> arb:
    match tree:
        case Number(value=q):
            return rational(q)
        case Name(text="e"):
            return arb(1).exp()
        case Name(text="pi"):
            return arb.pi()
        case Negative(of=x):
            return -_ball(x)
        case Sum(terms=terms):
            return sum((_ball(t) for t in terms), arb(0))
        case Product(factors=factors):
            product = arb(1)
            for factor in factors:
                product *= _ball(factor)
            return product
        case Quotient(top=a, bottom=b):
            return _ball(a) / _ball(b)
        case Power(base=a, exponent=Number(value=e)) if e.denominator == 1:
            return _ball(a) ** e.numerator
        case Power(base=a, exponent=b):
            return (_ball(b) * _ball(a).log()).exp()
        case Call(function="ln", argument=x):
            return _ball(x).log()
        case Call(function="relu", argument=x):
            return _ball(x).max(arb(0))
        case Call(function=function, argument=x):
            return getattr(_ball(x), function)()
    raise AssertionError(tree)
