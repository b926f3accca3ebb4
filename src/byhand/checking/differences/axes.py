"""Places in a line, in words: heads, positions, channels, and sets of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.difference import Difference
from byhand.language import _, later

Places = npt.NDArray[np.intp]
IDS = ("given", "argmax")
MOST_LISTED = 6  # numbers that are listed one by one

NAMES = {  # axis → one, several
    "pos": (later("position"), later("positions")),
    "query": (later("query"), later("queries")),
    "key": (later("key"), later("keys")),
    "head": (later("head"), later("heads")),
    "kv_head": (later("key head"), later("key heads")),
    "d": (later("channel"), later("channels")),
    "d_head": (later("head channel"), later("head channels")),
    "d_ff": (later("hidden unit"), later("hidden units")),
    "expert": (later("expert"), later("experts")),
    "block": (later("block"), later("blocks")),
    "packed": (later("column"), later("columns")),
    "vocab": (later("token"), later("tokens")),
}


def one(axis: str) -> str:
    """The word for one place along an axis."""
    return _(NAMES[axis][0]) if axis in NAMES else axis


def numbered(axis: str, number: int) -> str:
    """One place along an axis: "position 3"."""
    text = _("head {number}") if axis == "head" else _("{name} {number}")
    return text.format(name=one(axis), number=number)


def several(axis: str) -> str:
    """The word for several places along an axis."""
    return _(NAMES[axis][1]) if axis in NAMES else axis


@dataclass(frozen=True)
class Part:
    """The part of a step that a line is about: the axes left, and the places along each."""

    axes: tuple[str, ...]
    places: tuple[Places, ...]  # of each axis, in the whole step
    counts: tuple[int, ...]  # how many places the axis has in the whole step
    shape: tuple[int, ...]  # of the whole step
    index: tuple[int | slice, ...]

    @classmethod
    def of(cls, difference: Difference) -> Part | None:
        """The part of a difference; None for ids, and where its shape is not the index's."""
        step, index = difference.target, difference.scene.context.index
        if step.op in IDS:
            return None
        cuts = (*index, *[slice(None)] * (len(step.shape) - len(index)))
        axes, places, counts = [], [], []
        for name, count, cut in zip(step.axes, step.shape, cuts, strict=False):
            if isinstance(cut, slice):
                axes.append(name)
                places.append(np.arange(count)[cut])
                counts.append(count)
        part = cls(tuple(axes), tuple(places), tuple(counts), step.shape, index)
        sizes = tuple(len(each) for each in part.places)
        return part if sizes == difference.expected.shape else None

    def laid(self, values: Any, elsewhere: float | bool) -> npt.NDArray[Any]:
        """An array of the whole step: these values in the part, another one elsewhere."""
        each = np.asarray(values)
        whole = np.full(self.shape, elsewhere, dtype=each.dtype)
        whole[self.index or ...] = each
        return whole

    def said(self, axis: int, chosen: Sequence[int] | Places) -> str:
        """Some places along an axis, in words: "heads 0 and 3", "positions from 8 on"."""
        name, own = self.axes[axis], self.places[axis]
        numbers = own[np.asarray(chosen, dtype=np.intp)]
        return set_said(name, numbers, own, self.counts[axis])

    def box_said(self, chosen: Sequence[Places]) -> str:
        """A box, in words; empty where it is everything."""
        words = [
            self.said(axis, some)
            for axis, some in enumerate(chosen)
            if len(some) < len(self.places[axis])
        ]
        return ", ".join(words)


def compact(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array with every axis along which nothing changes shortened to 1.

    What is the same at all positions then fits texts of any length.
    """
    for axis in range(values.ndim):
        first = values.take([0], axis=axis)
        if (values == first).all():
            values = first
    return values


def structured(some: Places) -> bool:
    """Whether a set of places can be told in a few words, rather than counted."""
    return len(some) <= MOST_LISTED or len(np.unique(np.diff(some))) == 1


def set_said(axis: str, numbers: Places, own: Places, count: int) -> str:
    """A set of places along an axis, of those that there are (`own`), in words."""
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == 1:
        return numbered(axis, first)
    steps = np.unique(np.diff(numbers))
    if len(numbers) == len(own):
        return _("all {count} {names}").format(count=len(own), names=several(axis))
    if len(steps) == 1 and steps[0] == 1 and len(numbers) > 2:
        if last == own[-1]:
            return _("{names} from {first} on").format(names=several(axis), first=first)
        return _("{names} {first} to {last}").format(names=several(axis), first=first, last=last)
    if len(numbers) <= MOST_LISTED:
        return _("{names} {numbers}").format(names=several(axis), numbers=listed(numbers))
    if len(steps) == 1:
        return _("{names} {first}, {second}, … {last}").format(
            names=several(axis), first=first, second=int(numbers[1]), last=last
        )
    return _("{some} of {count} {names}").format(
        some=len(numbers), count=count, names=several(axis)
    )


def listed(numbers: Sequence[Any] | Places) -> str:
    """Things in a row: "0, 2 and 5"."""
    words = [str(each) for each in numbers]
    if len(words) < 2:
        return "".join(words)
    return _("{some} and {last}").format(some=", ".join(words[:-1]), last=words[-1])
