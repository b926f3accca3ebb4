"""How much of a large tensor is shown, and which part of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.document.compose.forms import floats
from byhand.tracing import Worked


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a large tensor is shown; what is smaller is shown whole."""

    rows: int = 12
    columns: int = 12
    heads: int = 4
    terms: int = 8  # of a sum that is written out
    tokens: int = 5  # of a vocabulary too large to be shown
    weights: int = 64  # the entries of the largest weight that is shown

    def row_places(self, size: int) -> tuple[int, ...]:
        """The rows that are shown: all, or the first and the last."""
        return _ends(size, self.rows, 6, 2)

    def column_places(self, size: int) -> tuple[int, ...]:
        """The columns that are shown: all, or the first and the last."""
        return _ends(size, self.columns, 4, 1)

    def columns_of(self, worked: Worked) -> tuple[int, ...]:
        """The columns shown; of a large vocabulary in floats or enclosures, those of the largest
        numbers."""
        size = worked.step.shape[-1]
        if size <= self.columns or worked.step.axes[-1] != "vocab":
            return self.column_places(size)
        if not floats(worked.array) and worked.numbers.uniform != "enclosed":
            return self.column_places(size)
        last = nearby_floats(worked)[-1]
        return tuple(np.argsort(-last, kind="stable")[: self.tokens].tolist())

    def head_places(self, size: int) -> tuple[int, ...]:
        """The heads that are shown: all, or the first two."""
        return tuple(range(size)) if size <= self.heads else (0, 1)


def nearby_floats(worked: Worked) -> npt.NDArray[np.float64]:
    """Floats near the numbers: good enough to say which are large."""
    if isinstance(worked.array, np.ndarray):
        return np.asarray(worked.array, dtype=np.float64)
    numbers: Any = worked.numbers  # limbs, which are too many to be looked at one by one
    value = numbers.enclosed(worked.value)
    return np.asarray(value.digits.engine.to_numpy(value.approx))


def _ends(size: int, most: int, first: int, last: int) -> tuple[int, ...]:
    if size <= most:
        return tuple(range(size))
    return (*range(first), *range(size - last, size))
