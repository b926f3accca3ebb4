"""The different numbers that weights hold, zeros apart: of each tensor, and of all together.

Expressions are compared as they are written, floats and fractions by value.  Masked entries and
unknown ones are no numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.base import ABSENT, Unknown
from byhand.weights import Tensor, Weights

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many different numbers some entries hold, and how many entries are 0."""

    name: str  # of the tensor; empty for all of them together
    entries: int
    different: int  # apart from 0
    zeros: int


@dataclass(frozen=True, slots=True)
class Held:
    """The different numbers of each tensor, and of all together.

    >>> import byhand
    >>> byhand.count("tiny").held.whole
    Distinct(name='', entries=38, different=1, zeros=19)
    """

    tensors: tuple[Distinct, ...]
    whole: Distinct


def held_by(weights: Weights) -> Held:
    """The different numbers of all tensors; a tensor that is another one again counts with it."""
    floats: list[Floats] = []
    others: set[Any] = set()
    tensors = []
    for tensor in weights.values():
        some, more, zeros = _numbers_of(tensor)
        floats.append(some)
        others |= more
        tensors.append(Distinct(tensor.name, tensor.size, len(some) + len(more), zeros))
    own = [each for each in tensors if weights[each.name].same_as is None]
    every = np.unique(np.concatenate(floats)) if floats else np.empty(0)
    whole = Distinct(
        "",
        sum(each.entries for each in own),
        len(every) + sum(not _among(every, number) for number in others),
        sum(each.zeros for each in own),
    )
    return Held(tuple(tensors), whole)


def _numbers_of(tensor: Tensor) -> tuple[Floats, set[Any], int]:
    """The different floats and the different other numbers that are not 0, and how many are 0."""
    if tensor.floats:
        found, counts = np.unique(np.asarray(tensor.data, dtype=np.float64), return_counts=True)
        return found[found != 0], set(), int(counts[found == 0].sum())
    numbers = [x for x in tensor.data.flat if x is not ABSENT and not isinstance(x, Unknown)]
    zeros = [isinstance(x, Fraction) and x == 0 for x in numbers]
    return np.empty(0), {x for x, zero in zip(numbers, zeros, strict=True) if not zero}, sum(zeros)


def _among(floats: Floats, number: Any) -> bool:
    """Whether a number is one of these floats, which are sorted."""
    if not isinstance(number, Fraction) or not len(floats):
        return False
    near = floats[min(int(np.searchsorted(floats, float(number))), len(floats) - 1)]
    return bool(Fraction(float(near)) == number)
