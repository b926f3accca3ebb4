"""The entries of a line that are told one by one: those that are furthest off."""

from __future__ import annotations

import numpy as np

from byhand.address import Index
from byhand.checking.claims import Floats
from byhand.checking.replay import Line
from byhand.checking.verdicts import Worst
from byhand.numbers.allowed import Judged
from byhand.plan import Step


def furthest(line: Line, step: Step, judged: Judged, count: int) -> tuple[Worst, ...]:
    """The entries that use most of what is allowed, or exceed it most; the worst first.

    Where all that is allowed has no end, those that are furthest from what is expected.
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
                in_step(line.claim.index, place, step.shape),
                claimed=said,
                expected=expected,
                allowed=float(judged.allowed[place]),
                difference=abs(said - expected),
            )
        )
    return tuple(found)


def in_step(index: Index, place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Where an entry of a part lies in the step that the part was cut out of."""
    whole = (*index, *(slice(None),) * (len(shape) - len(index)))
    rest = iter(place)
    return tuple(
        range(side)[cut][next(rest)] if isinstance(cut, slice) else cut
        for cut, side in zip(whole, shape, strict=True)
    )


def _off(line: Line, judged: Judged) -> Floats:
    """How far each claim is from what is expected, in units of the usual error if it is known."""
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(line.values - judged.expected)
        if judged.usual is not None and np.isfinite(judged.usual).all() and judged.usual.all():
            off = off / judged.usual
    return np.where(np.isnan(off), 0.0, off)
