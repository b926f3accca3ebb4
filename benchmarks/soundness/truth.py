"""Norms, MLPs and attention in Arb, written anew: nothing of byhand's arithmetic is in here.

A row of numbers is a list of balls, and a matrix an `arb_mat`.  Many rows go through a sublayer
together, since a product of matrices in Arb costs far less than its entries one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpq

BITS = 320  # of every ball, unless a caller works with more


def balls(array: Any) -> list[arb]:
    """The floats of an array, exactly, one row after another."""
    return [arb(x) for x in np.asarray(array, dtype=np.float64).ravel().tolist()]


def matrix(array: Any) -> arb_mat:
    """A matrix of floats, exactly."""
    rows, columns = np.shape(array)
    return arb_mat(rows, columns, balls(array))


def upper(ball: arb) -> float:
    """A float that no number of the ball exceeds."""
    return float(np.nextafter(float(ball.upper()), np.inf))


def near(x: Sequence[arb], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Floats near the balls, and how far from them their numbers are at most."""
    middles = np.array([float(one.mid()) for one in x])
    off = np.array([upper(abs(one - arb(m))) for one, m in zip(x, middles.tolist(), strict=True)])
    return middles.reshape(shape), off.reshape(shape)


def length(row: Sequence[arb]) -> arb:
    """The Euclidean length; where it may be 0, a ball around 0 that holds it."""
    whole = sum((x * x for x in row), arb(0))
    if whole > 0:
        return whole.sqrt()
    return arb(0, arb(whole.abs_upper()).sqrt().upper())


# ------------------------------------------------------------------ norms


def normalized(row: Sequence[arb], eps: fmpq, *, centred: bool) -> list[arb]:
    """LayerNorm or RMSNorm without a gain."""
    n = len(row)
    if centred:
        mean = sum(row, arb(0)) / n
        row = [x - mean for x in row]
    size = (sum((x * x for x in row), arb(0)) / n + arb(eps)).sqrt()
    return [x / size for x in row]


# ------------------------------------------------------------------ activations


@lru_cache(8)
def _root(kind: str, bits: int) -> arb:
    """√(2/π), or the decimals that some models have for it."""
    del bits  # the ball depends on it
    given = {"gelu_fast": fmpq(7978845608, 10**10), "gelu_bloom": fmpq(79788456, 10**8)}
    return arb(given[kind]) if kind in given else (arb(2) / arb.pi()).sqrt()


def steps(kind: str, x: arb) -> arb:
    """w, where the activation is x/(1 + e^-w)."""
    if kind == "silu":
        return x
    if kind == "quick_gelu":
        return x * fmpq(1702, 1000)
    return 2 * _root(kind, ctx.prec) * (x + x * x * x * fmpq(44715, 10**6))


def share(kind: str, x: arb) -> arb:
    """s, where the activation is x·s."""
    if kind == "gelu":
        return (-x / arb(2).sqrt()).erfc() / 2
    return 1 / (1 + (-steps(kind, x)).exp())


def activation(kind: str, x: arb) -> arb:
    match kind:
        case "relu":
            return x.max(arb(0))
        case "relu2":
            return x.max(arb(0)) ** 2
        case "identity":
            return x
        case "sigmoid":
            return 1 / (1 + (-x).exp())
        case "tanh":
            return x.tanh()
    return x * share(kind, x)


def slope(kind: str, x: arb) -> arb:
    """The derivative of the activation; of relu away from 0."""
    match kind:
        case "relu":
            return arb(1) if x > 0 else arb(0)
        case "relu2":
            return 2 * x.max(arb(0))
        case "identity":
            return arb(1)
        case "sigmoid":
            s = 1 / (1 + (-x).exp())
            return s * (1 - s)
        case "tanh":
            return 1 - x.tanh() ** 2
        case "gelu":
            density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
            return share(kind, x) + x * density
    s = share(kind, x)
    rise = {"silu": arb(1), "quick_gelu": arb(fmpq(1702, 1000))}.get(kind)
    if rise is None:
        rise = 2 * _root(kind, ctx.prec) * (1 + 3 * x * x * fmpq(44715, 10**6))
    return s + x * s * (1 - s) * rise


# ------------------------------------------------------------------ sublayers


def through(rows: arb_mat, weight: arb_mat, bias: Sequence[arb] | None = None) -> list[list[arb]]:
    """Rows times a matrix (outputs, inputs), plus a bias."""
    made = (rows * weight.transpose()).tolist()
    if bias is None:
        return made
    return [[x + b for x, b in zip(row, bias, strict=True)] for row in made]


def mlp(
    kind: str, rows: arb_mat, reading: Sequence[arb_mat], biases: Sequence[Any], out: arb_mat
) -> tuple[list[list[list[arb]]], list[list[arb]], list[list[arb]]]:
    """What each matrix makes of the rows, what the activation makes of the first, the answers."""
    made = [through(rows, one, bias) for one, bias in zip(reading, biases, strict=True)]
    bent = [[activation(kind, x) for x in row] for row in made[0]]
    inner = bent
    if len(made) > 1:
        inner = [
            [x * y for x, y in zip(*both, strict=True)] for both in zip(bent, made[1], strict=True)
        ]
    flat = [x for row in inner for x in row]
    return made, bent, through(arb_mat(len(inner), len(inner[0]), flat), out)


def place_of_largest(row: Sequence[arb]) -> int:
    """Where the largest stands; floats would not tell numbers apart that are nearly equal."""
    best = 0
    for place, x in enumerate(row):
        if x > row[best]:
            best = place
    return best


def softmax(scores: Sequence[arb]) -> list[arb]:
    most = max(scores, key=lambda x: float(x.mid()))
    powers = [(x - most).exp() for x in scores]
    whole = sum(powers, arb(0))
    return [x / whole for x in powers]


def turned(row: Sequence[arb], cosines: Sequence[arb], sines: Sequence[arb]) -> list[arb]:
    """RoPE on the first entries, in halves; the others stay."""
    pairs = len(cosines)
    made = list(row)
    for i in range(pairs):
        a, b = row[i], row[i + pairs]
        made[i] = a * cosines[i] - b * sines[i]
        made[i + pairs] = a * sines[i] + b * cosines[i]
    return made
