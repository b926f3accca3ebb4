"""Projections to two dimensions: coordinate planes, and the plane that keeps most of some points.

Everything here is in floats: it serves pictures, not proofs.  A projection always says what share
of the squared distances it loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, degrees

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """A plane in the space of the stream: a point x goes to (x - centre)·axes."""

    names: tuple[str, str]  # of the axes: "x₀", "x₁"; "first", "second" of the main directions
    centre: tuple[float, ...]
    axes: tuple[tuple[float, ...], tuple[float, ...]]  # of length 1, at a right angle
    away: float  # share of the points' squared distances from the centre that is projected away
    kept: tuple[float, float]  # share that each axis keeps

    def point(self, x: Floats) -> tuple[float, float]:
        """Where a point of the space lies in the plane."""
        return self.direction(np.asarray(x, np.float64) - np.array(self.centre))

    def direction(self, x: Floats) -> tuple[float, float]:
        """Where a direction of the space points in the plane."""
        across, up = (float(np.asarray(x, np.float64) @ np.array(axis)) for axis in self.axes)
        return across, up


def coordinate_plane(points: Floats, across: int, up: int) -> Projection:
    """The plane of two entries of the stream."""
    width = points.shape[1]
    axes = np.eye(width)[[across, up]]
    squares = np.square(points / _largest(points)).sum(axis=0)
    whole = float(squares.sum())
    kept = tuple(float(squares[i]) / whole if whole else 0.0 for i in (across, up))
    return Projection(
        (_entry(across), _entry(up)),
        (0.0,) * width,
        (tuple(axes[0].tolist()), tuple(axes[1].tolist())),
        max(0.0, 1.0 - sum(kept)) if whole and width > 2 else 0.0,
        (kept[0], kept[1]),
    )


def main_plane(points: Floats) -> Projection:
    """The plane through the mean that keeps most of the points' squared distances from it."""
    centre = points.mean(axis=0)
    spread = points - centre
    spread /= _largest(spread)
    _left, sizes, right = np.linalg.svd(spread, full_matrices=False)
    squares = np.zeros(max(2, len(sizes)))
    squares[: len(sizes)] = sizes**2
    axes = np.zeros((2, points.shape[1]))
    axes[: min(2, len(right))] = right[:2]
    if len(right) < 2:
        axes[1] = _across(axes[0])
    for axis in axes:  # the sign that makes the largest entry positive
        if axis[np.abs(axis).argmax()] < 0:
            axis *= -1
    whole = float(squares.sum())
    shares = squares / whole if whole else squares
    return Projection(
        ("1", "2"),
        tuple(centre.tolist()),
        (tuple(axes[0].tolist()), tuple(axes[1].tolist())),
        max(0.0, float(shares[2:].sum())),
        (float(shares[0]), float(shares[1])),
    )


def _across(axis: Floats) -> Floats:
    """Some direction at a right angle to this one."""
    other = np.eye(len(axis))[int(np.abs(axis).argmin())]
    other = other - (other @ axis) * axis
    made: Floats = other / np.linalg.norm(other)
    return made


def _entry(place: int) -> str:
    return "x" + str(place).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _largest(points: Floats) -> float:
    """The size of the largest entry, for scaling before squaring; 1 where all are zero."""
    return float(np.max(np.abs(points), initial=0.0)) or 1.0


def length_of(row: Sequence[float] | Floats) -> float:
    """The length of a vector, whatever its size: squares of large numbers would be infinite."""
    data = np.asarray(row, np.float64)
    largest = float(np.max(np.abs(data), initial=0.0))
    if not largest or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(data / largest))


def cosine(x: Floats, y: Floats) -> float | None:
    """The cosine of the angle between two vectors, whatever their sizes; None where one has no
    length or is not finite."""
    one, two = _direction(x), _direction(y)
    if one is None or two is None:
        return None
    return float(np.clip(one @ two, -1.0, 1.0))


def _direction(row: Floats) -> Floats | None:
    """The vector of length 1 that points the same way; None where there is none."""
    data = np.asarray(row, np.float64)
    largest = float(np.max(np.abs(data), initial=0.0))
    if not largest or not np.isfinite(largest):
        return None
    scaled = data / largest
    made: Floats = scaled / np.sqrt(scaled @ scaled)
    return made


def angle(x: Floats, y: Floats) -> float | None:
    """The angle between two vectors in degrees, 0 to 180, whatever their sizes; None where one
    has no length or is not finite."""
    one, two = _direction(x), _direction(y)
    if one is None or two is None:
        return None
    # half the angle has the tangent |one - two| / |one + two|
    apart, together = float(np.linalg.norm(one - two)), float(np.linalg.norm(one + two))
    return degrees(2 * atan2(apart, together))
