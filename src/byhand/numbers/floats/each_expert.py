"""What each expert gives, worked out where it is read: most experts answer at few positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from byhand.numbers.floats.formats import Data, Kind

Places = Data | slice
ALL = slice(None)


class EachExpert:
    """An array (expert, pos, width) whose rows are worked out when they are read.

    The sum of the answers reads the rows that have a share.  Whoever reads it as an array, to show
    it or to work on, gets all of it.
    """

    ndim = 3

    def __init__(
        self, shape: tuple[int, ...], dtype: Kind, make: Callable[[int, Places], Data]
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._make = make
        self._read: dict[int, tuple[Places, Data]] = {}  # the rows that were read first
        self._every: dict[int, Data] = {}  # all rows of an expert

    def rows(self, expert: int, places: Places = ALL) -> Data:
        """What an expert gives at some positions: (pos, width)."""
        if expert in self._read or expert in self._every or isinstance(places, slice):
            found: Data = self._every_row(expert)[places]
            return found
        made = self._make(expert, places)
        self._read[expert] = places, made
        return made

    def _every_row(self, expert: int) -> Data:
        """What an expert gives at all positions.

        Rows that were read stay as they were: a product of fewer rows may round otherwise.
        """
        if expert not in self._every:
            found = self._make(expert, ALL)
            if expert in self._read:
                places, rows = self._read[expert]
                found = found.copy()
                found[places] = rows
            self._every[expert] = found
        return self._every[expert]

    @cached_property
    def whole(self) -> Data:
        """What all experts give at all positions."""
        return np.stack([self._every_row(expert) for expert in range(len(self))])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self.whole[index]

    def __getattr__(self, name: str) -> Any:
        """For all else it is the array; but NumPy's own protocols lose formats such as bfloat16."""
        if name.startswith("__array_"):
            raise AttributeError(name)
        return getattr(self.whole, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Data:
        if copy is None:  # no word for NumPy before version 2
            return np.asarray(self.whole, dtype)
        return np.array(self.whole, dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the numbers themselves."""
        return np.asarray, (self.whole,)


def rows_of(x: Data | EachExpert, expert: int, places: Places = ALL) -> Data:
    """The rows of an expert at some positions; rows of (pos, width) are the same for all."""
    if isinstance(x, EachExpert):
        return x.rows(expert, places)
    found: Data = (x if x.ndim == 2 else x[expert])[places]
    return found
