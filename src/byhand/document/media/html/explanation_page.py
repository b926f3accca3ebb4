"""The sections of an explanation as their own page, and as a piece for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document import words
from byhand.document.book import Passage
from byhand.document.media.html.markup import Markup, element, opening
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.passages import passage_body
from byhand.document.media.html.prose import prose
from byhand.document.media.html.standalone import Frame, legend
from byhand.document.media.html.tables import facts
from byhand.document.media.wording import told
from byhand.document.numerals import written
from byhand.document.parts import Section, Title
from byhand.language import _

STYLES = ("book.css", "explained.css")


def page(title: Title, sections: Sequence[Section], pen: Inscriber) -> str:
    """The whole page, in the look of a book; it has no script."""
    name = _("{model}: what the numbers say").format(model=title.name)
    skip = (sections[0].name, _("to the first section")) if sections else None
    frame = Frame(name, STYLES, skip, kind="no-script")
    return frame.page(_body(title, sections, pen))


def _body(title: Title, sections: Sequence[Section], pen: Inscriber) -> Iterator[str]:
    yield opening("main", id="main") + opening("header", class_="chapter")
    yield element("p", "byhand explain", class_="kicker")
    yield element("h1", title.name)
    if title.about:
        yield element("p", Markup(prose(told(title.about))), class_="intro")
    yield facts(title.facts)
    links = [element("li", element("a", s.title, href=f"#{s.name}")) for s in sections]
    yield element("nav", element("ol", *links), class_="sections", aria_label=_("sections"))
    yield Markup("</header>")
    for section in sections:
        yield from section_lines(section, pen)
    yield Markup("</main>")
    if title.registers:
        promised = ((each, words.register_about(each)) for each in title.registers)
        yield element("footer", legend(promised), class_="bottom")


def section_lines(section: Section, pen: Inscriber) -> Iterator[str]:
    """A section under its heading."""
    name = f"{section.name}-title"
    yield opening("section", class_="passage", id=section.name, aria_labelledby=name)
    yield element("h2", section.title, id=name)
    yield opening("div", class_="text")
    about = (written(section.about),) if section.about else ()
    yield from passage_body(Passage(section.name, section.title, about, show=section.parts), pen)
    yield Markup("</div></section>")
