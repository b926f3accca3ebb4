"""A worksheet, or its key, typeset: the source for Typst."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from byhand.document.book import Passage
from byhand.document.compose.worksheet.sheet import Questions, Size, Worksheet
from byhand.document.compose.worksheet.wording import (
    axes_asked,
    heading,
    instructions,
    of_passage,
    workings_of,
)
from byhand.document.media.typst import parts
from byhand.document.media.typst.figure import Figures
from byhand.document.media.typst.formulas import formula
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.numbers import Inscriber
from byhand.document.media.typst.quoting import array, call, content, prose, string, words
from byhand.document.numerals import localised
from byhand.document.parts import Number, NumberTable
from byhand.language import _


def worksheet_source(sheet: Worksheet, *, key: bool = False) -> str:
    """The source that the design stands before; with `key`, with the answers in it."""
    return "\n".join(_Source(sheet, key).lines()) + "\n"


@dataclass
class _Pen(Inscriber):
    """Numbers of a worksheet: given, blank, or answered."""

    answers: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    sizes: tuple[Size, ...] = ()
    key: bool = False

    def number(self, number: Number) -> str:
        if number.address in self.answers:
            return self.blank(number.address)
        if number.address in self.tokens:
            return words(self.tokens[number.address])
        return super().number(number)

    def axes(self, table: NumberTable) -> str:
        return super().axes(table) if self.key else axes_asked(table, self.sizes)

    def blank(self, address: str) -> str:
        """A line to write on, or in the key what belongs there."""
        if self.key:
            return f"answer({string(localised(self.answers[address]))})"
        return "blank(width: 22mm)" if address in self.tokens else "blank()"


class _Source:
    def __init__(self, sheet: Worksheet, key: bool) -> None:
        self.sheet = sheet
        self.key = key
        maths = TypstMaths(_("."), finite=True)
        self.pen = _Pen(
            maths,
            signs=False,
            answers=dict(sheet.answers),
            tokens=dict(sheet.tokens),
            sizes=sheet.sizes,
            key=key,
        )
        self.workings = Inscriber(maths, signs=False)
        self.figures = Figures(sheet.book.spine)

    def lines(self) -> Iterator[str]:
        sheet, book = self.sheet, self.sheet.book
        title = words(heading(sheet, self.key))
        passages = [passage for page in book.pages for passage in page.passages]
        body = [self.passage(passage, str(k + 1)) for k, passage in enumerate(passages)]
        for questions in sheet.questions:
            body.append(self.questions(questions, str(len(body) + 1)))
        yield from self.figures.definitions()
        yield f"#show: it => book(title: {title}, language: {string(book.language)}, it)"
        said = array(prose(text) for text in instructions(sheet, self.key))
        asks = "none" if self.key else words(_("name"))
        yield "#" + call("worksheet-head", words(f"byhand · {book.model}"), title, said, asks)
        yield from body

    def passage(self, passage: Passage, number: str) -> str:
        name, lit, alt = self.figures.where(passage.lit) if passage.lit else ("none", "()", '""')
        title = words(passage.title)
        return "#" + call("passage", string(number), title, name, lit, alt, self.body(passage))

    def body(self, passage: Passage) -> str:
        found = []
        if passage.sentences:
            found.append(f"par({prose(' '.join(passage.sentences))})")
        found += [formula(law, self.pen) for law in passage.formulas]
        tables = [parts.draw(part, self.pen) for part in passage.show]
        found.append(call("beside", array(tables)))
        if self.key:
            for number in workings_of(self.sheet, of_passage(self.sheet, passage)):
                assert number.working is not None
                found.append(call("solution", self.workings.working(number.working)))
        return content(*found)

    def questions(self, questions: Questions, number: str) -> str:
        rows = []
        for line in questions.lines:
            asked = line.address in self.sheet.answers
            names = content(*(f"linebreak(); #address({string(name)})" for name in line.where))
            value = self.pen.blank(line.address) if asked else words(line.value)
            rows.append(array([content(words(line.label), names), words(line.detail), value]))
        table = call(
            "plain-table",
            array(map(words, questions.heads)),
            array(rows),
            columns=array(["1.2fr", "1fr", "auto"]),
            align=array(["left", "left + horizon", "right + horizon"]),
        )
        body = content(f"par({words(questions.sentence)})", table)
        title = words(questions.title)
        return "#" + call("passage", string(number), title, "none", "()", '""', body)
