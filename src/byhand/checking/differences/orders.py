"""Orders: where each slice of a claim comes from, recognised and told in words.

An order has one number for each slice along an axis: the slice of what follows that it holds, or
NOWHERE.  Exchanged, rolled, reversed, repeated and interleaved slices are recognised; so are blocks
of slices, and the same order within every block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from byhand.checking.differences.axes import MOST_LISTED, Places, listed, numbered, several
from byhand.language import _

NOWHERE = -1


@dataclass(frozen=True)
class Told:
    """An order in words: "heads 0 and 1 change places"; and the numbers that it has."""

    said: str
    fitted: int
    unlikely: int = 1


def rules(count: int, differences: Places) -> Iterator[Places]:
    """Orders of a whole axis that people make; `differences` are i - source of some slices."""
    own = np.arange(count)
    if len(differences):
        values, counts = np.unique(differences, return_counts=True)
        by = int(values[counts.argmax()])
        yield (own - by) % count
        yield np.clip(own - by, 0, count - 1)
        yield np.where((own - by >= 0) & (own - by < count), own - by, NOWHERE)
    yield own[::-1]
    for rows in range(2, count // 2 + 1):
        if count % rows == 0:
            yield own.reshape(rows, -1).T.reshape(-1)
            yield own.reshape(rows, -1)[::-1].reshape(-1)
            yield own.reshape(rows, -1)[:, ::-1].reshape(-1)
            if count // rows % 2 == 0:
                yield np.roll(own.reshape(rows, -1), count // rows // 2, axis=1).reshape(-1)
            yield own // (count // rows)
            yield own % rows


def told(order: Places, axis: str) -> Told:
    """An order in words."""
    own = np.arange(len(order))
    moved = np.flatnonzero((order != own) & (order != NOWHERE))
    return (
        _exchanged(order, moved, axis)
        or _copies(order, moved, axis)
        or _whole(order, axis)
        or _in_blocks(order, axis)
        or _listed(order, moved, axis)
    )


def _exchanged(order: Places, moved: Places, axis: str) -> Told | None:
    if len(moved) == 2 and order[moved[0]] == moved[1] and order[moved[1]] == moved[0]:
        said = _("{names} {pair} change places").format(names=several(axis), pair=listed(moved))
        return Told(said, 2)
    return None


def _copies(order: Places, moved: Places, axis: str) -> Told | None:
    """A few slices that hold another slice, which is still at its own place."""
    if not 0 < len(moved) <= MOST_LISTED or len(moved) * 2 > len(order):
        return None
    if np.isin(order[moved], moved).any():
        return None
    told = [
        _("{place} is {source} again").format(
            place=numbered(axis, int(at)), source=numbered(axis, int(order[at]))
        )
        for at in moved
    ]
    return Told("; ".join(told), len(moved))


def _whole(order: Places, axis: str) -> Told | None:
    """A rule for the whole axis."""
    count, names = len(order), several(axis)
    own, known = np.arange(count), order != NOWHERE
    if not known.any() or count < 2:
        return None
    first = int(np.flatnonzero(known)[0])
    by = first - int(order[first])
    if np.array_equal(order, own[::-1]):
        return Told(_("{names} stand in reverse").format(names=names), 0)
    if 2 * (by % count) == count and np.array_equal(order, (own - by) % count):
        return Told(_("the two halves of the {names} change places").format(names=names), 0)
    if np.array_equal(order, (own - by) % count):
        by = by % count if by % count <= count // 2 else by % count - count
        said = _("{names} are moved on by {by}, the last of them to the front") if by > 0 else _(
            "{names} are moved back by {by}, the first of them to the end")  # fmt: skip
        return Told(said.format(names=names, by=abs(by)), 1)
    if np.array_equal(order[known], own[known] - by) and by:
        said = _("{names} are moved on by {by}") if by > 0 else _("{names} are moved back by {by}")
        return Told(said.format(names=names, by=abs(by)), 1)
    if len(np.unique(order[known])) == 1 and known.sum() > 1:
        said = _("all {names} are {source} again").format(
            names=names, source=numbered(axis, int(order[first]))
        )
        return Told(said, 1)
    return _whole_by_size(order, own, names)


def _whole_by_size(order: Places, own: Places, names: str) -> Told | None:
    """A rule with a length in it: shifts that stop at an end, interleaved or repeated slices."""
    count = len(order)
    differences = np.unique(order - own)
    last = int(order.max())
    if np.array_equal(order, np.minimum(own, last)):
        return Told(_("{names} after {last} are {last} again").format(names=names, last=last), 1)
    inner = differences[np.argmax([int((order - own == each).sum()) for each in differences])]
    if inner and np.array_equal(order, np.clip(own + inner, 0, count - 1)):
        said = _("{names} are moved by {by}, the one at the end repeated")
        return Told(said.format(names=names, by=-int(inner)), 1)
    for rows in (each for each in range(2, count // 2 + 1) if count % each == 0):
        columns = count // rows
        if np.array_equal(order, own.reshape(rows, columns).T.reshape(-1)):
            said = _("{names} are interleaved: {rows} × {columns} read as {columns} × {rows}")
            return Told(said.format(names=names, rows=rows, columns=columns), 1)
        if np.array_equal(order, own // columns):
            return Told(
                _("the first {rows} {names} stand {columns} times each, one after the other")
                .format(rows=rows, columns=columns, names=names), 1)  # fmt: skip
        if np.array_equal(order, own % rows):
            said = _("the first {rows} {names} stand {columns} times in a row")
            return Told(said.format(rows=rows, columns=columns, names=names), 1)
    return None


def _in_blocks(order: Places, axis: str) -> Told | None:
    """Whole blocks in another order, or every block in the same inner order."""
    count, own = len(order), np.arange(len(order))
    if (order == NOWHERE).any():
        return None
    sizes = [size for size in range(count // 2, 1, -1) if count % size == 0]
    for size in sizes:
        blocks = order.reshape(-1, size)
        if np.array_equal(blocks - blocks[:, :1], np.broadcast_to(own[:size], blocks.shape)) and (
            not (blocks[:, 0] % size).any()
        ):
            inner = told(blocks[:, 0] // size, "block")
            said = _("of the {names}, in blocks of {size}, {inner}")
            words = said.format(names=several(axis), size=size, inner=inner.said)
            return Told(words, inner.fitted, inner.unlikely)
    for size in reversed(sizes):
        blocks = order.reshape(-1, size) - own[::size, None]
        if (blocks == blocks[0]).all() and blocks.min() >= 0 and blocks.max() < size:
            inner = told(blocks[0], axis)
            said = _("in each block of {size}, {inner}").format(size=size, inner=inner.said)
            return Told(said, inner.fitted, inner.unlikely)
    return None


def _listed(order: Places, moved: Places, axis: str) -> Told:
    """Any other order, slice by slice."""
    pairs = [f"{at} ← {int(order[at])}" for at in moved[:MOST_LISTED]]
    more = ", …" if len(moved) > MOST_LISTED else ""
    said = _("{names} stand in another order: {pairs}").format(
        names=several(axis), pairs=", ".join(pairs) + more
    )
    return Told(said, len(moved), 2)
