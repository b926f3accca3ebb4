"""Notebook cells: pieces of HTML that bring their own style and need no script and no ids.

The style reaches nothing else on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from byhand.document import palette
from byhand.document.book import Spine
from byhand.document.mathematics import by_decimals
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
    """Numbers without anything behind them: a page may hold many traces, and ids would clash."""

    def here(self, address: str) -> None:
        """No id: no address leads here."""

    def placed(self, number: Number, tag: str, shown: Markup) -> Markup:
        """What is shown of a number, with its address in words."""
        flat = element("span", shown, class_="flat")
        return element(tag, flat, class_=f"n {number.cell.register}", title=number.address)


def cell(
    parts: Iterable[Part | Section],
    calls: Iterable[tuple[str, str]],
    spine: Spine,
    labels: tuple[str, ...],
    asked: tuple[str, ...] = (),
) -> Markup:
    """A trace: parts, what to call next, and beside them the figure with what was asked for."""
    finite = by_decimals(n.cell for node in spine.nodes for row in node.rows for n in row.numbers)
    pen = Plain(Mathml(_("."), finite=finite))
    figures = Figures(spine, labels, finite)
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
    """A piece with its style, in the language spoken."""
    sheet = element("style", Markup(style(*sheets)))
    return element("div", sheet, joined(inside, "\n"), class_="byhand", lang=spoken())


@cache
def style(*sheets: str) -> str:
    """The style of a piece: of the book's, what it uses, and what notebooks need beside it; the
    named sheets too.

    Everything is nested in one rule, so it reaches nothing outside the piece.
    """
    book = text_of("book.css")
    named = dict(re.findall(r"/\* ---- (.*?) \*/\n(.*?)(?=\n/\* ----|\n@media|\Z)", book, re.S))
    shared = "\n".join((*(named[name] for name in SECTIONS), *map(text_of, sheets)))
    fonts = re.findall(r":root \{\n(.*?)\n\}", book, re.S)[0]
    light = "color-scheme: light dark; " + properties(palette.LIGHT) + fonts
    whole = text_of("notebook.css").replace("/* light */", light)
    whole = whole.replace("/* dark */", properties(palette.DARK))
    return re.sub(r"\s*\n\s*", "\n", whole.replace("/* shared */", shared)).strip()
