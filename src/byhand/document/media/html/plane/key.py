"""The legend of a plane: regions, signs, arrows, and the notes below them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from textwrap import wrap

from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.plane.shapes import arrow_head, circle, mark, path, rectangle
from byhand.document.media.html.plane.sheet import Box, Sheet, hue, text_width
from byhand.language import _

ROW, NOTE_ROW = 19, 15  # line heights
SIZE, NOTE_SIZE = 11.5, 11.0  # of letters
COLUMNS = 4
SIGN_WIDE = 24  # width of a sign and its gap
SAMPLE = Box(0, -7, 18, 7)  # of a region
MOST_REGIONS = 8  # that are named


@dataclass(frozen=True)
class Key:
    """A legend being drawn."""

    sheet: Sheet
    arrows: bool

    def drawn(self, left: float, right: float, top: float) -> tuple[Markup, float]:
        """The legend between two sides, and its lower end."""
        column = (right - left) / COLUMNS
        made: list[Markup] = []
        x, y = left, top
        for sign, said in (*self._regions(), *self._marks()):
            wide = column * ceil((SIGN_WIDE - 2 + text_width(said, SIZE)) / column)
            if x > left and x + wide > right + 1:
                x, y = left, y + ROW
            words = element("text", said, x=SIGN_WIDE, y=0)
            made.append(element("g", sign, words, transform=f"translate({x:.0f} {y:.0f})"))
            x += wide
        y += ROW + 2
        for line in wrap(" ".join(self.sheet.part.notes), int((right - left) / (NOTE_SIZE / 2))):
            made.append(element("text", line, class_="note", x=left, y=f"{y:.0f}"))
            y += NOTE_ROW
        return element("g", *made, class_="key"), y

    def _regions(self) -> Iterator[tuple[Markup, str]]:
        for region in self.sheet.part.regions[:MOST_REGIONS]:
            own = hue(region.colour)
            hatched = element("g", rectangle(SAMPLE), fill=f"url(#{self.sheet.name}-{own})")
            sign = rectangle(SAMPLE, f"tint {own}") + rectangle(SAMPLE, "edge") + hatched
            yield sign, _("{token} wins").format(token=region.name)

    def _marks(self) -> Iterator[tuple[Markup, str]]:
        there = self.sheet.part.kinds
        for said, kind in {said: kind for kind, said in there.items()}.items():
            yield mark(kind, (9.0, 0.0)), said
        if any(way.whole for way in self.sheet.part.ways):
            yield circle("ring", (9.0, 0.0), 6.5), _("the end, read by the head")
        if self.arrows:
            head = arrow_head((18.0, 0.0), 0.0, 9.0, 4.2)
            sign = element("g", path("arrow", "M0 0H11"), path("head", head), class_="c7")
            yield sign, _("direction of a token (its row of the head)")
