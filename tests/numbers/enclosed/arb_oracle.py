"""What the tests of limbs share: Arb's values, nasty arguments, how far a result is off."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from flint import arb, ctx, fmpz

from byhand.numbers.enclosed.limbs.arithmetic import Digits, from_integers, to_integers
from oracles.vocabulary import KINDS

LONG = os.environ.get("BYHAND_LONG") == "1"

FUNCTIONS: dict[str, Callable[[arb], arb]] = {
    "exp": arb.exp,
    "gelu": lambda x: x * (-x / arb(2).sqrt()).erfc() / 2,
    "gelu_tanh": lambda x: (
        x / (1 + (-(8 / arb.pi()).sqrt() * (x + arb(44715) / 1000000 * x * x * x)).exp())
    ),
    "silu": lambda x: x / (1 + (-x).exp()),
    **{kind: KINDS[kind] for kind in ("quick_gelu", "gelu_fast", "gelu_bloom", "sigmoid", "tanh")},
    "reciprocal": lambda x: 1 / x,
    "root": arb.sqrt,
    "sin": arb.sin,
    "cos": arb.cos,
}


@contextmanager
def precision(bits: int) -> Any:
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def worst_error(name: str, x: Digits, result: Digits, low: int) -> float:
    """The largest |result - f(x)| over the entries, in units of 2^low, from above."""
    function = FUNCTIONS[name]
    arguments = np.asarray(to_integers(x)).ravel().tolist()
    results = np.asarray(to_integers(result)).ravel().tolist()
    assert len(arguments) == len(results)
    assert result.low == low
    worst = 0.0
    size = max((abs(value).bit_length() for value in arguments), default=0)
    with precision(max(64, size, -low + 64) + max(0, x.low + size) + 64):
        for argument, value in zip(arguments, results, strict=True):
            true = function(arb((fmpz(argument), fmpz(x.low)))) * arb((fmpz(1), fmpz(-low)))
            error = abs(true - fmpz(value))
            assert error.rad() < 2.0**-20, (name, argument, x.low)
            worst = max(worst, float(error.upper()))
    return worst


def nasty(
    least: Fraction,
    most: Fraction,
    low: int,
    count: int,
    rng: random.Random,
    near: Sequence[Fraction] = (),
) -> Digits:
    """Multiples of 2^low between least and most: the ends, 0, powers of two, table points and the
    middles between them, `near` and their neighbours, and numbers of all sizes."""
    unit = Fraction(2) ** low
    bottom, top = -(-least // unit), most // unit
    whole = Fraction(2) ** max(0, low)

    def one() -> int:
        kind = rng.randrange(8)
        if kind == 0:
            value = rng.choice([least, most, Fraction(0), unit, -unit])
        elif kind == 1:
            value = rng.choice([-1, 1]) * Fraction(2) ** rng.randrange(min(low, -1), 24)
        elif kind == 2:
            value = Fraction(rng.randrange(-(2**14), 2**14), 512)
        elif kind == 3 and near:
            value = rng.choice(near)
        elif kind in (3, 4):
            value = (
                rng.choice([-1, 1]) * Fraction(rng.random()) * Fraction(2) ** rng.randrange(-40, 8)
            )
        else:
            value = least + (most - least) * Fraction(rng.random()) ** rng.choice([1, 1, 4])
            value = max(value, -whole * 40) if rng.random() < 0.5 else value
        number = int(value // unit) + rng.choice(
            [0, 0, 0, 1, -1, 2, rng.getrandbits(max(1, -low - 9))]
        )
        return max(bottom, min(top, number))

    return from_integers([one() for _ in range(count)], low)


def balanced(x: Digits) -> bool:
    """Whether the limbs are integers of the promised sizes."""
    limbs = np.abs(x.engine.to_numpy(x.limbs))
    whole = bool((limbs == np.rint(limbs)).all())
    return whole and bool((limbs[1:] <= 2**21).all() and (limbs[0] <= 2**21 + 1).all())


def as_torch(x: Digits) -> Digits:
    return Digits(torch.from_numpy(np.ascontiguousarray(x.limbs)), x.top)


def same_bits(x: Digits, y: Digits) -> bool:
    one, other = x.engine.to_numpy(x.limbs), y.engine.to_numpy(y.limbs)
    return x.top == y.top and one.shape == other.shape and bool((one == other).all())


def fractions_of(integers: Iterable[int], low: int) -> list[Fraction]:
    return [integer * Fraction(2) ** low for integer in integers]
