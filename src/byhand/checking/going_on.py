"""What goes on from a claimed line: its numbers as ranges, which later steps read.

A claim may be what was written, or what was there before it was rounded.
"""

from __future__ import annotations

import numpy as np

from byhand.address import Index
from byhand.checking.claims import Floats, Truths
from byhand.numbers.allowed import Range
from byhand.numbers.allowed.ranges import Origin
from byhand.plan import SCORES, Step


def seen(scores: Step) -> Truths:
    """The keys that each query of each head may attend to."""
    return np.broadcast_to(np.asarray(scores.attributes["mask"], dtype=bool), scores.shape)


def carried(
    value: Range, index: Index, written: Floats, slack: Floats | float
) -> tuple[Floats, Floats | float]:
    """The numbers that a claimant may have continued from after this line, as midpoints and slack.

    Either what is written, or what was there before it was rounded: where the line follows, that
    lies in what was worked out as well.  Distances from what is written are computed with: they may
    be smaller than the last place of the number itself.
    """
    if not np.any(slack):
        return written, slack
    part = value[index] if index else value
    rad = part.radius()
    mid = np.asarray(part.mid, dtype=np.float64)
    room = np.zeros(mid.shape) if rad is None else rad
    with np.errstate(invalid="ignore"):
        away = mid - written
        room = room + 2.0**-50 * (np.abs(away) + room)  # what these few roundings can be wrong by
        least, most = np.fmax(-slack, away - room), np.fmin(slack, away + room)
        follows = least <= most
        low = np.where(follows, np.minimum(least, 0.0), -slack)
        high = np.where(follows, np.maximum(most, 0.0), slack)
        middle = written + (low + (high - low) / 2)
        slack = np.fmax(high - (middle - written), middle - written - low) * (1 + 2.0**-40)
    return middle, slack


def anything(step: Step) -> Range:
    """An unknown step: every number is allowed."""
    absent = None
    if step.op in SCORES:
        absent = ~seen(step)
    origin = Origin(shares=True) if step.op in ("softmax", "softmax_back") else None
    origin = Origin(choice=True) if step.op == "choose" else origin
    return Range(np.zeros(step.shape), np.full(step.shape, np.inf), None, absent, origin=origin)


def unmasked(value: Range) -> Range:
    """Attention weights as claimed, also at masked keys, so that later steps read them."""
    if value.absent is None or value.origin is None or not value.origin.shares:
        return value
    return Range(value.mid, value.rad, value.usual, origin=value.origin)


def widened(value: Range, half_unit: float) -> Range:
    """The value of a step that nobody claims, rounded to decimals as all lines are."""
    if value.origin is not None and value.origin.choice:
        return value  # 1 and 0 are not rounded
    rad = np.broadcast_to(
        half_unit if value.rad is None else value.rad + half_unit, value.mid.shape
    )
    return Range(value.mid, rad, value.usual, value.absent)
