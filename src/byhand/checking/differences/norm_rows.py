"""What the claim of a norm's line shows: the mean and the divisor of each row.

A normalised row is (x - m)/s, times gain, plus bias.  So m and s are read off it by least squares,
also where only the last line of the norm is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from byhand.checking.differences.closeness import rms
from byhand.checking.differences.difference import Difference, Floats
from byhand.checking.differences.gains import gain_and_bias
from byhand.checking.suspects.casts import bits_of
from byhand.checking.suspects.norms import Group
from byhand.checking.suspects.row_statistics import Statistic

GOOD = 2.0  # usual errors that a fit leaves at most, root mean square


@dataclass(frozen=True, eq=False)
class Seen:
    """What the claim shows of a norm: m and s of each row, and how sure they are."""

    difference: Difference
    norm: Group
    base: str  # the rows that m and s are of: what is normalised, or the centred rows
    x: Floats  # these rows
    own_mean: Statistic | None  # what the model subtracts from them
    own_square: Statistic  # what the model divides by the root of
    mean: tuple[Floats, Floats] | None = None  # of each row, and how sure
    square: tuple[Floats, Floats] | None = None
    root: tuple[Floats, Floats] | None = None
    square_value: Floats | None = None  # of the model, where it is claimed


def start_of(difference: Difference, norm: Group) -> Seen | None:
    """The rows that the target's mean and variance are of, nothing seen yet."""
    around = difference.scene.context.around
    centred = norm.layernorm and "centered" not in norm.open
    base = norm.lines["centered"].address if centred else norm.source
    x = None if around is None else around.read(base)
    if around is None or x is None or x.ndim < 2 or not np.isfinite(x).all():
        return None
    own = Statistic("mean") if norm.layernorm and not centred else None
    square = Statistic("variance" if own is not None else "mean square")
    known = norm.square not in norm.open
    value = around.read(norm.lines[norm.square].address) if known else None
    return Seen(difference, norm, base, x, own, square, square_value=value)


def seen_from(start: Seen) -> Seen | None:
    """The same rows, with the mean, the square or the root that the claim shows."""
    difference, norm, x = start.difference, start.norm, start.x
    name = difference.target.address.rpartition(".")[2]
    unit = 0.5 * 2.0 ** -bits_of(difference.scene.context.precision)
    room = np.hypot(difference.room, unit * np.abs(difference.claimed))
    claimed = difference.claimed
    if name == "mean":
        return replace(start, mean=(claimed, room))
    if name == norm.square:
        return replace(start, square=(claimed, room))
    if name == norm.root:
        return replace(start, root=(claimed, room))
    if name == "centered":
        shift = (x - claimed).mean(axis=-1)
        if rms((claimed - (x - shift[..., None])) / room) > GOOD:
            return None
        sure = np.sqrt(np.square(room).mean(axis=-1) / x.shape[-1])
        return replace(start, mean=(shift, np.hypot(sure, unit * np.abs(shift))))
    return _rows(start, room, unit)


def _rows(start: Seen, room: Floats, unit: float) -> Seen | None:
    """m and s of each row, by least squares of what is claimed over x, with gain and bias."""
    difference, x = start.difference, start.x
    affine = gain_and_bias(difference, start.norm)
    if affine is None:
        return None
    gain, bias = affine
    with np.errstate(all="ignore"):
        weights = 1 / np.square(room)
        gains = np.broadcast_to(gain, x.shape)
        terms = np.stack((x * gains, gains), axis=-1)  # of 1/s, and of -m/s
        squares = np.einsum("...ct,...cu,...c->...tu", terms, terms, weights)
        sides = np.einsum("...ct,...c->...t", terms, weights * (difference.claimed - bias))
        try:
            inverse = np.linalg.inv(squares)
        except np.linalg.LinAlgError:
            return None
        slope, shift = np.moveaxis(np.einsum("...tu,...u->...t", inverse, sides), -1, 0)
        predicted = (slope[..., None] * x + shift[..., None]) * gains + bias
        left = (difference.claimed - predicted) / room
        before = (difference.claimed - difference.expected) / room
    if not np.isfinite(left).all() or rms(left) > GOOD or not rms(left) * 1.3 < rms(before):
        return None
    if not (slope > 0).all():
        return None
    slope_off, shift_off = np.sqrt(inverse[..., 0, 0]), np.sqrt(inverse[..., 1, 1])
    with np.errstate(over="ignore"):
        mean, root = -shift / slope, 1 / slope
    if not np.isfinite(root).all():
        return None
    size = np.sqrt(np.square(x).mean(axis=-1))
    # a row's statistics may have been rounded to the format too
    mean_off = np.sqrt(np.square(shift_off / slope) + np.square(mean * slope_off / slope)
                       + np.square(unit * mean) + np.square(0.1 * unit * size))  # fmt: skip
    root_off = np.hypot(slope_off * np.square(root), 2 * unit * root)
    return replace(start, mean=(mean, mean_off), root=(root, root_off))
