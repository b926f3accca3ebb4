"""Curves over the steps of a run, as one SVG drawing for pages and for paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log10

from byhand.document import palette
from byhand.document.media.html.markup import Markup, element
from byhand.document.numerals import localised
from byhand.document.parts import Curve, CurveLine
from byhand.document.words import whole

WIDE, HIGH = 640, 260  # of the frame
LEFT, RIGHT, TOP, BELOW = 58, 24, 10, 62  # around it
COLUMNS = 320  # of a line with more points, the least and the greatest of each column are drawn
TICKS = 5
INKS = ("stream", "lit", "named", "quiet")
DASHES = ("6 4", "2 3")


def curve(part: Curve) -> Markup:
    """A curve with its title, for a page."""
    return element(
        "figure",
        element("figcaption", element("span", part.title, class_="name")),
        _svg(part),
        class_="curve",
    )


def curve_on_paper(part: Curve) -> str:
    """The same drawing with the colours of paper."""
    svg = str(_svg(part)).replace("var(--sans)", "sans-serif")
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: palette.PRINTED[name[1]], svg)


def _svg(part: Curve) -> Markup:
    frame = _Frame.around(part)
    high = TOP + HIGH + BELOW
    return element(
        "svg",
        *frame.grid(part.across),
        *(piece for place, line in enumerate(part.lines) for piece in frame.line(place, line)),
        *_legend(part.lines),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=part.about,
        viewBox=f"0 0 {LEFT + WIDE + RIGHT} {high}",
        font_size=12,
    )


@dataclass(frozen=True)
class _Frame:
    """The frame of a drawing: the least and greatest numbers, and where they lie."""

    last: float  # step
    low: float
    high: float
    logarithmic: bool

    @classmethod
    def around(cls, part: Curve) -> _Frame:
        """The frame that holds every point."""
        points = [point for line in part.lines for point in line.points]
        heights = [y for _x, y in points]
        last = max((x for x, _y in points), default=1.0) or 1.0
        if part.logarithmic:
            low, high = floor(log10(min(heights))), ceil(log10(max(heights)))
            return cls(last, float(low), float(max(high, low + 1)), True)
        top = max(heights, default=1.0) or 1.0
        unit = _unit(top)
        return cls(last, 0.0, ceil(top / unit - 1e-9) * unit, False)

    def x(self, step: float) -> float:
        """Where a step lies."""
        return LEFT + WIDE * step / self.last

    def y(self, height: float) -> float:
        """Where a number lies."""
        size = log10(height) if self.logarithmic else height
        return TOP + HIGH * (1 - (size - self.low) / (self.high - self.low))

    def grid(self, across: str) -> Iterator[Markup]:
        """The lines behind the curve, the numbers at the sides, and the name below."""
        quiet = "stroke:var(--line)"
        for height in self._heights():
            y = f"{self.y(height):.1f}"
            yield element("path", d=f"M{LEFT} {y}h{WIDE}", style=quiet)
            yield _text(_said(height), LEFT - 7, float(y) + 4, "end")
        unit = _unit(self.last)
        for step in range(0, int(self.last) + 1, max(1, int(unit))):
            yield _text(whole(step), self.x(step), TOP + HIGH + 17, "middle")
        yield _text(across, LEFT + WIDE, TOP + HIGH + 34, "end")

    def _heights(self) -> list[float]:
        if self.logarithmic:
            return [10.0**power for power in range(int(self.low), int(self.high) + 1)]
        unit = _unit(self.high)
        return [unit * place for place in range(round(self.high / unit) + 1)]

    def line(self, place: int, line: CurveLine) -> Iterator[Markup]:
        """One line of the curve."""
        ink = f"var(--{INKS[place % len(INKS)]})"
        if line.kind == "level":
            y = self.y(line.points[0][1])
            dash = DASHES[place % 2]
            style = f"stroke:{ink};stroke-dasharray:{dash};fill:none"
            yield element("path", d=f"M{LEFT} {y:.1f}h{WIDE}", style=style)
        elif line.kind == "marks":
            for x, y in line.points:
                at = {"cx": f"{self.x(x):.1f}", "cy": f"{self.y(y):.1f}"}
                yield element("circle", r=3, style=f"fill:{ink}", **at)
        else:
            found = (f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in _thinned(line.points))
            style = f"stroke:{ink};stroke-width:1.2;fill:none;stroke-linejoin:round"
            yield element("path", d="M" + "L".join(found), style=style)


def _thinned(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The points; of very many, the least and the greatest of each column."""
    if len(points) <= 2 * COLUMNS:
        yield from points
        return
    for column in range(COLUMNS):
        own = points[column * len(points) // COLUMNS : (column + 1) * len(points) // COLUMNS]
        ends = {min(own, key=lambda p: p[1]), max(own, key=lambda p: p[1])}
        yield from sorted(ends)


def _legend(lines: Sequence[CurveLine]) -> Iterator[Markup]:
    x = float(LEFT)
    for place, line in enumerate(lines):
        ink, y = f"var(--{INKS[place % len(INKS)]})", TOP + HIGH + 50
        if line.kind == "marks":
            yield element("circle", cx=f"{x + 9:.0f}", cy=y, r=3, style=f"fill:{ink}")
        else:
            dash = f";stroke-dasharray:{DASHES[place % 2]}" if line.kind == "level" else ""
            style = f"stroke:{ink};stroke-width:1.6{dash}"
            yield element("path", d=f"M{x:.0f} {y}h18", style=style)
        yield _text(line.name, x + 23, y + 4, "start")
        x += 40 + 6.4 * len(line.name)


def _text(text: str, x: float, y: float, anchor: str) -> Markup:
    style = f"fill:var(--quiet);text-anchor:{anchor};font-family:var(--sans)"
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", style=style)


def _unit(size: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    rough = size / TICKS
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    return next((unit * power for unit in (1, 2, 5, 10) if unit * power >= rough), inf)


def _said(number: float) -> str:
    return localised(f"{number:.6g}")
