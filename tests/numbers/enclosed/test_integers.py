"""Fixed-point integers hold what they say, against Arb."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from arb_oracle import LONG, precision
from flint import arb, fmpq, fmpz
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import InputError
from byhand.expression import Entry, Expression, Name, Number, Power, Quotient, parse
from byhand.numbers.enclosed.limbs import integers
from byhand.numbers.enclosed.limbs.integers import Near, TooNear, rational, value_of
from oracles.arb_tree import ball_of

BITS = (20, 53, 64, 150, 400)
SAMPLES = 400 if LONG else 25


def ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def off(near: Near, true: arb) -> float:
    """How far the number is from the middle, in units, from above."""
    return float(abs(true * arb((fmpz(1), fmpz(near.bits))) - fmpz(near.mid)).upper())


def holds(near: Near, true: arb) -> bool:
    return bool(abs(true * arb((fmpz(1), fmpz(near.bits))) - fmpz(near.mid)) <= near.error)


ORACLES = {
    "exp": arb.exp,
    "ln": arb.log,
    "sqrt": arb.sqrt,
    "sin": arb.sin,
    "cos": arb.cos,
    "tanh": arb.tanh,
    "erf": arb.erf,
}


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("name", ORACLES)
def test_functions_contain_the_true_value(name: str, bits: int) -> None:
    rng = random.Random(bits)
    with precision(2 * bits + 400):
        for _ in range(SAMPLES):
            size = Fraction(2) ** rng.randrange(-bits // 2, 7)
            value = (Fraction(rng.random()) + Fraction(1, 3)) * size
            if name not in ("ln", "sqrt"):
                value *= rng.choice([-1, 1])
            made = integers.FUNCTIONS[name](rational(value, bits))
            assert holds(made, ORACLES[name](ball(value)))


@pytest.mark.parametrize("bits", BITS)
def test_functions_contain_the_values_of_the_whole_argument(bits: int) -> None:
    rng = random.Random(bits)
    for name, oracle in ORACLES.items():
        for _ in range(SAMPLES):
            given = Near(rng.randrange(1 << bits, 5 << bits), rng.randrange(1 << bits // 3), bits)
            made = integers.FUNCTIONS[name](given)
            with precision(2 * bits + 200):
                for end in (given.below, given.mid, given.above):
                    assert holds(made, oracle(arb((fmpz(end), fmpz(-bits)))))


def test_constants_contain_the_true_value() -> None:
    with precision(3000):
        for bits in (1, 10, 100, 1000, 2500):
            assert holds(integers.pi(bits), arb.pi())
            assert holds(integers.ln2(bits), arb(2).log())
            assert integers.pi(bits).error <= 2


NUMBERS = st.fractions(min_value=-100, max_value=100, max_denominator=10**6)


@given(NUMBERS, NUMBERS, st.integers(4, 200), st.integers(0, 50), st.integers(0, 50))
def test_arithmetic_contains_the_true_value(
    a: Fraction, b: Fraction, bits: int, wide: int, wider: int
) -> None:
    x, y = rational(a, bits), rational(b, bits)
    x = Near(x.mid + wide, x.error + wide, bits)
    y = Near(y.mid - wider, y.error + wider, bits)

    def inside(near: Near, value: Fraction) -> bool:
        return abs(value * 2**near.bits - near.mid) <= near.error

    assert inside(x + y, a + b)
    assert inside(x - y, a - b)
    assert inside(x * y, a * b)
    assert inside(-x, -a)
    assert inside(x.times(-7), -7 * a)
    assert inside(x.over(7), a / 7)
    assert inside(x.shifted(3), 8 * a)
    assert inside(x.shifted(-3), a / 8)
    assert inside(x.at(bits // 2), a)
    if abs(y.mid) > y.error:
        assert inside(x / y, a / b)
    else:
        with pytest.raises(TooNear):
            x / y


TREES = [
    "sqrt(2)/2",
    "exp(-3/7) + ln(10)*pi",
    "10000^(-2/3)",
    "500000^(-14/128) * (1 - 8192*500000^(-14/128)/(2*pi))/4",
    "sin(355/113) - sin(pi - 355/113) + e",
    "(1 + 1/10^30) - 1",
    "exp(1000)/exp(999)",
    "cos(10^20)",
    "(-2)^7 + 3^(-4)",
    "tanh(1/3)*erf(1/2) - relu(-5)",
    "step(1/3) + step(-2) + step(0)",
    "e^(1/2)^2",
    "exp(-100000)",
    "sqrt(0)",
]


@pytest.mark.parametrize("text", TREES)
@pytest.mark.parametrize("bits", [0, 30, 200])
def test_expressions_are_told_to_a_unit(text: str, bits: int) -> None:
    tree = parse(text)
    integer, error = value_of(tree, bits)
    assert error == 1
    with precision(4000):
        assert off(Near(integer, 1, bits), ball_of(tree)) <= 1


def test_rope_frequencies_are_told_to_a_unit() -> None:
    with precision(400):
        for i in range(64):
            tree = Power(Number(Fraction(10000)), Number(Fraction(-2 * i, 128)))
            integer, _ = value_of(tree, 180)
            assert off(Near(integer, 1, 180), ball_of(tree)) <= 1


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (Name("x"), "has no value here"),
        (Entry("logits", (0,)), "has no value here"),
        (Quotient(Number(Fraction(1)), Number(Fraction(0))), "could not be told"),
        (parse("sqrt(-1)"), "no real root"),
        (parse("1/(sqrt(2)^2 - 2)"), "could not be told"),
    ],
)
def test_what_has_no_value_is_said(tree: Expression, message: str) -> None:
    with pytest.raises(InputError, match=message):
        value_of(tree, 20)


def test_errors_are_not_idle() -> None:
    """Errors said are within a factor of fifty of errors made."""
    rng = random.Random(4)
    for name, oracle in ORACLES.items():
        said, made = 0.0, 0.0
        with precision(400):
            for _ in range(60):
                value = Fraction(rng.randrange(2**60, 2**61), 2**61)
                near = integers.FUNCTIONS[name](rational(value, 100))
                said, made = max(said, near.error), max(made, off(near, oracle(ball(value))))
        assert made > said / 50, name
