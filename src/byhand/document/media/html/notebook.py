"""Notebook cells: self-contained HTML with its own style, without scripts or ids.

The style affects nothing else on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from byhand.document import palette
from byhand.document.book import Spine
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.parts import draw
from byhand.document.media.html.style import properties, text_of
from byhand.document.parts import Number, Part, Section
from byhand.language import _, spoken

SCALE = 1.1  # of the figure
SECTIONS = (  # of the book's style
    "formulas",
    "tables of numbers",
    "the figure of the whole pass",
    "other tables",
)


class Plain(Inscriber):
    """Numbers without popovers: a page may hold many traces, and ids would clash."""

    def here(self, address: str) -> None:
        """None: no link leads to an address here."""

    def placed(self, number: Number, tag: str, shown: Markup) -> Markup:
        """The visible number, with its address as its title."""
        flat = element("span", shown, class_="flat")
        return element(tag, flat, class_=f"n {number.cell.register}", title=number.address)


def cell(
    parts: Iterable[Part | Section],
    calls: Iterable[tuple[str, str]],
    spine: Spine,
    labels: tuple[str, ...],
    asked: tuple[str, ...] = (),
    *,
    decimals: bool = False,
) -> Markup:
    """A trace: parts, further calls, and beside them the figure with the requested steps."""
    pen = Plain(Mathml(_("."), finite=decimals))
    figures = Figures(spine, labels, decimals)
    drawn = (piece for part in parts for piece in draw(part, pen))
    listed = (
        element("div", element("dt", element("code", code)), element("dd", about))
        for code, about in calls
    )
    caption = element("figcaption", element("i", class_="swatch"), _("asked for")) if asked else ""
    return framed(
        element(
            "div",
            element("div", *drawn, element("dl", *listed, class_="next"), class_="text"),
            element(
                "figure",
                figures.inline(asked),
                caption,
                class_="whole",
                style=f"--figure:{round(figures.width * SCALE)}px",
            ),
            class_="passage",
        )
    )


def framed(*inside: str, sheets: tuple[str, ...] = ()) -> Markup:
    """A piece with its style, in the current language."""
    sheet = element("style", Markup(style(*sheets)))
    return element("div", sheet, joined(inside, "\n"), class_="byhand", lang=spoken())


@cache
def style(*sheets: str) -> str:
    """The style of a piece: the parts of the book's style that it uses, and the named sheets.

    Everything is nested in one rule, so it affects nothing outside the piece.
    """
    book = text_of("book.css")
    named = dict(re.findall(r"/\* ---- (.*?) \*/\n(.*?)(?=\n/\* ----|\n@media|\Z)", book, re.S))
    shared = "\n".join((*(named[name] for name in SECTIONS), *map(text_of, sheets)))
    fonts = re.findall(r":root \{\n(.*?)\n\}", book, re.S)[0]
    light = "color-scheme: light dark; " + properties(palette.LIGHT) + fonts
    whole = text_of("notebook.css").replace("/* light */", light)
    whole = whole.replace("/* dark */", properties(palette.DARK))
    return re.sub(r"\s*\n\s*", "\n", whole.replace("/* shared */", shared)).strip()
