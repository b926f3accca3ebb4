"""The model `tiny` with a pencil: no plan, no number system, only what a person writes down.

At position 1 everything before the first norm is A + B·w, where w is the weight of the second
word: 1/(1 + e^(s0 - s1)).  It is rational only where the scores are equal, so A + B·w vanishes
only where A = B = 0 (or where w is 1/2).  A layernorm in two dimensions leaves the sign of the
difference of the two entries; from there on everything is rational.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb, ctx, fmpq

WORDS = "abc"
TEXTS = [*WORDS, *(f"{first} {second}" for first, second in product(WORDS, repeat=2))]
EMBEDDING = {"a": (1, 0), "b": (0, 1), "c": (1, 1)}
POSITION = ((0, 0), (1, 0))

Number = Fraction | arb
Found = dict[tuple[str, tuple[int, ...]], Number]


def by_hand(text: str) -> Found:
    """Every number of the working by its address and index: a Fraction, or a ball."""
    words = text.split()
    with ctx.workprec(300):
        found: Found = {}
        xs = [_vector(EMBEDDING[word], POSITION[i]) for i, word in enumerate(words)]
        for position, word in enumerate(words):
            for i in range(2):
                found["embed.token", (position, i)] = Fraction(EMBEDDING[word][i])
                found["embed.position", (position, i)] = Fraction(POSITION[position][i])
                found["stream.0", (position, i)] = xs[position][i]
                for name in "qkv":
                    found[f"block.0.attn.{name}", (0, position, i)] = xs[position][i]
            _position(found, xs, position)
    return found


def _vector(*parts: tuple[int, int]) -> tuple[Fraction, Fraction]:
    x, y = (Fraction(sum(entries)) for entries in zip(*parts, strict=True))
    return x, y


def _position(found: Found, xs: list[tuple[Fraction, Fraction]], position: int) -> None:
    x, before = xs[position], xs[0]
    at = "block.0.attn"
    scores = [sum((p * q for p, q in zip(x, key, strict=True)), Fraction(0)) for key in xs]
    shares: list[Number] = [Fraction(1)] if position == 0 else _shares(scores[0], scores[1])
    w = shares[-1]
    for key, share in enumerate(shares):
        found[f"{at}.scores", (0, position, key)] = scores[key]
        found[f"{at}.weights", (0, position, key)] = share
    for i in range(2):
        mixed = _worth(before[i], x[i] - before[i], w)
        found[f"{at}.mixed", (0, position, i)] = found[f"{at}.out", (position, i)] = mixed
        found[f"{at}.add", (position, i)] = _worth(x[i] + before[i], x[i] - before[i], w)
    added = [(x[i] + before[i], x[i] - before[i]) for i in range(2)]
    h = _norm(found, f"{at}.norm", position, added, w)
    bent = [max(entry, Fraction(0)) for entry in h]
    for i in range(2):
        found["block.0.mlp.hidden", (position, i)] = h[i]
        found["block.0.mlp.act", (position, i)] = bent[i]
        found["block.0.mlp.out", (position, i)] = bent[i]
        found["block.0.mlp.add", (position, i)] = h[i] + bent[i]
    rational = [(h[i] + bent[i], Fraction(0)) for i in range(2)]
    out = _norm(found, "block.0.mlp.norm", position, rational, w)
    logits = [sum((o * e for o, e in zip(out, EMBEDDING[word], strict=True)), Fraction(0))
              for word in WORDS]  # fmt: skip
    powers = [_ball(logit).exp() for logit in logits]
    for token, logit in enumerate(logits):
        found["logits", (position, token)] = logit
        equal = len(set(logits)) == 1
        found["probs", (position, token)] = (
            Fraction(1, 3) if equal else powers[token] / (powers[0] + powers[1] + powers[2])
        )


def _shares(first: Fraction, second: Fraction) -> list[Number]:
    if first == second:
        return [Fraction(1, 2), Fraction(1, 2)]
    return [1 / (1 + _ball(second - first).exp()), 1 / (1 + _ball(first - second).exp())]


def _worth(a: Fraction, b: Fraction, w: Number) -> Number:
    """a + b·w, rational where it is."""
    if isinstance(w, Fraction):
        return a + b * w
    return a if b == 0 else _ball(a) + _ball(b) * w


def _norm(
    found: Found, at: str, position: int, x: list[tuple[Fraction, Fraction]], w: Number
) -> tuple[Fraction, Fraction]:
    """Entries a + b·w leave the sign s of their difference: (s, -s), and 0 where there is none."""
    (a, b), (c, d) = x
    half: Any = _worth((a - c) / 2, (b - d) / 2, w)
    sign = int(half > 0) - int(half < 0)
    assert sign or half == 0, "a ball around 0"
    out = Fraction(sign), Fraction(-sign)
    found[f"{at}.mean", (position,)] = _worth((a + c) / 2, (b + d) / 2, w)
    found[f"{at}.variance", (position,)] = half * half
    found[f"{at}.std", (position,)] = half * sign
    for i in range(2):
        found[f"{at}.centered", (position, i)] = half if i == 0 else -half
        found[f"{at}.normalized", (position, i)] = out[i]
        found[f"{at}.out", (position, i)] = out[i]  # gain 1, bias 0
    return out


def _ball(x: Number) -> arb:
    return arb(fmpq(x.numerator, x.denominator)) if isinstance(x, Fraction) else x
