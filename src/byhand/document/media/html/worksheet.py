"""A worksheet, or its key, as one page for a browser, in the style of the book.

Blanks are fields to type into.  The page is complete without its script, which only saves the
answers as a claims file for `byhand check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from byhand.document.book import Passage
from byhand.document.compose.worksheet.claims import claims_text, given_part, quoted_key
from byhand.document.compose.worksheet.sheet import (
    CORRECTION,
    COUNTS,
    SHAPES,
    Questions,
    Worksheet,
)
from byhand.document.compose.worksheet.wording import Copy
from byhand.document.media.html import parts
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.markup import Markup, element, joined, opening
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.prose import address, prose
from byhand.document.media.html.standalone import Frame
from byhand.document.parts import Cell, Number, NumberTable, WorkingLine
from byhand.language import _

SCALE = 1.18  # of the figure, on a wide screen


def worksheet_page(sheet: Worksheet, *, key: bool = False) -> str:
    """The whole page; with `key`, the answers stand in the blanks."""
    scripts = () if key else ("worksheet.js",)
    copy = Copy(sheet, key)
    frame = Frame(copy.title, ("book.css", "worksheet.css"), scripts=scripts)
    return frame.page(_Page(copy).body())


class _Pen(Inscriber):
    """Numbers of a worksheet: given, blank, or answered."""

    def __init__(self, copy: Copy) -> None:
        super().__init__(Mathml(_("."), finite=True))
        self.copy = copy
        self.words = copy.sheet.tokens

    def number(self, number: Number, tag: str = "td", marked: bool = True) -> Markup:
        """One number as a cell: a blank, an answer, or what is given."""
        address, given = number.address, self.words.get(number.address)
        if self.copy.asks(address):
            return element(tag, self.blank(address), class_="n asked")
        if number.cell.masked:
            return super().number(number, tag)
        if given is not None:
            return element(tag, given, class_="n")
        return element(tag, self.face(number.cell), class_="n", data_a=address)

    def face(self, cell: Cell) -> Markup:
        """The face of a number; a weight has no decimals beside its form."""
        if cell.form is not None and cell.decimal is None:
            return self.maths.formula(cell.form)
        return super().face(cell)

    def axes(self, table: NumberTable) -> str:
        """The axes of a table; a length that is asked for is a question mark."""
        return self.copy.axes(table)

    def blank(self, address: str) -> Markup:
        """A field to type into, or in the key what belongs there."""
        if (answer := self.copy.answer(address)) is not None:
            return element("b", answer, class_="answer")
        word = address in self.words
        wide = word or address == CORRECTION
        return element(
            "input",
            class_="word" if word else "row" if wide else None,
            inputmode=None if wide or self.copy.sheet.exact else "decimal",
            data_a=address,
            aria_label=address,
            autocomplete="off",
            size=6,
        )


class _Page:
    """One page being written."""

    def __init__(self, copy: Copy) -> None:
        self.copy, self.sheet = copy, copy.sheet
        self.pen = _Pen(copy)
        self.workings = Inscriber(Mathml(_("."), finite=True))
        self.figures = Figures(self.sheet.book.spine, self.sheet.book.tokens)

    def body(self) -> Iterator[str]:
        """Everything between head and foot."""
        sheet = self.sheet
        sections = [self.passage(passage, at) for at, passage in enumerate(sheet.book.passages, 1)]
        for questions in sheet.questions:
            sections.append(self.questions(questions, len(sections) + 1))
        if self.copy.correction is not None:
            sections.append(self.correction(*self.copy.correction, len(sections) + 1))
        wide = f"--figure:{round(self.figures.width * SCALE)}px"
        yield element("main", self.top(), *sections, id="main", style=wide)
        if not self.copy.key:
            yield from self.saving()
        yield self.figures.drawn()

    def top(self) -> Markup:
        """The title, how to fill the sheet in, and a place for a name."""
        said = [element("p", f"byhand · {self.sheet.book.model}", class_="kicker")]
        said.append(element("h1", self.copy.title))
        for sentence in self.copy.instructions:
            said.append(element("p", prose(sentence), class_="intro"))
        if not self.copy.key:
            field = element("input", id="student", class_="word", value=self.sheet.student or None)
            said.append(element("p", element("label", _("name") + " ", field), class_="student"))
        return element("header", *said, class_="chapter")

    def passage(self, passage: Passage, number: int) -> Markup:
        """A passage with its laws, its tables and, in the key, the workings."""
        text = []
        if passage.sentences:
            text.append(element("p", joined(map(prose, passage.sentences), " ")))
        text += [parts.formula(law, self.pen) for law in passage.formulas]
        tables = (line for part in passage.show for line in parts.draw(part, self.pen))
        text.append(element("div", *tables, class_="beside-each-other"))
        text += map(self.solution, self.copy.workings(passage))
        if room := self.copy.room(passage):
            text.append(element("div", class_="room", style=f"--lines:{room}", aria_hidden="true"))
        drawn = [element("div", *text, class_="text")]
        if passage.lit:
            figure = self.figures.of(passage.lit)
            drawn.append(element("figure", figure, class_="whole"))
        return _section(passage.id, passage.title, number, drawn)

    def solution(self, line: WorkingLine) -> Markup:
        """How one answer comes about."""
        where = element("p", address(line.address), class_="where")
        return element("div", where, *self.workings.working(line), class_="solution")

    def questions(self, questions: Questions, number: int) -> Markup:
        """A table with some lines blank."""
        heads = (element("th", head, scope="col") for head in questions.heads)
        rows = []
        for line in questions.lines:
            asked = self.copy.asks(line.address)
            where = element("span", *(element("code", x) for x in line.where), class_="tensors")
            value = self.pen.blank(line.address) if asked else line.value
            rows.append(
                element(
                    "tr",
                    element("th", line.label, where, scope="row"),
                    element("td", line.detail),
                    element("td", value, class_="n asked" if asked else "n"),
                )
            )
        table = element(
            "table",
            element("caption", questions.title, class_="sr"),
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
        )
        sentence = element("p", questions.sentence)
        text = element("div", sentence, element("div", table, class_="table"), class_="text")
        return _section(questions.id, questions.title, number, [text])

    def correction(self, line: str, says: str, number: int) -> Markup:
        """The two fields about a printed working."""
        asked = [
            element("p", element("label", said, " ", self.pen.blank(blank.address)))
            for said, blank in zip((line, says), self.sheet.blanks, strict=True)
        ]
        text = element("div", *asked, class_="text correction")
        return _section("correction", _("The wrong line"), number, [text])

    def saving(self) -> Iterator[Markup]:
        """The button that saves the answers as a claims file; the script shows it."""
        data = {
            "head": claims_text(self.sheet).partition("\nclaims:\n")[0],
            "file": self.sheet.file,
            "lines": [
                {
                    "key": quoted_key(blank.address),
                    "places": blank.places,
                    "row": blank.row,
                    "whole": blank.kind in (SHAPES, COUNTS),
                    "list": blank.address == CORRECTION,
                }
                for blank in self.sheet.blanks
            ],
            "foot": "\n".join(given_part(self.sheet)),
        }
        safe = Markup(json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"))
        filled = _("{filled} of {count} fields filled in")
        button = element("button", _("save my answers"), type="button")
        status = element("span", role="status", data_count=filled)
        yield element("p", button, status, class_="save", hidden=True)
        yield element("script", safe, type="application/json", id="sheet")


def _section(name: str, title: str, number: int, inside: Iterable[Markup]) -> Markup:
    heading = element("span", str(number), class_="number") + " " + title
    start = opening("section", class_="passage", id=name, aria_labelledby=f"{name}-title")
    named = element("h2", heading, id=f"{name}-title")
    return start + named + joined(inside) + Markup("</section>")
