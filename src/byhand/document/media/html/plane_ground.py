"""The ground of a plane: who wins where, the axes, and the tokens' directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from html import escape
from math import atan2, cos, hypot, sin
from typing import TYPE_CHECKING

from byhand.document.media.html.label_places import Box, Segment, Spot, roomiest, text_width
from byhand.document.media.html.plane_sheet import LEFT, RIGHT, TOP, WIDE, Sheet
from byhand.document.media.html.plane_words import axis_names, decimal
from byhand.document.media.html.shapes import (
    arrow_head,
    between,
    closed,
    extent,
    line,
    multiples,
    rectangle,
    tick,
    xy,
)
from byhand.document.words import token_label

if TYPE_CHECKING:
    from byhand.explaining.geometry import Direction
    from byhand.explaining.regions import Region

MOST_ARROWS = 6  # of a projection

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


@dataclass
class Ground:
    """What lies below the ways."""

    sheet: Sheet

    def hatches(self) -> Iterator[str]:
        for hue in sorted({self.sheet.hue(region.token) for region in self.sheet.plane.regions}):
            cap = ' stroke-linecap="round" style="stroke-width:2.2"' if hue == 1 else ""
            yield (
                f'<pattern id="{self.sheet.name}-h{hue}" class="hatch c{hue}"'
                ' width="10" height="10" patternUnits="userSpaceOnUse">'
                f'<path d="{HATCHES[hue]}"{cap}/></pattern>'
            )

    def _outline(self, region: Region) -> list[list[Spot]]:
        return [[self.sheet.at(float(x), float(y)) for x, y in line] for line in region.outlines]

    def regions(self) -> Iterator[str]:
        for region in self.sheet.plane.regions:
            path = "".join(closed(line) for line in self._outline(region))
            hue = self.sheet.hue(region.token)
            yield f'<path class="tint c{hue}" fill-rule="evenodd" d="{path}"/>'
            yield f'<path fill="url(#{self.sheet.name}-h{hue})" fill-rule="evenodd" d="{path}"/>'
        for region in self.sheet.plane.regions:
            path = "".join(closed(line) for line in self._outline(region))
            yield f'<path class="edge" d="{path}"/>'

    def thin(self) -> list[Segment]:
        """The axes and the rays: a label may lie over them, a region's letter should not."""
        x, y = self.sheet.at(0.0, 0.0)
        axes = [((x, TOP), (x, TOP + self.sheet.high)), ((LEFT, y), (WIDE - RIGHT, y))]
        rays = [(tip, self._at_border(self._start, tip)) for _each, tip in self.arrows_shown]
        return [*axes, *rays] if self.sheet.geometry.width == 2 else axes

    def letters(self) -> Iterator[str]:
        """The name of each region, large, where there is most room."""
        for region in self.sheet.plane.regions:
            outlines = sorted(self._outline(region), key=extent)
            ids = region.tied or (region.token,)
            text = ", ".join(token_label(self.sheet.geometry.trace.token(id)) for id in ids[:3])
            for size in (34.0, 24.0, 17.0):
                wide = text_width(text, size) * 1.1
                place = roomiest(outlines[-1], self.sheet.room, wide + 4, size)
                if place is not None:
                    yield (
                        f'<text class="letter c{self.sheet.hue(region.token)}"'
                        f' font-size="{size:.0f}" {xy(place)}>{escape(text)}</text>'
                    )
                    break

    def axes(self) -> Iterator[str]:
        left, top, right, bottom = (
            self.sheet.box.left, self.sheet.box.top, self.sheet.box.right, self.sheet.box.bottom
        )  # fmt: skip
        x, y = self.sheet.at(0.0, 0.0)
        if left < x < right:
            yield f'<path class="axis" d="M{x:.1f} {top}V{bottom:.1f}"/>'
        if top < y < bottom:
            yield f'<path class="axis" d="M{left} {y:.1f}H{right}"/>'
        yield f'<rect class="border" {rectangle(self.sheet.box)}/>'
        frame = self.sheet.plane.frame
        unit = tick(max(float(frame.width), float(frame.height)))
        for number in multiples(float(frame.left), float(frame.right), unit):
            x = self.sheet.at(number, 0.0)[0]
            yield f'<path class="tick" d="M{x:.1f} {bottom:.1f}v4"/>'
            yield (
                f'<text class="number middle" x="{x:.1f}" y="{bottom + 12:.1f}">'
                f"{decimal(number, unit)}</text>"
            )
        for number in multiples(float(frame.bottom), float(frame.top), unit):
            y = self.sheet.at(0.0, number)[1]
            yield f'<path class="tick" d="M{left} {y:.1f}h-4"/>'
            text = decimal(number, unit)
            yield f'<text class="number end" x="{left - 6}" y="{y:.1f}">{text}</text>'
        across, up = axis_names(self.sheet.plane)
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
        return self.sheet.at(
            *(self.sheet.plane.origin if self.sheet.geometry.width <= 3 else (0.0, 0.0))
        )

    def _tips(self) -> list[Spot]:
        """Where the arrows end.  In up to three dimensions they are to scale."""
        x, y = self._start
        factor = self.sheet.scale
        if self.sheet.geometry.width > 3:
            longest = max((hypot(*arrow) for arrow in self.sheet.plane.arrows), default=0.0)
            factor = 0.3 * (WIDE - LEFT - RIGHT) / longest if longest else 0.0
        return [(x + a * factor, y - b * factor) for a, b in self.sheet.plane.arrows]

    @cached_property
    def arrows_shown(self) -> list[tuple[Direction, Spot]]:
        """The directions that can be seen; in a projection the longest few."""
        x, y = self._start
        tips = list(zip(self.sheet.geometry.directions, self._tips(), strict=True))
        long = {each.id: hypot(tip[0] - x, tip[1] - y) for each, tip in tips}
        least = 4.0
        if self.sheet.geometry.width > 3 and len(tips) > MOST_ARROWS:
            least = max(least, sorted(long.values())[-MOST_ARROWS])
        return [(each, tip) for each, tip in tips if long[each.id] >= least]

    def arrows(self) -> Iterator[str]:
        start = self._start
        for each, tip in self.arrows_shown:
            hue = f"c{self.sheet.hue(each.id)}"
            self.sheet.room.lines.append((start, tip))
            self.sheet.room.take([Box.around(tip, 8, 8)])
            if self.sheet.geometry.width == 2:
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
            ways.append(((self.sheet.box.right if x > 0 else self.sheet.box.left) - start[0]) / x)
        if y:
            ways.append(((self.sheet.box.bottom if y > 0 else self.sheet.box.top) - start[1]) / y)
        least = max(min(ways), 0.0)
        return start[0] + least * x, start[1] + least * y

    def arrow_labels(self) -> Iterator[str]:
        start = self._start
        for each, tip in self.arrows_shown:
            wide = 10 + text_width(token_label(each.token), 10.5)
            places = [tip]
            if self.sheet.geometry.width == 2:  # or along the ray, where it is free of everything
                far = self._at_border(start, tip)
                for share in (0.0, 0.2, 0.4, 0.6, 0.8):
                    places.append(between(tip, far, share))
            for place in places:
                found = self.sheet.room.beside(place, wide, 15, 5)
                if found is not None:
                    text = f'w<tspan class="sub" dy="4">{escape(token_label(each.token))}</tspan>'
                    yield (
                        f'<text class="w label middle c{self.sheet.hue(each.id)}"'
                        f" {xy(found)}>{text}</text>"
                    )
                    break
