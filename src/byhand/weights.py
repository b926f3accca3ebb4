"""Named tensors of weights, as the exact numbers they are.

"0.2" is 1/5 and a float32 is the dyadic rational it is.  A tensor's data is either a NumPy float
array (every entry the dyadic rational it holds) or an object array of Fraction, Expression
(`sqrt(2)/2`), Printed, Unknown, or ABSENT (`masked`).  Nothing here computes with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.expression import Expression

Data = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor.  `same_as` names the tensor whose parameters these are: tied or referenced.

    The data is read-only: tensors that refer to each other share it.
    """

    name: str
    data: Data
    same_as: str | None = None

    def __post_init__(self) -> None:
        frozen = self.data.view()
        frozen.flags.writeable = False
        object.__setattr__(self, "data", frozen)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def expressions(self) -> bool:
        """Whether an entry is an expression, such as sqrt(2)/2, rather than a rational."""
        return not self.floats and any(isinstance(x, Expression) for x in self.data.flat)

    @property
    def floats(self) -> bool:
        """Whether the entries are floats, rather than objects."""
        return self.data.dtype != np.dtype(object)


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

    def __repr__(self) -> str:
        size = sum(tensor.data.size for tensor in self._tensors.values())
        return f"<Weights: {len(self)} tensors, {size:,} numbers>"
