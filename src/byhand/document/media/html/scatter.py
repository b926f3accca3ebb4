"""Points in a plane, as one SVG drawing for pages and for paper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, copysign, floor, isfinite, log10

from byhand.document import palette
from byhand.document.media.html.markup import Markup, element
from byhand.document.numerals import localised
from byhand.document.parts import Scatter, ScatterSeries

WIDE, HIGH = 430, 270  # of the frame
LEFT, RIGHT, TOP, BELOW = 62, 16, 26, 48  # around it
LINE = 18  # the height of a line of the legend
TICKS = 5
MOST = 4_000  # points of a series that are drawn
INKS = ("stream", "lit", "named", "right", "quiet")
SMALLEST_SHARE = 0.02  # of numbers that may lie between 0 and the first power of ten on either side


def scatter(part: Scatter) -> Markup:
    """The drawing with its title, for a page."""
    return element(
        "figure",
        element("figcaption", element("span", part.title, class_="name")),
        _svg(part),
        class_="scatter",
    )


def scatter_on_paper(part: Scatter) -> str:
    """The same drawing with the colours of paper."""
    svg = str(_svg(part)).replace("var(--sans)", "sans-serif")
    return re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: palette.PRINTED[name[1]], svg)


def _svg(part: Scatter) -> Markup:
    points = [point for series in part.series for point in series.points]
    levels = [level for _name, level in part.levels]
    wide, high = [x for x, _y in points] + levels, [y for _x, y in points]
    if part.diagonal:  # both axes are the same
        wide = high = wide + high
    across = _Axis.of(wide, part.scales[0], LEFT, LEFT + WIDE)
    along = _Axis.of(high, part.scales[1], TOP + HIGH, TOP)
    named = [series.name for series in part.series if series.name]
    legend = list(_legend([*named, *(name for name, _level in part.levels)], len(named)))
    whole = TOP + HIGH + BELOW + LINE * (len(legend) // 2)
    return element(
        "svg",
        *_grid(across, along, part),
        *(piece for place, each in enumerate(part.series)
          for piece in _points(place, each, across, along)),
        *legend,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=part.about,
        viewBox=f"0 0 {LEFT + WIDE + RIGHT} {whole}",
        font_size=12,
    )  # fmt: skip


@dataclass(frozen=True)
class _Axis:
    """One axis: numbers, and where they lie between its two ends on the page."""

    scale: str
    low: float  # of the numbers as they are laid
    high: float
    unit: float  # of a signed axis: the number up to which it is nearly linear
    start: float
    end: float

    @classmethod
    def of(cls, numbers: Sequence[float], scale: str, start: float, end: float) -> _Axis:
        """The axis that holds all the numbers."""
        unit = _unit_of(numbers) if scale == "signed" else 1.0
        axis = cls(scale, 0.0, 1.0, unit, start, end)
        laid = sorted(axis.laid(each) for each in numbers) or [0.0, 1.0]
        low, high = laid[0], laid[-1]
        if scale == "signed":
            high = max(abs(low), abs(high), 1.0)
            low = -high
        elif scale == "log":
            low, high = floor(low), max(ceil(high), floor(low) + 1)
        elif low == high:
            low, high = low - 1, high + 1
        return cls(scale, low, high, unit, start, end)

    def laid(self, number: float) -> float:
        """The number on the scale."""
        if self.scale == "log":
            return log10(number)
        if self.scale == "signed":
            return copysign(log10(1 + abs(number) / self.unit), number)
        return number

    def at(self, number: float) -> float:
        """Where a number lies on the page."""
        share = (self.laid(number) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self) -> list[float]:
        """The numbers that are written beside the axis."""
        if self.scale == "linear":
            step = _round_step((self.high - self.low) / TICKS)
            first, last = ceil(self.low / step), floor(self.high / step)
            return [step * place for place in range(first, last + 1)]
        first = floor(self.low) if self.scale == "log" else round(log10(self.unit))
        last = floor(self.high) if self.scale == "log" else first + floor(self.high)
        every = max(1, ceil((last - first + 1) / (TICKS if self.scale == "log" else 4)))
        powers = [10.0**power for power in range(last, first - 1, -every)][::-1]
        if self.scale == "log":
            return powers
        shown = [power for power in powers if self.laid(power) > 0.35]
        return [*(-power for power in reversed(shown)), 0.0, *shown]


def _unit_of(numbers: Sequence[float]) -> float:
    """The power of ten below nearly all the sizes of the numbers."""
    sizes = sorted(abs(each) for each in numbers if each)
    if not sizes:
        return 1.0
    least = sizes[int(len(sizes) * SMALLEST_SHARE)]
    return 10.0 ** max(floor(log10(least)), floor(log10(sizes[-1])) - 8)


def _round_step(rough: float) -> float:
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    return next(unit * power for unit in (1, 2, 5, 10) if unit * power >= rough)


def _grid(across: _Axis, along: _Axis, part: Scatter) -> Iterator[Markup]:
    quiet = "stroke:var(--line)"
    for number in along.ticks():
        y = along.at(number)
        yield element("path", d=f"M{LEFT} {y:.1f}h{WIDE}", style=quiet)
        yield _text(_said(number), LEFT - 7, y + 4, "end")
    for number in across.ticks():
        x = across.at(number)
        if across.scale != "linear":
            yield element("path", d=f"M{x:.1f} {TOP}v{HIGH}", style=quiet)
        yield _text(_said(number), x, TOP + HIGH + 16, "middle")
    yield _text(part.across, LEFT + WIDE, TOP + HIGH + 33, "end")
    yield _text(part.along, LEFT - 50, TOP - 12, "start")
    if part.diagonal:
        style = "stroke:var(--quiet);stroke-dasharray:3 4;fill:none"
        ends = max(-across.high, -along.high), min(across.high, along.high)
        low, high = (copysign((10 ** abs(end) - 1) * across.unit, end) for end in ends)
        line = (
            f"M{across.at(low):.1f} {along.at(low):.1f}L{across.at(high):.1f} {along.at(high):.1f}"
        )
        yield element("path", d=line, style=style)
    for _name, level in part.levels:
        style = "stroke:var(--warn);stroke-dasharray:6 4;fill:none"
        yield element("path", d=f"M{across.at(level):.1f} {TOP}v{HIGH}", style=style)


def _points(place: int, series: ScatterSeries, across: _Axis, along: _Axis) -> Iterator[Markup]:
    """The points of a series, each series with a sign of its own; of many every so-and-so-many."""
    every = max(1, ceil(len(series.points) / MOST))
    path = ""
    for number, (x, y) in enumerate(series.points):
        if number % every == 0 and isfinite(x) and isfinite(y):
            path += _sign(place, across.at(x), along.at(y))
    yield element("path", d=path, style=_style(place))


def _style(place: int) -> str:
    return f"stroke:var(--{INKS[place % len(INKS)]});stroke-width:1.4;fill:none"


def _sign(place: int, x: float, y: float) -> str:
    """A ring, a cross, a square, a plus: told apart without colour."""
    match place % 4:
        case 0:
            return f"M{x - 2.2:.1f} {y:.1f}a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0 -4.4 0"
        case 1:
            return f"M{x - 2.2:.1f} {y - 2.2:.1f}l4.4 4.4m0 -4.4l-4.4 4.4"
        case 2:
            return f"M{x - 2:.1f} {y - 2:.1f}h4v4h-4z"
        case _:
            return f"M{x - 2.8:.1f} {y:.1f}h5.6m-2.8 -2.8v5.6"


def _legend(names: Sequence[str], series: int) -> Iterator[Markup]:
    """Two pieces for each name: its sign, and the name."""
    for place, name in enumerate(names):
        y = TOP + HIGH + BELOW + LINE * place + 2
        if place < series:
            yield element("path", d=_sign(place, LEFT + 9, y), style=_style(place))
        else:
            style = "stroke:var(--warn);stroke-dasharray:6 4;fill:none"
            yield element("path", d=f"M{LEFT} {y}h18", style=style)
        yield _text(name, LEFT + 25, y + 4, "start")


def _text(text: str, x: float, y: float, anchor: str) -> Markup:
    style = f"fill:var(--quiet);text-anchor:{anchor};font-family:var(--sans)"
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", style=style)


def _said(number: float) -> str:
    return localised(f"{number:.6g}").replace("-", "−")
