"""The forward pass of a post-norm model in SymPy, with SymPy's own simplification at every step.

The steps are those of the traces of `tiny` and `deep.yaml`, from the embedding to the next token:
exact rationals, `exp` and `sqrt`, every step's values through `simplify`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import sympy as sp

Row = list[sp.Expr]


@dataclass(frozen=True)
class Toy:
    """The inputs of the pass; every matrix inside the blocks is the identity, as in the models."""

    tokens: list[int]
    embed: list[list[int]]
    places: list[list[int]]
    blocks: int


def simplified(row: Row) -> Row:
    return [sp.simplify(x) for x in row]


def times(row: Row, matrix: sp.Matrix) -> Row:
    return simplified(list(sp.Matrix([row]) * matrix))


def add(first: Row, second: Row) -> Row:
    return simplified([a + b for a, b in zip(first, second, strict=True)])


def dot(first: Row, second: Row) -> sp.Expr:
    return sp.simplify(sum(a * b for a, b in zip(first, second, strict=True)))


def softmax(scores: Row) -> Row:
    powers = [sp.exp(score) for score in scores]
    return simplified([power / sum(powers) for power in powers])


def layer_norm(row: Row, gain: Row, bias: Row) -> Row:
    mean = sp.simplify(sum(row) / sp.Integer(len(row)))
    centered = simplified([x - mean for x in row])
    variance = sp.simplify(sum(x**2 for x in centered) / len(row))
    std = sp.simplify(sp.sqrt(variance))
    normalized = simplified([x / std if std != 0 else sp.Integer(0) for x in centered])
    return simplified([x * g + b for x, g, b in zip(normalized, gain, bias, strict=True)])


def largest(row: Row) -> int:
    best = 0
    for place in range(1, len(row)):
        if sp.simplify(row[place] - row[best]).is_positive:
            best = place
    return best


def block(stream: list[Row], matrix: sp.Matrix, gain: Row, bias: Row) -> list[Row]:
    q, k, v = ([times(x, matrix) for x in stream] for _name in "qkv")
    after = []
    for place, x in enumerate(stream):
        weights = softmax([dot(q[place], key) for key in k[: place + 1]])
        mixed = [dot(weights, [v[key][i] for key in range(place + 1)]) for i in range(len(x))]
        h = layer_norm(add(x, mixed), gain, bias)
        act = [sp.Max(0, entry) for entry in times(h, matrix)]
        after.append(layer_norm(add(h, times(act, matrix)), gain, bias))
    return after


def forward(toy: Toy) -> list[tuple[Row, Row, int]]:
    """Logits, probabilities and next token at every position."""
    width = len(toy.embed[0])
    gain, bias = [sp.Integer(1)] * width, [sp.Integer(0)] * width
    stream = [
        add(list(map(sp.Integer, toy.embed[token])), list(map(sp.Integer, place)))
        for token, place in zip(toy.tokens, toy.places, strict=False)
    ]
    for _layer in range(toy.blocks):
        stream = block(stream, sp.eye(width), gain, bias)
    logits = [[dot(x, list(map(sp.Integer, row))) for row in toy.embed] for x in stream]
    return [(row, softmax(row), largest(row)) for row in logits]


TINY = Toy([0, 1], [[1, 0], [0, 1], [1, 1]], [[0, 0], [1, 0]], 1)
DEEP = Toy(
    [0, 1, 2, 3, 0, 2, 1, 3],
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]],
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [2, 0, 1]],
    3,
)

if __name__ == "__main__":
    print(forward({"tiny": TINY, "deep": DEEP}[sys.argv[1]]))
