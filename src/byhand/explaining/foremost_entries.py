"""What a table of tokens says: the foremost entries of its rows, and the rows that say most.

Entries are ordered by floats near them: to show the strongest, not to prove it.  Of ranges, as
printed weights give them, nothing is said that their room leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.explaining.approximations import Floats

FOREMOST = 3  # columns of each row
MOST_ROWS = 6  # that say most
ALIKE = 1e-9  # of the row's spread: two entries that are nearer have no order worth telling


def strongest_of(near: Floats, room: Floats, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Of each row the columns with the largest entries, as token ids; masked ones are none, and a
    row whose entries are all alike, or may be, has none."""
    found = []
    for row, around in zip(near, room, strict=True):
        known = np.flatnonzero(~np.isnan(row))
        if _alike(row[known], around[known]):
            known = known[:0]
        order = known[np.argsort(-row[known], kind="stable")]
        found.append(tuple(columns[place] for place in order[:FOREMOST].tolist()))
    return tuple(found)


def _alike(row: Floats, room: Floats) -> bool:
    """Whether several entries are as good as equal, or may be."""
    if len(row) < 2 or not np.isfinite(row).all():
        return False
    apart = (row - room).max() - (row + room).min()
    return bool(apart <= ALIKE * np.abs(row).max())


def clearest(near: Floats, room: Floats) -> list[tuple[int, int]]:
    """The foremost column of the rows in which it is furthest ahead of the row's middle.

    Rows whose two foremost entries are alike, or may be, or that are not finite, say nothing.
    """
    found = []
    for place, (row, around) in enumerate(zip(near, room, strict=True)):
        known = row[~np.isnan(row)]
        if len(known) < 2 or not np.isfinite(known).all():
            continue
        second, first = np.partition(known, -2)[-2:].tolist()
        spread = first - float(known.min())
        column = int(np.nanargmax(row))
        others = np.delete(row + around, column)
        ahead = min(first - second, row[column] - around[column] - float(np.nanmax(others)))
        if ahead > ALIKE * max(spread, abs(first)):
            found.append((first - float(np.median(known)), place, column))
    found.sort(key=lambda entry: -entry[0])
    return sorted((place, column) for _lead, place, column in found[:MOST_ROWS])
