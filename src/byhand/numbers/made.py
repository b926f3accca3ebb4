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
EVERY = slice(None)


class Made(np.ndarray[Any, Any]):
    """An array of objects, the operation that made it and the value it was made of."""

    by: str = ""  # "mean", "center", "mean_square", "root", "softmax", …: an operation, or a fact
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


# ----------------------------------------------------------------------- gradients that vanish


def known_dot(weights: Any, grad: Any, dot: Any) -> bool:
    """Whether `dot` is Σ weights · grad of each row, and the weights are shares of 1.

    Then weights · (grad - dot) adds up to 0 in each row, and is 0 where a share has no other.
    """
    source = made_of(dot, "row_dots")
    same = source is not None and source[0] is weights and source[1] is grad
    return same and made_of(weights, "softmax") is not None


def cancelling(x: Any) -> slice | list[int]:
    """The columns whose sum over all positions is known to be 0.

    Attention does not change where the same vector is added to all keys.  So gradients of keys
    cancel, and with them the gradient of a bias of the keys.
    """
    found = made_of(x, "cancelling")
    return [] if found is None else found


def packed(entries: Any, parts: Any, starts: Any, stride: int) -> Any:
    """The entries of packed heads; columns that cancel in a part do so here too."""
    columns = [
        start + head * stride + inner
        for start, part in zip(starts, parts, strict=True)
        if cancelling(part)
        for head in range(part.shape[0])
        for inner in range(part.shape[2])
    ]
    return made(entries, "cancelling", columns)
