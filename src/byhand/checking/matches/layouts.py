"""Layouts of arrays: any order of axes, turned into byhand's.

byhand's order is the batch, then the axes of the step.

A layout is a list of groups of axes, one group for each side of the array: ((pos), (head, d_head))
has heads side by side.  Of the layouts that fit an array's shape, the usual one for its kind of
name is taken: a TransformerLens hook has (batch, pos, head, d_head), a Hugging Face projection
(batch, pos, head·d_head), byhand (head, pos, d_head), each with or without a batch of one. Arrays
are turned and cut as views, without copying where possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy.typing as npt

from byhand.address import Index
from byhand.checking.matches.names import BYHAND, CACHE, HEADS_FIRST, HUGGING_FACE, LENS
from byhand.language import _

Layout = tuple[tuple[str, ...], ...]
BATCH = "batch"
HEADS = ("head", "kv_head", "expert", "one_head")
PLACES = ("pos", "source")  # the axes of positions beside heads
ONE = "one"  # the axis of a loss


@dataclass(frozen=True, slots=True)
class Part:
    """The part that an index cuts out of a step: the remaining axes and their ranges."""

    axes: tuple[str, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(max(0, b - a) for a, b in zip(self.starts, self.stops, strict=True))

    def __str__(self) -> str:
        sides = zip(self.axes, self.shape, strict=True)
        words = (f"{axis} {size}" for axis, size in sides if axis != ONE)
        return " × ".join(words) or _("one number")


def part_of(axes: Sequence[str], shape: Sequence[int], index: Index) -> Part:
    """The part that an index cuts out; slices have both ends."""
    left = []
    for at, (axis, size) in enumerate(zip(axes, shape, strict=True)):
        place = index[at] if at < len(index) else slice(0, size)
        if isinstance(place, slice):
            left.append((axis, place.start, place.stop))
    return Part(
        tuple(axis for axis, _a, _b in left),
        tuple(start for _axis, start, _b in left),
        tuple(stop for _axis, _a, stop in left),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """How an array gets the axes (batch, *part): its sides are split, then reordered."""

    split: tuple[int, ...]
    order: tuple[int, ...]

    def __call__(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return array.reshape(self.split).transpose(self.order)


def turn_for(
    found: tuple[int, ...], part: Part, style: str, batch: int, *, shared: bool = False
) -> Turn | None:
    """How an array of this shape is turned; None where no layout fits.

    With `shared`, one row may hold for the whole batch, as positions do.
    """
    for size in dict.fromkeys((batch, 1) if shared else (batch,)):
        sizes = {BATCH: size, **dict(zip(part.axes, part.shape, strict=True))}
        for layout in _layouts(part.axes, style, alone=size == 1):
            if tuple(prod(sizes[axis] for axis in group) for group in layout) == found:
                return _turn(layout, part.axes, sizes)
    return as_it_is(found, part) if batch == 1 else None


def as_it_is(found: tuple[int, ...], part: Part) -> Turn | None:
    """The identity turn, where the shapes differ only by sides of length 1; None otherwise."""
    if _without_ones(found) != _without_ones(part.shape):
        return None
    return Turn((1, *part.shape), tuple(range(1 + len(part.shape))))


def _turn(layout: Layout, axes: tuple[str, ...], sizes: dict[str, int]) -> Turn:
    flat = [axis for group in layout for axis in group]
    if BATCH not in flat:
        flat = [BATCH, *flat]
    return Turn(
        tuple(sizes[axis] for axis in flat),
        tuple(flat.index(axis) for axis in (BATCH, *axes)),
    )


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(side for side in shape if side != 1)


def _layouts(axes: tuple[str, ...], style: str, alone: bool) -> Iterator[Layout]:
    """The possible layouts, the likeliest first; a batch of one may have no axis."""
    single = HUGGING_FACE if style == HEADS_FIRST else style  # the library always has a batch
    for layout, other in zip(_orders(axes, style), _orders(axes, single), strict=True):
        yield ((BATCH, *layout[0]), *layout[1:]) if _rows(layout) else ((BATCH,), *layout)
        if alone:
            yield other


def _rows(layout: Layout) -> bool:
    """Whether each position and head has its own row, so that each batch member has too."""
    return bool(layout) and len(layout[0]) == 2 and layout[0][0] in PLACES


def _orders(axes: tuple[str, ...], style: str) -> tuple[Layout, ...]:
    ours: Layout = tuple((axis,) for axis in axes)
    if len(axes) < 2 or axes[0] not in HEADS or axes[1] not in PLACES:
        return (ours, (*ours, ()), ((), *ours))
    head, pos, rest = axes[0], axes[1], tuple((axis,) for axis in axes[2:])
    apart: Layout = ((pos,), (head,), *rest)
    flat: Layout = ((pos,), (head, *axes[2:]))
    rows: Layout = ((pos, head), *rest) if rest else ((pos, head), ())
    return {
        BYHAND: (ours, apart, flat, rows),
        CACHE: (ours, apart, flat),
        LENS: (apart, (*apart, ()), rows, ours, flat),
        HUGGING_FACE: (flat, apart, ours, rows),
        HEADS_FIRST: (flat, ours, apart, rows),
    }[style]
