"""What a table of tokens says: the foremost entries of its rows, and the rows that say most.

Entries are ordered by floats near them: to show the strongest, not to prove it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.explaining.near import Floats

FOREMOST = 3  # columns of each row
MOST_ROWS = 6  # that say most
ALIKE = 1e-9  # of the row's spread: two entries that are nearer have no order worth telling


def strongest_of(near: Floats, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Of each row the columns with the largest entries, as token ids; masked ones are none, and a
    row whose entries are all alike has none."""
    found = []
    for row in near:
        known = np.flatnonzero(~np.isnan(row))
        if _alike(row[known]):
            known = known[:0]
        order = known[np.argsort(-row[known], kind="stable")]
        found.append(tuple(columns[place] for place in order[:FOREMOST].tolist()))
    return tuple(found)


def _alike(row: Floats) -> bool:
    """Whether several entries are as good as equal."""
    if len(row) < 2 or not np.isfinite(row).all():
        return False
    return bool(np.ptp(row) <= ALIKE * np.abs(row).max())


def clearest(near: Floats) -> list[tuple[int, int]]:
    """The foremost column of the rows in which it is furthest ahead of the row's middle.

    Rows whose two foremost entries are alike, or that are not finite, say nothing.
    """
    found = []
    for place, row in enumerate(near):
        known = row[~np.isnan(row)]
        if len(known) < 2 or not np.isfinite(known).all():
            continue
        second, first = np.partition(known, -2)[-2:].tolist()
        spread = first - float(known.min())
        if first - second > ALIKE * max(spread, abs(first)):
            found.append((first - float(np.median(known)), place, int(np.nanargmax(row))))
    found.sort(key=lambda entry: -entry[0])
    return sorted((place, column) for _lead, place, column in found[:MOST_ROWS])
