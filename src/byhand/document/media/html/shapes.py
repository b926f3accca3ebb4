"""Shapes of a drawing as SVG writes them: lines, arrows, signs, and where ticks stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atan2, cos, floor, hypot, log10, pi, sin

from byhand.document.media.html.label_places import Box, Segment, Spot

SHORTEST_BARBED = 26  # pixels of a line that says where it goes


def mark(kind: str, at: Spot) -> str:
    """The sign of a stop: its shape says which step came before it."""
    x, y = at
    match kind:
        case "token":
            return f'<circle class="mark open" {circle(at, 4.6)}/>'
        case "position":
            return f'<circle class="mark" {circle(at, 2.1)}/>'
        case "attn":
            return f'<path class="mark" d="M{x:.1f} {y - 4.8:.1f}l4.8 4.8l-4.8 4.8l-4.8 -4.8z"/>'
        case "mlp":
            return f'<path class="mark" d="M{x - 3.4:.1f} {y - 3.4:.1f}h6.8v6.8h-6.8z"/>'
        case _:  # a norm
            return f'<path class="mark open" d="M{x:.1f} {y - 5:.1f}l4.8 8.2h-9.6z"/>'


def tick(span: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten, about six in a span."""
    rough = span / 6
    power = 10.0 ** floor(log10(rough))
    return next(unit * power for unit in (1, 2, 5, 10) if unit * power >= rough * 0.999)


def multiples(low: float, high: float, unit: float) -> Iterator[float]:
    first = -floor(-low / unit)
    for count in range(first, floor(high / unit) + 1):
        yield count * unit


def pixel(at: Spot) -> Spot:
    return round(at[0] / 2) * 2.0, round(at[1] / 2) * 2.0


def between(one: Spot, two: Spot, share: float) -> Spot:
    return one[0] + share * (two[0] - one[0]), one[1] + share * (two[1] - one[1])


def extent(outline: Sequence[Spot]) -> float:
    around = zip(outline, (*outline[1:], outline[0]), strict=True)
    return abs(sum(x * b - a * y for (x, y), (a, b) in around))


def middle(segment: Segment, bow: float) -> Spot:
    """The point that a bent line is drawn towards: to its left as it runs."""
    (x, y), (a, b) = segment
    long = hypot(a - x, b - y) or 1.0
    return (x + a) / 2 + bow * (b - y) / long, (y + b) / 2 - bow * (a - x) / long


def bent(segment: Segment, bow: float) -> str:
    one, two = segment
    if not bow:
        return line(one, two)
    x, y = middle(segment, 2 * bow)
    return f"M{one[0]:.1f} {one[1]:.1f}Q{x:.1f} {y:.1f} {two[0]:.1f} {two[1]:.1f}"


def barb(segment: Segment, bow: float) -> str:
    """The sign for where a line goes, past its middle; none where it is short."""
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
    x, y = tip
    back = (x - long * cos(turn), y - long * sin(turn))
    side = (half * sin(turn), -half * cos(turn))
    return (
        f"M{x:.1f} {y:.1f}L{back[0] + side[0]:.1f} {back[1] + side[1]:.1f}"
        f"L{back[0] - side[0]:.1f} {back[1] - side[1]:.1f}z"
    )


def line(one: Spot, two: Spot) -> str:
    return f"M{one[0]:.1f} {one[1]:.1f}L{two[0]:.1f} {two[1]:.1f}"


def closed(outline: Sequence[Spot]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in outline) + "z"


def circle(at: Spot, radius: float) -> str:
    return f'cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}"'


def xy(at: Spot) -> str:
    return f'x="{at[0]:.1f}" y="{at[1]:.1f}"'


def rectangle(box: Box) -> str:
    return (
        f'x="{box.left:.1f}" y="{box.top:.1f}" width="{box.right - box.left:.1f}"'
        f' height="{box.bottom - box.top:.1f}"'
    )
