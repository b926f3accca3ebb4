"""The next token in floats: the lowest id among the largest logits."""

from __future__ import annotations

import numpy as np

from byhand.numbers.base import Prediction
from byhand.numbers.floats.formats import Data, Kind, narrowed


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
