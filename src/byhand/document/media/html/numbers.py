"""One number on a page: its form or decimals, its register, and its working on demand.

A number is a button that opens a popover: the address to copy, what the number is, and the line
that a person would write.  Popovers need no script.  A number that has no more to it is a link to
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from byhand.document import words
from byhand.document.mathematics import in_a_table, says_no_more
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.terminal.layout import MASK
from byhand.document.numerals import localised
from byhand.document.parts import Cell, Letter, Number, NumberTable, WorkingLine
from byhand.document.verdict_parts import VerdictLine
from byhand.document.words import SIGNS
from byhand.expression import Expression, write
from byhand.language import _

LONGEST_WORKING = 400  # characters of a line of working; a longer one helps nobody
LONGEST_LETTER = 200  # of what a letter stands for


@dataclass
class Inscriber:
    """Writes the numbers of one page; an address is linked to where it first stands."""

    maths: Mathml
    addresses: dict[str, str] = field(default_factory=dict)  # address → id on this page
    popovers: int = 0

    # ------------------------------------------------------------------ a number in a table

    def number(self, number: Number, tag: str = "td", marked: bool = True) -> str:
        """The number as a cell of a table (or another element), with its working behind it.

        Not `marked`, its register is said by what is around it.
        """
        cell = number.cell
        here = self.here(number.address)
        name = self.addresses[number.address]
        if cell.masked:
            told = escape(words.masked_at(number.address))
            return (
                f'<{tag} class="masked"><span aria-hidden="true">{MASK}</span>'
                f'<span class="sr">{told}</span></{tag}>'
            )
        claimed = " disputed" if number.claim is not None else ""
        mark = register_mark(cell.register) if marked else ""
        shown = f'<span class="face">{self.face(cell)}</span>{mark}'
        if number.claim is not None:
            shown += f'<span class="sign" aria-hidden="true">{escape(number.claim.sign)}</span>'
        address = escape(number.address)
        if number.working is None and number.claim is None and not hidden_forms(cell):
            inside = f'<a href="#{address}" title="{address}">{shown}</a>'
        else:
            self.popovers += 1
            popover = f"w{self.popovers}"
            inside = (
                f'<button type="button" popovertarget="{popover}" title="{address}">{shown}'
                f"</button>{self.popover(popover, number, name)}"
            )
        kind = f"n {cell.register}{claimed}"
        return f'<{tag}{here} class="{kind}" data-a="{address}">{inside}</{tag}>'

    def axes(self, table: NumberTable) -> str:
        """The axes of a table, each with its length."""
        return words.axes_text(table.axes, table.shape)

    def here(self, address: str) -> str:
        """The attribute that makes an address lead here, unless it leads elsewhere."""
        name, first = self.place(address)
        return f' id="{escape(name)}"' if first else ""

    def place(self, address: str) -> tuple[str, bool]:
        """The id of an address on this page, and whether it is given out just now."""
        first = address not in self.addresses
        return self.addresses.setdefault(address, address), first

    def face(self, cell: Cell) -> str:
        """The shortest honest look of a number."""
        if cell.radius is not None:
            return f"{self.decimal(cell)} ± {escape(localised(cell.radius))}"
        if cell.form is not None and in_a_table(cell):
            form = f'<span class="form">{self.maths.formula(cell.form)}</span>'
            if cell.register == "named" and cell.decimal is not None:
                form += f'<span class="beside">{self.approximately(cell)}</span>'
            return form
        about = f"<span>{self.approximately(cell)}</span>"  # one piece: no line ends in it
        return about if self.hides(cell) else self.decimal(cell)

    @staticmethod
    def hides(cell: Cell) -> bool:
        """Whether the decimals of an exact number are not all of it; other registers say so."""
        return cell.register == "exact" and cell.cut

    def approximately(self, cell: Cell) -> str:
        return f'<span class="about">≈</span> {self.decimal(cell)}'

    def decimal(self, cell: Cell) -> str:
        """The decimals; the data keep their point, whatever the language writes."""
        text = cell.decimal or ""
        return f'<data value="{escape(text)}">{escape(localised(text))}</data>'

    # ------------------------------------------------------------------ its working

    def popover(self, name: str, number: Number, anchor: str) -> str:
        body = "".join(self.told(number, anchor))
        label = f'role="group" aria-label="{escape(number.address)}"'
        return f'<div popover id="{name}" class="working" {label}>{body}</div>'

    def told(self, number: Number, anchor: str) -> Iterator[str]:
        link, address = escape(_("copy link")), escape(number.address)
        yield (
            f'<p class="where"><a class="address" href="#{escape(anchor)}">{address}</a>'
            f'<button type="button" class="copy" data-copy="{escape(anchor)}">{link}</button></p>'
        )
        if number.working is None:
            yield f'<div class="lines">{self.lines_of(number.cell)}</div>'
        else:
            yield from self.working(number.working)
        if number.cell.register is not None:
            about = escape(words.register_about(number.cell.register))
            mark = register_mark(number.cell.register, hidden=True)
            yield f'<p class="register {number.cell.register}">{mark} {about}</p>'
        if number.claim is not None:
            yield claim_sentence(number.claim)

    def working(self, line: WorkingLine) -> Iterator[str]:
        """symbols = values = what it is, one below the other."""
        yield '<div class="lines">'
        before = ""
        rows: list[tuple[str, Expression, str]] = []
        if line.symbols is not None:
            rows.append(("=", line.symbols, "symbols"))
        if line.values is not None:
            rows.append(("≈" if line.decimals else "=", line.values, "values"))
        for sign, tree, kind in rows:
            text = write(tree)
            if text != before and len(text) <= LONGEST_WORKING:
                yield f'<div class="{kind}">{self.maths.broken(sign, tree)}</div>'
            before = text
        if not line.missing:
            yield self.lines_of(line.cell, before)
        yield "</div>"
        said = [
            f"<code>{escape(short)}</code> = <code>{escape(full)}</code>"
            for short, full in line.sources
            if short != full
        ]
        if said:
            yield f'<p class="where-names">{_("where {names}").format(names=", ".join(said))}</p>'
        for letter in line.letters:
            yield self.letter(letter)
        for mark in line.remarks:
            yield f'<p class="more">{escape(mark.text)}</p>'

    def lines_of(self, cell: Cell, before: str = "") -> str:
        """Every form of a number, one a line."""
        lines: list[str] = []
        if cell.radius is not None:
            text = f"{self.decimal(cell)} ± {escape(localised(cell.radius))}"
            return f'<div class="value">= {text}</div>'
        for tree in (cell.worked, cell.form):
            if tree is None or says_no_more(tree, before):
                continue
            if len(write(tree)) <= LONGEST_WORKING:
                before = write(tree)
                lines.append(f'<div class="form">{self.maths.formula("=", tree)}</div>')
        if cell.decimal is not None and not cell.plain:
            sign = "=" if in_full_by_decimals(cell) else "≈"
            lines.append(f'<div class="value">{sign} {self.decimal(cell)}</div>')
        return "".join(lines)

    def letter(self, letter: Letter) -> str:
        """where p = … ≈ 0.2689"""
        text = _("where {name} =").format(name=letter.name)
        definition = write(letter.definition)
        if len(definition) > LONGEST_LETTER:
            told = escape(_("a number of its own"))
        else:
            told = self.maths.broken("", letter.definition)
        about = f" ≈ {escape(localised(letter.decimal))}" if letter.decimal else ""
        label = f'tabindex="0" role="group" aria-label="{escape(letter.name)}"'
        return f'<div class="letter" {label}>{escape(text)} {told}{about}</div>'


def in_full_by_decimals(cell: Cell) -> bool:
    """Whether the decimals of a number are all of it."""
    return cell.register == "exact" and not cell.cut


def hidden_forms(cell: Cell) -> bool:
    """Whether a number has more to it than its face shows."""
    return cell.form is not None and not cell.plain


def register_mark(register: str | None, hidden: bool = False) -> str:
    """The sign of a register, with its word for those who hear the page."""
    if register is None:
        return ""
    sign = SIGNS[register]
    shown = f'<span class="sign" aria-hidden="true">{sign}</span>' if sign else ""
    if hidden:
        return shown
    return f'{shown}<span class="sr"> {escape(words.register_word(register))}</span>'


def claim_sentence(claim: VerdictLine) -> str:
    """What a document prints here, and that it does not follow."""
    text = _("printed: {claimed}; {verdict}").format(
        claimed=localised(claim.claimed), verdict=claim.word
    )
    return f'<p class="claim"><span class="sign">{escape(claim.sign)}</span> {escape(text)}</p>'
