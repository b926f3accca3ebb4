"""Pictures of a Geometry: a plane, its frame, its points, and the region of each token.

In two dimensions the regions are exact polygons where the head reads the stream itself and its
weights are rational.  With a final norm, or with weights such as sqrt(2), the model's own tail is
worked out on a grid in floats.  In three dimensions a picture shows the cut through the end of the
last path.  A picture always says which of these it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, hypot, isfinite, log10
from typing import TYPE_CHECKING

import numpy as np

from byhand import forward
from byhand.evaluate import work_out
from byhand.explaining.projections import Floats, Projection, coordinate_plane, main_plane
from byhand.explaining.regions import (
    Frame,
    Region,
    Row,
    exact_regions,
    sampled_regions,
    winners,
)
from byhand.plan import Plan, Step
from byhand.tracing import Trace

if TYPE_CHECKING:
    from byhand.explaining.geometry import Direction, Geometry

MOST_EXACT = 256  # tokens whose regions are clipped in rational numbers
GRID = 97  # points along a side, where regions are sampled
MARGIN = Fraction(9, 100)  # of a frame, on each side


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a plane of three dimensions is cut: the coordinate that it does not show, and its
    level."""

    axis: int
    level: float


@dataclass(frozen=True)
class Plane:
    """A picture of two dimensions: the paths' points, the directions, and who wins where."""

    projection: Projection
    frame: Frame
    points: tuple[tuple[tuple[float, float], ...], ...]  # of each stop of each path
    arrows: tuple[tuple[float, float], ...]  # of each direction
    origin: tuple[float, float]  # where the zero vector lies
    regions: tuple[Region, ...] = ()
    drawn_from: str = ""  # "exact", "printed" or "grid"; empty where there are no regions
    never: tuple[int, ...] = ()  # tokens that win nowhere in the plane (on a grid: were not seen)
    cut: Cut | None = None  # in three dimensions: where the regions are


def planes_of(geometry: Geometry) -> tuple[Plane, ...]:
    """One plane for two dimensions, three for three, none for one; else the one that keeps most."""
    rows = [stop.near for path in geometry.paths for stop in path.stops]
    if geometry.width < 2 or not rows:
        return ()
    points = np.array(rows, np.float64)
    if geometry.width == 2:
        return (_with_regions(geometry, _plane(geometry, coordinate_plane(points, 0, 1))),)
    if geometry.width == 3:
        return tuple(_side(geometry, points, hidden) for hidden in (2, 1, 0))
    return (_plane(geometry, main_plane(points)),)


def _side(geometry: Geometry, points: Floats, hidden: int) -> Plane:
    """The plane of the two other coordinates, with the regions in the cut through the last end."""
    one, other = (axis for axis in range(3) if axis != hidden)
    plane = _plane(geometry, coordinate_plane(points, one, other))
    last = geometry.paths[-1].last
    if last is None or not isfinite(last.near[hidden]):
        return plane
    return _with_regions(geometry, replace(plane, cut=Cut(hidden, float(last.near[hidden]))))


def _plane(geometry: Geometry, projection: Projection) -> Plane:
    points = tuple(
        tuple(projection.point(np.array(stop.near)) for stop in path.stops)
        for path in geometry.paths
    )
    arrows = tuple(projection.direction(np.array(each.row)) for each in geometry.directions)
    origin = projection.point(np.zeros(geometry.width))
    shown = [point for path in points for point in path]
    if geometry.width <= 3:  # directions start at the origin and are drawn to scale
        shown += [origin, *arrows]
    return Plane(projection, frame_of(shown), points, arrows, origin)


