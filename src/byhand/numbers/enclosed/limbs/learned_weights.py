"""Products with weights that are values: what an optimizer has made of them in the step before.

x·W with both enclosed.  With F a bound of ‖W - W'‖, the length of all its radii, and F_j of column
j alone:

row    ‖x·W - x'·W'‖ <= rho·(‖W'‖₂ + F) + ‖x'‖·F
entry  rho·(‖w'_j‖ + F_j) + ‖x'‖·F_j

Gains and biases are rows that all positions share.
"""

from __future__ import annotations

import math

from byhand.numbers.enclosed.limbs import indexing, known_zeros
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.radii import Bound, length, plus, spread, times
from byhand.numbers.enclosed.limbs.scores import most
from byhand.numbers.enclosed.limbs.spectral import spectral_norm
from byhand.numbers.enclosed.limbs.sums import reshaped
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, constant
from byhand.numbers.enclosed.limbs.weighted_sums import turned


def times_values(system: System, x: Enclosed, weight: Enclosed, layout: str) -> Enclosed:
    """x·W for rows x and an enclosed matrix W."""
    matrix = weight if layout == "in_out" else turned(weight)
    columns = length(matrix.approx, 0) * NEAR
    off = None if matrix.exact else length(matrix.box, 0)
    whole = plus(spectral_norm(matrix.approx), times(2.0**-50, most(length(columns[None]))))
    every = None if off is None else most(length(off[None]))
    carried = plus(times(x.ball, plus(whole, every)), times(x.norms, every))
    low = system.grid(carried, matrix.width)
    product = multiply_pairs(
        x.digits.reshape(1, *x.shape),
        matrix.digits.reshape(1, *matrix.shape),
        low,
        largest=times(most(x.norms), most(columns)),
        tolerance=math.ldexp(1.0, low),
    )
    digits, error = product.digits.reshape(*product.digits.shape[1:]), product.error or None
    ball = system.rows(plus(carried, spread(error, matrix.width)), digits)
    if ball is None:
        return Enclosed(digits)

    def box() -> Bound:
        each = None if off is None else times(x.norms[:, None], off)
        if not x.exact:
            each = plus(each, times(x.ball[:, None], plus(columns, off)))
        return plus(each, error) + constant(digits, digits.shape, 0.0)

    return Enclosed(digits, ball, box=box, zeros=known_zeros.rows(x, matrix.width))


def for_each_row(row: Enclosed, like: Enclosed) -> Enclosed:
    """A gain or a bias, repeated to the shape of `like`."""
    digits = row.digits.broadcast(*like.shape)
    if row.exact:
        return Enclosed(digits)
    engine = digits.engine

    def repeated(array: Array, shape: tuple[int, ...]) -> Array:
        return engine.broadcast(array, shape)

    return Enclosed(
        digits,
        lambda: repeated(row.ball, like.shape[:-1]),
        box=lambda: repeated(row.box, like.shape),
        zeros=(lambda: repeated(row.zeros, like.shape)) if row.has_zeros else None,
    )


def head_outputs(system: System, x: Enclosed, weight: Enclosed, layout: str) -> Enclosed:
    """Each head through its part of an enclosed matrix."""
    heads, positions, width = x.shape
    take = indexing.rows if layout == "in_out" else indexing.columns
    rows = reshaped(x, (heads * positions, width))
    parts = []
    for head in range(heads):
        own = indexing.rows(rows, range(head * positions, (head + 1) * positions))
        places = range(head * width, (head + 1) * width)
        parts.append(times_values(system, own, take(weight, places), layout))
    made = indexing.stack(parts)
    return reshaped(made, (heads, positions, made.width))
