"""Turns of pairs: what each pair was multiplied by, solved; positions and rates read off them.

RoPE multiplies the pair i at position p by e^(i·p·rate).  With q or k before and after, the factor
of each pair at each position is known, from as many equations as there are heads.  Its angle is
known up to whole turns: they are counted from the slowest pair to the fastest, and from one
position to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Complexes = npt.NDArray[np.complex128]
Truths = npt.NDArray[np.bool_]
FAR = 8.0  # × the usual error: no entry of a fit is further off
FIT = 2.5  # × the usual error: the root mean square of a fit is at most this
KNOWN = 0.3  # radians: an angle with a larger error is not known
FINEST = 2.0**-21  # relative error of a rate or position that implementations may have


@dataclass(frozen=True)
class Turns:
    """The factor of each pair at each position (pos, pair), and its usual error."""

    factor: Complexes
    off: Floats

    @property
    def size(self) -> Floats:
        """By how much each pair grows."""
        size: Floats = np.abs(self.factor)
        return size

    @property
    def angle(self) -> Floats:
        """By which angle each pair is turned, from -π to π."""
        angle: Floats = np.angle(self.factor)
        return angle

    @property
    def blur(self) -> Floats:
        """The usual error of each angle."""
        with np.errstate(divide="ignore", invalid="ignore"):
            blur = np.where(self.size > 0, self.off / self.size, np.inf)
        return np.where(np.isfinite(blur), blur, np.inf) + FINEST

    @property
    def known(self) -> Truths:
        """The angles that are known well enough to be used."""
        return self.blur < KNOWN

    def blurred(self, relative: float) -> Turns:
        """The same with a further error of each factor."""
        return Turns(self.factor, np.hypot(self.off, relative * self.size))

    def after_the_first(self) -> Turns:
        """The factors of the rows as seen from the first row."""
        first = self.factor[:1]
        size = np.where(np.abs(first) > 0, np.abs(first), 1.0)
        return Turns(self.factor * np.conj(first) / size, np.hypot(self.off, self.off[:1]))


def solved(before: Complexes, after: Complexes, room: Floats) -> Turns | None:
    """The factors (pos, pair) with after = factor·before in all heads; None if there are none."""
    with np.errstate(over="ignore"):  # where anything is allowed, a number weighs nothing
        weight = 1 / np.square(room)
    power = (np.square(np.abs(before)) * weight).sum(axis=0)
    there = power > 0
    if not there.any():
        return None
    safe = np.where(there, power, 1.0)
    factor = (np.conj(before) * after * weight).sum(axis=0) / safe
    left = np.abs(after - factor * before) / room
    if not fit(left):
        return None
    return Turns(factor, np.where(there, 1 / np.sqrt(safe), np.inf))


def fit(left: Floats) -> bool:
    """Whether errors, in usual ones, are what rounding leaves."""
    if not left.size:
        return False
    return bool(left.max() <= FAR and np.sqrt(np.mean(np.square(left))) <= FIT)


def wrapped(angle: Floats) -> Floats:
    """The same angle between -π and π."""
    return angle - 2 * pi * np.round(angle / (2 * pi))


def positions_of(
    turns: Turns, rates: Floats, start: Floats | float = 0.0
) -> tuple[Floats, Floats] | None:
    """The position of each row, if pairs turn at these rates; and its error.  None: they do not.

    Positions are looked for within half a turn of the slowest pair, from `start`.
    """
    angle, blur, known = turns.angle, turns.blur, turns.known
    total, weights = np.zeros(len(angle)), np.zeros(len(angle))
    first = np.broadcast_to(np.asarray(start, dtype=np.float64), total.shape)
    for pair in np.argsort(np.abs(rates)):
        rate = rates[pair]
        if not rate:
            continue
        place = np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), first)
        whole = angle[:, pair] + 2 * pi * np.round((place * rate - angle[:, pair]) / (2 * pi))
        weight = np.where(known[:, pair], np.square(rate / blur[:, pair]), 0.0)
        total += whole / rate * weight
        weights += weight
    if not (weights > 0).all():
        return None
    place = total / weights
    left = np.abs(wrapped(angle - np.multiply.outer(place, rates))) / blur
    return (place, 1 / np.sqrt(weights)) if fit(left[known]) else None


def rates_of(turns: Turns, positions: Floats) -> tuple[Floats, Floats] | None:
    """The rate of each pair, if rows stand at these positions; and its error.  None: they do not.

    The first estimate comes from neighbours; then it is used over longer and longer distances.
    """
    order = np.argsort(positions, kind="stable")
    place, angle, blur = positions[order], turns.angle[order], turns.blur[order]
    if len(np.unique(place)) < 2:
        return None
    weight = np.where(turns.known[order], 1 / np.square(blur), 0.0)
    rate, lag = np.zeros(angle.shape[1]), 1
    while lag < len(place):
        gap = (place[lag:] - place[:-lag])[:, None]
        turned = angle[lag:] - angle[:-lag]
        near = (weight[lag:] > 0) & (weight[:-lag] > 0) & (gap > 0)
        both = np.where(near, 1.0, 0.0)
        guess = turned + 2 * pi * np.round((gap * rate - turned) / (2 * pi))
        if lag == 1:  # a circular mean: neighbours may be half a turn apart
            step = np.where(gap == gap.min(), both, 0.0)
            mean = np.angle((np.exp(1j * turned) * step).sum(axis=0))
            rate = mean / gap.min() if gap.min() > 0 else rate
        else:
            power = (both * gap * gap).sum(axis=0)
            sums = (both * gap * guess).sum(axis=0)
            rate = np.divide(sums, power, out=rate.copy(), where=power > 0)
        lag *= 2
    column = place[:, None]
    whole = angle + 2 * pi * np.round((column * rate - angle) / (2 * pi))
    power = (weight * column * column).sum(axis=0)
    rate = np.divide((weight * column * whole).sum(axis=0), power, out=rate, where=power > 0)
    left = np.abs(wrapped(angle - column * rate)) / blur
    if not fit(left[turns.known[order]]):
        return None
    error = np.where(power > 0, 1 / np.sqrt(np.where(power > 0, power, 1.0)), np.inf)
    return rate, error
