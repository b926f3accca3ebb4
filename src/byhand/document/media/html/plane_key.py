"""The legend of the plane: regions, signs, arrows, and the notes below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import TYPE_CHECKING

from byhand.document.media.html.label_places import text_width
from byhand.document.media.html.plane_words import about, kinds
from byhand.document.media.html.shapes import arrow_head, circle, mark
from byhand.document.words import token_label
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry
    from byhand.explaining.planes import Plane

ROW, NOTE_ROW = 19, 15  # from line to line
SIZE, NOTE_SIZE = 11.5, 11.0  # of letters
COLUMNS = 4
SIGN_WIDE = 24  # a sign and the room behind it
MOST_TIED = 3  # tokens of one region that are named
MOST_REGIONS = 8  # that are named


@dataclass(frozen=True)
class Key:
    """A legend in the making: the figure's ids begin with `name`, `hue` is a token's colour."""

    geometry: Geometry
    plane: Plane
    name: str
    hue: Callable[[int], int]
    arrows: bool

    def drawn(self, left: float, right: float, top: float) -> tuple[str, float]:
        """The legend between two sides, and where it ends."""
        column = (right - left) / COLUMNS
        made: list[str] = []
        x, y = left, top
        for sign, text in (*self._regions(), *self._marks()):
            wide = column * ceil((SIGN_WIDE - 2 + text_width(text, SIZE)) / column)
            if x > left and x + wide > right + 1:
                x, y = left, y + ROW
            made.append(
                f'<g transform="translate({x:.0f} {y:.0f})">{sign}'
                f'<text x="{SIGN_WIDE}" y="0">{escape(text)}</text></g>'
            )
            x += wide
        y += ROW + 2
        for line in about(self.geometry, self.plane, (right - left) / (NOTE_SIZE / 2)):
            made.append(f'<text class="note" x="{left}" y="{y:.0f}">{escape(line)}</text>')
            y += NOTE_ROW
        return f'<g class="key">{"".join(made)}</g>', y

    def _regions(self) -> Iterator[tuple[str, str]]:
        for region in self.plane.regions[:MOST_REGIONS]:
            hue = self.hue(region.token)
            ids = region.tied or (region.token,)
            names = ", ".join(token_label(self.geometry.trace.token(id)) for id in ids[:MOST_TIED])
            place = 'x="0" y="-7" width="18" height="14"'
            sign = (
                f'<rect class="tint c{hue}" {place}/><rect class="edge" {place}/>'
                f'<rect fill="url(#{self.name}-h{hue})" {place}/>'
            )
            yield sign, _("{token} wins").format(token=names)

    def _marks(self) -> Iterator[tuple[str, str]]:
        there = kinds(self.geometry)
        for text, kind in {text: kind for kind, text in there.items()}.items():
            yield mark(kind, (9.0, 0.0)), text
        if any(path.last is not None for path in self.geometry.paths):
            sign = f'<circle class="ring" {circle((9.0, 0.0), 6.5)}/>'
            yield sign, _("the end, read by the head")
        if self.arrows:
            head = arrow_head((18.0, 0.0), 0.0, 9.0, 4.2)
            sign = f'<path class="arrow" d="M0 0H11"/><path class="head" d="{head}"/>'
            yield f'<g class="c7">{sign}</g>', _("direction of a token (its row of the head)")
