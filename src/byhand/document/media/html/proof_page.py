"""The report of a proof as its own page, in the look of a book; it has no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.html.explanation_page import section_lines
from byhand.document.media.html.markup import Markup, element, opening
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.proofs import answer
from byhand.document.media.html.prose import prose
from byhand.document.media.html.standalone import Frame
from byhand.document.media.html.tables import facts
from byhand.document.media.wording import sentence
from byhand.document.parts import Answer, Section, Title
from byhand.language import _

STYLES = ("book.css", "explained.css", "proof.css")


def page(title: Title, found: Answer, sections: Sequence[Section], pen: Inscriber) -> str:
    """The whole page."""
    frame = Frame(
        f"{found.word}: {title.name}",
        STYLES,
        (sections[0].name, _("to the first section")),
        kind="no-script",
    )
    return frame.page(_body(title, found, sections, pen))


def _body(
    title: Title, found: Answer, sections: Sequence[Section], pen: Inscriber
) -> Iterator[str]:
    yield opening("main", id="main") + opening("header", class_="chapter")
    yield element("p", "byhand prove", class_="kicker")
    yield element("h1", sentence(title.name))
    if title.about:
        yield element("p", prose(title.about), class_="intro")
    yield facts(title.facts)
    yield answer(found)
    links = [element("li", element("a", s.title, href=f"#{s.name}")) for s in sections]
    yield element("nav", element("ol", *links), class_="sections", aria_label=_("sections"))
    yield Markup("</header>")
    for section in sections:
        yield from section_lines(section, pen)
    yield Markup("</main>")
