"""Entries in the shapes of their steps: arrays turned, cut into texts of a batch, made claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import Index
from byhand.checking.claims import Claim, Entry
from byhand.checking.matches.layouts import Part, Turn, as_it_is, turn_for
from byhand.checking.matches.names import Found
from byhand.checking.matches.texts import Row
from byhand.errors import ShapeError
from byhand.files.mapped import sides
from byhand.language import _
from byhand.plan import WEIGHT

SHARED = "embed.position"  # one row may hold for the whole batch


class Misfit(Exception):
    """An entry that cannot be a claim: the reason, and whether its name is known."""

    def __init__(
        self, reason: str, *, hint: str | None = None, error: Any = None, known: bool = True
    ) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.error, self.known = reason, hint, error, known


@dataclass(frozen=True, slots=True)
class Arrays:
    """Values, slack and the claimed entries, each with the axes (batch, *part)."""

    values: npt.NDArray[Any]
    slack: npt.NDArray[np.float64] | float
    claimed: npt.NDArray[np.bool_] | None


def fitted(entry: Entry, part: Part, found: Found, batch: int) -> Turn | None:
    """How the entry's array is turned; None for a single blank, which covers the whole part."""
    shape = entry.values.shape
    if not shape and entry.claimed is not None:
        return None
    excess = _excess(entry, part)
    if excess:
        shape = (shape[0] - excess,)
    if found.step:
        turn = turn_for(shape, part, found.style, batch, shared=found.address in SHARED)
    else:
        turn = as_it_is(shape, part)
    if turn is None:
        expected = str(part) if batch == 1 else f"batch {batch} × {part}"
        hint = None
        if found.address.startswith(WEIGHT) and shape == part.shape[::-1]:
            hint = _("it fits when transposed")
        reason = _("another shape: {expected} expected, {found} found").format(
            expected=expected, found=sides(shape)
        )
        raise Misfit(reason, hint=hint, error=ShapeError(
            _("{name} has the wrong shape").format(name=entry.name),
            where=entry.source, expected=expected, found=sides(shape), hint=hint,
        ))  # fmt: skip
    return turn


def _excess(entry: Entry, part: Part) -> int:
    """The number of blanks at the end of a row of cells beyond the entries of the part."""
    if entry.claimed is None or entry.values.ndim != 1 or entry.format is not None:
        return 0
    size = int(np.prod(part.shape, dtype=np.int64))
    over = len(entry.claimed) - size
    return over if over > 0 and not entry.claimed[size:].any() else 0


def turned(entry: Entry, turn: Turn | None, part: Part) -> Arrays:
    """The entry's arrays in the axes of the part, a batch in front."""
    if turn is None:
        shape = (1, *part.shape)
        return Arrays(np.zeros(shape), 0.0, np.zeros(shape, np.bool_))
    keep = slice(0, len(entry.values) - _excess(entry, part)) if entry.values.ndim else ()
    slack, claimed = entry.slack, entry.claimed
    return Arrays(
        turn(entry.values[keep]),
        turn(slack[keep]) if isinstance(slack, np.ndarray) else slack,
        None if claimed is None else turn(claimed[keep]),
    )


def cut(index: Index, found: Found, row: Row) -> tuple[Index, Index] | None:
    """The index in the row's own positions, and the slice of the part; None if all is padding."""
    ours: list[int | slice] = []
    take: list[int | slice] = []
    for at, (axis, size) in enumerate(zip(found.axes, found.shape, strict=True)):
        place = index[at] if at < len(index) else slice(0, size)
        before, behind = row.padding(axis) or (0, 0)
        first, last = before, size - behind
        if isinstance(place, int):
            if not first <= place < last:
                return None
            ours.append(place - first)
            continue
        start, stop = max(place.start, first), min(place.stop, last)
        if start >= stop:
            return None
        ours.append(slice(start - first, stop - first))
        take.append(slice(start - place.start, stop - place.start))
    own = tuple(
        size - sum(row.padding(axis) or ())
        for axis, size in zip(found.axes, found.shape, strict=True)
    )
    return tidied(tuple(ours), own), tuple(take)


def tidied(index: Index, shape: tuple[int, ...]) -> Index:
    """The index without trailing places that take everything."""
    places = list(index)
    while places and places[-1] == slice(0, shape[len(places) - 1]):
        places.pop()
    return tuple(places)


def claim_of(
    entry: Entry, found: Found, arrays: Arrays, place: int, index: Index, take: Index = ()
) -> Claim:
    """The claim of one text, cut out of the arrays of the batch."""
    row = place if len(arrays.values) > 1 else 0  # a single row holds for the whole batch
    slack = arrays.slack
    claimed = None if arrays.claimed is None else arrays.claimed[(row, *take, ...)]
    return Claim(
        address=found.address,
        index=index,
        values=arrays.values[(row, *take, ...)],
        name=entry.said or entry.name,
        source=entry.source,
        slack=slack[(row, *take, ...)] if isinstance(slack, np.ndarray) else slack,
        claimed=None if claimed is None or claimed.all() else claimed,
        format=entry.format,
        kind=entry.kind,
        given=entry.given,
        read=entry.read,
        unread=entry.unread,
    )
