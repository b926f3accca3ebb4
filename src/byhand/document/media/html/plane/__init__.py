"""A plane of the stream as a figure: winning regions, token directions, each position's path.

It is one self-contained SVG, with styles for light, dark and paper.  Regions have a pattern and a
letter as well as a colour; a title and a description give the same in words.  The part has all
numbers and words; here they are placed on a `sheet`: first the `ground`, then the `ways`, and the
`key` below.
"""

from __future__ import annotations

from collections.abc import Mapping

from byhand.document import palette
from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.plane.ground import Ground
from byhand.document.media.html.plane.key import Key
from byhand.document.media.html.plane.shapes import rectangle
from byhand.document.media.html.plane.sheet import BELOW, LEFT, RIGHT, TOP, WIDE, Sheet
from byhand.document.media.html.plane.ways import Ways
from byhand.document.media.html.style import properties, text_of
from byhand.document.parts import Drawing

GROUNDS = ("ink", "quiet", "line", "paper")


def figure(part: Drawing) -> Markup:
    """The drawing as an SVG element that needs nothing else.

    Room is allotted in the order of drawing: lines, arrows, marks, and then names.
    """
    sheet, name = Sheet(part), part.name
    ground, ways = Ground(sheet), Ways(sheet)
    lines = list(ways.lines())
    arrows = list(ground.arrows())
    ways.take_marks()
    labels = [*ways.end_labels(), *ways.start_labels(), *ground.arrow_labels()]
    trips = list(ways.trip_labels())
    sheet.room.lines += ground.thin()
    letters = list(ground.letters())
    key = Key(sheet, arrows=bool(ground.arrows_shown))
    legend, below = key.drawn(LEFT, WIDE - RIGHT, TOP + sheet.high + BELOW)
    clip = element("clipPath", rectangle(sheet.box), id=f"{name}-frame")
    framed = f"url(#{name}-frame)"
    return element(
        "svg",
        element("title", part.title, id=f"{name}-title"),
        element("desc", part.about, id=f"{name}-about"),
        element("style", Markup(style())),
        element("defs", clip, *ground.hatches()),
        element("g", *ground.regions(), clip_path=framed),
        joined((*ground.axes(), *letters)),
        element("g", *arrows, clip_path=framed),
        joined((*lines, *ways.marks(), *trips, *labels, legend)),
        class_="plane",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=f"0 0 {WIDE} {below:.0f}",
        aria_labelledby=f"{name}-title {name}-about",
    )


def style() -> str:
    """The style of the figures, which each of them carries."""
    own = text_of("plane/plane.css").replace("/* print */", properties(_named(palette.PRINTED)))
    for case, colours in (("light", palette.LIGHT), ("dark", palette.DARK)):
        own = own.replace(f"/* {case} */", properties(_named(colours, of_page=True)))
    return own


def _named(colours: Mapping[str, str], *, of_page: bool = False) -> dict[str, str]:
    """The colours that a figure uses; the page's own take precedence."""
    grounds = {f"p-{name}": colours[name] for name in GROUNDS}
    if of_page:
        grounds = {f"p-{name}": f"var(--{name}, {colours[name]})" for name in GROUNDS}
    return grounds | {name: colour for name, colour in colours.items() if name.startswith("hue")}
