"""One number on a page: its form or decimals, its register, and its working on demand.

A number is a button that opens a popover with its address, its forms and its working.  Popovers
need no script.  A number without more to show is a link to itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from byhand.document import words
from byhand.document.mathematics import (
    LONGEST_LETTER,
    Written,
    form_lines,
    in_a_table,
    in_short,
    working_lines,
)
from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.terminal.layout import MASK
from byhand.document.numerals import localised
from byhand.document.parts import Cell, Letter, Number, NumberTable, WorkingLine
from byhand.document.short_forms import is_long
from byhand.document.words import SIGNS
from byhand.expression import write
from byhand.language import _


@dataclass
class Inscriber:
    """Writes the numbers of one page; an address links to its first place there."""

    maths: Mathml
    addresses: dict[str, str] = field(default_factory=dict)  # address → id on this page
    popovers: int = 0
    folds: bool = True  # long forms in formulas open with a click

    # ------------------------------------------------------------------ a number in a table

    def number(self, number: Number, tag: str = "td", marked: bool = True) -> Markup:
        """The number as a cell of a table (or another element), with its working in a popover.

        Unless `marked`, the text around it gives its register.
        """
        cell = number.cell
        if cell.masked:
            told = element("span", words.masked_at(number.address), class_="sr")
            return element(tag, _hidden(MASK), told, class_="masked")
        shown = element("span", self.face(cell), class_="face")
        if marked:
            shown += register_mark(cell.register)
        if number.claim is not None:
            shown += _hidden(number.claim.sign, "sign")
        return self.placed(number, tag, shown)

    def placed(self, number: Number, tag: str, shown: Markup) -> Markup:
        """The visible number in its place: a link to it, or a button for its working."""
        address = number.address
        if not address:
            return element(tag, shown, class_=f"n {number.cell.register}")
        here = self.here(address)
        if number.working is None and number.claim is None and not hidden_forms(number.cell):
            inside = element("a", shown, href=f"#{address}", title=address)
        else:
            self.popovers += 1
            name = f"w{self.popovers}"
            button = element("button", shown, type="button", popovertarget=name, title=address)
            inside = button + self.popover(name, number, self.addresses[address])
        claimed = " disputed" if number.claim is not None else ""
        kind = f"n {number.cell.register}{claimed}"
        return element(tag, inside, id=here, class_=kind, data_a=address)

    def axes(self, table: NumberTable) -> str:
        """The axes of a table, each with its length."""
        return words.axes_text(table.axes, table.shape)

    def here(self, address: str) -> str | None:
        """The id of this place for an address, unless the page has an earlier one."""
        if address in self.addresses:
            return None
        self.addresses[address] = address
        return address

    def face(self, cell: Cell) -> Markup:
        """The shortest complete text of a number."""
        if cell.form is not None and cell.radius is None and in_a_table(cell):
            form = element("span", self.maths.formula(cell.form), class_="form")
            if cell.register == "named" and cell.decimal is not None:
                form += element("span", self.approximately(cell), class_="beside")
            return form
        if in_short(cell):
            return element("span", self.approximately(cell))  # one piece: no line breaks in it
        return self.decimal(cell)

    def approximately(self, cell: Cell) -> Markup:
        """The decimals after a ≈, since they are incomplete."""
        return element("span", "≈", class_="about") + " " + self.decimal(cell)

    def decimal(self, cell: Cell) -> Markup:
        """The decimals, with a radius if there is one; the data keep their point."""
        text = cell.decimal or ""
        shown = element("data", localised(text), value=text)
        return shown if cell.radius is None else shown + f" ± {localised(cell.radius)}"

    # ------------------------------------------------------------------ its working

    def popover(self, name: str, number: Number, anchor: str) -> Markup:
        """The popover of a number."""
        told = self.told(number, anchor)
        kind = {"class_": "working", "role": "group", "aria_label": number.address}
        return element("div", *told, popover=True, id=name, **kind)

    def told(self, number: Number, anchor: str) -> Iterator[Markup]:
        """A number's address, its working, its register and its printed claim."""
        yield element(
            "p",
            element("a", number.address, class_="address", href=f"#{anchor}"),
            element("button", _("copy link"), type="button", class_="copy", data_copy=anchor),
            class_="where",
        )
        if number.working is None:
            yield element("div", *self.lines(form_lines(number.cell), number.cell), class_="lines")
        else:
            yield from self.working(number.working)
        if (register := number.cell.register) is not None:
            about, mark = words.register_about(register), register_mark(register, hidden=True)
            yield element("p", mark, " ", about, class_=f"register {register}")
        if (claim := number.claim) is not None:
            text = _("printed: {claimed}; {verdict}").format(
                claimed=localised(claim.claimed), verdict=claim.word
            )
            yield element(
                "p", element("span", claim.sign, class_="sign"), " ", text, class_="claim"
            )

    def working(self, line: WorkingLine, *, folding: bool = False) -> Iterator[Markup]:
        """symbols = values = result, one below the other; with `folding`, long forms on demand."""
        lines = list(working_lines(line))
        long = [one for one in lines if folding and is_long(one[2])] if self.folds else []
        if not any(tree is None for _kind, _sign, tree in lines):
            long = []  # there are no decimals that could stand for them
        shown = [one for one in lines if one not in long]
        yield element("div", *self.lines(shown, line.cell), class_="lines")
        if long:
            inside = element("div", *self.lines(long, line.cell), class_="lines")
            yield element("details", element("summary", _("exactly")), inside, class_="exactly")
        said = [
            joined((element("code", short), " = ", element("code", full)))
            for short, full in line.sources
            if short != full
        ]
        if said:
            where = Markup(_("where {names}")).format(names=joined(said, ", "))
            yield element("p", where, class_="where-names")
        yield from map(self.letter, line.letters)
        for remark in line.remarks:
            yield element("p", remark.text, class_="more")

    def lines(self, lines: Iterable[Written], cell: Cell) -> Iterator[Markup]:
        """Lines of a working, the decimals among them."""
        for kind, sign, tree in lines:
            if tree is None:
                yield element("div", f"{sign} ", self.decimal(cell), class_=kind)
            else:
                draw = self.maths.formula if kind == "form" else self.maths.broken
                yield element("div", draw(sign, tree), class_=kind)

    def letter(self, letter: Letter) -> Markup:
        """where p = … ≈ 0.2689"""
        if len(write(letter.definition)) > LONGEST_LETTER:
            told: str = _("a number of its own")
        else:
            told = self.maths.broken("", letter.definition)
        about = f" ≈ {localised(letter.decimal)}" if letter.decimal else ""
        return element(
            "div",
            _("where {name} =").format(name=letter.name),
            " ",
            told,
            about,
            **focusable("letter", letter.name),
        )


def focusable(kind: str, label: str) -> dict[str, str | int]:
    """The attributes of a group that may be wider than the page, so that keys can scroll it."""
    return {"class_": kind, "tabindex": 0, "role": "group", "aria_label": label}


def hidden_forms(cell: Cell) -> bool:
    """Whether a number has more forms than its face shows."""
    return cell.form is not None and not cell.plain


def register_mark(register: str | None, hidden: bool = False) -> Markup:
    """The sign of a register, with its word for screen readers."""
    if register is None:
        return Markup()
    shown = _hidden(SIGNS[register], "sign") if SIGNS[register] else Markup()
    if hidden:
        return shown
    return shown + element("span", " ", words.register_word(register), class_="sr")


def _hidden(sign: str, kind: str | None = None) -> Markup:
    """A sign hidden from screen readers."""
    return element("span", sign, class_=kind, aria_hidden="true")
