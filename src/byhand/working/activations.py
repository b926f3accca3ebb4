"""The activation functions and their slopes, as expressions of their argument."""

from __future__ import annotations

from fractions import Fraction

from byhand.expression import (
    ONE,
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
from byhand.working.lines import TWO, E

PI = Name("pi")
HALF = Number(Fraction(1, 2))
CUBIC = Fraction(44715, 10**6)  # of gelu_tanh
QUICK = Fraction(1702, 1000)  # of quick_gelu
ROOTS = {  # what stands for √(2/π)
    "gelu_fast": Fraction(7978845608, 10**10),
    "gelu_bloom": Fraction(79788456, 10**8),
}


def activation(kind: str, x: Expression) -> Expression:
    """The activation function as an expression of its argument."""
    match kind:
        case "relu":
            return Call("relu", x)
        case "gelu":
            return Product((HALF, x, Sum((ONE, _erf(x)))))
        case "gelu_tanh" | "gelu_fast" | "gelu_bloom":
            return Product((HALF, x, Sum((ONE, _tanh(kind, x)))))
        case "silu":
            return Quotient(x, _one_and_power(x))
        case "quick_gelu":
            return Quotient(x, _one_and_power(Product((Number(QUICK), x))))
        case "relu2":
            return Power(Call("relu", x), TWO)
        case "sigmoid":
            return Quotient(ONE, _one_and_power(x))
        case "tanh":
            return Call("tanh", x)
        case _:
            return x


def slope(kind: str, x: Expression) -> Expression:
    """The derivative of the activation function; that of relu at 0 is 0."""
    match kind:
        case "relu":
            return Call("step", x)
        case "gelu":
            bell = Power(E, Negative(Quotient(Power(x, TWO), TWO)))
            density = Quotient(Product((x, bell)), Call("sqrt", Product((TWO, PI))))
            return Sum((Product((HALF, Sum((ONE, _erf(x))))), density))
        case "gelu_tanh":
            share = Product((HALF, Sum((ONE, _tanh(kind, x)))))
            rest = Sum((ONE, Negative(Power(_tanh(kind, x), TWO))))
            steep = Sum((ONE, Product((Number(3 * CUBIC), Power(x, TWO)))))
            return Sum((share, Product((HALF, x, rest, _factor(kind), steep))))
        case "silu":
            sigmoid = Quotient(ONE, _one_and_power(x))
            return Product((sigmoid, Sum((ONE, Product((x, Sum((ONE, Negative(sigmoid)))))))))
        case _:
            return ONE


def _erf(x: Expression) -> Expression:
    """erf(x/√2), of gelu."""
    return Call("erf", Quotient(x, Call("sqrt", TWO)))


def _factor(kind: str) -> Expression:
    """√(2/π), or the decimal that stands for it."""
    return Number(ROOTS[kind]) if kind in ROOTS else Call("sqrt", Quotient(TWO, PI))


def _tanh(kind: str, x: Expression) -> Expression:
    """tanh(√(2/π)·(x + 0.044715·x³)), of gelu_tanh and its likes."""
    cubic = Product((Number(CUBIC), Power(x, Number(Fraction(3)))))
    return Call("tanh", Product((_factor(kind), Sum((x, cubic)))))


def _one_and_power(x: Expression) -> Expression:
    """1 + e^-x, of silu."""
    return Sum((ONE, Power(E, Negative(x))))
