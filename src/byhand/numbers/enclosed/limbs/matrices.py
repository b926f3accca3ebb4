"""Products of rows and weight matrices, with the radius rules of their norms.

row      ‖(x - y)·W‖ <= ‖W‖₂·rho, with a proven spectral norm.
part     for some of the outputs (a head), the norm of their columns alone.
entry    |(x - y)·w_j| <= ‖w_j‖·rho.

Where x is y·gain and the gain is uneven, ‖diag(gain)·W‖₂ times the radius of y is tried as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from byhand.numbers.enclosed.limbs import arithmetic, known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.products import multiply_matrix
from byhand.numbers.enclosed.limbs.radii import Bound, plus, spread, times
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, constant
from byhand.numbers.enclosed.limbs.weights import Weight

LONG = 8  # a matrix with 8 times more outputs than inputs counts as an unembedding
LEFT_OUT = 6  # bits of the guard that rounded products, and pairs left out, may change


def times_matrix(
    system: System, x: Enclosed, weight: Weight, layout: str, bias: Weight | None
) -> Enclosed:
    """x·W + bias for rows x; the radii of rows and of entries are worked out on demand."""
    matrix = weight.matrix(layout)
    columns = weight.column_norms(layout)
    low = _grid_of(system, x, weight, layout, columns)
    reach = x.digits.engine.largest(x.norms)
    most = times(reach, weight.largest_column(layout)) or 0.0
    bias_digits = None if bias is None else bias.digits
    if bias is not None:
        if bias.largest > math.ldexp(1.0, min(900, x.digits.top + matrix.top + 16)):
            plain = times_matrix(system, x, weight, layout, None)
            made: Enclosed = system.add(plain, _rows_of(bias, x))
            return made
        most = plus(most, bias.largest)
    product = multiply_matrix(
        x.digits,
        matrix,
        low,
        bias_digits,
        largest=most,
        tolerance=math.ldexp(1.0, low + LEFT_OUT),
    )
    error = product.error or None
    if x.exact and error is None:
        return Enclosed(product.digits)
    rho = x.ball

    def grown() -> Bound:
        if rho is None:
            return system.rows(spread(error, matrix.outputs), product.digits)
        return plus(_carried(x, weight.norms_of(layout, None)), spread(error, matrix.outputs))

    def parts(starts: tuple[int, ...], width: int) -> Array:
        if rho is None:
            return constant(product.digits, (len(starts), x.shape[0]), spread(error, width))
        norms = weight.norms_of_parts(layout, starts, width)
        return plus(_carried(x, norms, each=True), spread(error, width)).swapaxes(0, 1)

    def box() -> Bound:
        if rho is None:
            return columns * 0.0 + error + 0.0 * x.norms[..., None]
        return plus(_carried(x, weight.columns_of(layout), each=True), error)

    return Enclosed(
        product.digits,
        grown,
        box=box,
        parts=parts,
        zeros=known_zeros.rows(x, matrix.outputs) if bias is None else None,
    )


def _grid_of(system: System, x: Enclosed, weight: Weight, layout: str, columns: Array) -> int:
    """The grid by the radius of a row; for an unembedding, whose rows are long, of an entry."""
    inputs, outputs = weight.matrix(layout).inputs, columns.shape[0]
    if x.exact or not outputs:
        return -system.bits
    if outputs <= LONG * inputs:
        return system.grid(_carried(x, weight.norms_of(layout, None)), outputs)
    return system.grid(_carried(x, lambda gain: weight.typical_column(layout, gain)))


def _carried(x: Enclosed, norm: Callable[[Weight | None], Any], *, each: bool = False) -> Bound:
    """The radius after a matrix: the matrix's norm times the radius.

    Where x is y·gain, another bound is the norm of diag(gain)·W times the radius of y, plus the
    norm of W times the rounding of y·gain.  The smaller bound is taken.  With `each`, there is one
    norm for each output.
    """

    def of(rows: Bound) -> Bound:
        return rows[..., None] if each and rows is not None else rows

    plain = times(of(x.ball), norm(None))
    origin = x.origin
    if origin is None or origin.kind != "affine" or origin.source.exact:
        return plain
    joined = plus(
        times(of(origin.source.ball), norm(origin.more)), times(of(origin.local), norm(None))
    )
    return engine_of(plain).where(plain < joined, plain, joined)


def _rows_of(bias: Weight, x: Enclosed) -> Enclosed:
    """The bias as an exact value, for each row of x."""
    return Enclosed(bias.digits.broadcast(x.shape[0], bias.shape[0]))


def head_outputs(system: System, x: Enclosed, weight: Weight | None, layout: str) -> Enclosed:
    """Each head through its slice of the matrix; radius: the slice's norm times the head's."""
    heads, positions, width = x.shape
    engine = x.digits.engine
    if weight is None:
        made = engine.zeros((x.digits.n, heads, positions, heads * width), x.digits.limbs)
        for head in range(heads):
            made[:, head, :, head * width : (head + 1) * width] = x.digits.limbs[:, head]
        return Enclosed(Digits(made, x.digits.top), x.ball)
    parts, balls = [], []
    for head in range(heads):
        matrix = weight.head_matrix(layout, head, width)
        norm = weight.norm(layout, inputs=slice(head * width, (head + 1) * width))
        rows = x.digits[head].contiguous()
        carried = None if x.exact else times(x.ball[head], norm)
        low = system.grid(carried, matrix.outputs)
        most = times(engine.largest(x.norms[head]), norm)
        tolerance = math.ldexp(1.0, low)
        product = multiply_matrix(rows, matrix, low, largest=most, tolerance=tolerance)
        parts.append(product.digits.reshape(1, *product.digits.shape))
        local = spread(product.error or None, matrix.outputs)
        bound = plus(carried, local)
        balls.append(bound + constant(rows, (1, positions), 0.0) if bound is not None else None)
    digits = arithmetic.stack(parts)
    if all(ball is None for ball in balls):
        return Enclosed(digits)
    nothing = constant(digits, (1, positions), 0.0)
    return Enclosed(
        digits, engine.concatenate([nothing if ball is None else ball for ball in balls])
    )
