"""Points, outlines and ticks, for the drawings of several media."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, hypot, log10

from byhand.document.parts.drawn import Spot

Segment = tuple[Spot, Spot]


def sides(outline: Sequence[Spot]) -> Iterator[Segment]:
    """The lines around an outline, the last one back to its start."""
    return zip(outline, (*outline[1:], outline[0]), strict=True)


def within(at: Spot, outline: Sequence[Spot]) -> bool:
    """Whether a point lies inside an outline, even-odd."""
    inside = False
    for (x, y), (a, b) in sides(outline):
        if (y > at[1]) != (b > at[1]) and at[0] < x + (at[1] - y) * (a - x) / (b - y):
            inside = not inside
    return inside


def distance(at: Spot, segment: Segment) -> float:
    """The distance of a point from a line segment."""
    (x, y), (a, b) = segment
    long = (a - x) ** 2 + (b - y) ** 2
    share = 0.0
    if long:
        share = max(0.0, min(1.0, ((at[0] - x) * (a - x) + (at[1] - y) * (b - y)) / long))
    return hypot(at[0] - x - share * (a - x), at[1] - y - share * (b - y))


def tick(span: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten, about six in a span."""
    rough = span / 6
    power = 10.0 ** floor(log10(rough))
    return next(unit * power for unit in (1, 2, 5, 10) if unit * power >= rough * 0.999)


def multiples(low: float, high: float, unit: float) -> Iterator[float]:
    """The multiples of a unit between two numbers."""
    for count in range(-floor(-low / unit), floor(high / unit) + 1):
        yield count * unit
