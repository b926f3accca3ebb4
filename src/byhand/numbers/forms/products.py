"""Sums and products of forms: linear in every letter, with bounds of what is not.

x·y of forms has the terms x0·y0 and x_l·y0 + x0·y_l.  What is left are products of two letters:
ε_l² lies between 0 and 1, so x_l·y_l is counted half, ± half; a product ε_l·ε_m is bounded, and
its bound is shared by both letters.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.forms.form import Form, plus, settled, sizes
from byhand.numbers.forms.rounding import (
    FLOOR,
    UNIT,
    Data,
    Times,
    bounded,
    gamma,
    quiet,
    slack,
    total,
)


@quiet
def added(x: Form, y: Form) -> Form:
    """x + y; a sum of floats is rounded once, and small ones are exact."""
    terms, errors = plus(x.terms, y.terms), plus(x.errors, y.errors)
    errors[0] += total(np.abs(terms)) * UNIT
    errors *= slack(len(terms) + 4)
    return settled(terms, errors)


@quiet
def scaled(x: Form, factor: Form) -> Form:
    """x times a number without letters."""
    return product(x, factor.aligned(x.ndim), np.multiply)


@quiet
def product(x: Form, y: Form, times: Times, count: int = 1) -> Form:
    """x·y entry by entry (np.multiply), or as matrices of the last two axes (np.matmul).

    Each entry of the result is a sum of `count` products.
    """
    size_x, size_y = sizes(x), sizes(y)
    letters = max(len(x.terms), len(y.terms))
    terms = _linear_part(x.terms, y.terms, times)
    unsure = x.errors.copy()
    unsure[0] += size_x * (4 * gamma(count + letters + 8))
    beside = size_y + total(y.errors)
    errors = bounded(times, unsure, beside[None])
    if y.errors.any():
        errors = plus(errors, bounded(times, size_x[None], y.errors))
    if len(x.terms) > 1 and len(y.terms) > 1:
        errors = plus(errors, _quadratic_part(x.terms, y.terms, times, terms))
    floor = count * FLOOR
    if times is np.multiply:
        floor = floor * ((size_x != 0) & (size_y != 0))
    errors[0] += floor
    errors *= slack(count + letters + 12)
    return settled(terms, errors)


def _linear_part(x: Data, y: Data, times: Times) -> Data:
    terms: Data = times(x, y[:1])
    if len(y) > 1:
        more = times(x[:1], y[1:])
        if len(x) < len(y):
            terms = plus(terms, np.zeros((len(y), *(1,) * (terms.ndim - 1))))
        terms[1 : len(y)] += more
    return terms


def _quadratic_part(x: Data, y: Data, times: Times, terms: Data) -> Data:
    """Bounds of the products of two letters, by letter; the middle of squares goes into terms[0].

    The roundings here are a part of those of |x|·|y|, which `product` counts four times.
    """
    shared = min(len(x), len(y))
    squares = times(x[1:shared], y[1:shared])
    terms[0] += np.add.reduce(squares, axis=0) * 0.5
    size_x, size_y = np.abs(x[1:]), np.abs(y[1:])
    by_x = times(size_x, total(size_y)[None])
    by_y = times(total(size_x)[None], size_y)
    errors = np.zeros((max(len(x), len(y)), *terms.shape[1:]))
    errors[1 : len(x)] += by_x
    errors[1 : len(y)] += by_y
    errors *= 0.5
    both = times(size_x[: shared - 1], size_y[: shared - 1])
    errors[1:shared] += np.abs(squares) * 0.5 - both
    np.maximum(errors, 0.0, out=errors)
    return errors


@quiet
def times_matrix(x: Form, weight: Form, layout: str) -> Form:
    """(pos, in) times a matrix of weights."""
    if len(weight.terms) > 1:
        turned = weight if layout == "in_out" else weight.each(lambda part: part.swapaxes(-1, -2))
        return product(x, turned, np.matmul, weight.shape[layout == "out_in"])
    matrix, absolute, unsure, relative = _prepared(weight, layout)
    inputs, outputs = matrix.shape
    size = sizes(x)
    spread = x.errors.copy()
    spread[0] += size * (gamma(inputs) + relative)
    shape = x.terms.shape[1:-1]
    terms = (x.terms.reshape(-1, inputs) @ matrix).reshape(-1, *shape, outputs)
    errors = bounded(np.matmul, spread.reshape(-1, inputs), absolute)
    errors = errors.reshape(-1, *shape, outputs)
    if unsure is not None:
        errors[0] += bounded(np.matmul, size + total(x.errors), unsure)
    rows = size.any(axis=-1)
    errors[0] += (rows * (inputs * FLOOR))[..., None]
    errors *= slack(inputs + len(terms) + 8)
    return settled(terms, errors)


def _prepared(weight: Form, layout: str) -> tuple[Data, Data, Data | None, float]:
    """The matrix, input by input, |matrix| + errors, and its errors: relative, where all are."""
    if layout not in weight.kept:
        matrix, unsure = weight.terms[0, 0], total(weight.errors)[0]
        if layout == "out_in":
            matrix, unsure = matrix.T, unsure.T
        matrix, unsure = np.ascontiguousarray(matrix), np.ascontiguousarray(unsure)
        absolute = np.abs(matrix) + unsure
        relative = 0.0
        if not unsure.any():
            apart = None
        elif (unsure <= np.abs(matrix) * 2.0**-51).all():
            apart, relative = None, 2.0**-51
        else:
            apart = unsure
        weight.kept[layout] = matrix, absolute * slack(1), apart, relative
    found: tuple[Data, Data, Data | None, float] = weight.kept[layout]
    return found


@quiet
def divided(x: Form, by: int) -> Form:
    """x divided by a whole number."""
    terms = x.terms / by
    errors = x.errors / by
    size = total(np.abs(terms))
    errors[0] += size * UNIT + FLOOR * (size != 0)
    errors *= slack(len(terms) + 4)
    return settled(terms, errors)


@quiet
def row_sums(x: Form) -> Form:
    """The sum over the last axis."""
    width = x.shape[-1]
    terms, errors = x.terms.sum(axis=-1), x.errors.sum(axis=-1)
    errors[0] += sizes(x).sum(axis=-1) * gamma(width)
    errors *= slack(width + len(terms) + 4)
    return settled(terms, errors)
