"""Quantised tensors: codes and scales in a file that together are one tensor of the model.

`Parts` hands out the tensors of a folder and refuses what is missing or misshapen.  A `Quantised`
tensor offers what `files.mapped.Stored` does; its numbers stay packed until they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np

from byhand.errors import InputError, ShapeError
from byhand.files.mapped import BITS, Stored, shown, sides
from byhand.language import _
from byhand.models.huggingface.quantised.codes import EXPONENTS, NO_NUMBER, powers
from byhand.weights import Data


@dataclass(frozen=True, slots=True)
class Quantised:
    """One tensor of the model: what it is made of in the file, and its numbers on request."""

    name: str
    format: str  # such as GPTQ 4, or NF4
    shape: tuple[int, ...]
    holds: np.dtype[Any]  # of its exact numbers; object: fractions
    made_of: tuple[Stored, ...] = field(repr=False)  # the first one holds the codes
    opening: Callable[[], Data] = field(repr=False, compare=False)
    mistakes: Mapping[str, Callable[[], Data]] = field(  # what wrong readers take the codes for
        default_factory=dict, repr=False, compare=False
    )

    floats = True
    packed = True

    @property
    def dtype(self) -> str:
        """The format in the file."""
        return self.format

    @property
    def where(self) -> str:
        """The file and the tensor of the codes, for messages."""
        return self.made_of[0].where

    @property
    def bits(self) -> Fraction:
        """What an entry takes in the file, scales included."""
        total = sum(BITS[part.dtype] * prod(part.shape) for part in self.made_of)
        return Fraction(total, max(1, prod(self.shape)))

    def array(self) -> Data:
        """The exact numbers, unpacked; infinite where one is beyond its format."""
        with np.errstate(over="ignore"):
            return self.opening()

    def finite(self) -> Data:
        """The exact numbers; InputError where one is beyond what its format holds."""
        data = self.array()
        if self.holds != np.dtype(object) and not np.isfinite(data).all():
            at = np.argwhere(~np.isfinite(data))[0]
            raise InputError(
                _("{name}[{index}] is not a number").format(
                    name=shown(self.name), index=",".join(map(str, at))
                ),
                where=self.where,
                expected=_("a finite number"),
                found=str(float(data[tuple(at)])),
            )
        return data

    def turned(self) -> Quantised:
        """The transpose, for a family that stores its matrices so."""
        mistakes = {name: partial(_turned, make) for name, make in self.mistakes.items()}
        opening = partial(_turned, self.opening)
        return replace(self, shape=self.shape[::-1], opening=opening, mistakes=mistakes)


def _turned(opening: Callable[[], Data]) -> Data:
    return opening().T


class Parts:
    """The tensors of a folder; what is taken is not there any more."""

    def __init__(self, stored: Mapping[str, Stored], where: str) -> None:
        self.left = dict(stored)
        self.where = where

    def named(self, ending: str) -> Iterator[tuple[str, Stored]]:
        """The tensors whose names end so, taken one by one; with what is before the ending."""
        for name in [each for each in self.left if each.endswith(ending)]:
            yield name.removesuffix(ending), self.left.pop(name)

    def take(self, name: str) -> Stored | None:
        """The tensor of this name; None where there is none."""
        return self.left.pop(name, None)

    def need(self, name: str, beside: Stored, *others: str) -> Stored:
        """The tensor of one of these names, without which another one has no meaning."""
        for each in (name, *others):
            if (found := self.left.pop(each, None)) is not None:
                return found
        near = [each for each in self.left if each.startswith(_stem(name))]
        raise InputError(
            _("the tensor {name} is missing").format(name=shown(name)),
            where=beside.where,
            expected=_(" or ").join(shown(each) for each in (name, *others)),
            found=", ".join(map(shown, near[:6])) or _("nothing"),
            hint=_("without it the codes of {name} stand for no numbers").format(
                name=shown(beside.name)
            ),
        )


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def fitting(part: Stored, shape: tuple[int, ...], dtypes: Sequence[str], axes: str = "") -> Stored:
    """The same tensor, if it has this shape and one of these formats."""
    if part.dtype not in dtypes:
        raise InputError(
            _("the tensor {name} has another format than its quantisation").format(
                name=shown(part.name)
            ),
            where=part.where,
            expected=", ".join(dtypes),
            found=part.dtype,
        )
    if part.shape != shape:
        raise ShapeError(
            _("the tensor {name} has another shape than its quantisation").format(
                name=shown(part.name)
            ),
            where=part.where,
            expected=f"{sides(shape)} {axes}".strip(),
            found=sides(part.shape),
        )
    return part


def flat(part: Stored, axes: int) -> Stored:
    """The same tensor, if it has this many axes and no side of 0."""
    if len(part.shape) != axes or not all(part.shape):
        raise ShapeError(
            _("the tensor {name} has another shape than its quantisation").format(
                name=shown(part.name)
            ),
            where=part.where,
            expected=_("{count} sides, none of them 0").format(count=axes),
            found=sides(part.shape),
        )
    return part


def scales(part: Stored, holds: np.dtype[Any]) -> Data:
    """The numbers of a tensor of scales, each finite, in a format that holds all products."""
    if part.dtype not in EXPONENTS:
        return part.finite().astype(holds)
    exponents = part.octets()
    if (exponents == NO_NUMBER).any():
        raise refused_entry(part, np.argwhere(exponents == NO_NUMBER)[0], _("NaN"))
    return powers(exponents).astype(holds)


def refused_entry(part: Stored, index: Sequence[Any], found: str) -> InputError:
    """The error for one entry of a part that is no number, or none that may stand there."""
    return InputError(
        _("{name}[{index}] is not a number").format(
            name=shown(part.name), index=",".join(str(int(i)) for i in index)
        ),
        where=str(part.file),
        expected=_("a finite number"),
        found=found,
    )
