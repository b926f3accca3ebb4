"""Shapes as SVG: lines, arrows, and the signs of the stops."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan2, cos, hypot, pi, sin

from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.plane.sheet import Box
from byhand.document.media.outlines import Segment, sides
from byhand.document.parts.drawn import Spot

SHORTEST_BARBED = 26  # pixels: shorter lines have no arrow


def path(kind: str, d: str) -> Markup:
    """A path of some class."""
    return element("path", class_=kind, d=d)


def mark(kind: str, at: Spot) -> Markup:
    """The sign of a stop: its shape says which step came before it."""
    x, y = at
    match kind:
        case "token":
            return circle("mark open", at, 4.6)
        case "position":
            return circle("mark", at, 2.1)
        case "attn":
            return path("mark", f"M{x:.1f} {y - 4.8:.1f}l4.8 4.8l-4.8 4.8l-4.8 -4.8z")
        case "mlp":
            return path("mark", f"M{x - 3.4:.1f} {y - 3.4:.1f}h6.8v6.8h-6.8z")
        case _:  # a norm
            return path("mark open", f"M{x:.1f} {y - 5:.1f}l4.8 8.2h-9.6z")


def text(kind: str, at: Spot, *said: str, **more: str) -> Markup:
    """A text at a point."""
    return element("text", *said, class_=kind, x=f"{at[0]:.1f}", y=f"{at[1]:.1f}", **more)


def pixel(at: Spot) -> Spot:
    """The point on a grid of two pixels, where overlapping points coincide."""
    return round(at[0] / 2) * 2.0, round(at[1] / 2) * 2.0


def between(one: Spot, two: Spot, share: float) -> Spot:
    """The point at a share of the way from one point to another."""
    return one[0] + share * (two[0] - one[0]), one[1] + share * (two[1] - one[1])


def extent(outline: Sequence[Spot]) -> float:
    """Twice the area of an outline."""
    return abs(sum(x * b - a * y for (x, y), (a, b) in sides(outline)))


def middle(segment: Segment, bow: float) -> Spot:
    """The control point of a bent line, to its left."""
    (x, y), (a, b) = segment
    long = hypot(a - x, b - y) or 1.0
    return (x + a) / 2 + bow * (b - y) / long, (y + b) / 2 - bow * (a - x) / long


def bent(segment: Segment, bow: float) -> str:
    """A line bent to its left by `bow`."""
    one, two = segment
    if not bow:
        return line(one, two)
    x, y = middle(segment, 2 * bow)
    return f"M{one[0]:.1f} {one[1]:.1f}Q{x:.1f} {y:.1f} {two[0]:.1f} {two[1]:.1f}"


def barb(segment: Segment, bow: float) -> str:
    """The arrow of a line, past its middle; empty for a short line."""
    (x, y), (a, b) = segment
    if hypot(a - x, b - y) < SHORTEST_BARBED:
        return ""
    turn = atan2(b - y, a - x)
    at = middle(segment, bow)
    tip = (at[0] + 4 * cos(turn), at[1] + 4 * sin(turn))
    one, two = (
        (tip[0] - 6 * cos(turn + k * pi / 7), tip[1] - 6 * sin(turn + k * pi / 7)) for k in (-1, 1)
    )
    return f"{line(one, tip)}L{two[0]:.1f} {two[1]:.1f}"


def arrow_head(tip: Spot, turn: float, long: float, half: float) -> str:
    """The head of an arrow that ends in a tip."""
    x, y = tip
    back = (x - long * cos(turn), y - long * sin(turn))
    side = (half * sin(turn), -half * cos(turn))
    return (
        f"M{x:.1f} {y:.1f}L{back[0] + side[0]:.1f} {back[1] + side[1]:.1f}"
        f"L{back[0] - side[0]:.1f} {back[1] - side[1]:.1f}z"
    )


def line(one: Spot, two: Spot) -> str:
    """A straight line."""
    return f"M{one[0]:.1f} {one[1]:.1f}L{two[0]:.1f} {two[1]:.1f}"


def closed(outline: Sequence[Spot]) -> str:
    """An outline back to its start."""
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in outline) + "z"


def circle(kind: str, at: Spot, radius: float) -> Markup:
    """A circle around a point."""
    return element("circle", class_=kind, cx=f"{at[0]:.1f}", cy=f"{at[1]:.1f}", r=f"{radius:g}")


def rectangle(box: Box, kind: str | None = None) -> Markup:
    """The outline of a box."""
    return element(
        "rect",
        class_=kind,
        x=f"{box.left:.1f}",
        y=f"{box.top:.1f}",
        width=f"{box.right - box.left:.1f}",
        height=f"{box.bottom - box.top:.1f}",
    )
