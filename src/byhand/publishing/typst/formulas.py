"""Laws with this model's numbers in them, and one entry written out."""

from __future__ import annotations

from byhand.expression import write
from byhand.publishing.mathematics import cell_tree, rounded_line, too_wide
from byhand.publishing.parts import (
    Formula,
    Line,
    Matrix,
    Sign,
)
from byhand.publishing.typst.numbers import Inscriber
from byhand.publishing.typst.quoting import call, string
from byhand.render.layout import MASK
from byhand.render.parts import Cell


def formula(law: Formula, pen: Inscriber) -> str:
    """The law, the same with this model's numbers, and one entry written out."""
    return call(
        "law",
        line_of(law.symbols, pen),
        line_of(law.numbers, pen) if law.numbers else "none",
        pen.working(law.worked) if law.worked is not None else "none",
    )


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
