"""Weighted sums of rows, where the weights are enclosed too: gradients of matrices, keys, queries.

Z = A·Y with r the radii of A's entries and rho those of Y's rows.  From

    A·Y - A'·Y' = A'·(Y - Y') + (A - A')·Y' + (A - A')·(Y - Y')

row    Σ_k |A'_qk|·rho_k + Σ_k r_qk·(‖Y'_k‖ + rho_k), the triangle inequality.
entry  Σ_k |A'_qk|·R_kj + Σ_k r_qk·(|Y'_kj| + R_kj), with R the radii of Y's entries.

Unlike the shares of a softmax, these weights have signs and do not add up to 1, so nothing can be
taken off the rows.  The products are those of `pairs`: exact, but for what they say they leave out.
"""

from __future__ import annotations

import math

from byhand.numbers.enclosed.limbs import known_zeros
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.indexing import merge_heads
from byhand.numbers.enclosed.limbs.pairs import multiply_pairs
from byhand.numbers.enclosed.limbs.radii import Bound, length, mixed, plus, spread, times, total
from byhand.numbers.enclosed.limbs.scores import most
from byhand.numbers.enclosed.limbs.sums import reshaped, shown
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed


def outer(system: System, x: Enclosed, grad: Enclosed, layout: str) -> Enclosed:
    """Σ over positions of x[pos, i]·grad[pos, j], at [i, j] ("in_out") or [j, i]."""
    one, other = (merge_heads(y) if y.ndim == 3 else y for y in (x, grad))
    left, right = (one, other) if layout == "in_out" else (other, one)
    made = weighted_rows(system, turned(_batch(left)), _batch(right))
    return reshaped(made, (left.width, right.width))


def along_keys(system: System, x: Enclosed, y: Enclosed) -> Enclosed:
    """Σ_key x[head, query, key]·y[kv_head, key]."""
    heads, queries, keys = x.shape
    kv_heads, _keys, width = y.shape
    grouped = reshaped(shown(x), (kv_heads, heads // kv_heads * queries, keys))
    return reshaped(weighted_rows(system, grouped, y), (heads, queries, width))


def along_queries(system: System, x: Enclosed, y: Enclosed) -> Enclosed:
    """Σ_query x[head, query, key]·y[head, query]."""
    return weighted_rows(system, turned(shown(x)), y)


def weighted_rows(system: System, x: Enclosed, y: Enclosed) -> Enclosed:
    """x·y for (batch, m, k) and (batch, k, n), with the radius rules of this room."""
    width, sizes = y.width, abs(x.approx) * NEAR
    carried = None
    if not y.exact:
        carried = mixed(sizes, y.ball[..., None])[..., 0]
    if not x.exact:
        carried = plus(carried, mixed(x.box, plus(y.norms, y.ball)[..., None])[..., 0])
    low = system.grid(carried, width)
    product = multiply_pairs(
        x.digits,
        y.digits,
        low,
        largest=times(most(total(sizes)), most(y.approx) * NEAR),
        tolerance=math.ldexp(1.0, low),
    )
    error = product.error or None
    ball = system.rows(plus(carried, spread(error, width)), product.digits)
    if ball is None:
        return Enclosed(product.digits)

    def box() -> Bound:
        bound = 0.0 * abs(product.digits.limbs[0]) if y.exact else mixed(sizes, y.box)
        if not x.exact:
            bound = plus(bound, mixed(x.box, plus(abs(y.approx) * NEAR, y.box)))
        return bound if error is None else plus(bound, error)

    return Enclosed(product.digits, ball, box=box, zeros=_zeros(x, y))


def _zeros(x: Enclosed, y: Enclosed) -> known_zeros.Zeros:
    """A sum is 0 where one factor of each term is."""
    if not (x.has_zeros or y.has_zeros):
        return None

    def found() -> Array:
        one, other = (_number(~known_zeros.zeros_of(z), z) for z in (x, y))
        return one @ other == 0.0

    return found


def _number(condition: Array, x: Enclosed) -> Array:
    """1.0 where the condition holds, else 0.0."""
    engine = x.digits.engine
    return engine.where(condition, engine.zeros((), x.digits.limbs) + 1.0, 0.0)


# ------------------------------------------------------------------ shapes


def _batch(x: Enclosed) -> Enclosed:
    return reshaped(x, (1, *x.shape))


def turned(x: Enclosed) -> Enclosed:
    """The matrices of a batch, transposed.  The radius of an entry stays; rows have others."""
    digits = Digits(x.digits.limbs.swapaxes(-1, -2), x.digits.top)
    if x.exact:
        return Enclosed(digits)
    zeros = (lambda: x.zeros.swapaxes(-1, -2)) if x.has_zeros else None

    def box() -> Bound:
        return x.box.swapaxes(-1, -2)

    return Enclosed(digits, lambda: length(box()), box=box, zeros=zeros)
