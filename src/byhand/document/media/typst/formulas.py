"""Laws with this model's numbers in them, and one entry written out."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.document.mathematics import cell_tree, rounded_line, too_wide
from byhand.document.media.terminal.layout import MASK
from byhand.document.media.typst.numbers import Inscriber
from byhand.document.media.typst.quoting import array, call, string, words
from byhand.document.parts import Cell, Formula, Line, Matrix, Sign, Word
from byhand.expression import write


def formula(law: Formula, pen: Inscriber) -> str:
    """The law, the same with this model's numbers, and one entry written out."""
    return call(
        "law",
        line_of(law.symbols, pen),
        array(_numbers(law, pen)),
        pen.working(law.worked) if law.worked is not None else "none",
    )


def _numbers(law: Formula, pen: Inscriber) -> Iterator[str]:
    """The lines with numbers, each with the position that it is of, or none."""
    for label, line in (*law.earlier, (law.label, law.numbers)):
        if line:
            yield array([words(label) if label else "none", line_of(line, pen)])


def line_of(line: Line, pen: Inscriber) -> str:
    """A line; where it would be too wide, what is named is shown by its decimals."""
    brief = too_wide(line)
    rounded = rounded_line(line, brief)
    drawn, told = [], []
    for piece in line:
        match piece:
            case Sign(text=text):
                text = "≈" if text == "=" and rounded else text
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
