"""The forward pass of a post-norm model with identity matrices in SymPy, simplified as it goes.

The same arithmetic as `tiny` and `deep.yaml`, written the way one would by hand in SymPy: exact
rationals, `exp` and `sqrt`, `simplify` on every value that may contain one.
"""

from __future__ import annotations

import sys

import sympy as sp


def layer_norm(row: list[sp.Expr]) -> list[sp.Expr]:
    mean = sum(row) / sp.Integer(len(row))
    centered = [sp.simplify(x - mean) for x in row]
    std = sp.sqrt(sp.simplify(sum(x**2 for x in centered) / len(row)))
    return [sp.simplify(x / std) if std != 0 else sp.Integer(0) for x in centered]


def softmax(scores: list[sp.Expr]) -> list[sp.Expr]:
    powers = [sp.exp(score) for score in scores]
    return [sp.simplify(power / sum(powers)) for power in powers]


def largest(row: list[sp.Expr]) -> int:
    best = 0
    for place in range(1, len(row)):
        if sp.simplify(row[place] - row[best]).is_positive:
            best = place
    return best


def block(stream: list[list[sp.Expr]]) -> list[list[sp.Expr]]:
    after = []
    for place, x in enumerate(stream):
        scores = [sum(a * b for a, b in zip(x, k, strict=True)) for k in stream[: place + 1]]
        weights = softmax([sp.simplify(score) for score in scores])
        mixed = [
            sp.simplify(sum(w * v[i] for w, v in zip(weights, stream, strict=False)))
            for i in range(len(x))
        ]
        h = layer_norm([a + b for a, b in zip(x, mixed, strict=True)])
        after.append(layer_norm([a + sp.Max(0, a) for a in h]))
    return after


def forward(
    tokens: list[int], embed: list[list[int]], places: list[list[int]], blocks: int
) -> list[tuple[list[sp.Expr], list[sp.Expr], int]]:
    """Logits, probabilities and next token at every position."""
    stream = [
        [sp.Integer(a + b) for a, b in zip(embed[token], place, strict=True)]
        for token, place in zip(tokens, places, strict=False)
    ]
    for _layer in range(blocks):
        stream = block(stream)
    logits = [
        [sp.simplify(sum(a * b for a, b in zip(x, row, strict=True))) for row in embed]
        for x in stream
    ]
    return [(row, softmax(row), largest(row)) for row in logits]


TINY = ([0, 1], [[1, 0], [0, 1], [1, 1]], [[0, 0], [1, 0]], 1)
DEEP = (
    [0, 1, 2, 3, 0, 2, 1, 3],
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]],
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [2, 0, 1]],
    3,
)

if __name__ == "__main__":
    print(forward(*{"tiny": TINY, "deep": DEEP}[sys.argv[1]]))
