"""Checks of results in floats for finite entries, and the largest logit."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, sqrt

import numpy as np

from byhand.numbers.base import Prediction
from byhand.numbers.floats.formats import FLOAT32, FLOAT64, Data, Kind, narrowed


def all_finite(x: Data) -> bool:
    """Whether no entry is infinite or NaN; masked ones do not count."""
    plain = x.dtype in (FLOAT64, FLOAT32) and not isinstance(x, np.ma.MaskedArray)
    if plain and isfinite(length(x)):  # one fast pass; a sum of squares hides neither
        return True
    return not _odd(x).any()


def length(x: Data) -> float:
    """The root of the sum of all squares, in float64 or float32; infinite where that overflows."""
    flat = x.ravel(order="K")
    return sqrt(np.dot(flat, flat))


def _odd(x: Data) -> Data:
    odd = ~np.isfinite(np.ma.getdata(x))
    return odd & ~np.ma.getmaskarray(x) if isinstance(x, np.ma.MaskedArray) else odd


def first_not_finite(result: Data, made_of: Iterable[Data | None]) -> tuple[int, ...] | None:
    """The index of the first entry that is not finite; None where an input is not either."""
    if all_finite(result):
        return None
    if not all(x is None or all_finite(x) for x in made_of):
        return None
    return tuple(map(int, np.argwhere(_odd(result))[0]))


def predict(row: Data, kind: Kind) -> Prediction:
    """The prediction of one row, its margin in a format; undecided where a logit is NaN."""
    best = int(row.argmax())  # the first of the largest; the first NaN where there is one
    top = row[best]
    if np.isnan(top):
        return Prediction(None, None, proven=False)
    others = [part.max() for part in (row[:best], row[best + 1 :]) if part.size]
    if not others:
        return Prediction(best, None, proven=False)
    if max(others) == top:
        tied = tuple(map(int, np.flatnonzero(row == top)))
        return Prediction(best, kind.type(0), proven=False, tied=tied)
    margin = narrowed(np.asarray([top - max(others)]), kind)[0]
    return Prediction(best, margin, proven=False)


def chosen_of(x: Data, count: int) -> tuple[Data, list[int]]:
    """True at the `count` largest of each row, of equal ones the first; and the rows in which that
    order decided.  NaN counts as the largest."""
    scores = np.where(np.isnan(x), x.dtype.type(np.inf), x)
    order = np.argsort(-scores, axis=-1, kind="stable")
    chosen = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(chosen, order[..., :count], True, axis=-1)
    if count == x.shape[-1]:
        return chosen, []
    ranked = np.take_along_axis(scores, order, axis=-1)
    tied = np.flatnonzero(ranked[..., count - 1] == ranked[..., count])
    return chosen, [int(row) for row in tied]


def in_best_groups(x: Data, groups: int, count: int, rule: str | None) -> tuple[Data, list[int]]:
    """The scores, -∞ outside the best groups; and the rows in which groups were tied."""
    each = x.reshape(*x.shape[:-1], groups, -1)
    if rule == "top2":
        best = np.sort(each, axis=-1)[..., -2:].sum(axis=-1)
    else:
        best = each.max(axis=-1)
    kept, tied = chosen_of(best, count)
    return np.where(kept[..., None], each, x.dtype.type(-np.inf)).reshape(x.shape), tied
