"""A worksheet, or its key, as one page for a browser, in the looks of the book.

What is blank is a field to type into.  The page is whole without its script, which adds one thing:
it writes what was typed into a claims file, to be marked by `byhand check`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from byhand.document.book import Passage
from byhand.document.compose.worksheet.claims import claims_text, given_part, quoted_key
from byhand.document.compose.worksheet.sheet import VALUES, Questions, Size, Worksheet
from byhand.document.compose.worksheet.wording import (
    axes_asked,
    heading,
    instructions,
    of_passage,
    workings_of,
)
from byhand.document.media.html import parts
from byhand.document.media.html.figure import Figures
from byhand.document.media.html.markup import Markup
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.prose import prose
from byhand.document.media.html.style import style, text_of
from byhand.document.numerals import localised
from byhand.document.parts import Cell, Number, NumberTable
from byhand.language import _

SCALE = 1.18  # of the figure, on a wide screen


def worksheet_page(sheet: Worksheet, *, key: bool = False) -> str:
    """The whole page; with `key`, the answers stand where the blanks are."""
    return "\n".join(_Page(sheet, key).lines()) + "\n"


@dataclass
class _Pen(Inscriber):
    """Numbers of a worksheet: given, blank, or answered."""

    answers: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    sizes: tuple[Size, ...] = ()
    key: bool = False

    def number(self, number: Number, tag: str = "td", marked: bool = True) -> Markup:
        address = escape(number.address)
        if number.address in self.answers:
            return Markup(f'<{tag} class="n asked">{self.blank(number.address)}</{tag}>')
        if number.cell.masked:
            return super().number(number, tag)
        if number.address in self.tokens:
            return Markup(f'<{tag} class="n">{escape(self.tokens[number.address])}</{tag}>')
        return Markup(f'<{tag} class="n" data-a="{address}">{self.face(number.cell)}</{tag}>')

    def face(self, cell: Cell) -> Markup:
        """A weight has no decimals beside its form."""
        if cell.form is not None and cell.decimal is None:
            return self.maths.formula(cell.form)
        return super().face(cell)

    def axes(self, table: NumberTable) -> str:
        return super().axes(table) if self.key else axes_asked(table, self.sizes)

    def blank(self, address: str) -> str:
        """A field to type into, or in the key what belongs there."""
        if self.key:
            return f'<b class="answer">{escape(localised(self.answers[address]))}</b>'
        name = escape(address)
        word = ' class="word"' if address in self.tokens else ' inputmode="decimal"'
        return f'<input{word} data-a="{name}" aria-label="{name}" autocomplete="off" size="6">'


class _Page:
    def __init__(self, sheet: Worksheet, key: bool) -> None:
        self.sheet = sheet
        self.key = key
        self.pen = _Pen(
            Mathml(_("."), finite=True),
            answers=dict(sheet.answers),
            tokens=dict(sheet.tokens),
            sizes=sheet.sizes,
            key=key,
        )
        self.workings = Inscriber(Mathml(_("."), finite=True))
        self.figures = Figures(sheet.book.spine, sheet.book.tokens)

    def lines(self) -> Iterator[str]:
        sheet, book = self.sheet, self.sheet.book
        title = heading(sheet, self.key)
        width = round(self.figures.width * SCALE)
        yield f'<!doctype html>\n<html lang="{escape(book.language)}"><head><meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield '<meta name="generator" content="byhand"><link rel="icon" href="data:,">'
        looks = style("book.css", "worksheet.css")
        yield f"<title>{escape(title)}</title><style>\n{looks}</style></head><body>"
        yield f'<main id="main" style="--figure:{width}px"><header class="chapter">'
        kicker = f"byhand · {book.model}"
        yield f'<p class="kicker">{escape(kicker)}</p><h1>{escape(title)}</h1>'
        for said in instructions(sheet, self.key):
            yield f'<p class="intro">{prose(said)}</p>'
        if not self.key:
            name = escape(_("name"))
            yield f'<p class="student"><label>{name} <input id="student" class="word"></label></p>'
        yield "</header>"
        number = 0
        for page in book.pages:
            for passage in page.passages:
                number += 1
                yield from self.passage(passage, number)
        for questions in sheet.questions:
            number += 1
            yield from self.questions(questions, number)
        yield "</main>"
        if not self.key:
            yield from self.saving()
        yield self.figures.drawn()
        yield "</body></html>"

    def passage(self, passage: Passage, number: int) -> Iterator[str]:
        name = escape(passage.id)
        yield f'<section class="passage" id="{name}" aria-labelledby="{name}-title">'
        yield _title(name, number, passage.title)
        yield '<div class="text">'
        if passage.sentences:
            yield f"<p>{' '.join(map(prose, passage.sentences))}</p>"
        for law in passage.formulas:
            yield parts.formula(law, self.pen)
        yield '<div class="beside-each-other">'
        for part in passage.show:
            assert isinstance(part, NumberTable)
            yield from parts.number_table(part, self.pen)
        yield "</div>"
        if self.key:
            yield from self.worked(passage)
        yield "</div>"
        if passage.lit:
            yield f'<figure class="whole">{self.figures.of(passage.lit)}</figure>'
        yield "</section>"

    def worked(self, passage: Passage) -> Iterator[str]:
        """How each answer of a passage comes about."""
        for number in workings_of(self.sheet, of_passage(self.sheet, passage)):
            assert number.working is not None
            address = escape(number.address)
            yield '<div class="solution">'
            yield f'<p class="where"><code class="address">{address}</code></p>'
            yield from self.workings.working(number.working)
            yield "</div>"

    def questions(self, questions: Questions, number: int) -> Iterator[str]:
        name = escape(questions.id)
        yield f'<section class="passage" id="{name}" aria-labelledby="{name}-title">'
        yield _title(name, number, questions.title)
        yield f'<div class="text"><p>{escape(questions.sentence)}</p>'
        yield f'<div class="table"><table><caption class="sr">{escape(questions.title)}</caption>'
        yield "<thead><tr>"
        yield "".join(f'<th scope="col">{escape(head)}</th>' for head in questions.heads)
        yield "</tr></thead><tbody>"
        for line in questions.lines:
            asked = line.address in self.sheet.answers
            value = self.pen.blank(line.address) if asked else escape(line.value)
            where = "".join(f"<code>{escape(name)}</code>" for name in line.where)
            yield (
                f'<tr><th scope="row">{escape(line.label)}<span class="tensors">{where}</span></th>'
                f'<td>{escape(line.detail)}</td><td class="n{" asked" * asked}">{value}</td></tr>'
            )
        yield "</tbody></table></div></div></section>"

    def saving(self) -> Iterator[str]:
        """The button that writes what was typed into a claims file; it appears with the script."""
        head = claims_text(self.sheet).partition("\nclaims:\n")[0]
        lines = [
            {
                "key": quoted_key(blank.address),
                "places": blank.places,
                "row": blank.row,
                "whole": blank.kind != VALUES,
            }
            for blank in self.sheet.blanks
        ]
        foot = "\n".join(given_part(self.sheet))
        data = json.dumps({"head": head, "lines": lines, "foot": foot}, ensure_ascii=False)
        safe = data.replace("<", "\\u003c")
        filled = escape(_("{filled} of {count} fields filled in"))
        yield f'<p class="save" hidden><button type="button">{escape(_("save my answers"))}'
        yield f'</button><span role="status" data-count="{filled}"></span></p>'
        yield f'<script type="application/json" id="sheet">{safe}</script>'
        yield f"<script>\n{text_of('worksheet.js')}</script>"


def _title(name: str, number: int, title: str) -> str:
    return f'<h2 id="{name}-title"><span class="number">{number}</span> {escape(title)}</h2>'
