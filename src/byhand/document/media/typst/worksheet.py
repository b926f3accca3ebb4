"""A worksheet, or its key, as Typst source."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.book import Passage
from byhand.document.compose.worksheet.sheet import CORRECTION, Questions, Worksheet
from byhand.document.compose.worksheet.wording import Copy
from byhand.document.media.typst import parts
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.numbers import Inscriber, formula
from byhand.document.media.typst.quoting import array, call, content, prose, string, words
from byhand.document.parts import Number, NumberTable
from byhand.language import _

MARGIN = "(x: 20mm, top: 21mm, bottom: 17mm)"  # narrower than a book's: less paper


def worksheet_source(sheet: Worksheet, *, key: bool = False) -> str:
    """The source that the design stands before; with `key`, with the answers in it."""
    return "\n".join(_Source(Copy(sheet, key)).lines()) + "\n"


class _Pen(Inscriber):
    """Numbers of a worksheet: given, blank, or answered."""

    def __init__(self, copy: Copy) -> None:
        super().__init__(TypstMaths(_("."), finite=True), signs=False)
        self.copy = copy
        self.words = copy.sheet.tokens

    def number(self, number: Number) -> str:
        """One number: a blank, an answer, or what is given."""
        if self.copy.asks(number.address):
            return self.blank(number.address)
        given = self.words.get(number.address)
        return super().number(number) if given is None else words(given)

    def axes(self, table: NumberTable) -> str:
        """The axes of a table; a length that is asked for is a question mark."""
        return self.copy.axes(table)

    def blank(self, address: str) -> str:
        """A line to write on, or in the key what belongs there."""
        if (answer := self.copy.answer(address)) is not None:
            return f"answer({string(answer)})"
        if address == CORRECTION:
            return "blank(width: 90mm)"
        return "blank(width: 22mm)" if address in self.words else "blank()"


class _Source:
    """One source being written."""

    def __init__(self, copy: Copy) -> None:
        self.copy, self.sheet = copy, copy.sheet
        self.pen = _Pen(copy)
        self.workings = Inscriber(self.pen.maths, signs=False)

    def lines(self) -> Iterator[str]:
        """The whole source."""
        sheet, book = self.sheet, self.sheet.book
        title = words(self.copy.title)
        body = [self.passage(passage, at) for at, passage in enumerate(book.passages, 1)]
        for questions in sheet.questions:
            body.append(self.questions(questions, len(body) + 1))
        if self.copy.correction is not None:
            body.append(self.correction(*self.copy.correction, len(body) + 1))
        aside = words(sheet.student) if sheet.student else "none"
        page = f"aside: {aside}, margin: {MARGIN}"
        yield f"#show: it => book(title: {title}, {page}, language: {string(book.language)}, it)"
        said = array(prose(text) for text in self.copy.instructions)
        asks = array(() if self.copy.key else self.asks())
        yield "#" + call("worksheet-head", words(f"byhand · {book.model}"), title, said, asks)
        yield from body

    def asks(self) -> Iterator[str]:
        """The places for a name, a date and the marks."""
        name = words(self.sheet.student) if self.sheet.student else "none"
        yield array([words(_("name")), name, "52mm"])
        yield array([words(_("date")), "none", "22mm"])
        out_of = _("of {count} marks").format(count=self.sheet.marks)
        yield array([words(""), "none", "10mm"])
        yield array([words(""), words(out_of), "0mm"])

    def correction(self, line: str, says: str, number: int) -> str:
        """The two fields about a printed working."""
        first, second = self.sheet.blanks
        body = content(
            call("question", words(line), self.pen.blank(first.address)),
            call("question", words(says), self.pen.blank(second.address)),
        )
        return "#" + call("exercise", string(str(number)), words(_("The wrong line")), body)

    def passage(self, passage: Passage, number: int) -> str:
        """A passage with its laws, its tables and, in the key, the workings."""
        found = []
        if passage.sentences:
            found.append(f"par({prose(' '.join(passage.sentences))})")
        found += [formula(law, self.pen) for law in passage.formulas]
        found.append(call("beside-widely", array(parts.draw(x, self.pen) for x in passage.show)))
        for worked in self.copy.workings(passage):
            found.append(call("solution", self.workings.working(worked)))
        title, room = words(passage.title), str(self.copy.room(passage))
        return "#" + call("exercise", string(str(number)), title, content(*found), room=room)

    def questions(self, questions: Questions, number: int) -> str:
        """A table with some lines blank."""
        rows = []
        for line in questions.lines:
            asked = self.copy.asks(line.address)
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
        return "#" + call("exercise", string(str(number)), title, body)
