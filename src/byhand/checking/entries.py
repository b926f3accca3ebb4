"""Entries and parts of claimed arrays: where they lie in the whole, and which are furthest off.

The only verdict made here is "cannot be judged".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byhand.checking.claims import Claim, Floats
from byhand.checking.digit_slips import shown
from byhand.checking.verdicts import Marked, Verdict, Worst
from byhand.language import _
from byhand.numbers.allowed import Judged, Range
from byhand.worked import Missing

if TYPE_CHECKING:
    from byhand.checking.replay import Line


def unjudged(claim: Claim, reason: str) -> Marked:
    """The verdict on a claim that cannot be judged."""
    return Marked(claim, Verdict.UNJUDGED, reason=reason)


def left_blank(claim: Claim) -> Marked:
    """The verdict on a line that claims nothing."""
    return Marked(claim, Verdict.UNJUDGED, reason=_("left blank"), blank=True)


def not_read(line: Marked) -> Marked:
    """The verdict on an answer that cannot be read: it is wrong, whatever was meant."""
    reason = line.claim.unread
    return Marked(line.claim, Verdict.ERROR, described=(reason,), entries=1, outside=1)


def why_missing(missing: Missing) -> str:
    """Why a step has no value, in words."""
    if missing.kind == "unknown":
        return _("{name} is unknown").format(name=missing.cause)
    return missing.message


def radius_of(part: Range) -> Floats:
    """The radius of each entry: how far it may be from its midpoint."""
    radius = part.radius()
    return np.zeros(part.shape) if radius is None else np.asarray(radius, dtype=np.float64)


def sides(shape: tuple[int, ...]) -> str:
    """A shape as people say it: 3 × 2."""
    return " × ".join(map(str, shape)) or _("one number")


def as_written(values: Floats) -> str:
    """The numbers in their brackets: [−1, 1.75]."""
    if values.ndim == 0:
        return shown(float(values))
    return "[" + ", ".join(as_written(row) for row in values) + "]"


def furthest(line: Line, judged: Judged, count: int) -> tuple[Worst, ...]:
    """The entries that use most of what is allowed, or exceed it most; the worst first.

    Where all shares are 0, as in infinite ranges, the entries furthest from the expected values.
    """
    shares = judged.shares.ravel()
    if not shares.size:
        return ()
    if not shares.any():
        shares = _off(line, judged).ravel()
    places = np.array([shares.argmax()])
    if count > 1:
        count = min(count, shares.size)
        largest = np.argpartition(-shares, count - 1)[:count]
        places = largest[np.argsort(-shares[largest], kind="stable")]
    if judged.claimed is not None:
        places = places[np.broadcast_to(judged.claimed, judged.shares.shape).ravel()[places]]
    claimed = np.broadcast_to(line.values, judged.shares.shape)
    found = []
    for flat in places.tolist():
        place = tuple(map(int, np.unravel_index(flat, judged.shares.shape)))
        said, expected = float(claimed[place]), float(judged.expected[place])
        found.append(
            Worst(
                line.claim.in_whole(place),
                claimed=said,
                expected=expected,
                allowed=float(judged.allowed[place]),
                difference=abs(said - expected),
            )
        )
    return tuple(found)


def _off(line: Line, judged: Judged) -> Floats:
    """How far each claim is from the expected value, in units of the usual error if known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(line.values - judged.expected)
        if judged.usual is not None and np.isfinite(judged.usual).all() and judged.usual.all():
            off = off / judged.usual
    return np.where(np.isnan(off), 0.0, off)
