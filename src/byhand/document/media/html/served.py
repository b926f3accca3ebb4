"""The served page's own pieces: clickable numbers, a working, the map, a page to download."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence

from byhand.document.book import Book, Passage, Spine
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.page import EXPLAINED, pages
from byhand.document.media.html.parts import draw
from byhand.document.media.html.passages import passage_body
from byhand.document.parts import Number, Part
from byhand.expression import Expression
from byhand.language import _

ONE_PAGE = EXPLAINED  # the chapter whose styles cover those of all chapters
MOST_SHOWN = 60_000  # characters of a model file printed on a page


class _Touchable(Inscriber):
    """Numbers as buttons; the page asks for their workings when they are clicked."""

    def placed(self, number: Number, tag: str, shown: Markup) -> Markup:
        """The visible number, as a button."""
        address = number.address
        button = element("button", shown, type="button", data_a=address, title=address)
        return element(tag, button, class_=f"n {number.cell.register}", data_a=address)


def passage(told: Passage, *, decimals: bool) -> Markup:
    """A passage with clickable numbers; with `decimals`, exact numbers are decimals."""
    pen = _Touchable(Mathml(_("."), finite=decimals))
    return joined((line for line in passage_body(told, pen) if line), "\n")


def working(number: Number, *, decimals: bool) -> Markup:
    """The working and the forms of a number."""
    pen = Inscriber(Mathml(_("."), finite=decimals))
    return joined(pen.told(number, number.address))


def line(tree: Expression) -> Markup:
    """A line to be worked out, in short names."""
    return Mathml(_(".")).broken("=", tree)


def parts(shown: Iterable[Part]) -> Markup:
    """Parts of a document, without numbers to click."""
    pen = Inscriber(Mathml(_("."), finite=True))
    return joined(piece for part in shown for piece in draw(part, pen))


def map_of(
    spine: Spine,
    labels: Sequence[str],
    links: Mapping[str, str],
    lit: tuple[str, ...],
    *,
    decimals: bool,
) -> Markup:
    """The whole pass as a drawing with some steps marked; each station is a link."""
    return Figures(spine, tuple(labels), decimals).linked(links, lit)


def single_page(book: Book, name: str, text: str) -> str:
    """A book of one page as a file that needs no other, with the model file at its end."""
    html = pages(book)[f"{ONE_PAGE}.html"]
    # The other files of a book are absent, so links to them lead to the top.
    html = re.sub(r'href="[a-z]+\.html(#[^"]*)?"', 'href="#main"', html)
    return html.replace("</main>", f"{_model_file(name, text)}</main>", 1)


def _model_file(name: str, text: str) -> Markup:
    """The model file: to read if it is short, and to download."""
    data = "data:application/yaml;base64," + b64encode(text.encode()).decode()
    about = _("Everything on this page follows from this file; byhand opens it.")
    return element(
        "section",
        element("h2", _("The model file"), id="model-file-title"),
        element("p", about, " ", element("a", name, download=name, href=data)),
        element("pre", text) if len(text) <= MOST_SHOWN else "",
        id="model-file",
        tabindex=-1,
        aria_labelledby="model-file-title",
    )
