"""Small identities against SymPy, which knows nothing of byhand."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
import sympy
from flint import arb, ctx

from byhand.expression import parse, write
from byhand.numbers.exact import Exact


def sympy_of(text):
    return sympy.sympify(text.replace("^", "**").replace("ln(", "log("), rational=True)


def agrees(value, expected):
    """The value is within 10^-40 of SymPy's."""
    ctx.prec = 256
    return abs(value.ball(256) - arb(str(sympy.N(expected, 60)))) < arb(10) ** -40


@pytest.mark.parametrize(
    "text",
    [
        "1/(1 + exp(1))",
        "sqrt(2)*sqrt(3)/(1 + sqrt(6))",
        "exp(-3*log(10))",
        "cos(2*pi/7) + cos(4*pi/7) + cos(6*pi/7)",
        "sin(pi/12)*cos(5*pi/12)",
        "sqrt(5 + 2*sqrt(6)) - sqrt(3)",
        "(exp(1) + 1)**3/(exp(2) - 1)",
        "log(12) - 2*log(2)",
        "sqrt(exp(3))*exp(1/2)",
        "tanh(1) + erf(1/2)",
        "2**(1/3)*2**(2/3)",
    ],
)
def test_expressions_have_the_value_that_sympy_gives(text):
    value = Exact().scalar(parse(text.replace("**", "^").replace("log(", "ln(")))
    expected = sympy_of(text)
    assert agrees(value, expected)
    simplified = sympy.nsimplify(sympy.radsimp(sympy.simplify(expected)))
    if simplified.is_Rational:
        assert value.fraction == Fraction(int(simplified.p), int(simplified.q))


def test_one_block_has_the_values_that_sympy_gives():
    choose = random.Random(5)
    rows = [[Fraction(choose.randint(-2, 2)) for _c in range(3)] for _r in range(3)]
    numbers = Exact()
    x = numbers.admit(np.array(rows, dtype=object))
    heads = x[np.newaxis]
    mask = [[key <= query for key in range(3)] for query in range(3)]
    scores = numbers.scores(heads, heads, mask=mask, queries=range(3), keys=range(3))
    mixed = numbers.merge_heads(numbers.mix(numbers.softmax(scores), heads))
    centered = numbers.center(mixed, numbers.mean(mixed))
    std = numbers.root(numbers.mean_square(centered), eps=Fraction(1, 10))
    result = numbers.normalize(centered, std)

    s = sympy.Matrix(3, 3, lambda i, j: sympy.Rational(rows[i][j].numerator))
    for i in range(3):
        powers = [sympy.exp(s.row(i).dot(s.row(j))) for j in range(i + 1)]
        row = [sum(p * s[j, d] for j, p in enumerate(powers)) / sum(powers) for d in range(3)]
        middle = [v - sum(row) / 3 for v in row]
        divisor = sympy.sqrt(sum(v**2 for v in middle) / 3 + sympy.Rational(1, 10))
        for d in range(3):
            assert agrees(mixed[i, d], row[d]), write(mixed[i, d].expression())
            assert agrees(result[i, d], middle[d] / divisor)
