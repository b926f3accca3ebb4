"""A matrix whose numbers stand some places off in every block, as by a header of another size.

The numbers of a packed block begin after its header.  Whoever skips too few bytes reads the last of
the header as numbers, every number later than its place, and the last ones never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.checking.differences.difference import Description, Floats, Reading
from byhand.checking.differences.product import Places, Product, solved
from byhand.checking.suspects.rewritings import LinesSet, LinesTaken
from byhand.language import _

SIZES = (256, 128, 64, 32, 16, 8)
MOST = 4  # places off
MOST_LOST = 64  # channels that are solved for


@dataclass(frozen=True)
class Offset:
    """Input channels that take the numbers `by` places before them in their block."""

    size: int
    by: int
    order: Places  # where each channel's numbers come from
    lost: Places  # the channels that hold something else

    @classmethod
    def of(cls, inputs: int, size: int, by: int) -> Offset:
        """The offset of all blocks of so many input channels."""
        places = np.arange(inputs)
        source = places % size - by
        outside = (source < 0) | (source >= size)
        return cls(size, by, np.where(outside, places, places - by), np.flatnonzero(outside))


def offset_readings(product: Product) -> Iterator[Reading]:
    """The size of the blocks and the places by which their numbers are off."""
    inputs = len(product.matrix)
    for size in SIZES:
        for by in (each for place in range(1, MOST + 1) for each in (place, -place)):
            if inputs % size or abs(by) * 2 > size:
                continue
            offset = Offset.of(inputs, size, by)
            if len(offset.lost) > min(MOST_LOST, product.count - 3):
                continue
            if _filled(product, offset, product.sample) is None:
                continue
            filled = _filled(product, offset, np.arange(product.off.shape[1]))
            if filled is None or len(product.columns) < product.size(1):
                continue
            if product.clear(product.times(filled(product.matrix)), len(offset.lost)):
                yield from _told(product, offset, filled)
                return


@dataclass(frozen=True, eq=False)
class Filled:
    """The matrix with its lines moved, and others where nothing was moved to."""

    moved: LinesTaken
    rest: LinesSet

    def __call__(self, data: Floats) -> Floats:
        return np.asarray(self.rest(self.moved(data)))


def _filled(product: Product, offset: Offset, part: Places) -> Filled | None:
    """The matrix of some outputs with the offset; None if it does not explain them."""
    matrix = product.matrix[:, part]
    moved = LinesTaken(0, offset.order)
    kept = moved(matrix)
    kept[offset.lost] = 0
    left = product.claimed[:, part] - product.times(kept, part)
    found = solved(product.x[:, offset.lost], left, product.room[:, part])
    if found is None:
        return None
    filled = Filled(moved, LinesSet(0, offset.lost, found[0]))
    return filled if product.fits(product.times(filled(matrix), part), part) else None


def _told(product: Product, offset: Offset, filled: Filled) -> Iterator[Reading]:
    said = _(
        "it follows if {name} stands {by} input channels {side} in each block of {size} "
        "({count} channels hold something else); the file has them in place"
    )  # fmt: skip
    words: dict[str, Any] = {
        "name": product.name, "by": abs(offset.by), "size": offset.size,
        "count": len(offset.lost), "side": _("later") if offset.by > 0 else _("earlier"),
    }  # fmt: skip
    yield Description(said.format(**words), 4)
    yield product.rewritten(
        "weight-offset", said,
        _("look for where the numbers of a block of {name} begin: its header has another size"),
        filled, fitted=len(offset.lost) * product.off.shape[1], unlikely=4 + abs(offset.by),
        **words,
    )  # fmt: skip
