"""The model `journey` straight from its document: matrices of decimals, and Arb.  No plan."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx, fmpq

BITS = 300
Vector = list[arb]
Matrix = list[Vector]


def matrix(text: str) -> Matrix:
    """Rows of decimals, one a line, each the rational number it says."""
    return [[number(word) for word in line.split()] for line in text.strip().splitlines()]


def number(text: str) -> arb:
    value = Fraction(text)
    with ctx.workprec(BITS):
        return arb(fmpq(value.numerator, value.denominator))


TOKENS = """
0.2 -0.1 0.7 0.2
0.1 0.4 -0.3 0.6
0.5 0.2 0.1 -0.3
-0.2 0.2 0.4 0.1
0.4 0.1 0.3 0.5
0.2 0.3 -0.2 0.4
"""
POSITIONS = """
0.1 0.0 0.1 0.0
0.0 0.1 0.0 0.1
0.1 0.0 0.0 -0.1
0.0 0.1 0.1 0.0
"""
QUERIES = "0.5 0.2 -0.3 0.1\n-0.2 0.4 0.1 0.3\n0.1 -0.1 0.5 0.2\n0.3 0.2 -0.1 0.4"
KEYS = "0.4 -0.2 0.3 0.1\n0.2 0.5 -0.1 0.3\n-0.1 0.3 0.4 -0.2\n0.3 0.1 0.2 0.5"
VALUES = "0.2 0.4 -0.1 0.3\n0.5 -0.1 0.2 0.4\n-0.2 0.3 0.5 -0.1\n0.1 0.2 0.3 0.6"
OUTPUT = "0.8 0.1 -0.1 0.2\n0.1 0.7 0.1 0.1\n-0.1 0.2 0.8 0.1\n0.2 0.1 0.1 0.7"
HIDDEN = "0.3 -0.1 0.2 0.1\n0.1 0.4 -0.1 0.2\n-0.2 0.1 0.3 -0.1\n0.1 0.2 0.1 0.3"
BACK = "0.2 0.1 -0.1 0.3\n0.1 0.4 0.2 -0.1\n-0.1 0.2 0.3 0.1\n0.3 -0.1 0.1 0.2"
HEAD = """
0.1 0.2 0.2 0.2 0.1 0.0
0.1 0.4 0.2 0.2 0.1 0.1
0.1 0.5 0.2 0.3 0.2 0.0
0.1 0.5 0.2 0.2 0.2 0.1
"""


def dot(x: Vector, y: Vector) -> arb:
    total = arb(0)
    for a, b in zip(x, y, strict=True):
        total += a * b
    return total


def through(x: Vector, weights: str) -> Vector:
    return [dot(x, list(column)) for column in zip(*matrix(weights), strict=True)]


def plus(x: Vector, y: Vector) -> Vector:
    return [a + b for a, b in zip(x, y, strict=True)]


def normed(x: Vector) -> Vector:
    mean = dot(x, [arb(1)] * 4) / 4
    centred = [entry - mean for entry in x]
    std = (dot(centred, centred) / 4 + number("0.00001")).sqrt()
    return [entry / std for entry in centred]


def softmax(x: Vector) -> Vector:
    powers = [entry.exp() for entry in x]
    total = dot(powers, [arb(1)] * len(powers))
    return [power / total for power in powers]


def after_attention(ids: list[int]) -> Vector:
    """The stream at the last position after attention was added."""
    stream = [plus(matrix(TOKENS)[id], matrix(POSITIONS)[i]) for i, id in enumerate(ids)]
    read = [normed(x) for x in stream]
    query = through(read[-1], QUERIES)
    shares = softmax([dot(query, through(x, KEYS)) / 2 for x in read])
    mixed = [arb(0)] * 4
    for share, x in zip(shares, read, strict=True):
        mixed = plus(mixed, [share * v for v in through(x, VALUES)])
    return plus(stream[-1], through(mixed, OUTPUT))


def mlp_out(x: Vector) -> Vector:
    return through([entry.max(arb(0)) for entry in through(normed(x), HIDDEN)], BACK)


def logits(stream: Vector) -> Vector:
    return through(stream, HEAD)


def loss(stream: Vector, target: int) -> arb:
    return -softmax(logits(stream))[target].log()
