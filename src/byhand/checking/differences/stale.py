"""Differences in some channels alone, which hold those of the position or head next to it.

A kernel that writes only some channels of its output leaves the others as they were: those of the
row before.  Whole rows that stand elsewhere are for `moves`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from byhand.checking.differences.axes import Places, one, several
from byhand.checking.differences.difference import UNUSUAL, Difference, Reading
from byhand.checking.suspects.mistakes import then
from byhand.language import _

BY = (1, -1)
MOST_ROWS = 4096


def stale_readings(difference: Difference) -> Iterator[Reading]:
    """The channels that are another row's, one further or one back along an axis."""
    step = difference.target
    if not difference.whole or len(step.shape) < 2 or not difference.finite.all():
        return
    channels = np.flatnonzero(difference.wrong.any(axis=tuple(range(len(step.shape) - 1))))
    if not 1 < len(channels) < step.shape[-1] or channels[-1] - channels[0] >= len(channels):
        return
    part = slice(int(channels[0]), int(channels[-1]) + 1)
    for axis, name in enumerate(step.axes[:-1]):
        for by in BY if 2 < step.shape[axis] <= MOST_ROWS else ():
            order = _order(step.shape, axis, part, by)
            moved = order != np.arange(order.size)
            if difference.wrong.reshape(-1)[~moved].any():
                continue
            own, room = difference.expected.reshape(-1)[order], difference.room.reshape(-1)[order]
            if (np.abs(difference.claimed.reshape(-1) - own) > UNUSUAL * room).any():
                continue
            yield difference.edit(
                "stale",
                _("it follows if {names} {first} to {last} are those of the {row} {side}; the "
                  "model gives each {row} its own"),
                _("look for a kernel that writes only some {names} and leaves the others as they "
                  "were"),
                then("shuffled", order=order), names=several(step.axes[-1]), first=part.start,
                last=part.stop - 1, row=one(name), side=_("before") if by > 0 else _("after"),
            )  # fmt: skip
            return


def _order(shape: tuple[int, ...], axis: int, part: slice, by: int) -> Places:
    """The flat place from which each entry comes."""
    places = np.arange(prod(shape)).reshape(shape)
    order = places.copy()
    later, sooner = slice(1, None), slice(None, -1)
    to, source = (later, sooner) if by > 0 else (sooner, later)
    along = (slice(None),) * axis
    order[(*along, to, ..., part)] = places[(*along, source, ..., part)]
    return order.reshape(-1)