def _with_regions(geometry: Geometry, plane: Plane) -> Plane:
    """The plane with the regions of the tokens, exact where possible."""
    trace, vocab = geometry.trace, geometry.trace.model.spec.answers
    if not geometry.final_norm and vocab <= MOST_EXACT:
        every = geometry.every_direction
        rows = [_as_row(each, plane.cut) for each in every]
        if all(row is not None for row in rows):
            known = [row for row in rows if row is not None]
            won = winners(known)
            together = {row for id, row in enumerate(known) if id in won}
            never = tuple(id for id, row in enumerate(known) if row not in together)
            source = "printed" if any(each.register != "exact" for each in every) else "exact"
            regions = exact_regions(known, plane.frame)
            return replace(plane, regions=regions, drawn_from=source, never=never)
    frame = plane.frame
    xs = np.linspace(float(frame.left), float(frame.right), GRID)
    ys = np.linspace(float(frame.bottom), float(frame.top), GRID)
    logits = _grid_logits(trace, xs, ys, plane.cut)
    if logits is None:
        return plane
    regions = sampled_regions(logits, xs.tolist(), ys.tolist())
    seen = {id for region in regions for id in (region.token, *region.tied)}
    never = tuple(id for id in range(vocab) if id not in seen)
    return replace(plane, regions=regions, drawn_from="grid", never=never)


def _as_row(direction: Direction, cut: Cut | None) -> Row | None:
    """The logit as a function of the two coordinates of the picture; None if not rational."""
    if direction.exact is None or direction.exact_bias is None:
        return None
    shown, bias = list(direction.exact), direction.exact_bias
    if cut is not None:
        bias += shown.pop(cut.axis) * Fraction(cut.level)
    return Row((shown[0], shown[1]), bias)


def frame_of(points: Sequence[tuple[float, float]]) -> Frame:
    """A frame around the points with room at its sides, neither very wide nor very high."""
    known = [point for point in points if isfinite(hypot(*point))] or [(0.0, 0.0)]
    sides = [(min(axis), max(axis)) for axis in zip(*known, strict=True)]
    spans = [high - low for low, high in sides]
    widest = max(*spans, 1e-9)
    made: list[tuple[Fraction, Fraction]] = []
    for (low, high), span in zip(sides, spans, strict=True):
        missing = max(0.0, 0.8 * widest - span)  # at least four fifths of the longer side
        unit = Fraction(10) ** (floor(log10(widest)) - 2)
        room = MARGIN * Fraction(widest)
        bottom = floor((Fraction(low - missing / 2) - room) / unit) * unit
        made.append((bottom, ceil((Fraction(high + missing / 2) + room) / unit) * unit))
    (left, right), (bottom, top) = made
    return Frame(left, bottom, right, top)


# ------------------------------------------------------------------ the model's own tail


def tail_of(plan: Plan) -> tuple[Plan, str]:
    """The plan from the end of the stream to the next token, and the address of that end."""
    last = plan[f"stream.{len(plan.spec.blocks)}"].address
    return plan.only(["next"], given=[last]), last


def _grid_logits(trace: Trace, xs: Floats, ys: Floats, cut: Cut | None) -> Floats | None:
    """The tail's logits in floats on a grid, (row, column, token); None if missing."""
    from byhand.numbers.floats import Floats as Rounding

    across, up = np.meshgrid(xs, ys)
    points = np.stack([across.ravel(), up.ravel()], axis=1)
    if cut is not None:
        points = np.insert(points, cut.axis, cut.level, axis=1)
    one, last = tail_of(forward.plan(trace.model.spec, 1))
    steps = tuple(_stretched(step, len(points)) for step in one)  # the tail reads row by row
    many = Plan(one.spec, len(points), steps, one.aliases).only(["logits"], given=[last])
    done = work_out(many, trace.model.weights, (), Rounding("float64"), given={last: points})
    if done["logits"].missing is not None:
        return None
    return np.asarray(done["logits"].array, np.float64).reshape(len(ys), len(xs), -1)


def _stretched(step: Step, length: int) -> Step:
    if step.axes[:1] != ("pos",):
        return step
    return replace(step, shape=(length, *step.shape[1:]))
