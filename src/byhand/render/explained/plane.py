"""The plane as a figure: who wins where, the tokens' directions, and the way of each position.

One self-contained SVG for each plane of a Geometry: its style goes with it, light, dark and on
paper; regions have a pattern and a letter as well as a colour; a title and a description say the
same in words.  Numbers come from `explaining.geometry`; here they only find their place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import resources
from itertools import pairwise
from math import atan2, cos, degrees, hypot, sin
from typing import TYPE_CHECKING

from byhand.language import _
from byhand.render.explained.placing import Box, Room, Segment, Spot, roomiest, text_width
from byhand.render.explained.plane_key import Key
from byhand.render.explained.plane_words import (
    axis_names,
    decimal,
    description,
    end_label,
    kinds,
    subscript,
)
from byhand.render.explained.shapes import (
    arrow_head,
    barb,
    bent,
    between,
    circle,
    closed,
    extent,
    line,
    mark,
    middle,
    multiples,
    pixel,
    rectangle,
    tick,
    xy,
)
from byhand.render.words import token_label

if TYPE_CHECKING:
    from byhand.explaining.geometry import Direction, Geometry, Path
    from byhand.explaining.planes import Plane
    from byhand.explaining.regions import Region

WIDE = 460  # of the drawing; letters are about 12 high, so it can be shown on a telephone
LEFT, RIGHT, TOP, BELOW = 36, 12, 12, 46  # around the frame
HUES = 8
SIZE = 12.5  # of letters
MOST_ARROWS = 6  # of a projection
FEW = 6  # paths that are all drawn strongly
SHORT = 1.0  # pixels: a move that is not seen
BOW = 9.0  # how far a line is bent where another runs over the same points

# one pattern a hue, so that regions differ in black and white too
HATCHES = (
    "M-2 2L2 -2M0 10L10 0M8 12L12 8",
    "M2.5 3.2h.01M7.5 8.2h.01",
    "M-2 8L2 12M0 0L10 10M8 -2L12 2",
    "M0 5H10",
    "M5 0V10",
    "M0 5H10M5 0V10",
    "M3 5h4M5 3v4",
    "M0 0L10 10M10 0L0 10",
)


def figures(geometry: Geometry, name: str = "plane") -> list[str]:
    """The figure of each plane, as an SVG element that needs nothing else."""
    planes = geometry.planes
    return [
        _Drawing(geometry, plane, name if len(planes) == 1 else f"{name}-{i}").svg()
        for i, plane in enumerate(planes)
    ]


def style() -> str:
    """The style of the figures, which each of them carries."""
    return resources.files(__package__).joinpath("plane.css").read_text("utf-8")


@dataclass
class _Drawing:
    """One figure in the making; `name` is what its ids begin with."""

    geometry: Geometry
    plane: Plane
    name: str
    room: Room = field(init=False)

    def __post_init__(self) -> None:
        frame = self.plane.frame
        self.scale = (WIDE - LEFT - RIGHT) / float(frame.width)
        self.high = float(frame.height) * self.scale
        self.box = Box(LEFT, TOP, WIDE - RIGHT, TOP + self.high)
        inner = Box(LEFT + 2, TOP + 2, WIDE - RIGHT - 2, TOP + self.high - 2)
        self.room = Room(inner)
        self.ways = [[self.at(*point) for point in path] for path in self.plane.points]
        self.strong = [
            len(self.ways) <= FEW or i == len(self.ways) - 1 for i in range(len(self.ways))
        ]

    def at(self, x: float, y: float) -> Spot:
        """From the plane to the drawing."""
        frame = self.plane.frame
        return (
            LEFT + (x - float(frame.left)) * self.scale,
            TOP + (float(frame.top) - y) * self.scale,
        )

    # ------------------------------------------------------------------ the whole

    def svg(self) -> str:
        lines = list(self._ways())
        arrows = list(self._arrows())
        self._take_marks()
        labels = "".join((*self._end_labels(), *self._start_labels(), *self._arrow_labels()))
        trips = "".join(self._trip_labels())
        self.room.lines += self._thin()
        letters = "".join(self._letters())
        key = Key(self.geometry, self.plane, self.name, self._hue, bool(self._arrows_shown))
        legend, below = key.drawn(LEFT, WIDE - RIGHT, TOP + self.high + BELOW)
        clip = f'<clipPath id="{self.name}-frame"><rect {rectangle(self.box)}/></clipPath>'
        title, told = escape(self._title()), escape(description(self.geometry, self.plane))
        return (
            f'<svg class="plane" xmlns="http://www.w3.org/2000/svg" role="img"'
            f' viewBox="0 0 {WIDE} {below:.0f}"'
            f' aria-labelledby="{self.name}-title {self.name}-about">'
            f'<title id="{self.name}-title">{title}</title>'
            f'<desc id="{self.name}-about">{told}</desc>'
            f"<style>{style()}</style><defs>{clip}{''.join(self._hatches())}</defs>"
            f'<g clip-path="url(#{self.name}-frame)">{"".join(self._regions())}</g>'
            f"{''.join(self._axes())}{letters}"
            f'<g clip-path="url(#{self.name}-frame)">{"".join(arrows)}</g>'
            f"{''.join(lines)}{''.join(self._marks())}{trips}{labels}{legend}</svg>"
        )

    def _title(self) -> str:
        text = self.geometry.trace.text
        if self.geometry.width == 2:
            return _("The plane of {model} with the way of {text}").format(
                model=self.geometry.trace.model.name, text=text
            )
        return _("The stream of {model} with the way of {text}, seen in two dimensions").format(
            model=self.geometry.trace.model.name, text=text
        )

    # ------------------------------------------------------------------ regions and axes

    def _hue(self, token: int) -> int:
        """Directions have the colours in their order; what has none of its own comes after."""
        ids = [each.id for each in self.geometry.directions]
        return (ids.index(token) if token in ids else token) % HUES

    def _hatches(self) -> Iterator[str]:
        for hue in sorted({self._hue(region.token) for region in self.plane.regions}):
            cap = ' stroke-linecap="round" style="stroke-width:2.2"' if hue == 1 else ""
            yield (
                f'<pattern id="{self.name}-h{hue}" class="hatch c{hue}" width="10" height="10"'
                f' patternUnits="userSpaceOnUse"><path d="{HATCHES[hue]}"{cap}/></pattern>'
            )

    def _outline(self, region: Region) -> list[list[Spot]]:
        return [[self.at(float(x), float(y)) for x, y in line] for line in region.outlines]

    def _regions(self) -> Iterator[str]:
        for region in self.plane.regions:
            path = "".join(closed(line) for line in self._outline(region))
            hue = self._hue(region.token)
            yield f'<path class="tint c{hue}" fill-rule="evenodd" d="{path}"/>'
            yield f'<path fill="url(#{self.name}-h{hue})" fill-rule="evenodd" d="{path}"/>'
        for region in self.plane.regions:
            path = "".join(closed(line) for line in self._outline(region))
            yield f'<path class="edge" d="{path}"/>'

    def _thin(self) -> list[Segment]:
        """The axes and the rays: a label may lie over them, a region's letter should not."""
        x, y = self.at(0.0, 0.0)
        axes = [((x, TOP), (x, TOP + self.high)), ((LEFT, y), (WIDE - RIGHT, y))]
        rays = [(tip, self._at_border(self._start, tip)) for _each, tip in self._arrows_shown]
        return [*axes, *rays] if self.geometry.width == 2 else axes

    def _letters(self) -> Iterator[str]:
        """The name of each region, large, where there is most room."""
        for region in self.plane.regions:
            outlines = sorted(self._outline(region), key=extent)
            ids = region.tied or (region.token,)
            text = ", ".join(token_label(self.geometry.trace.token(id)) for id in ids[:3])
            for size in (34.0, 24.0, 17.0):
                wide = text_width(text, size) * 1.1
                place = roomiest(outlines[-1], self.room, wide + 4, size)
                if place is not None:
                    yield (
                        f'<text class="letter c{self._hue(region.token)}" font-size="{size:.0f}"'
                        f" {xy(place)}>{escape(text)}</text>"
                    )
                    break

    def _axes(self) -> Iterator[str]:
        left, top, right, bottom = (
            self.box.left, self.box.top, self.box.right, self.box.bottom
        )  # fmt: skip
        x, y = self.at(0.0, 0.0)
        if left < x < right:
            yield f'<path class="axis" d="M{x:.1f} {top}V{bottom:.1f}"/>'
        if top < y < bottom:
            yield f'<path class="axis" d="M{left} {y:.1f}H{right}"/>'
        yield f'<rect class="border" {rectangle(self.box)}/>'
        frame = self.plane.frame
        unit = tick(max(float(frame.width), float(frame.height)))
        for number in multiples(float(frame.left), float(frame.right), unit):
            x = self.at(number, 0.0)[0]
            yield f'<path class="tick" d="M{x:.1f} {bottom:.1f}v4"/>'
            yield (
                f'<text class="number middle" x="{x:.1f}" y="{bottom + 12:.1f}">'
                f"{decimal(number, unit)}</text>"
            )
        for number in multiples(float(frame.bottom), float(frame.top), unit):
            y = self.at(0.0, number)[1]
            yield f'<path class="tick" d="M{left} {y:.1f}h-4"/>'
            text = decimal(number, unit)
            yield f'<text class="number end" x="{left - 6}" y="{y:.1f}">{text}</text>'
        across, up = axis_names(self.plane)
        yield f'<text class="name end" x="{right}" y="{bottom + 27:.1f}">{escape(across)}</text>'
        if len(up) <= 3:
            yield f'<text class="name" x="4" y="{top + 2}">{escape(up)}</text>'
        else:
            yield (
                f'<text class="name end" transform="translate(7 {top}) rotate(-90)">'
                f"{escape(up)}</text>"
            )

    # ------------------------------------------------------------------ directions

    @property
    def _start(self) -> Spot:
        """Where directions are drawn from: the zero vector; in a projection, the middle of it."""
        return self.at(*(self.plane.origin if self.geometry.width <= 3 else (0.0, 0.0)))

    def _tips(self) -> list[Spot]:
        """Where the arrows end.  In up to three dimensions they are to scale."""
        x, y = self._start
        factor = self.scale
        if self.geometry.width > 3:
            longest = max((hypot(*arrow) for arrow in self.plane.arrows), default=0.0)
            factor = 0.3 * (WIDE - LEFT - RIGHT) / longest if longest else 0.0
        return [(x + a * factor, y - b * factor) for a, b in self.plane.arrows]

    @cached_property
    def _arrows_shown(self) -> list[tuple[Direction, Spot]]:
        """The directions that can be seen; in a projection the longest few."""
        x, y = self._start
        tips = list(zip(self.geometry.directions, self._tips(), strict=True))
        long = {each.id: hypot(tip[0] - x, tip[1] - y) for each, tip in tips}
        least = 4.0
        if self.geometry.width > 3 and len(tips) > MOST_ARROWS:
            least = max(least, sorted(long.values())[-MOST_ARROWS])
        return [(each, tip) for each, tip in tips if long[each.id] >= least]

    def _arrows(self) -> Iterator[str]:
        start = self._start
        for each, tip in self._arrows_shown:
            hue = f"c{self._hue(each.id)}"
            self.room.lines.append((start, tip))
            self.room.take([Box.around(tip, 8, 8)])
            if self.geometry.width == 2:
                far = self._at_border(start, tip)
                yield f'<path class="ray {hue}" d="{line(tip, far)}"/>'
            turn = atan2(tip[1] - start[1], tip[0] - start[0])
            neck = (tip[0] - 6 * cos(turn), tip[1] - 6 * sin(turn))
            yield f'<path class="arrow {hue}" d="{line(start, neck)}"/>'
            yield f'<path class="head {hue}" d="{arrow_head(tip, turn, 9.0, 4.2)}"/>'

    def _at_border(self, start: Spot, tip: Spot) -> Spot:
        """Where the ray through an arrow leaves the frame."""
        x, y = tip[0] - start[0], tip[1] - start[1]
        ways = []
        if x:
            ways.append(((self.box.right if x > 0 else self.box.left) - start[0]) / x)
        if y:
            ways.append(((self.box.bottom if y > 0 else self.box.top) - start[1]) / y)
        least = max(min(ways), 0.0)
        return start[0] + least * x, start[1] + least * y

    def _arrow_labels(self) -> Iterator[str]:
        start = self._start
        for each, tip in self._arrows_shown:
            wide = 10 + text_width(token_label(each.token), 10.5)
            places = [tip]
            if self.geometry.width == 2:  # or along the ray, where it is free of everything
                far = self._at_border(start, tip)
                for share in (0.0, 0.2, 0.4, 0.6, 0.8):
                    places.append(between(tip, far, share))
            for place in places:
                found = self.room.beside(place, wide, 15, 5)
                if found is not None:
                    text = f'w<tspan class="sub" dy="4">{escape(token_label(each.token))}</tspan>'
                    yield (
                        f'<text class="w label middle c{self._hue(each.id)}"'
                        f" {xy(found)}>{text}</text>"
                    )
                    break

    # ------------------------------------------------------------------ the ways

    @cached_property
    def _segments(self) -> list[list[tuple[Segment, float, str]]]:
        """Each way's lines: how far bent, where several run over one another, and their kind."""
        used: Counter[frozenset[Spot]] = Counter()
        for way in self.ways:
            for one, two in pairwise(way):
                used[frozenset((pixel(one), pixel(two)))] += 1
        there: Counter[tuple[Spot, Spot]] = Counter()
        found: list[list[tuple[Segment, float, str]]] = []
        for path, way in zip(self.geometry.paths, self.ways, strict=True):
            found.append([])
            for stop, one, two in zip(path.stops[1:], way, way[1:], strict=False):
                bow, key = 0.0, (pixel(one), pixel(two))
                if hypot(two[0] - one[0], two[1] - one[1]) < SHORT:
                    continue
                if used[frozenset(key)] > 1:
                    bow = BOW * (1 + there[key])
                    there[key] += 1
                found[-1].append(((one, two), bow, stop.kind))
        return found

    def _ways(self) -> Iterator[str]:
        for segments, strong in zip(self._segments, self.strong, strict=True):
            if not segments:
                continue
            path = "".join(bent(segment, bow) for segment, bow, _kind in segments)
            barbs = "".join(barb(segment, bow) for segment, bow, _kind in segments if strong)
            for (one, two), bow, _kind in segments:
                past = middle((one, two), bow)
                self.room.lines += [(one, past), (past, two)]
            group = "" if strong else ' class="faint"'
            yield f'<g{group}><path class="halo" d="{path}"/><path class="way" d="{path}"/>'
            yield f'<path class="barb" d="{barbs}"/></g>' if barbs else "</g>"

    def _marks(self) -> Iterator[str]:
        for path, way, strong in zip(self.geometry.paths, self.ways, self.strong, strict=True):
            drawn = "".join(
                mark(stop.kind, place) for stop, place in zip(path.stops, way, strict=True)
            )
            ring = ""
            if path.last is not None:
                led = path.last.leads
                hue = "" if led is None or led.id is None else f" c{self._hue(led.id)}"
                ring = f'<circle class="ring{hue}" {circle(way[-1], 8)}/>'
            group = "" if strong else ' class="faint"'
            yield f"<g{group}>{drawn}{ring}</g>"

    def _take_marks(self) -> None:
        for path, way, strong in zip(self.geometry.paths, self.ways, self.strong, strict=True):
            for i, place in enumerate(way):
                last = path.last is not None and i == len(way) - 1
                if strong or last:
                    self.room.take([Box.around(place, 18 if last else 9, 18 if last else 9)])

    def _together(self, places: Sequence[Spot | None], told: Sequence[str]) -> list[list[int]]:
        """The paths whose points lie over each other and would be labelled alike."""
        groups: dict[tuple[Spot, str], list[int]] = {}
        for i, (place, text) in enumerate(zip(places, told, strict=True)):
            if place is not None:
                groups.setdefault((pixel(place), text), []).append(i)
        return list(groups.values())

    def _end_labels(self) -> Iterator[str]:
        """Where a way ends: whose it is and what is predicted there."""
        paths = self.geometry.paths
        ends = [
            way[-1] if way and path.last is not None else None
            for path, way in zip(paths, self.ways, strict=True)
        ]
        told = [end_label(path, self.geometry) for path in paths]
        groups = self._together(ends, told)
        for group in sorted(groups, key=lambda group: -max(group)):  # the last position first
            who = [paths[i] for i in group]
            if any(self.strong[i] for i in group):
                yield from self._label(ends[group[0]], who, told[group[0]], "strong", 13.5, 10)
            else:  # one of many: only where there is room close by
                yield from self._label(ends[group[0]], who, told[group[0]], "", 11.5, 9, rings=2)

    def _start_labels(self) -> Iterator[str]:
        starts = [way[0] if way else None for way in self.ways]
        groups = self._together(starts, [""] * len(starts))
        for group in sorted(groups, key=lambda group: -max(group)):
            if any(self.strong[i] for i in group):
                who = [self.geometry.paths[i] for i in group]
                yield from self._label(starts[group[0]], who, "", "", SIZE, 6)

    def _label(
        self,
        at: Spot | None,
        paths: Sequence[Path],
        more: str,
        kind: str,
        size: float,
        distance: float,
        rings: int = 4,
    ) -> Iterator[str]:
        if at is None:
            return
        shown = list(paths)[-3:]
        plain = (
            ", ".join(token_label(path.token) + "0" * len(str(path.position)) for path in shown)
            + more
        )
        place = self.room.beside(at, text_width(plain, size) + 2, size + 2, distance, rings)
        if place is None:
            return
        text = ", ".join(subscript(token_label(path.token), str(path.position)) for path in shown)
        if hypot(place[0] - at[0], place[1] - at[1]) > text_width(plain, size) / 2 + 26:
            yield f'<path class="leader" d="{line(at, place)}"/>'
        yield (
            f'<text class="label middle {kind}" {xy(place)}>'
            f"{'… ' if len(paths) > 3 else ''}{text}{escape(more)}</text>"
        )

    def _trip_labels(self) -> Iterator[str]:
        """What a line is, along it, where there is room: else its mark and the legend say so."""
        words = kinds(self.geometry)
        outermost: dict[tuple[Spot, Spot, str], tuple[Segment, float, str]] = {}
        for segments, strong in zip(self._segments, self.strong, strict=True):
            for segment, bow, kind in segments if strong else ():
                outermost[(pixel(segment[0]), pixel(segment[1]), kind)] = segment, bow, kind
        for segment, bow, kind in outermost.values():
            text = words[kind]
            found = self.room.along(segment, text_width(text, 11), 11, bow)
            if found is not None:
                place, slope = found
                yield (
                    f'<text class="label trip middle" transform="translate({place[0]:.1f}'
                    f' {place[1]:.1f}) rotate({degrees(slope):.1f})">{escape(text)}</text>'
                )
