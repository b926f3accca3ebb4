"""Where a line differs: in all entries, in some heads, positions or channels, in one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.difference import Description, Difference, Reading
from byhand.language import _

MOST_NAMED = 6


def place_readings(difference: Difference) -> Iterator[Reading]:
    """The smallest set of slices that holds every wrong entry, if it is a part of the line."""
    wrong = difference.wrong
    if not difference.whole or not wrong.any():
        return
    for axis, name in enumerate(difference.target.axes):
        rest = tuple(other for other in range(wrong.ndim) if other != axis)
        some = np.flatnonzero(wrong.any(axis=rest))
        judged = np.flatnonzero(difference.there.any(axis=rest))
        if 0 < len(some) < len(judged) and len(some) <= MOST_NAMED:
            sentence = _("only {axis} {places} of {count} differs").format(
                axis=name, places=", ".join(map(str, some)), count=len(judged)
            )
            yield Description(sentence, 1)
