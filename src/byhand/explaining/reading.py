"""What a table of tokens says: the foremost entries of its rows, and sentences about them.

Entries are ordered by floats near them: to show the strongest, not to prove it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byhand.explaining.picking import Floats
from byhand.language import _

FOREMOST = 3  # columns of each row
MOST_SENTENCES = 6  # of each kind
ALIKE = 1e-9  # of the row's spread: two entries that are nearer have no order worth telling


def strongest_of(near: Floats, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Of each row the columns with the largest entries, as token ids; masked ones are none."""
    found = []
    for row in near:
        known = np.flatnonzero(~np.isnan(row))
        order = known[np.argsort(-row[known], kind="stable")]
        found.append(tuple(columns[place] for place in order[:FOREMOST].tolist()))
    return tuple(found)


def in_words(
    scores: Floats, written: Floats, rows: Sequence[int], names: Sequence[str]
) -> tuple[str, ...]:
    """Whom a head looks at and what it then writes, for the rows where that is clearest."""
    looks = [
        _("from {query} it looks most at {key}").format(
            query=_label(names[rows[row]]), key=_label(names[rows[column]])
        )
        for row, column in clearest(scores)
    ]
    writes = [
        _("reads {read}, writes {written}").format(
            read=_label(names[rows[row]]), written=_label(names[column])
        )
        for row, column in clearest(written)
    ]
    return (*looks, *writes)


def _label(token: str) -> str:
    """A token inside a sentence: quoted where its ends would not be seen."""
    return token if token and token.isprintable() and token.strip() == token else repr(token)


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
    return sorted((place, column) for _lead, place, column in found[:MOST_SENTENCES])
