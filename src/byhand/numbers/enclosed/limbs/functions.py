"""The elementwise functions of a transformer on limbs, each with its written error bound.

Every function takes midpoints (Digits) and the grid of the result, 2^low, and gives Digits on that
grid with |result - f(x)| <= ERROR[name]·2^low for every entry.  Derivations: polynomials.py,
exponential.py and numbers/README.md.  The effect of an argument's own radius is not worked out
here.

Arguments and results whose `low` is `aligned(low)` are fastest: nothing has to be shifted then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ldexp
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu import fused
from byhand.numbers.enclosed.limbs import coefficients, exponential, polynomials, roots
from byhand.numbers.enclosed.limbs.arithmetic import (
    BASE,
    HALF,
    WIDTH,
    Digits,
    add,
    approx,
    regrid,
    shift,
    subtract,
)
from byhand.numbers.enclosed.limbs.coefficients import STEP, Tabled
from byhand.numbers.enclosed.limbs.engine import Array, in_pieces
from byhand.numbers.enclosed.limbs.polynomials import on_device, table_of

# In units of 2^low.  Results off the aligned grid are worked on the next finer one, at most half
# as coarse, and rounded: half of these and HALF, which is no more.
ERROR: Mapping[str, float] = {
    "exp": exponential.ERROR,
    "gelu": polynomials.ERROR + HALF,  # the ramp may be added apart, and the sum rounded
    "gelu_tanh": polynomials.ERROR + HALF,
    "gelu_fast": polynomials.ERROR + HALF,
    "gelu_bloom": polynomials.ERROR + HALF,
    "silu": polynomials.ERROR + HALF,
    "quick_gelu": polynomials.ERROR + HALF,
    "sigmoid": polynomials.ERROR,
    "tanh": polynomials.ERROR,  # a sigmoid on a grid half as coarse, times 2
}


def aligned(low: int) -> int:
    """The coarsest aligned grid that is not coarser than 2^low (nor than 2^-STEP)."""
    return -STEP - WIDTH * max(0, -(-(-STEP - low) // WIDTH))


def exp(x: Digits, low: int) -> Digits:
    """e^x for x <= 1/4."""
    arguments, (least, most) = arguments_of(x)
    if most > exponential.MOST:
        raise ValueError("exp is for arguments up to 1/4")
    last = _last(low)
    points, near = exponential.tables(last, reach(-least), x.limbs)
    limbs = applied(exponential.evaluate, (points, near), arguments, last)
    return on_grid(limbs, low)


def gelu(x: Digits, low: int) -> Digits:
    """x·Φ(x) = x·(1 + erf(x/√2))/2."""
    return _tabled(coefficients.GELU, x, low)


def gelu_tanh(x: Digits, low: int) -> Digits:
    """x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2."""
    return _tabled(coefficients.GELU_TANH, x, low)


def gelu_fast(x: Digits, low: int) -> Digits:
    """gelu_tanh with 0.7978845608 for √(2/π)."""
    return _tabled(coefficients.GELU_FAST, x, low)


def gelu_bloom(x: Digits, low: int) -> Digits:
    """gelu_tanh with 0.79788456 for √(2/π)."""
    return _tabled(coefficients.GELU_BLOOM, x, low)


def silu(x: Digits, low: int) -> Digits:
    """x/(1 + e^-x)."""
    return _tabled(coefficients.SILU, x, low)


def quick_gelu(x: Digits, low: int) -> Digits:
    """x/(1 + e^(-1.702·x))."""
    return _tabled(coefficients.QUICK_GELU, x, low)


def sigmoid(x: Digits, low: int) -> Digits:
    """1/(1 + e^-x): 1 where limb 0 is not negative, else 0, plus what the table gives."""
    arguments, (least, most) = arguments_of(x)
    last = _last(low)
    table = on_device(table_of, (coefficients.SIGMOID, last, reach(max(-least, most))), x.limbs)
    limbs = applied(polynomials.evaluate, (table,), arguments, last)
    limbs[0] += x.engine.positive(arguments[0]) * 2.0**STEP
    return on_grid(limbs, low)


def tanh(x: Digits, low: int) -> Digits:
    """tanh x = 2/(1 + e^(-2x)) - 1."""
    twice = shift(sigmoid(shift(x, 1), low - 1), 1)
    return subtract(twice, roots.one_like(x.limbs))


Made = tuple[Digits, float]  # digits, and a bound of their error

ACTIVATIONS: dict[str, Callable[[Digits, int], Digits]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_fast": gelu_fast,
    "gelu_bloom": gelu_bloom,
    "silu": silu,
    "quick_gelu": quick_gelu,
    "sigmoid": sigmoid,
    "tanh": tanh,
}


def activation(kind: str, x: Digits, low: int) -> Made:
    """An activation on the grid 2^low, and a bound of its error."""
    return ACTIVATIONS[kind](x, low), ERROR[kind] * ldexp(1.0, low)


def relu(x: Digits) -> Digits:
    """max(x, 0), exactly: the sign of an approximation is the sign."""
    return Digits(x.limbs * (approx(x) > 0), x.top)


def powers(x: Digits, low: int) -> Made:
    """e^x for x <= 1/4, and a bound of its error."""
    return exp(x, low), ERROR["exp"] * ldexp(1.0, low)


def inverses(x: Digits, low: int) -> Made:
    """1/x for x >= 1/2, and a bound of its error."""
    return roots.reciprocal(x, low), roots.ERROR * ldexp(1.0, low)


def _tabled(function: Tabled, x: Digits, low: int) -> Digits:
    arguments, (least, most) = arguments_of(x)
    last = _last(low)
    table = on_device(table_of, (function, last, reach(max(-least, most))), x.limbs)
    plain = not function.ramp or x.top <= WIDTH - STEP
    evaluate = polynomials.evaluate if plain else polynomials.without_ramp
    limbs = applied(evaluate, (table,), arguments, last)
    made = on_grid(limbs, aligned(low))
    if not plain:  # values beyond limb 0: the ramp is added apart
        up = x.engine.positive(arguments[0])
        made = add(made, Digits(x.limbs * up, x.top), aligned(low))
    return made if made.low == low else regrid(made, low=low)


def arguments_of(x: Digits) -> tuple[Array, tuple[float, float]]:
    """Limbs on the aligned grid, limb 0 of weight 2^-STEP, and the range of limb 0.

    Larger arguments are clipped to the largest size of limb 0, 2^21, beyond which every tabled
    function is constant.
    """
    engine = x.engine
    fine = x if aligned(x.low) == x.low else regrid(x, low=aligned(x.low))
    if fine.top == WIDTH - STEP:
        limbs = fine.limbs
    elif fine.top < WIDTH - STEP:
        limbs = regrid(fine, WIDTH - STEP, fine.low).limbs
    else:
        above = (fine.top - WIDTH + STEP) // WIDTH
        first = fine.limbs[0]
        for i in range(1, above + 1):
            first = first * BASE + fine.limbs[i]
        first = engine.clip(first, -BASE / 2, BASE / 2)
        limbs = engine.concatenate([first[None], fine.limbs[above + 1 :]])
    return limbs, engine.range(limbs[0])


def reach(largest: float) -> int:
    """The number of points of a table, rounded to few sizes, so that few tables are made."""
    return next(1 << k for k in (10, 12, 14, 16, 22) if largest <= 1 << k)


def _last(low: int) -> int:
    return (-STEP - aligned(low)) // WIDTH


def applied(
    function: Callable[..., Array], tables: Sequence[Any], arguments: Array, last: int
) -> Array:
    """function(*tables, limbs), positions 0 … last: one kernel on a GPU, else piece by piece."""
    if isinstance(arguments, np.ndarray):
        made = None
    else:
        flat = arguments.reshape(arguments.shape[0], -1).contiguous()
        made = fused.run(function, tables, flat, last + 1)
    if made is None:
        return in_pieces(lambda piece: (function(*tables, piece),), [arguments], [last + 1])[0]
    return made.reshape(last + 1, *arguments.shape[1:])


def on_grid(limbs: Array, low: int) -> Digits:
    """Limbs from position 0 on, brought to the grid 2^low."""
    made = Digits(limbs, WIDTH - STEP)
    return made if made.low == low else regrid(made, low=low)
