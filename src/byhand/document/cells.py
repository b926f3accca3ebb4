"""Notebook cells: a step, a number and the parts of a result, each a piece that stands by itself.

A piece brings its own style, which reaches nothing else on the page, and needs no script and no
ids.  The cell of a whole trace is in `notebook`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from byhand.document import words
from byhand.document.compose.forms import Forms
from byhand.document.compose.tables import Tables
from byhand.document.compose.window import Window
from byhand.document.media.html.markup import element
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.parts import part_lines
from byhand.document.media.html.prose import left_out
from byhand.document.notebook import Plain, style
from byhand.document.parts import Part, WorkingLine
from byhand.language import _, spoken
from byhand.numbers.exact.value import Value
from byhand.tracing import Worked


def parts_cell(parts: Iterable[Part], title: str = "") -> str:
    """Parts of a document as one piece of HTML, in the language spoken."""
    pen = _pen()
    head = [str(element("p", title, class_="title"))] if title else []
    lines = (line for part in parts for line in part_lines(part, pen))
    return _framed([*head, *lines], "explained.css")


def step_cell(worked: Worked) -> str:
    """A step: its law and its numbers, in tables whose rows and columns are numbered."""
    return _framed(_step_lines(worked))


def _step_lines(worked: Worked) -> Iterator[str]:
    formula = words.formula_text(worked.step.formula)
    law = f"{worked.address} = {formula}" if formula else worked.address
    yield str(element("p", element("code", law), class_="law"))
    if worked.missing is not None:
        yield left_out(words.why_missing(worked.missing))
        return
    pen = _pen()
    for table in _StepTables(worked).tables(worked):
        yield from part_lines(table, pen)


class _StepTables(Tables):
    """The tables of one step, whose trace is not at hand: places stand for tokens."""

    numbered = True

    def __init__(self, worked: Worked) -> None:
        self.window = Window()
        self.forms = Forms(worked.numbers)
        self.labels = tuple(map(str, range(max(worked.step.shape, default=1))))

    def token(self, id: int) -> str:
        """The id itself: which word it is, the trace knows."""
        return str(id)

    def written_out(self, step: Any) -> bool:
        """No line of working: it would need the steps that this one reads."""
        return False


def value_cell(value: Value) -> str:
    """A number of the exact system in all its forms, with what its letters stand for."""
    forms = Forms(_Alone(value))  # type: ignore[arg-type]
    cell = forms.full(value)
    line = WorkingLine("", cell, letters=forms.letters([cell.worked, cell.form]))
    return _framed(_pen().working(line))


class _Alone:
    """What the forms of a number ask of its number system, where only the number is at hand."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def writer(self) -> Any:
        """The writer whose letters the number prints itself in."""
        return self.value.space.own_writer

    def register(self, entry: Value) -> str:
        """The register of a number."""
        return entry.register


def _pen() -> Plain:
    return Plain(Mathml(_("."), finite=True))


def _framed(lines: Iterable[str], *sheets: str) -> str:
    inside, looks = "\n".join(lines), style(*sheets)
    return f'<div class="byhand" lang="{spoken()}"><style>{looks}</style>\n{inside}\n</div>'
