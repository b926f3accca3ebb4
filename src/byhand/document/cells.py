"""Notebook cells: a step, a number or the parts of a result as self-contained HTML.

A cell has its own style, which affects nothing else on the page, and needs no script and no ids.
The cell of a whole trace is in `byhand.editions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from byhand.display import one_line
from byhand.document import words
from byhand.document.compose.forms import Forms
from byhand.document.compose.tables import TARGETED, Tables, Window
from byhand.document.media.html.markup import element
from byhand.document.media.html.mathml import Mathml
from byhand.document.media.html.notebook import Plain, framed
from byhand.document.media.html.parts import draw
from byhand.document.parts import (
    Column,
    Finding,
    Grid,
    NotWorked,
    Part,
    Section,
    StepPart,
    WorkingLine,
)
from byhand.language import _
from byhand.numbers.exact.value import Value
from byhand.plan import Step
from byhand.worked import Worked

if TYPE_CHECKING:
    from byhand.checking.verdicts import Marked, Marking
    from byhand.comparing import Comparison
    from byhand.contrasting import Contrast
    from byhand.counting import Inventory
    from byhand.generating import Generation
    from byhand.learning import Training, TrainingStep
    from byhand.model import Model


WIDEST = 100  # characters of a field


def parts_cell(
    parts: Iterable[Part | Section], title: str = "", sheets: tuple[str, ...] = ("explained.css",)
) -> str:
    """Parts of a document as one piece of HTML, in the current language."""
    pen = _pen()
    head = [element("p", title, class_="title")] if title else []
    drawn = (piece for part in parts for piece in draw(part, pen))
    return framed(*head, *drawn, sheets=sheets)


def marking_cell(marking: Marking) -> str:
    """A marking: the result, the lines with their verdicts, and their explanations."""
    from byhand.document.compose.marking import cell_parts

    return parts_cell(cell_parts(marking), marking.model)


def marked_cell(line: Marked) -> str:
    """One marked line: its verdict, and what explains it."""
    from byhand.document.compose.marked import verdict_line
    from byhand.document.parts.verdicts import VerdictTable

    return parts_cell([VerdictTable(line.address, (verdict_line(line),))], line.address)


def comparison_cell(comparison: Comparison) -> str:
    """A run in floats beside the true values: the steps with their largest errors."""
    from byhand.document.compose.comparison import cell_parts

    return parts_cell(cell_parts(comparison), comparison.plan.spec.name)


def contrast_cell(contrast: Contrast) -> str:
    """A change of weights: how far each step moved."""
    from byhand.document.compose.contrast import cell_parts

    return parts_cell(cell_parts(contrast), contrast.name)


def generation_cell(generation: Generation) -> str:
    """A generation so far: the tokens with their probabilities, and the text."""
    from byhand.document.compose.generation import cell_parts

    return parts_cell(cell_parts(generation), generation.model.name)


def training_cell(training: Training) -> str:
    """Training steps: the losses, and the last step line by line."""
    from byhand.document.compose.learning import cell_parts

    return parts_cell(cell_parts(training), training.model.name)


def training_step_cell(step: TrainingStep) -> str:
    """One training step: its rule, its loss and its norm."""
    from byhand.document.compose.learning import step_facts

    return parts_cell([step_facts(step)], step.trace.model.name)


def inventory_cell(inventory: Inventory) -> str:
    """The parameters of a model by component, with their formulas and totals."""
    from byhand.document.compose.listing import inventory_parts

    _title, *parts = inventory_parts(inventory)
    return parts_cell(parts, inventory.model)


def model_cell(model: Model) -> str:
    """A model: what it is, and its parameters by component."""
    from byhand.counting import count
    from byhand.document.compose.listing import inventory_grid

    about = [Finding(words.told(model.about))] if model.about else []
    return parts_cell([*about, inventory_grid(count(model.spec), True)], model.name)


def fields_cell(what: Any) -> str:
    """An object by its fields: short ones as they are, arrays by their shape."""
    rows = tuple(
        (field.name, _brief(getattr(what, field.name)))
        for field in fields(what)
        if not field.name.startswith("_")
    )
    return parts_cell([Grid("", (Column(""), Column("")), rows)], type(what).__name__)


def _brief(value: Any) -> str:
    """A value in a line."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and len(shape):
        return words.printable(
            f"{' × '.join(map(str, shape))} {getattr(value, 'dtype', '')}".strip()
        )
    if isinstance(value, str):
        return words.printable(value)
    if isinstance(value, Mapping):
        return one_line(", ".join(map(str, value)), WIDEST)
    return one_line(str(value), WIDEST)


def step_cell(worked: Worked) -> str:
    """A step: its law and its numbers, in tables whose rows and columns are numbered."""
    step = worked.step
    plain = StepPart(step.address, (), step.formula, step.axes, step.shape, worked.register)
    if worked.missing is not None:
        return parts_cell([NotWorked(words.why_missing(worked.missing), (plain,))])
    return parts_cell([replace(plain, tables=tuple(_StepTables(worked).tables(worked)))])


class _StepTables(Tables):
    """The tables of one step without its trace: positions stand for tokens."""

    numbered = True

    def __init__(self, worked: Worked) -> None:
        self.window = Window()
        self.forms = Forms(worked.numbers)
        self.labels = tuple(map(str, range(max(worked.step.shape, default=1))))
        self.source_labels = self.labels

    def token(self, id: int) -> str:
        """The id itself, since only the trace knows the word."""
        return str(id)

    def names(self, address: str, axes: Sequence[str]) -> tuple[Sequence[str], ...]:
        """None: only the trace knows the model's."""
        return tuple(() for _axis in axes)

    def row_label(self, step: Step, place: int) -> str:
        """The position, without its target."""
        return self.labels[place] if step.op in TARGETED else super().row_label(step, place)

    def row_places(self, step: Step, length: int) -> Sequence[int]:
        """The rows inside the window, whatever the text is."""
        return self.window.row_places(length)

    def written_out(self, step: Any) -> bool:
        """False: a line of working would need the steps that this one reads."""
        return False


def value_cell(value: Value) -> str:
    """A number of the exact system in all its forms, with the definitions of its letters."""
    forms = Forms(_Alone(value))  # type: ignore[arg-type]
    cell = forms.full(value)
    line = WorkingLine("", cell, letters=forms.letters([cell.worked, cell.form]))
    return framed(*_pen().working(line))


class _Alone:
    """A number system for the forms of a single number."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def writer(self) -> Any:
        """The writer whose letters the number's own text uses."""
        return self.value.space.own_writer

    def register(self, entry: Value) -> str:
        """The register of a number."""
        return entry.register


def _pen() -> Plain:
    return Plain(Mathml(_("."), finite=True))
