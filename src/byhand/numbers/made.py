"""Arrays that remember the operation and the value they were made from.

A root of a mean square bounds every entry of its row, and a share is never 0.  Such facts follow
from operations together, not from single entries.  Number systems use them where entries are known
only within wide ranges.  A part or a copy of such an array does not remember.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

ZERO = Fraction(0)


class Made(np.ndarray[Any, Any]):
    """An array of objects, the operation that made it and the value it was made of."""

    by: str = ""  # "mean", "center", "mean_square", "root", "softmax"
    of: Any = None
    eps: Fraction = ZERO  # of a root


def made(entries: Any, by: str, of: Any, eps: Fraction = ZERO) -> Made:
    """The entries as an array that remembers its operation and its source."""
    result: Made = entries.view(Made)
    result.by, result.of, result.eps = by, of, eps
    return result


def made_of(value: Any, by: str) -> Any:
    """The source from which this operation made the value; None if that is not known."""
    return value.of if isinstance(value, Made) and value.by == by else None


def centered(entries: Any, x: Any, mean: Any) -> Any:
    """The entries x - mean; remembered as centred if `mean` was made from x, not given."""
    return made(entries, "center", x) if made_of(mean, "mean") is x else entries


def is_centered(x: Any) -> bool:
    """Whether each row is known to add up to 0."""
    return made_of(x, "center") is not None


def root_of_rows(value: Any, x: Any) -> Fraction | None:
    """eps, where the value is the root of the mean squares of the rows of x, plus eps."""
    squares = made_of(value, "root")
    return value.eps if squares is not None and made_of(squares, "mean_square") is x else None
