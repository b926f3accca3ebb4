"""A report on scored texts, or a survey, as its own page in the look of a book; no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.html.explanation_page import section_lines
from byhand.document.media.html.markup import Markup, element, opening
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.prose import prose
from byhand.document.media.html.standalone import Frame
from byhand.document.media.html.tables import facts
from byhand.document.parts import Section, Title
from byhand.language import _

STYLES = ("book.css", "explained.css", "score.css")


def page(title: Title, sections: Sequence[Section], pen: Inscriber, name: str, command: str) -> str:
    """The whole page; `name` is that of the window, `command` what made it."""
    skip = (sections[0].name, _("to the first section"))
    return Frame(name, STYLES, skip, kind="no-script").page(_body(title, sections, pen, command))


def _body(title: Title, sections: Sequence[Section], pen: Inscriber, command: str) -> Iterator[str]:
    yield opening("main", id="main") + opening("header", class_="chapter")
    yield element("p", command, class_="kicker")
    yield element("h1", title.name)
    if title.about:
        yield element("p", prose(title.about), class_="intro")
    yield facts(title.facts)
    links = [element("li", element("a", s.title, href=f"#{s.name}")) for s in sections]
    yield element("nav", element("ol", *links), class_="sections", aria_label=_("sections"))
    yield Markup("</header>")
    for section in sections:
        yield from section_lines(section, pen)
    yield Markup("</main>")
