"""A book → its Typst source: title, contents, chapters, passages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from byhand.document.book import Book, Page, Passage
from byhand.document.media.typst import parts
from byhand.document.media.typst.figure import Figures
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.numbers import Inscriber, formula
from byhand.document.media.typst.quoting import array, call, content, prose, string, words, yes
from byhand.document.media.wording import sentence
from byhand.document.parts import AttentionPattern, HeatStrip, NumberTable, Part
from byhand.document.words import told
from byhand.language import _, speaking

BESIDE = (NumberTable, HeatStrip, AttentionPattern)  # parts that stand side by side


def typst_source(book: Book) -> str:
    """The source, without the design (`book.typ`) before it."""
    with speaking(book.language):
        return "\n".join(_Source(book).lines()) + "\n"


class _Source:
    """The source of one book being written."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.pen = Inscriber(TypstMaths(_("."), finite=book.decimals))
        self.figures = Figures(book.spine, book.decimals)

    def lines(self) -> Iterator[str]:
        book = self.book
        title, language = words(book.title), string(book.language)
        head = [self.title_page(), self.contents()]
        body = [line for place, page in enumerate(book.pages) for line in self.page(page, place)]
        yield from self.figures.definitions()
        yield f"#show: it => book(title: {title}, language: {language}, it)"
        yield from head
        yield from body

    # ------------------------------------------------------------------ before the chapters

    def title_page(self) -> str:
        book = self.book
        name, _lit, alt = self.figures.where(())
        notes = [prose(told(note)) for note in book.notes]
        if book.claims_checked:
            text = _("Checked against {document}: numbers that do not follow are marked ✗.")
            notes.append(prose(text.format(document=book.claims_checked)))
        return "#" + call(
            "title-page",
            words("byhand"),
            words(book.title),
            prose(told(book.about)),
            array(array([words(name), prose(fact)]) for name, fact in book.facts),
            array(notes),
            name,
            alt,
        )

    def contents(self) -> str:
        book = self.book
        return "#" + call(
            "contents",
            words(_("Contents")),
            array(array([words(page.title), prose(page.intro)]) for page in book.pages),
            words(_("How to read the numbers")),
            array(array([string(r), prose(sentence(about))]) for r, about in book.registers),
        )

    # ------------------------------------------------------------------ chapters

    def page(self, page: Page, place: int) -> Iterator[str]:
        kicker = _("Chapter {number}").format(number=place + 1)
        yield "#" + call("chapter", words(kicker), words(page.title), prose(page.intro))
        if place == 0:
            name, _lit, alt = self.figures.where(())
            places = self.figures.beside.places
            heads = array(words(self.book.tokens[place]) for place in places)
            yield "#" + call("figure-page", name, heads, alt)
        for number, passage in enumerate(page.passages, page.first):
            yield self.passage(passage, f"{place + 1}.{number}")

    def passage(self, passage: Passage, number: str) -> str:
        name, lit, alt = self.figures.where(passage.lit) if passage.lit else ("none", "()", '""')
        title = words(passage.title)
        named = {"back": yes(True)} if passage.backward else {}
        body = self.body(passage)
        return "#" + call("passage", string(number), title, name, lit, alt, body, **named)

    def body(self, passage: Passage) -> str:
        """Sentences, formulas, remarks and parts; tables and pictures stand side by side."""
        found = []
        if passage.sentences:
            found.append(f"par({content(*self._sentences(passage))})")
        found += [formula(law, self.pen) for law in passage.formulas]
        found += map(parts.remark, passage.remarks)
        for beside, group in groupby(_on_paper(passage), lambda part: isinstance(part, BESIDE)):
            values = [parts.draw(part, self.pen) for part in group]
            found += [call("beside", array(values))] if beside else values
        return content(*found)

    def _sentences(self, passage: Passage) -> Iterator[str]:
        for place, said in enumerate(passage.sentences):
            if place:
                yield string(" ")
            yield prose(said)


def _on_paper(passage: Passage) -> Iterator[Part]:
    """The parts shown; where colours show every number, only the first head's numbers."""
    coloured = any(isinstance(part, HeatStrip) for part in passage.show)
    tables = 0
    for part in passage.told_once:
        if coloured and isinstance(part, NumberTable) and not part.asked:
            tables += 1
            if tables > 1:
                continue
        yield part
