"""A weight → what stands in its cell: the number itself, or a formula where it is not a decimal.

1/5 is the number 0.2; 1/3 is =1/3 and √2/2 is =SQRT(2)/2, as exact as a spreadsheet can hold them.
A float is written with all the digits that it takes to read the same float back.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.document.media.xlsx.cells import Cell
from byhand.document.media.xlsx.formulas import formula, number, terminating
from byhand.errors import InputError
from byhand.expression import Entry, Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Printed, Unknown
from byhand.weights import Tensor, Weights

MOST_PLACES = 4  # decimals of a number that is shown


@dataclass(frozen=True, slots=True)
class Constant:
    """A cell's number, or the formula that gives it; neither where the entry is masked."""

    number: float | None = None
    formula: str = ""


def constant(entry: Any) -> Constant:
    """What stands in the cell of one weight."""
    if entry is ABSENT:
        return Constant()
    if isinstance(entry, Printed):
        entry = entry.value
    if isinstance(entry, Fraction):
        text = number(entry)[0]
        quotient = "/" in text
        return Constant(formula=text) if quotient else Constant(float(entry))
    if isinstance(entry, Expression):
        return Constant(formula=formula(entry, _nowhere))
    return Constant(float(entry))


def _nowhere(entry: Entry) -> Cell:
    raise ValueError(f"a weight does not refer to {entry.address}")


def refuse_unknown(name: str, tensor: Tensor) -> None:
    """A weight that nobody has said leaves nothing to work out."""
    if tensor.floats or not any(isinstance(entry, Unknown) for entry in tensor.data.flat):
        return
    raise InputError(
        _("a spreadsheet works out every number, and here a weight is unknown"),
        where=f"weight.{name}",
        hint=_("give this weight a value in the model file"),
    )


def source(weights: Weights, name: str) -> tuple[str, bool] | None:
    """The tensor whose parameters these are and whether it is turned; None: they are its own."""
    tensor = weights[name]
    if tensor.same_as is None:
        return None
    original = weights[tensor.same_as]
    if not np.shares_memory(tensor.data, original.data):
        return None
    return tensor.same_as, tensor.data.strides != original.data.strides


def places(tensor: Tensor) -> int:
    """The decimals that a table of weights is shown with: as many as the longest of them has."""
    if tensor.floats:
        return MOST_PLACES
    return max((_places(entry) for entry in tensor.data.flat), default=0)


def _places(entry: Any) -> int:
    if isinstance(entry, Printed):
        return min(entry.places, MOST_PLACES)
    if not isinstance(entry, Fraction):
        return 0 if entry is ABSENT else MOST_PLACES
    decimal = terminating(abs(entry))
    if decimal is None:
        return MOST_PLACES
    return min(len(decimal.partition(".")[2]), MOST_PLACES)
