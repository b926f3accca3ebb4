"""Differences that are a factor: all over, or by row, column or head."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from byhand.checking.differences.difference import Difference, Reading
from byhand.checking.suspects.mistakes import then
from byhand.language import _


def factor_readings(difference: Difference) -> Iterator[Reading]:
    """The factor by which the whole line differs, if one fits."""
    at = difference.finite
    own, claimed = difference.expected[at], difference.claimed[at]
    if not difference.whole or own.size < 2:
        return
    weights = 1 / np.square(difference.room[at])
    size = float((own * own * weights).sum())
    ratio = float((own * claimed * weights).sum()) / size if size else 0.0
    if not np.isfinite(ratio) or ratio == 1.0:
        return
    factor = Fraction(ratio).limit_denominator(10**9)
    yield difference.edit(
        "factor",
        _("it follows if everything is multiplied by {factor}; the model does not"),
        _("look for a factor of {factor} that is applied here, or left out before"),
        then("scaled", factor=factor),
        fitted=1,
        unlikely=3,
        factor=f"{ratio:.6g}",
    )
