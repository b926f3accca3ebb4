"""The regions of the plane in which each token wins, for a head with two inputs.

A token's logit is w·x + b.  It wins where it is above every other: an intersection of half-planes,
so a convex polygon.  It is found in rational numbers alone.  Where the logits are not a linear
function of the stream, they are known on a grid only, and regions are drawn between its points.
Nothing here knows a model or a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Point = tuple[Fraction, Fraction]
Cone = tuple[Fraction, Fraction, Fraction]  # (x, y, w) stands for the point (x/w, y/w)
Spot = tuple[float, float]
Logits = npt.NDArray[np.float64]  # (row, column, token)


@dataclass(frozen=True)
class Frame:
    """The part of the plane that is looked at."""

    left: Fraction
    bottom: Fraction
    right: Fraction
    top: Fraction

    @property
    def corners(self) -> tuple[Point, ...]:
        """Anticlockwise from the lower left."""
        return (
            (self.left, self.bottom),
            (self.right, self.bottom),
            (self.right, self.top),
            (self.left, self.top),
        )

    @property
    def width(self) -> Fraction:
        """The width of the frame."""
        return self.right - self.left

    @property
    def height(self) -> Fraction:
        """The height of the frame."""
        return self.top - self.bottom


@dataclass(frozen=True)
class Row:
    """A token as the head reads the plane: its logit at (x, y) is w[0]·x + w[1]·y + bias."""

    w: Point
    bias: Fraction = Fraction(0)

    def logit(self, at: Point) -> Fraction:
        """The logit at a point of the plane."""
        return self.w[0] * at[0] + self.w[1] * at[1] + self.bias


@dataclass(frozen=True)
class Region:
    """Where one token wins inside the frame.

    An exact region is one convex polygon, anticlockwise, with rational corners.  The token is the
    argmax at every point inside it and at no point outside.  A sampled region lies between the
    points of a grid; its outlines may have holes (drawn even-odd).
    """

    token: int
    tied: tuple[int, ...]  # every token with the same row and bias, this one first; else empty
    outlines: tuple[tuple[tuple[Fraction | float, Fraction | float], ...], ...]


# ------------------------------------------------------------------ exact


def exact_regions(rows: Sequence[Row], frame: Frame) -> tuple[Region, ...]:
    """The regions of tokens that win somewhere inside the frame, by id.

    Tokens with the same row and bias win together; the region is that of the lowest id, which is
    the one argmax takes.  A token that wins on a line or in a point only has no region.
    """
    found = []
    for token, tied in _apart(rows):
        outline = _clipped(rows, token, frame.corners)
        if twice_area(outline) > 0:
            found.append(Region(token, tied, (outline,)))
    return tuple(found)


def winners(rows: Sequence[Row]) -> tuple[int, ...]:
    """The tokens that win in some open part of the whole plane, however far out."""
    return tuple(token for token, _tied in _apart(rows) if _wins_somewhere(rows, token))


def _apart(rows: Sequence[Row]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The lowest id of each different row, with all ids that share it where there are several."""
    same: dict[Row, list[int]] = {}
    for id, row in enumerate(rows):
        same.setdefault(row, []).append(id)
    for ids in same.values():
        yield ids[0], tuple(ids) if len(ids) > 1 else ()


def _clipped(rows: Sequence[Row], token: int, outline: Sequence[Point]) -> tuple[Point, ...]:
    """What is left of a convex outline where no other token is above this one."""
    own = rows[token]
    for other in dict.fromkeys(rows):
        if other == own:
            continue
        heights = [own.logit(at) - other.logit(at) for at in outline]
        outline = _upper_part(outline, heights)
        if len(outline) < 3:
            return ()
    return tuple(outline)


def _upper_part(outline: Sequence[Point], heights: Sequence[Fraction]) -> list[Point]:
    """The corners where the height is not negative, and the points of the sides where it is 0."""
    kept: list[Point] = []
    corners = list(zip(outline, heights, strict=True))
    for (at, height), (after, next_height) in pairwise((*corners, *corners[:1])):
        if height >= 0:
            kept.append(at)
        if height * next_height < 0:
            share = height / (height - next_height)
            kept.append((at[0] + share * (after[0] - at[0]), at[1] + share * (after[1] - at[1])))
    return kept


def twice_area(outline: Sequence[Point]) -> Fraction:
    """Twice the area of an outline: positive where it runs anticlockwise, 0 where it is flat."""
    around = pairwise((*outline, *outline[:1]))
    return sum((x * b - a * y for (x, y), (a, b) in around), start=Fraction(0))


def _wins_somewhere(rows: Sequence[Row], token: int) -> bool:
    """Whether the token has a region in the whole plane; each quarter of the plane is tried.

    A quarter is a cone of (x, y, w) with its far corners at w = 0, so that clipping needs no frame.
    If the remaining edges have an inside, their sum lies in it.  There, and around there, the token
    is above every other.
    """
    own = rows[token]
    others = [row for row in dict.fromkeys(rows) if row != own]
    one, zero = Fraction(1), Fraction(0)
    for right in (one, -one):
        for up in (one, -one):
            edges: list[Cone] = [(right, zero, zero), (zero, up, zero), (zero, zero, one)]
            for other in others:
                edges = _upper_cone(edges, own, other)
            if edges and all(_above(own, other, _sum(edges)) > 0 for other in others):
                return True
    return False


