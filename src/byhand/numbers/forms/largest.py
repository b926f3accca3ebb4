"""The largest entry of a row of forms, with its proof for all letters and all cases."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np

from byhand.numbers.base import Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.forms.arithmetic import arithmetic_of
from byhand.numbers.forms.form import Form, differences, ends


def predict(rows: Form) -> Prediction:
    """The index that leads in every case, whatever the letters are; undecided where none does.

    A tie is proven by equal numbers that are exactly known.
    """
    width, cases = rows.shape[-1], rows.cases
    middles = arithmetic_of(rows.terms).nearly(rows.terms[0])
    leading = int(np.bincount(middles.argmax(axis=-1), minlength=width).argmax())
    low, high = ends(differences(rows, np.full(cases, leading)))
    others = np.arange(width) != leading
    low, high = low.min(axis=0)[others], high.max(axis=0)[others]
    if width == 1:
        return Prediction(leading, None, True)
    if (low > 0).all():
        return Prediction(leading, _margin(low.min(), high.min()), True)
    if _all_known(rows) and (low >= 0).all():
        tied = np.flatnonzero((rows.terms[0] == rows.terms[0][:, [leading]]).all(axis=0))
        if (low[high > 0] > 0).all():
            zero = Enclosure(Fraction(0), Fraction(0))
            return Prediction(int(tied[0]), zero, True, tied=tuple(map(int, tied)))
    least, most = ends(rows)
    may_lead = (most >= least.max(axis=-1, keepdims=True)).any(axis=0)
    return Prediction(None, None, False, candidates=tuple(map(int, np.flatnonzero(may_lead))))


def _all_known(rows: Form) -> bool:
    arithmetic = arithmetic_of(rows.terms)
    known = not any(arithmetic.nonzero(part).any() for part in (rows.errors, rows.terms[1:]))
    return known and arithmetic.exact(rows.terms[0])


def _margin(low: float, high: float) -> Enclosure:
    if high == inf:
        return Enclosure(Fraction(0), inf)
    least, most = Fraction(float(low)), Fraction(float(high))
    return Enclosure((least + most) / 2, (most - least) / 2)
