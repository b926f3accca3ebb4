"""Forms taken apart and put together: heads, rows, columns and positions.  Nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from byhand.numbers.base import Array, Numbers
from byhand.numbers.forms.arithmetic import arithmetic_of
from byhand.numbers.forms.form import Form
from byhand.numbers.forms.rounding import Data


class Places(Numbers):
    """The operations that move entries; arrays of forms have letters and cases in front."""

    uniform: ClassVar[str | None] = "enclosed"

    def take_rows(self, x: Array, places: Sequence[int]) -> Array:
        rows = list(places)
        return x.each(lambda part: part[..., rows, :] if x.ndim > 1 else part[..., rows])

    def take_columns(self, x: Array, places: Sequence[int]) -> Array:
        return x.each(lambda part: part[..., list(places)])

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        flat = [part.each(lambda a, part=part: a.reshape(*a.shape[: a.ndim - part.ndim], -1,
                                                         part.shape[-1]))
                for part in parts]  # fmt: skip
        result = flat[0]
        for part in flat[1:]:
            result = self.join(result, part)
        return result

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        starts = [start + head * stride for head in range(heads)]
        return x.each(
            lambda part: np.stack([part[..., first : first + width] for first in starts], axis=-3)
        )

    def merge_heads(self, x: Array) -> Array:
        return side_by_side(x)

    def join(self, x: Array, y: Array) -> Array:
        """The positions of x and then those of y; a form of one case stands for all cases."""
        return Form(_joined(x.terms, y.terms), _joined(x.errors, y.errors), _hidden(x, y))

    def beside(self, x: Array, y: Array) -> Array:
        """(head, pos, a) and (head or 1, pos, b) → (head, pos, a + b)."""
        return side_by_side_columns(x, y)

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        rows = np.asarray(buckets, dtype=np.intp)
        return table.each(lambda part: np.moveaxis(part[..., rows, :], -1, -3))


def side_by_side_columns(x: Form, y: Form) -> Form:
    """The entries of each row of x and then those of y, whose rows may stand for several."""
    wide = (*x.shape[:-1], y.shape[-1])
    lead = y.each(lambda part: np.broadcast_to(part, (*part.shape[: -y.ndim], *wide)))
    turned = [form.each(lambda part: part.swapaxes(-1, -2)) for form in (x, lead)]
    both = Form(
        _joined(turned[0].terms, turned[1].terms),
        _joined(turned[0].errors, turned[1].errors),
        _hidden(turned[0], turned[1]),
    )
    return both.each(lambda part: part.swapaxes(-1, -2))


def side_by_side(x: Form) -> Form:
    """(head, pos, width) → (pos, head·width)."""

    def merged(part: Array) -> Array:
        heads, positions, width = part.shape[-3:]
        turned = part.swapaxes(-3, -2)
        return turned.reshape(*part.shape[:-3], positions, heads * width)

    return x.each(merged)


def _joined(x: Array, y: Array) -> Array:
    letters, cases = max(len(x), len(y)), max(x.shape[1], y.shape[1])
    if x.shape[:2] == y.shape[:2]:
        return np.concatenate((x, y), axis=-2)
    rows = x.shape[-2] + y.shape[-2]
    shape = (letters, cases, *x.shape[2:-2], rows, x.shape[-1])
    result = np.zeros(shape, bool) if x.dtype == bool else arithmetic_of(x).zeros(shape)
    result[: len(x), ..., : x.shape[-2], :] = x
    result[: len(y), ..., x.shape[-2] :, :] = y
    return result


def _hidden(x: Form, y: Form) -> Array | None:
    if x.absent is None and y.absent is None:
        return None
    parts = [
        np.zeros((1, *form.shape), dtype=bool) if form.absent is None else form.absent
        for form in (x, y)
    ]
    return _joined(*(part[None] for part in parts))[0]


def without_idle_letters(x: Form) -> Form:
    """The form without the letters at the end that move nothing."""
    some = arithmetic_of(x.terms).nonzero
    letters = len(x.terms)
    while letters > 1 and not some(x.terms[letters - 1]).any():
        letters -= 1
    return Form(x.terms[:letters], x.errors)


def with_columns(x: Form, places: Sequence[slice], parts: Sequence[Form]) -> Form:
    """x with other columns at these places."""

    def replaced(whole: Data, columns: Sequence[Data]) -> Data:
        letters = max(len(part) for part in (whole, *columns))
        cases = max(part.shape[1] for part in (whole, *columns))
        result = arithmetic_of(whole).zeros((letters, cases, *whole.shape[2:]))
        nothing = result[(0,) * result.ndim] * 0
        result[: len(whole)] = whole
        for place, part in zip(places, columns, strict=True):
            result[..., place] = nothing
            result[: len(part), ..., place] = part
        return result

    return Form(
        replaced(x.terms, [part.terms for part in parts]),
        replaced(x.errors, [part.errors for part in parts]),
    )