def _above(own: Row, other: Row, at: Cone) -> Fraction:
    """w times the difference of the logits at the point that a cone's edge stands for."""
    x, y, w = at
    sides = (own.w[0] - other.w[0]) * x + (own.w[1] - other.w[1]) * y
    return sides + (own.bias - other.bias) * w


def _upper_cone(edges: list[Cone], own: Row, other: Row) -> list[Cone]:
    kept: list[Cone] = []
    heights = [_above(own, other, edge) for edge in edges]
    corners = list(zip(edges, heights, strict=True))
    for (at, height), (after, next_height) in pairwise((*corners, *corners[:1])):
        if height >= 0:
            kept.append(at)
        if height * next_height < 0:
            near, far = abs(next_height), abs(height)
            x, y, w = (near * one + far * two for one, two in zip(at, after, strict=True))
            kept.append((x, y, w))
    return kept


def _sum(edges: Sequence[Cone]) -> Cone:
    x, y, w = (sum(parts, start=Fraction(0)) for parts in zip(*edges, strict=True))
    return x, y, w


# ------------------------------------------------------------------ on a grid


def sampled_regions(logits: Logits, xs: Sequence[float], ys: Sequence[float]) -> tuple[Region, ...]:
    """The regions between the points of a grid: logits[row, column] are those at (x, y).

    Inside a cell a token's lead over the others is interpolated linearly between the corners.
    """
    tokens = logits.shape[2]
    if tokens == 1:
        around = ((xs[0], ys[0]), (xs[-1], ys[0]), (xs[-1], ys[-1]), (xs[0], ys[-1]))
        return (Region(0, (), (around,)),)
    same = _same_columns(logits)
    found = []
    for token in np.unique(logits.argmax(axis=2)).tolist():
        others = np.delete(logits, same[token], axis=2)
        tied = tuple(same[token]) if len(same[token]) > 1 else ()
        if not others.shape[2]:
            leads = np.zeros(logits.shape[:2])
        else:
            leads = logits[:, :, token] - others.max(axis=2)
        outlines = tuple(_outlines(leads, xs, ys))
        if outlines:
            found.append(Region(token, tied, outlines))
    return tuple(found)


def _same_columns(logits: Logits) -> list[list[int]]:
    """The tokens grouped by equal logits at every point of the grid."""
    groups: dict[bytes, list[int]] = {}
    for token in range(logits.shape[2]):
        groups.setdefault(np.ascontiguousarray(logits[:, :, token]).tobytes(), []).append(token)
    by_token = {token: group for group in groups.values() for token in group}
    return [by_token[token] for token in range(logits.shape[2])]


def _outlines(
    leads: Logits, xs: Sequence[float], ys: Sequence[float]
) -> Iterator[tuple[Spot, ...]]:
    """The outlines of where the lead is not negative: the sides that no two cells share."""
    sides: dict[Spot, list[Spot]] = {}
    rows, columns = leads.shape
    for row in range(rows - 1):
        for column in range(columns - 1):
            corners = ((row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column))
            heights = [float(leads[corner]) for corner in corners]
            if max(heights) < 0:
                continue
            places = [(xs[c], ys[r]) for r, c in corners]
            for one, two in pairwise(_around(places, heights)):
                if one == two:
                    continue
                back = sides.get(two, [])
                if one in back:  # the neighbour's side, which runs the other way
                    back.remove(one)
                    if not back:
                        del sides[two]
                else:
                    sides.setdefault(one, []).append(two)
    yield from _loops(sides)


def _around(places: Sequence[Spot], heights: Sequence[float]) -> list[Spot]:
    """The part of a cell where the height is not negative, closed."""
    kept: list[Spot] = []
    for i in range(4):
        j = (i + 1) % 4
        if heights[i] >= 0:
            kept.append(places[i])
        if (heights[i] < 0) != (heights[j] < 0):
            kept.append(_crossing(places[i], heights[i], places[j], heights[j]))
    return [*kept, *kept[:1]]


def _crossing(at: Spot, height: float, after: Spot, next_height: float) -> Spot:
    """Where the height is 0 on a side: the same number from either end."""
    if after < at:
        at, height, after, next_height = after, next_height, at, height
    share = height / (height - next_height)
    return at[0] + share * (after[0] - at[0]), at[1] + share * (after[1] - at[1])


def _loops(sides: dict[Spot, list[Spot]]) -> Iterator[tuple[Spot, ...]]:
    while sides:
        start = at = next(iter(sides))
        loop: list[Spot] = []
        while at in sides:
            after = sides[at].pop()
            if not sides[at]:
                del sides[at]
            if len(loop) < 2 or not _straight(loop[-2], loop[-1], at):
                loop.append(at)
            else:
                loop[-1] = at
            at = after
            if at == start:
                break
        if len(loop) > 2:
            yield tuple(loop)


def _straight(one: Spot, two: Spot, three: Spot) -> bool:
    turn = (two[0] - one[0]) * (three[1] - two[1]) - (two[1] - one[1]) * (three[0] - two[0])
    long = abs(three[0] - one[0]) + abs(three[1] - one[1])
    return abs(turn) <= 1e-9 * long * long
