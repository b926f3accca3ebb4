"""Numbers and laws on paper: a number, its working, and laws with the model's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from byhand.document.mathematics import (
    LONGEST_LETTER,
    Written,
    cell_tree,
    in_a_table,
    in_short,
    settled,
    working_lines,
)
from byhand.document.media.terminal.layout import MASK
from byhand.document.media.typst.maths import TypstMaths
from byhand.document.media.typst.quoting import array, call, code, content, string, words
from byhand.document.numerals import localised
from byhand.document.parts import (
    Cell,
    Formula,
    Letter,
    Line,
    Matrix,
    Number,
    NumberTable,
    Sign,
    Word,
    WorkingLine,
)
from byhand.document.words import axes_text
from byhand.expression import write
from byhand.language import _


@dataclass
class Inscriber:
    """Writes numbers; with `signs`, each has the sign of its register."""

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
        """The shortest complete text of a number."""
        if cell.form is not None and cell.radius is None and in_a_table(cell):
            return self.maths.formula(cell.form)
        return self.decimal(cell, "≈ " * in_short(cell))

    def decimal(self, cell: Cell, sign: str = "") -> str:
        """The decimals behind a sign, with a radius where there is one."""
        radius = "" if cell.radius is None else f" ± {localised(cell.radius)}"
        return string(sign + localised(cell.decimal or "") + radius)

    def tells_a_form(self, cell: Cell) -> bool:
        """Whether the cell shows more than plain decimals."""
        return not cell.masked and cell.radius is None and in_a_table(cell)

    # ------------------------------------------------------------------ its working

    def working(self, line: WorkingLine) -> str:
        """symbols = values = result, one below the other."""
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
            array(self.lines(working_lines(line), line.cell)),
            told,
            array(map(self.letter, line.letters)),
            array(words(mark.text) for mark in line.remarks),
        )

    def lines(self, lines: Iterable[Written], cell: Cell) -> Iterator[str]:
        """Lines of a working, the decimals among them."""
        for kind, sign, tree in lines:
            if tree is None:
                yield f"value-line({self.decimal(cell, f'{sign} ')})"
            else:
                drawn = self.maths.formula(sign, tree)
                yield f"symbols-line({drawn})" if kind == "symbols" else drawn

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


# ------------------------------------------------------------------ laws


def formula(law: Formula, pen: Inscriber) -> str:
    """The law, the law in numbers, and one entry written out."""
    return call(
        "law",
        line_of(law.symbols, pen),
        array(
            array([words(label) if label else "none", line_of(line, pen)])
            for label, line in law.lines
        ),
        pen.working(law.worked) if law.worked is not None else "none",
    )


def line_of(line: Line, pen: Inscriber) -> str:
    """A line; where it would be too wide, what is named is shown by its decimals."""
    brief, line = settled(line)
    drawn, told = [], []
    for piece in line:
        match piece:
            case Sign(text=text):
                drawn.append({"·": "⋅"}.get(text, text))
                told.append(text)
            case Word(text=text):
                drawn.append(string(text))
                told.append(text)
            case Matrix(rows=rows):
                drawn.append(pen.maths.matrix([[_entry(c, pen, brief) for c in r] for r in rows]))
                told.append(
                    "; ".join(" ".join(write(cell_tree(c, brief)) for c in r) for r in rows)
                )
            case _:
                drawn.append(pen.maths.draw(piece))
                told.append(write(piece))
    return pen.maths.line(drawn, " ".join(told))


def _entry(cell: Cell, pen: Inscriber, brief: bool) -> str:
    return string(MASK) if cell.masked else pen.maths.draw(cell_tree(cell, brief))
