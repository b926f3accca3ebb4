"""One number on paper, and the lines that a person would write to work it out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from byhand.document.mathematics import in_a_table, says_no_more
from byhand.document.media.html.numbers import (
    LONGEST_LETTER,
    LONGEST_WORKING,
    in_full_by_decimals,
)
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.quoting import array, call, code, content, string, words
from byhand.document.numerals import localised
from byhand.document.parts import Cell, Letter, Number, NumberTable, WorkingLine
from byhand.document.words import axes_text
from byhand.expression import Expression, write
from byhand.language import _


@dataclass
class Inscriber:
    """Writes numbers; `signs`: each with the sign of its register."""

    maths: TypstMaths
    signs: bool = True

    # ------------------------------------------------------------------ in a table

    def number(self, number: Number) -> str:
        """The number as a cell of a table."""
        cell = number.cell
        if cell.masked:
            return "masked"
        named = {}
        if self.signs and cell.register is not None:
            named["register"] = string(cell.register)
        named_form = cell.register == "named" and cell.radius is None and in_a_table(cell)
        if named_form and cell.decimal is not None:
            named["about"] = content(string("≈ " + localised(cell.decimal)))
        if number.claim is not None:
            named["claim"] = string(number.claim.sign)
        return call("number", self.face(cell), **named)

    def axes(self, table: NumberTable) -> str:
        """The axes of a table, each with its length."""
        return axes_text(table.axes, table.shape)

    def face(self, cell: Cell) -> str:
        """The shortest honest look of a number."""
        if cell.radius is not None:
            return string(f"{localised(cell.decimal or '')} ± {localised(cell.radius)}")
        if cell.form is not None and in_a_table(cell):
            return self.maths.formula(cell.form)
        hides = cell.register == "exact" and cell.cut
        return string("≈ " * hides + localised(cell.decimal or ""))

    def tells_a_form(self, cell: Cell) -> bool:
        """Whether more than plain decimals stands in the cell."""
        return not cell.masked and cell.radius is None and in_a_table(cell)

    # ------------------------------------------------------------------ its working

    def working(self, line: WorkingLine) -> str:
        """symbols = values = what it is, one below the other."""
        names = [
            content(code(short), string(" = "), code(full))
            for short, full in line.sources
            if short != full
        ]
        before, _names, after = _("where {names}").partition("{names}")
        told = "none"
        if names:
            joined = [p for name in names for p in (string(", "), name)][1:]
            told = content(words(before), *joined, words(after))
        return call(
            "working",
            string(line.address),
            array(self._lines(line)),
            told,
            array(map(self.letter, line.letters)),
            array(words(mark.text) for mark in line.remarks),
        )

    def _lines(self, line: WorkingLine) -> Iterator[str]:
        before = ""
        rows: list[tuple[str, Expression, str]] = []
        if line.symbols is not None:
            rows.append(("=", line.symbols, "symbols-line"))
        if line.values is not None:
            rows.append(("≈" if line.decimals else "=", line.values, ""))
        for sign, tree, kind in rows:
            text = write(tree)
            if text != before and len(text) <= LONGEST_WORKING:
                yield f"{kind}({self.maths.formula(sign, tree)})"
            before = text
        if not line.missing:
            yield from self._value(line.cell, before)

    def _value(self, cell: Cell, before: str) -> Iterator[str]:
        """Every form of a number that does not stand there yet."""
        if cell.radius is not None:
            yield f"value-line({content(string('= '), self.face(cell))})"
            return
        for tree in (cell.worked, cell.form):
            if tree is None or says_no_more(tree, before):
                continue
            if len(write(tree)) <= LONGEST_WORKING:
                before = write(tree)
                yield self.maths.formula("=", tree)
        if cell.decimal is not None and not cell.plain:
            sign = "= " if in_full_by_decimals(cell) else "≈ "
            yield f"value-line({string(sign + localised(cell.decimal))})"

    def letter(self, letter: Letter) -> str:
        """where p = … ≈ 0.2689"""
        text = _("where {name} =").format(name=letter.name)
        definition = write(letter.definition)
        if len(definition) > LONGEST_LETTER:
            told = words(_("a number of its own"))
        else:
            told = self.maths.formula(letter.definition)
        about = f" ≈ {localised(letter.decimal)}" if letter.decimal else ""
        return content(words(text + " "), told, string(about))
