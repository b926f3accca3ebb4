"""What claims about arrays share: parts of a whole, and how a few numbers are written.

Nothing is judged here but that something cannot be judged.
"""

from __future__ import annotations

import numpy as np

from byhand.address import Index
from byhand.checking.claims import Claim, Floats
from byhand.checking.digit_slips import shown
from byhand.checking.verdicts import Marked, Verdict
from byhand.language import _
from byhand.numbers.allowed import Range


def unjudged(claim: Claim, reason: str) -> Marked:
    """The verdict on a claim that nobody can judge."""
    return Marked(claim, Verdict.UNJUDGED, reason=reason)


def left_blank(claim: Claim) -> Marked:
    """The verdict on a line that claims nothing."""
    return Marked(claim, Verdict.UNJUDGED, reason=_("left blank"), blank=True)


def radius_of(part: Range) -> Floats:
    """How far each entry may be from its middle."""
    radius = part.radius()
    return np.zeros(part.shape) if radius is None else np.asarray(radius, dtype=np.float64)


def in_whole(index: Index, place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index, in a whole of this shape, of an entry of the part that an index cuts out."""
    left = list(place)
    whole = []
    for each, size in zip(index, shape, strict=False):
        if isinstance(each, slice):
            whole.append(each.indices(size)[0] + left.pop(0))
        else:
            whole.append(each % size)
    return (*whole, *left)


def sides(shape: tuple[int, ...]) -> str:
    """A shape as people say it: 3 × 2."""
    return " × ".join(map(str, shape)) or _("one number")


def as_written(values: Floats) -> str:
    """The numbers in their brackets: [−1, 1.75]."""
    if values.ndim == 0:
        return shown(float(values))
    return "[" + ", ".join(as_written(row) for row in values) + "]"
