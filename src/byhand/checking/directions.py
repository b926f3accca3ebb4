"""Claims about directions: whether a vector points where the claim says.

A direction is claimed by numbers that are right up to a positive factor: [-1, 2.5] says that a
vector is [-t, 2.5t] for some t above 0.  It is right if some t gives the vector, within the
rounding of the written numbers.  An entry written 1 or -1 (not 1.0) is t itself: it has no rounding
of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from byhand.address import write_index
from byhand.checking.claims import Claim, Floats
from byhand.checking.digit_slips import slips
from byhand.checking.entries import (
    as_written,
    left_blank,
    radius_of,
    sides,
    unjudged,
    why_missing,
)
from byhand.checking.verdicts import Marked, Suspect, Verdict, Worst
from byhand.language import _
from byhand.model import Model
from byhand.numbers.allowed import Range
from byhand.numbers.floats.formats import FORMATS
from byhand.worked import Missing

MOST_COMPARED = 4_000_000  # largest step (in numbers) that is searched for a direction
MOST_SHOWN = 3
_LARGEST_SHARE = 1e9  # beyond this share, a direction is simply another one
_FLOAT = 2.0**-52
WHOLE = 0.5  # the slack of a number written without decimals


Values = Callable[[str], Range | Missing]  # address → its true range, or why there is none


def mark_directions(claims: Iterable[Claim], model: Model, values: Values) -> list[Marked]:
    """The verdict on each claim about a direction: right, wrong, or not to be judged."""
    return [_mark_direction(claim, values) for claim in claims]


def _mark_direction(claim: Claim, values: Values) -> Marked:
    found = values(claim.address)
    if isinstance(found, Missing):
        return unjudged(claim, why_missing(found))
    part = found[claim.index] if claim.index else found
    if np.ndim(part.mid) == 0:
        return unjudged(claim, _("one number has no direction"))
    if part.shape != np.shape(claim.values):
        return unjudged(claim, _("it has another shape: {shape}").format(shape=sides(part.shape)))
    rows = list(_rows(claim, part))
    if not rows:
        return left_blank(claim)
    if any((np.abs(row.said) <= row.slack).all() for row in rows):
        return unjudged(claim, _("written this roughly, it may point anywhere"))
    if any(row.unknown for row in rows):
        return unjudged(claim, _("so little is known of it that it may point anywhere"))
    shares = [row.share(row.said) for row in rows]
    worst = int(np.argmax(shares))
    right = shares[worst] <= 1
    return Marked(
        claim,
        Verdict.RIGHT if right else Verdict.ERROR,
        share=shares[worst],
        worst=rows[worst].worst(),
        suspects=() if right else _other_directions(claim, rows[worst], found),
        outside=sum(share > 1 for share in shares),
        entries=len(rows),
    )


@dataclass(frozen=True)
class _Vector:
    """A vector, and the claimed direction of it."""

    places: tuple[tuple[int, ...], ...]  # index of each entry in the step, without blanks
    mid: Floats
    rad: Floats
    said: Floats
    slack: Floats

    @property
    def unknown(self) -> bool:
        """Whether the direction is unknown: the vector may be zero, or an entry unbounded."""
        return bool(self.rad.any() and (np.abs(self.mid) <= self.rad).all()) or bool(
            np.isinf(self.rad).any()
        )

    def share(self, said: Floats) -> float:
        """The least s for which some t above 0 makes every |mid - t·said| ≤ s·(rad + t·slack)."""
        if self.possible(said, 0.0):
            return 0.0
        low, high = 0.0, 1.0
        while not self.possible(said, high):
            low, high = high, 4 * high
            if high > _LARGEST_SHARE:
                return inf
        for _halving in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.possible(said, middle) else (middle, high)
        return high

    def possible(self, said: Floats, share: float) -> bool:
        """Whether some t above 0 solves all entries; each entry bounds t from two sides."""
        if not np.isfinite(said).all():
            return False
        factor = np.concatenate([said + share * self.slack, share * self.slack - said])
        bound = np.concatenate([self.mid, -self.mid]) - share * np.tile(self.rad, 2)
        if (bound[factor == 0] > 0).any():  # each entry requires factor·t ≥ bound
            return False
        up, down = factor > 0, factor < 0
        least = max(0.0, np.max(bound[up] / factor[up], initial=0.0))
        most = np.min(bound[down] / factor[down], initial=inf)
        return bool(least <= most and most > 0)

    @property
    def scale(self) -> float:
        """The intended t: from an entry that is t itself, else the best fit."""
        for v, w, s in zip(self.mid, self.said, self.slack, strict=True):
            if s == 0 and w != 0 and v / w > 0:
                return float(v / w)
        along = float(self.mid @ self.said) / float(self.said @ self.said)
        if along > 0:
            return along
        return float(np.linalg.norm(self.mid) / np.linalg.norm(self.said)) or 1.0

    def worst(self) -> Worst:
        """The entry that is furthest off, in the units of the claim."""
        there = self.mid / self.scale
        allowed = self.slack + self.rad / self.scale
        excess = np.abs(self.said - there) / np.maximum(allowed, _FLOAT)
        at = int(np.argmax(excess))
        return Worst(
            self.places[at],
            claimed=float(self.said[at]),
            expected=float(there[at]),
            allowed=float(allowed[at]),
            difference=abs(float(self.said[at] - there[at])),
        )


def _rows(claim: Claim, part: Range) -> Iterator[_Vector]:
    """The claimed vectors: along the last axis."""
    said = np.asarray(claim.values, dtype=np.float64)
    slack = np.broadcast_to(np.asarray(claim.slack, dtype=np.float64), said.shape)
    claimed = np.ones(said.shape, dtype=bool) if claim.claimed is None else claim.claimed
    mid = np.asarray(part.mid, dtype=np.float64)
    rad = radius_of(part)
    there = np.ones(said.shape, dtype=bool) if part.absent is None else ~part.absent
    for row in np.ndindex(said.shape[:-1]):
        use = claimed[row] & there[row]
        if use.any():
            entries = map(int, np.flatnonzero(use))
            yield _Vector(
                tuple(claim.in_whole((*row, entry)) for entry in entries),
                mid[row][use],
                rad[row][use],
                said[row][use],
                _written_slack(said[row][use], slack[row][use], claim),
            )


def _written_slack(said: Floats, slack: Floats, claim: Claim) -> Floats:
    """The slack of each entry in units of t; the first entry written 1 or -1 is t and has none."""
    if not claim.by_hand:
        return slack + np.abs(said) * (said.size + 8) * _unit(claim.format)
    units = np.flatnonzero((np.abs(said) == 1) & (slack == WHOLE))
    if units.size == 0:
        return slack
    exact = slack.copy()
    exact[units[0]] = 0.0
    return exact


def _unit(format: str | None) -> float:
    form = FORMATS.get(format or "")
    return 2.0**-form.bits if form else 0.0


def _other_directions(claim: Claim, row: _Vector, found: Range) -> tuple[Suspect, ...]:
    """The likely intention: a slip of the pen, or the direction of another row."""
    suspects = []
    for slip in slips(row.said):
        if row.possible(slip.values, 1.0):
            change = _("write {values}").format(values=as_written(slip.values))
            suspects.append(Suspect(slip.kind, slip.sentence, change, row.share(slip.values)))
    for name, other in _other_rows(claim, row, found):
        if other.possible(row.said, 1.0):  # never true of the row itself
            sentence = _("it is the direction of {name}").format(name=name)
            suspects.append(Suspect("other-row", sentence, sentence, other.share(row.said)))
    return tuple(suspects[:MOST_SHOWN])


def _other_rows(claim: Claim, row: _Vector, found: Range) -> Iterator[tuple[str, _Vector]]:
    """The vectors of the step that lie along the same axis, with their addresses."""
    places = np.array(row.places)
    along = [axis for axis in range(places.shape[1]) if np.ptp(places[:, axis])]
    if len(along) != 1 or found.mid.size > MOST_COMPARED:
        return
    axis = along[0]
    mid, rad = (
        np.moveaxis(np.asarray(array, dtype=np.float64), axis, -1)
        for array in (found.mid, radius_of(found))
    )
    use = places[:, axis]
    for index in np.ndindex(mid.shape[:-1]):
        whole: list[int | slice] = [*index[:axis], slice(None), *index[axis:]]
        shown = tuple(whole[:-1] if axis == len(whole) - 1 else whole)
        other = replace(row, mid=mid[index][use], rad=rad[index][use])
        yield claim.address + write_index(shown), other
