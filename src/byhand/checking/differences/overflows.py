"""Numbers that are infinite because a square or a product is beyond the largest of its format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.difference import Description, Difference, Reading
from byhand.checking.suspects.casts import FLOATS, format_of
from byhand.language import _


def overflow_readings(difference: Difference) -> Iterator[Reading]:
    """What was squared, where exactly the rows with too large squares are infinite."""
    format = format_of(difference.scene.context.precision)
    infinite = difference.there & np.isinf(difference.claimed) & np.isfinite(difference.expected)
    if difference.target.op != "mean_square" or not infinite.any() or format not in FLOATS:
        return
    x = difference.input("x")
    if x is None or x.shape[:-1] != infinite.shape or not np.isfinite(x).all():
        return
    largest = FLOATS[format][2]
    squares = np.square(x).max(axis=-1)
    if np.array_equal(squares > largest, infinite):
        said = _("it is infinite exactly where an entry's square is beyond {largest}, the largest "
                 "number of {format}: {square} and more; square and sum in float32")  # fmt: skip
        words = {"largest": f"{largest:,.0f}", "format": format}
        yield Description(said.format(square=f"{squares[infinite].min():,.0f}", **words), 9)
