"""The plane as a figure: who wins where, the tokens' directions, and the way of each position.

One self-contained SVG for each plane of a Geometry: its style goes with it, light, dark and on
paper; regions have a pattern and a letter as well as a colour; a title and a description say the
same in words.  Numbers come from `explaining.geometry`; here they only find their place: on a
`plane_sheet`, the `plane_ground` first, then the `plane_ways`.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from byhand.document import palette
from byhand.document.media.html.plane_ground import Ground
from byhand.document.media.html.plane_key import Key
from byhand.document.media.html.plane_sheet import BELOW, LEFT, RIGHT, TOP, WIDE, Sheet
from byhand.document.media.html.plane_ways import Ways
from byhand.document.media.html.plane_words import description
from byhand.document.media.html.shapes import rectangle
from byhand.document.media.html.style import properties, text_of
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry

GROUNDS = ("ink", "quiet", "line", "paper")


def figures(geometry: Geometry, name: str = "plane") -> list[str]:
    """The figure of each plane, as an SVG element that needs nothing else."""
    planes = geometry.planes
    return [
        _drawn(Sheet(geometry, plane, name if len(planes) == 1 else f"{name}-{i}"))
        for i, plane in enumerate(planes)
    ]


def style() -> str:
    """The style of the figures, which each of them carries."""
    own = text_of("plane.css").replace("/* print */", properties(_named(palette.PRINTED)))
    for case, colours in (("light", palette.LIGHT), ("dark", palette.DARK)):
        own = own.replace(f"/* {case} */", properties(_named(colours, of_page=True)))
    return own


def _named(colours: Mapping[str, str], *, of_page: bool = False) -> dict[str, str]:
    """The colours that a figure uses; those of the page around it go before its own."""
    grounds = {f"p-{name}": colours[name] for name in GROUNDS}
    if of_page:
        grounds = {f"p-{name}": f"var(--{name}, {colours[name]})" for name in GROUNDS}
    return grounds | {name: colour for name, colour in colours.items() if name.startswith("hue")}


def _drawn(sheet: Sheet) -> str:
    """What is drawn first takes its room first: lines, arrows, marks, and then names."""
    geometry, plane, name = sheet.geometry, sheet.plane, sheet.name
    ground, ways = Ground(sheet), Ways(sheet)
    lines = list(ways.lines())
    arrows = list(ground.arrows())
    ways.take_marks()
    labels = "".join((*ways.end_labels(), *ways.start_labels(), *ground.arrow_labels()))
    trips = "".join(ways.trip_labels())
    sheet.room.lines += ground.thin()
    letters = "".join(ground.letters())
    key = Key(geometry, plane, name, sheet.hue, bool(ground.arrows_shown))
    legend, below = key.drawn(LEFT, WIDE - RIGHT, TOP + sheet.high + BELOW)
    clip = f'<clipPath id="{name}-frame"><rect {rectangle(sheet.box)}/></clipPath>'
    title, told = escape(_title(geometry)), escape(description(geometry, plane))
    return (
        f'<svg class="plane" xmlns="http://www.w3.org/2000/svg" role="img"'
        f' viewBox="0 0 {WIDE} {below:.0f}"'
        f' aria-labelledby="{name}-title {name}-about">'
        f'<title id="{name}-title">{title}</title>'
        f'<desc id="{name}-about">{told}</desc>'
        f"<style>{style()}</style><defs>{clip}{''.join(ground.hatches())}</defs>"
        f'<g clip-path="url(#{name}-frame)">{"".join(ground.regions())}</g>'
        f"{''.join(ground.axes())}{letters}"
        f'<g clip-path="url(#{name}-frame)">{"".join(arrows)}</g>'
        f"{''.join(lines)}{''.join(ways.marks())}{trips}{labels}{legend}</svg>"
    )


def _title(geometry: Geometry) -> str:
    trace = geometry.trace
    text = _("The stream of {model} with the way of {text}, seen in two dimensions")
    if geometry.width == 2:
        text = _("The plane of {model} with the way of {text}")
    return text.format(model=trace.model.name, text=trace.text)
