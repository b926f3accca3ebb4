"""The layout of a training step: every weight now, its gradient and its new value, side by side.

The three blocks have the same rows and the same shape.  So one copy of the last block, pasted as
values over the first, is a whole step of training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from byhand.document.media.xlsx.cells import Cell, Table
from byhand.language import _
from byhand.optimizer import UPDATE
from byhand.parameters import Parameter, learned
from byhand.plan import GRAD, WEIGHT, Plan

GRADIENT = "~gradient"  # of a weight: its gradient beside it
NORM = f"{UPDATE}norm"
DOWN = {1: None, 2: 0, 3: 1}  # the axis of a weight that runs down, by its number of axes
RATE, OLD, NEW, NOTED_LOSSES = (
    "learning_rate",
    "old_weights",
    "new_weights",
    "noted_losses",
)  # names
RATE_ROW, LOSS_ROW, NORM_ROW, STEPS_ROW = 4, 5, 6, 8
STEPS = 3  # lines that say how to go on
FIRST = STEPS_ROW + STEPS + 2  # the first row of the blocks
LABELS, LEFT = 1, 2  # the columns of the labels and of the first block
NOTED = 21  # losses that can be noted


@dataclass(frozen=True, slots=True)
class Row:
    """One weight in the three blocks; `title` is the row of its address."""

    parameter: Parameter
    title: int
    now: Table
    gradient: Table
    new: Table


@dataclass(frozen=True, slots=True)
class StepPage:
    """The sheet of a training step."""

    name: str
    rows: tuple[Row, ...]
    width: int  # columns of a block

    @property
    def rate(self) -> Cell:
        """The cell of the learning rate."""
        return Cell(self.name, RATE_ROW, LEFT)

    @property
    def norm(self) -> Table:
        """The norm of all gradients."""
        return Table(NORM, self.name, NORM_ROW, LEFT, (1,), None)

    @property
    def losses(self) -> tuple[Cell, Cell]:
        """The first and the last cell for losses that are noted, right of the blocks."""
        first = Cell(self.name, FIRST + 1, self.start(3) + 1)
        return first, first.beside(NOTED - 1, 0)

    def start(self, block: int) -> int:
        """The first column of a block."""
        return LEFT + block * (self.width + 1)

    def block(self, block: int) -> tuple[Cell, Cell]:
        """The first and the last cell of a block."""
        last = self.rows[-1].now.last.row
        first = Cell(self.name, FIRST + 1, self.start(block))
        return first, Cell(self.name, last, first.column + self.width - 1)

    @property
    def tables(self) -> Iterator[Table]:
        """Every table of the sheet."""
        yield self.norm
        for row in self.rows:
            yield from (row.now, row.gradient, row.new)


def step_page(plan: Plan) -> StepPage | None:
    """The sheet of the plan's training step; None where the plan has none."""
    weights = [p for p in learned(plan.spec) if f"{UPDATE}{WEIGHT}{p.name}" in plan.known]
    if not weights:
        return None
    name = _("Step")
    width = max(_flat(p).columns for p in weights)
    return StepPage(name, tuple(_rows(name, weights, width)), width)


def _flat(parameter: Parameter) -> Table:
    return Table("", "", 0, 0, parameter.shape, DOWN[len(parameter.shape)])


def _rows(name: str, weights: Sequence[Parameter], width: int) -> Iterator[Row]:
    row = FIRST + 1
    for parameter in weights:
        address = WEIGHT + parameter.name
        down = DOWN[len(parameter.shape)]
        now, gradient, new = (
            Table(key, name, row + 2, LEFT + block * (width + 1), parameter.shape, down)
            for block, key in enumerate((typed(address), address + GRADIENT, UPDATE + address))
        )
        yield Row(parameter, row, now, gradient, new)
        row = now.last.row + 2


def typed(address: str) -> str:
    """The table in which a weight is typed: `now.head` for `weight.head`."""
    return "now." + address.removeprefix(WEIGHT)


def gradient_of(address: str) -> str:
    """The step whose numbers a table of gradients shows."""
    return GRAD + address.removesuffix(GRADIENT)


# ------------------------------------------------------------------ words


def about_step() -> str:
    """What happens on the sheet, in a sentence."""
    return _(
        "Every weight moves against its gradient: new weight = weight − learning rate · gradient. "
        "The weights in yellow are those of the whole file."
    )


def instructions() -> tuple[str, ...]:
    """How a class trains in the spreadsheet."""
    return (
        _(
            "1. Copy the new weights: type {name} into the name box, left of the formula line, "
            "press Enter, and copy."
        ).format(name=NEW),
        _(
            "2. Paste them over the weights as values: type {name} into the name box, press Enter, "
            "and choose Paste Special, Values. Everything is worked out anew: the loss falls."
        ).format(name=OLD),
        _("3. Note the loss in the yellow column on the right, and go on with 1. Undo goes back."),
    )
