"""The ground of a plane: the winning regions, the axes, and the token directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import atan2, cos, hypot, sin

from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.plane.shapes import (
    arrow_head,
    between,
    closed,
    extent,
    line,
    path,
    rectangle,
    text,
)
from byhand.document.media.html.plane.sheet import (
    LEFT,
    RIGHT,
    TOP,
    WIDE,
    Box,
    Sheet,
    hue,
    roomiest,
    text_width,
)
from byhand.document.media.outlines import Segment, multiples, tick
from byhand.document.numerals import decimal
from byhand.document.parts.drawn import Spot, TokenArrow, WonRegion

MOST_ARROWS = 6  # of a projection

# one pattern for each hue, so that regions differ in black and white
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


@dataclass
class Ground:
    """Everything below the paths."""

    sheet: Sheet

    def hatches(self) -> Iterator[Markup]:
        """The pattern of each colour that a region has."""
        for own in sorted({hue(region.colour) for region in self.sheet.part.regions}):
            dots = {"stroke_linecap": "round", "style": "stroke-width:2.2"} if own == "c1" else {}
            yield element(
                "pattern",
                element("path", d=HATCHES[int(own[1:])], **dots),
                id=f"{self.sheet.name}-{own}",
                class_=f"hatch {own}",
                width=10,
                height=10,
                patternUnits="userSpaceOnUse",
            )

    def _outline(self, region: WonRegion) -> list[list[Spot]]:
        return [[self.sheet.at(*place) for place in line] for line in region.outlines]

    def regions(self) -> Iterator[Markup]:
        """Each region in its colour and its pattern, then their edges."""
        edges = []
        for region in self.sheet.part.regions:
            own = hue(region.colour)
            around = "".join(closed(line) for line in self._outline(region))
            yield element("path", class_=f"tint {own}", fill_rule="evenodd", d=around)
            fill = f"url(#{self.sheet.name}-{own})"
            yield element("path", fill=fill, fill_rule="evenodd", d=around)
            edges.append(path("edge", around))
        yield from edges

    def thin(self) -> list[Segment]:
        """The axes and the rays, which a label may cover but a region's letter should not."""
        x, y = self.sheet.at(0.0, 0.0)
        axes = [((x, TOP), (x, TOP + self.sheet.high)), ((LEFT, y), (WIDE - RIGHT, y))]
        rays = [(tip, self._at_border(self._start, tip)) for _each, tip in self.arrows_shown]
        return [*axes, *rays] if self.sheet.part.dimensions == 2 else axes

    def letters(self) -> Iterator[Markup]:
        """The name of each region, large, where there is most room."""
        for region in self.sheet.part.regions:
            outlines = sorted(self._outline(region), key=extent)
            named = region.name
            for size in (34.0, 24.0, 17.0):
                wide = text_width(named, size) * 1.1
                place = roomiest(outlines[-1], self.sheet.room, wide + 4, size)
                if place is not None:
                    kind = f"letter {hue(region.colour)}"
                    yield text(kind, place, named, font_size=f"{size:.0f}")
                    break

    def axes(self) -> Iterator[Markup]:
        """The axes through 0, the border with its ticks and numbers, and the names of the axes."""
        box, part = self.sheet.box, self.sheet.part
        x, y = self.sheet.at(0.0, 0.0)
        if box.left < x < box.right:
            yield path("axis", f"M{x:.1f} {box.top}V{box.bottom:.1f}")
        if box.top < y < box.bottom:
            yield path("axis", f"M{box.left} {y:.1f}H{box.right}")
        yield rectangle(box, "border")
        unit = tick(max(part.size))
        for number in multiples(part.lower[0], part.upper[0], unit):
            x = self.sheet.at(number, 0.0)[0]
            yield path("tick", f"M{x:.1f} {box.bottom:.1f}v4")
            yield text("number middle", (x, box.bottom + 12), decimal(number, unit))
        for number in multiples(part.lower[1], part.upper[1], unit):
            y = self.sheet.at(0.0, number)[1]
            yield path("tick", f"M{box.left} {y:.1f}h-4")
            yield text("number end", (box.left - 6, y), decimal(number, unit))
        across, up = part.axes
        yield text("name end", (box.right, box.bottom + 27), across)
        if len(up) <= 3:
            yield text("name", (4, box.top + 2), up)
        else:
            turned = f"translate(7 {box.top}) rotate(-90)"
            yield element("text", up, class_="name end", transform=turned)

    # ------------------------------------------------------------------ directions

    @property
    def _start(self) -> Spot:
        """Where directions are drawn from: the zero vector; in a projection, the middle of it."""
        part = self.sheet.part
        return self.sheet.at(*(part.origin if part.dimensions <= 3 else (0.0, 0.0)))

    def _tips(self) -> list[Spot]:
        """Where the arrows end.  In up to three dimensions they are to scale."""
        x, y = self._start
        factor, along = self.sheet.scale, [arrow.along for arrow in self.sheet.part.arrows]
        if self.sheet.part.dimensions > 3:
            longest = max((hypot(*arrow) for arrow in along), default=0.0)
            factor = 0.3 * (WIDE - LEFT - RIGHT) / longest if longest else 0.0
        return [(x + a * factor, y - b * factor) for a, b in along]

    @cached_property
    def arrows_shown(self) -> list[tuple[TokenArrow, Spot]]:
        """The directions that can be seen; in a projection the longest few."""
        x, y = self._start
        tips = self._tips()
        long = [hypot(tip[0] - x, tip[1] - y) for tip in tips]
        least = 4.0
        if self.sheet.part.dimensions > 3 and len(tips) > MOST_ARROWS:
            least = max(least, sorted(long)[-MOST_ARROWS])
        each = zip(self.sheet.part.arrows, tips, long, strict=True)
        return [(arrow, tip) for arrow, tip, size in each if size >= least]

    def arrows(self) -> Iterator[Markup]:
        """The arrows; in two dimensions, each with the ray beyond its tip."""
        start = self._start
        for each, tip in self.arrows_shown:
            own = hue(each.colour)
            self.sheet.room.lines.append((start, tip))
            self.sheet.room.take([Box.around(tip, 8, 8)])
            if self.sheet.part.dimensions == 2:
                yield path(f"ray {own}", line(tip, self._at_border(start, tip)))
            turn = atan2(tip[1] - start[1], tip[0] - start[0])
            neck = (tip[0] - 6 * cos(turn), tip[1] - 6 * sin(turn))
            yield path(f"arrow {own}", line(start, neck))
            yield path(f"head {own}", arrow_head(tip, turn, 9.0, 4.2))

    def _at_border(self, start: Spot, tip: Spot) -> Spot:
        """The point where the ray through an arrow leaves the frame."""
        x, y = tip[0] - start[0], tip[1] - start[1]
        ways = []
        if x:
            ways.append(((self.sheet.box.right if x > 0 else self.sheet.box.left) - start[0]) / x)
        if y:
            ways.append(((self.sheet.box.bottom if y > 0 else self.sheet.box.top) - start[1]) / y)
        least = max(min(ways), 0.0)
        return start[0] + least * x, start[1] + least * y

    def arrow_labels(self) -> Iterator[Markup]:
        """The name of each direction, if there is room."""
        start = self._start
        for each, tip in self.arrows_shown:
            wide = 10 + text_width(each.token, 10.5)
            places = [tip]
            if self.sheet.part.dimensions == 2:  # or along the ray, where it is free of everything
                far = self._at_border(start, tip)
                places += [between(tip, far, share) for share in (0.0, 0.2, 0.4, 0.6, 0.8)]
            for place in places:
                found = self.sheet.room.beside(place, wide, 15, 5)
                if found is not None:
                    below = element("tspan", each.token, class_="sub", dy=4)
                    yield text(f"w label middle {hue(each.colour)}", found, "w", below)
                    break
