"""Functions as the operations ask for them: digits in; digits, and how far they may be off, out."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from byhand.numbers.enclosed.gpu.decisions import outside_the_pass
from byhand.numbers.enclosed.limbs import angles, arithmetic, functions, roots
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.engine import Array, engine_of

Made = tuple[Digits, float]  # digits, and a bound of their error
REMEMBERED = 64  # tables of turns; all layers turn alike

ACTIVATIONS: dict[str, Callable[[Digits, int], Digits]] = {
    "gelu": functions.gelu,
    "gelu_tanh": functions.gelu_tanh,
    "silu": functions.silu,
}


def activation(kind: str, x: Digits, low: int) -> Made:
    """The activation of each entry on a grid, and a bound of its error."""
    return ACTIVATIONS[kind](x, low), functions.ERROR[kind] * math.ldexp(1.0, low)


def relu(x: Digits) -> Digits:
    """max(x, 0), exactly: the sign of an approximation is the sign."""
    return Digits(x.limbs * (arithmetic.approx(x) > 0), x.top)


def exp(x: Digits, low: int) -> Made:
    """e^x for x <= 1/4."""
    return functions.exp(x, low), functions.ERROR["exp"] * math.ldexp(1.0, low)


def inverse(x: Digits, low: int) -> Made:
    """1/x for x >= 1/2."""
    return roots.reciprocal(x, low), roots.ERROR * math.ldexp(1.0, low)


_turns: OrderedDict[Any, tuple[Digits, Digits, float]] = OrderedDict()


def turns(
    positions: Sequence[int],
    width: int,
    base: Fraction,
    given: Sequence[Any] | None,
    low: int,
    like: Array,
) -> tuple[Digits, Digits, float]:
    """(cos, sin, error) of position · frequency, each (pos, width/2)."""
    rates = None if given is None else tuple(given)
    key = (tuple(positions), width, base, rates, low, engine_of(like).device_of(like))
    if key not in _turns:
        cos, sin = outside_the_pass(
            lambda: angles.turns(positions, width, base, low=low, frequencies=rates, like=like)
        )
        _turns[key] = cos, sin, angles.ANGLES * math.ldexp(1.0, low)
        if len(_turns) > REMEMBERED:
            _turns.popitem(last=False)
    return _turns[key]
