"""Sums and products of forms: linear in every letter, with bounds of what is not.

x·y of forms has the terms x0·y0 and x_l·y0 + x0·y_l.  What is left are products of two letters:
ε_l² lies between 0 and 1, so x_l·y_l is counted half, ± half; a product ε_l·ε_m is bounded, and
its bound is shared by both letters.
"""

from __future__ import annotations

import numpy as np

from byhand.numbers.forms.arithmetic import Arithmetic, arithmetic_of
from byhand.numbers.forms.form import Form, plus, settled, sizes
from byhand.numbers.forms.rounding import FLOOR, Data, Times, quiet, slack, total


@quiet
def added(x: Form, y: Form) -> Form:
    """x + y; a sum of floats is rounded once, and where it is tiny it is exact."""
    arithmetic = arithmetic_of(x.terms)
    terms, errors = plus(x.terms, y.terms), plus(x.errors, y.errors)
    if relative := arithmetic.rounded(1):
        errors[0] += total(np.abs(terms)) * relative
    return settled(terms, arithmetic.covered(errors, len(terms) + 4))


def scaled(x: Form, factor: Form) -> Form:
    """x times a number without letters."""
    return product(x, factor.aligned(x.ndim))


def product(x: Form, y: Form) -> Form:
    """x·y entry by entry."""
    return _product(x, y, arithmetic_of(x.terms).multiply, 1)


def matrix_product(x: Form, y: Form) -> Form:
    """x·y as matrices of the last two axes."""
    return _product(x, y, arithmetic_of(x.terms).matmul, x.shape[-1])


@quiet
def _product(x: Form, y: Form, times: Times, count: int) -> Form:
    """x·y, where each entry of the result is a sum of `count` products."""
    arithmetic = arithmetic_of(x.terms)
    size_x, size_y = sizes(x), sizes(y)
    letters = max(len(x.terms), len(y.terms))
    terms = _linear_part(x.terms, y.terms, times)
    unsure = x.errors
    relative = arithmetic.rounded(count)  # where one factor has no letters, each term is one sum
    if min(len(x.terms), len(y.terms)) > 1:
        relative = 4 * arithmetic.rounded(count + letters + 8)
    if relative:
        unsure = unsure.copy()
        unsure[0] += size_x * relative
    beside = size_y + total(y.errors)
    floor: Data | float = count * FLOOR
    if relative and count == 1:  # zeros stay zeros
        floor = FLOOR * (arithmetic.nonzero(size_x + total(x.errors)) & arithmetic.nonzero(beside))
    errors = arithmetic.bounded(times, unsure, beside[None])
    if arithmetic.nonzero(y.errors).any():
        errors = plus(errors, arithmetic.bounded(times, size_x[None], y.errors))
    if len(x.terms) > 1 and len(y.terms) > 1:
        errors = plus(errors, _quadratic_part(x.terms, y.terms, times, terms))
    return settled(terms, arithmetic.covered(errors, count + letters + 12, floor))


def _linear_part(x: Data, y: Data, times: Times) -> Data:
    terms: Data = times(x, y[:1])
    if len(y) > 1:
        more = times(x[:1], y[1:])
        if len(x) < len(y):
            wider = arithmetic_of(x).zeros((len(y), *terms.shape[1:]))
            wider[: len(terms)] = terms
            terms = wider
        terms[1 : len(y)] += more
    return terms


def _quadratic_part(x: Data, y: Data, times: Times, terms: Data) -> Data:
    """Bounds of the products of two letters, by letter; the middle of squares goes into terms[0].

    The roundings here are a part of those of |x|·|y|, which `_product` counts four times.
    """
    shared = min(len(x), len(y))
    squares = times(x[1:shared], y[1:shared])
    terms[0] += np.add.reduce(squares, axis=0) * 0.5
    size_x, size_y = np.abs(x[1:]), np.abs(y[1:])
    errors = arithmetic_of(x).zeros((max(len(x), len(y)), *terms.shape[1:]))
    errors[1 : len(x)] += times(size_x, total(size_y)[None])
    errors[1 : len(y)] += times(total(size_x)[None], size_y)
    errors *= 0.5
    both = times(size_x[: shared - 1], size_y[: shared - 1])
    errors[1:shared] += np.abs(squares) * 0.5 - both
    return np.abs(errors)


def times_matrix(x: Form, weight: Form, layout: str) -> Form:
    """(pos, in) times a matrix of weights."""
    if len(weight.terms) == 1 and x.terms.dtype != object:
        return _times_known_matrix(x, weight, layout)
    turned = weight if layout == "in_out" else weight.each(lambda part: part.swapaxes(-1, -2))
    return matrix_product(x, turned)


@quiet
def _times_known_matrix(x: Form, weight: Form, layout: str) -> Form:
    """The same in float64 for a matrix without letters: all letters and cases in one product."""
    arithmetic: Arithmetic = arithmetic_of(x.terms)
    matrix, absolute, unsure, relative = _prepared(weight, layout)
    inputs, outputs = matrix.shape
    size = sizes(x)
    spread = x.errors.copy()
    spread[0] += size * (arithmetic.rounded(inputs) + relative)
    shape = x.terms.shape[1:-1]
    terms = (x.terms.reshape(-1, inputs) @ matrix).reshape(-1, *shape, outputs)
    errors = arithmetic.bounded(np.matmul, spread.reshape(-1, inputs), absolute)
    errors = errors.reshape(-1, *shape, outputs)
    size = size + total(x.errors)
    if unsure is not None:
        errors[0] += arithmetic.bounded(np.matmul, size, unsure)
    floor = size.any(axis=-1, keepdims=True) * (inputs * FLOOR)  # zeros stay zeros
    return settled(terms, arithmetic.covered(errors, inputs + len(terms) + 8, floor))


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


def row_sums(x: Form) -> Form:
    """The sum over the last axis: a product with ones."""
    ones = arithmetic_of(x.terms).of_floats(np.ones((1, 1, x.shape[-1], 1)))
    found = matrix_product(x, Form(ones, arithmetic_of(x.terms).zeros(ones.shape)))
    return found.each(lambda part: part[..., 0])


@quiet
def row_means(x: Form) -> Form:
    """The mean over the last axis."""
    arithmetic = arithmetic_of(x.terms)
    width = x.shape[-1]
    terms, errors = x.terms.sum(axis=-1) / width, x.errors.sum(axis=-1) / width
    floor: Data | float = 0.0
    if relative := arithmetic.rounded(width + 2):
        size = sizes(x).sum(axis=-1)
        errors[0] += size * (relative / width)
        floor = FLOOR * ((size != 0) | (errors[0] != 0))
    return settled(terms, arithmetic.covered(errors, width + len(terms) + 8, floor))
