"""Laws with this model's numbers in them, and one entry written out."""

from __future__ import annotations

from byhand.expression import write
from byhand.publishing.book import Formula, Line, Matrix, Sign
from byhand.publishing.html.parts import WIDEST_LINE
from byhand.publishing.typst.numbers import Inscriber, tree_of
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
    brief = _width(line) > WIDEST_LINE
    rounded = brief and any(
        cell.register == "named" and cell.decimal is not None
        for piece in line
        if isinstance(piece, Matrix)
        for row in piece.rows
        for cell in row
    )
    drawn, told = [], []
    for piece in line:
        match piece:
            case Sign(text=text):
                text = "≈" if text == "=" and rounded else text
                drawn.append({"·": "⋅"}.get(text, text))
                told.append(text)
            case Matrix(rows=rows):
                drawn.append(pen.maths.matrix([[_entry(c, pen, brief) for c in r] for r in rows]))
                told.append("; ".join(" ".join(write(tree_of(c, brief)) for c in r) for r in rows))
            case _:
                drawn.append(pen.maths.draw(piece))
                told.append(write(piece))
    return pen.maths.line(drawn, " ".join(told))


def _entry(cell: Cell, pen: Inscriber, brief: bool) -> str:
    return string(MASK) if cell.masked else pen.maths.draw(tree_of(cell, brief))


def _width(line: Line) -> int:
    """About how many signs stand side by side."""
    wide = 0
    for piece in line:
        if isinstance(piece, Matrix):
            columns = zip(*piece.rows, strict=True)
            wide += sum(max(map(_signs, column)) + 2 for column in columns) + 2
    return wide


def _signs(cell: Cell) -> int:
    text = write(tree_of(cell)).replace("√(", "√").strip("()")
    return max(map(len, text.split("/")))
