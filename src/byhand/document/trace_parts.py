"""What a document is made of.  Parts hold expression trees and words, no escape codes, no widths.

`document` makes them from a trace; `terminal` shows them, and a book what it takes of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from byhand.document.verdict_parts import ClassTable, VerdictReport
from byhand.expression import Expression


@dataclass(frozen=True, slots=True)
class Cell:
    """One number in the forms it can be shown in.  A masked entry has no register and no form.

    `worked` is the form before simplifying, where it differs; `decimal` is proven to its last
    place; with a `radius`, the true value lies within it of `decimal`.  A form in letters that
    would need definitions is left to the parts that define them.

    `cut` says that `decimal` is not all of an exact or rounded number: 0.3333 for 1/3, or four
    decimals of a float.  An exact number without a form that is not cut is what its decimal says.
    """

    register: str | None
    form: Expression | None = None
    worked: Expression | None = None
    decimal: str | None = None
    radius: str | None = None
    cut: bool = field(default=False, compare=False)

    @property
    def masked(self) -> bool:
        return self.register is None


MASKED = Cell(None)


@dataclass(frozen=True, slots=True)
class Row:
    """A position's numbers; `place` is its index, `register` the weakest of the whole row."""

    place: int
    label: str
    register: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers in rows and columns, or a window of them.

    `columns` are the indices shown, `heads` their words where they have any; `left_out` says in
    words what the window does not show.
    """

    title: str
    columns: tuple[int, ...]
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A sentence at a step: leaves, returns, stops, limit, open, more."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter and what it stands for, told where it is first used."""

    name: str
    definition: Expression
    decimal: str | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The next token after one position, in words as well."""

    place: int
    label: str
    token: str | None  # None: undecided
    margin: Cell | None
    proven: bool
    tied: tuple[str, ...]
    candidates: tuple[str, ...]


# ------------------------------------------------------------------ the parts of a document


@dataclass(frozen=True, slots=True)
class Title:
    """What is worked out: model, text, numbers; and how the signs are read.

    `digits`: so many significant digits of every number are shown, proven.
    """

    name: str
    about: str
    facts: tuple[tuple[str, str], ...]
    registers: tuple[str, ...]
    masked: bool
    notes: tuple[str, ...] = ()
    digits: int | None = None
    only_later: bool = True  # all that is masked comes later; else a window or a table masks too


@dataclass(frozen=True, slots=True)
class Stage:
    """A heading along the spine, with a sentence on what happens here."""

    title: str
    about: str


@dataclass(frozen=True, slots=True)
class Given:
    """A weight that a step reads: its short name, and its numbers or a word such as identity."""

    name: str
    address: str
    word: str
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class StepPart:
    """One line of working with its numbers."""

    address: str
    also: tuple[str, ...]
    formula: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    register: str | None
    given: tuple[Given, ...] = ()
    tables: tuple[Table, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class NotWorked:
    """Steps without values, and the one reason they share."""

    reason: str
    steps: tuple[StepPart, ...]


@dataclass(frozen=True, slots=True)
class Predictions:
    """The step `next`: what follows each position."""

    step: StepPart
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True)
class Loss:
    """The step `loss`: how surprised the model is by the target."""

    step: StepPart
    target: str
    after: str
    cell: Cell
    letters: tuple[Letter, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkingLine:
    """How one number comes about: in short names, with the values in, and what it is."""

    address: str
    cell: Cell
    symbols: Expression | None = None
    values: Expression | None = None
    decimals: bool = False  # some of the values are shown by their decimals
    sources: tuple[tuple[str, str], ...] = ()  # short name, address
    letters: tuple[Letter, ...] = ()
    marks: tuple[Mark, ...] = ()
    missing: bool = False  # the number could not be worked out; a mark says why


Part = (
    Title
    | Stage
    | StepPart
    | NotWorked
    | Predictions
    | Loss
    | WorkingLine
    | Mark
    | VerdictReport
    | ClassTable
)
