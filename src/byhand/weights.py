"""Weights: named tensors of exact numbers.

"0.2" is 1/5 and a float32 is the dyadic rational it is.  A tensor's data is a NumPy float array, or
an object array.  Objects are Fraction, Expression (`sqrt(2)/2`), Printed, Within, Unknown or ABSENT
(`masked`).  Nothing here computes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.expression import Expression

Data = npt.NDArray[Any]


class Tensor:
    """One tensor.  `same_as` names the tensor whose parameters these are: tied or referenced.

    The data is read-only: tensors that refer to each other share it.  A tensor made by `Tensor.at`
    knows its shape from the start and opens its data when first asked for it.
    """

    __slots__ = ("_data", "_open", "dtype", "name", "same_as", "shape")

    def __init__(self, name: str, data: Data, same_as: str | None = None) -> None:
        self.name = name
        self.same_as = same_as
        self.shape: tuple[int, ...] = tuple(data.shape)
        self.dtype: np.dtype[Any] = data.dtype
        self._data: Data | None = _read_only(data)
        self._open: Callable[[], Data] | None = None

    @classmethod
    def at(
        cls,
        name: str,
        opening: Callable[[], Data],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        same_as: str | None = None,
    ) -> Tensor:
        """A tensor whose data `opening` gives; it is called once, when the data is first needed."""
        tensor = cls(name, np.empty(0, dtype), same_as)
        tensor.shape = shape
        tensor._data, tensor._open = None, opening
        return tensor

    @property
    def data(self) -> Data:
        """The entries as a read-only array, opened when first read."""
        if self._data is None:
            assert self._open is not None
            self._data = _read_only(self._open())
            self._open = None
        return self._data

    @property
    def size(self) -> int:
        """The number of entries."""
        return prod(self.shape)

    @property
    def expressions(self) -> bool:
        """Whether an entry is an expression, such as sqrt(2)/2, rather than a rational."""
        return not self.floats and any(isinstance(x, Expression) for x in self.data.flat)

    @property
    def floats(self) -> bool:
        """Whether the entries are floats, rather than objects."""
        return self.dtype != np.dtype(object)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: the data as it is here, opened."""
        return Tensor, (self.name, np.array(self.data), self.same_as)

    def __repr__(self) -> str:
        return f"<Tensor {self.name}: {'×'.join(map(str, self.shape))} {self.dtype}>"


def _read_only(data: Data) -> Data:
    frozen = data.view()
    frozen.flags.writeable = False
    return frozen


class Weights(Mapping[str, Tensor]):
    """The tensors of a model by name, in spine order."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = dict(tensors)

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def finer_than_float32(self) -> bool:
        """Whether a tensor holds float64, which float32 would round."""
        return any(tensor.dtype == np.float64 for tensor in self._tensors.values())

    def __repr__(self) -> str:
        size = sum(tensor.size for tensor in self._tensors.values())
        return f"<Weights: {len(self)} tensors, {size:,} numbers>"
