"""Worked-out numbers as weights of a model: exact while short, else decimals or floats.

A model file writes a fraction or an expression exactly.  A number that is too long for that is
written with 17 significant digits, proven where its number system proves any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from byhand import decimals
from byhand.errors import Undecided
from byhand.expression import Expression, Name, leaves
from byhand.language import _
from byhand.model import Model
from byhand.numbers.base import Numbers
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.weights import Data, Tensor, Weights
from byhand.worked import Worked

LONGEST = 60  # characters of a weight that is written exactly
DIGITS = 17  # significant digits of the others: as many as tell two float64 apart
CONSTANTS = ("e", "pi")


@dataclass(frozen=True)
class Written:
    """The entries of one tensor as weights; `cut` are those that are not exact."""

    data: Data
    cut: int = 0
    digits: int = DIGITS  # that the cut ones have at least
    nearly_zero: int = 0  # entries that could not be told from 0, and are written as 0


def with_new_weights(model: Model, new: Mapping[str, Worked]) -> Model:
    """The model with these weights in place of its own, converted when they are first read."""
    tensors = {
        name: tensor if name not in new else _opened_later(name, new[name])
        for name, tensor in model.weights.items()
    }
    return replace(model, weights=Weights(tensors))


def _opened_later(name: str, worked: Worked) -> Tensor:
    dtype = getattr(worked.array, "dtype", np.dtype(object))
    return Tensor.at(name, lambda: written(worked).data, worked.step.shape, dtype)


def written(worked: Worked) -> Written:
    """The entries of a step as those of a weight."""
    array = worked.array
    if isinstance(array, np.ndarray) and array.dtype != np.dtype(object):
        return Written(np.array(np.ma.getdata(array)))
    data = np.empty(worked.step.shape, dtype=object)
    found: list[int] = []
    for index, entry in worked.entries():
        data[index], digits = as_weight(entry, worked.numbers)
        if digits is not None:
            found.append(digits)
    known = [digits for digits in found if digits]
    return Written(data, len(known), min(known, default=DIGITS), len(found) - len(known))


def as_weight(entry: Any, numbers: Numbers) -> tuple[Fraction | Expression, int | None]:
    """A number as a weight, and the digits that it has; None for these where it is exact.

    No digits: it could not be told from 0, and is written as 0.
    """
    if isinstance(entry, Enclosure):
        return _enclosed(entry)
    if isinstance(entry, Fraction):  # of a pencil
        return Fraction(entry), None
    exact = _exact(entry, numbers)
    if exact is not None:
        return exact, None
    for digits in range(DIGITS, 0, -1):
        try:
            return Fraction(decimals.significant(entry, digits)), digits
        except Undecided:  # known within a range only
            continue
    return Fraction(0), 0


def _exact(entry: Any, numbers: Numbers) -> Fraction | Expression | None:
    """A fraction or an expression that is equal to the number; None where it would be long."""
    if entry.fraction is not None:
        return entry.fraction if len(str(entry.fraction)) <= LONGEST else None
    tree = numbers.writer().in_place(entry, LONGEST)  # type: ignore[attr-defined]
    names = [] if tree is None else [leaf for leaf in leaves(tree) if isinstance(leaf, Name)]
    if tree is None or any(name.text not in CONSTANTS for name in names):
        return None
    (again,) = numbers.entries(numbers.admit(np.array([tree], dtype=object)))
    try:
        return tree if again == entry else None
    except Undecided:
        return None


def _enclosed(entry: Enclosure) -> tuple[Fraction, int | None]:
    """The proven digits of an enclosure; 0 where it cannot be told from that."""
    if entry.exact and len(str(entry.mid)) <= LONGEST:
        return Fraction(entry.mid), None
    for digits in range(DIGITS, 0, -1):
        if entry.exact or entry.proves(digits):
            return Fraction(entry.decimal(digits)), digits
    return Fraction(0), 0


# ------------------------------------------------------------------ what the weights are, in words


def told(model: Model, new: Mapping[str, Worked]) -> Iterator[str]:
    """What the new weights of a model are: exact, decimals or floats; and which are now apart."""
    found = {name: written(worked) for name, worked in new.items()}
    numbers = next(iter(new.values())).numbers
    every = sum(one.data.size for one in found.values())
    cut = sum(one.cut for one in found.values())
    zeros = sum(one.nearly_zero for one in found.values())
    if all(one.data.dtype != np.dtype(object) for one in found.values()):
        format = next(iter(found.values())).data.dtype.name
        yield _("The weights are {format} numbers, as they were worked out.").format(format=format)
    elif numbers.uniform == "rounded":
        places = numbers.name.rpartition(" ")[2]
        yield _("Every line was rounded to {places} decimals.").format(places=places)
    elif not cut and not zeros:
        yield _("Every weight is exact.")
    else:
        text = _("{exact} of {all} weights are exact; the others are decimals of {digits} digits.")
        if numbers.uniform == "enclosed":
            text = _(
                "{exact} of {all} weights are exact; the others are decimals of at least "
                "{digits} proven digits."
            )
        fewest = min((one.digits for one in found.values() if one.cut), default=DIGITS)
        yield text.format(exact=every - cut - zeros, all=every, digits=fewest)
    if zeros:
        text = _("{count} weights that could not be told from 0 are written as 0.")
        yield text.format(count=zeros)
    apart = [name for name in new if model.weights[name].same_as is not None]
    for name in apart:
        yield _("{name} was the same as {other}; now each is a weight of its own.").format(
            name=name, other=model.weights[name].same_as
        )
