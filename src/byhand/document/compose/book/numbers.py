"""The numbers of a trace in a book: with address, forms, working and printed claim.

Tables come from `compose.tables` and lines of working from `compose.working`.  Here each number
gets its working and its claim, and numbers are worded for sentences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from byhand.address import write_index
from byhand.document.compose.book.spoken_numbers import rational_of, said, together
from byhand.document.compose.forms import PLACES
from byhand.document.compose.steps import Steps
from byhand.document.compose.tables import COPIES, Index, Window, entry_of
from byhand.document.compose.working import Workings
from byhand.document.numerals import in_full, localised
from byhand.document.parts import Cell, Number, WorkingLine
from byhand.document.parts.verdicts import VerdictLine
from byhand.document.short_forms import is_long
from byhand.expression import Entry, Expression, Name, Negative
from byhand.model import Model
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace
from byhand.worked import Worked

MOST_PLACES = 24  # decimals of a probability that is nearly 1
_ONE = re.compile(r"1\.0*")


class _Inside(Workings):
    """Lines of working; a value that occurs in many of them is written once."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._values: dict[Entry, tuple[Expression, bool] | None] = {}

    def value_of(self, leaf: Entry) -> tuple[Expression, bool] | None:
        if leaf not in self._values:
            self._values[leaf] = super().value_of(leaf)
        return self._values[leaf]

    def card(self, worked: Worked, index: Index, cell: Cell) -> WorkingLine | None:
        """The line of a formula's entry; with its values in decimals too, where some are long."""
        line = self.line(worked, index, cell)
        if line is None or not is_long(line.values):
            return line
        tree = self.working.of(worked.address, index)
        if tree is None:
            return line
        brief, _decimals = self.with_values(self.shortened(tree)[0], self._in_brief)
        return replace(line, brief=brief)

    def _in_brief(self, leaf: Entry) -> tuple[Expression, bool] | None:
        found = self.value_of(leaf)
        if found is None or not is_long(found[0]) or leaf.address.startswith(WEIGHT):
            return found
        decimal = self.step_cell(self.trace.steps[leaf.address], leaf.index).decimal
        if decimal is None:
            return found
        tree = Name(decimal.removeprefix("-"))
        return (Negative(tree) if decimal.startswith("-") else tree), True

    def step_cell(self, worked: Worked, index: Index) -> Cell:
        return told_from_one(super().step_cell(worked, index), worked.at(index))

    def weight_entry(self, address: str, index: Index) -> Any:
        return entry_of(self.trace.model.weights[address.removeprefix(WEIGHT)].data, index)


def told_from_one(cell: Cell, entry: Any) -> Cell:
    """The cell with enough decimals to tell a probability below 1 from 1."""
    if cell.register != "named" or not _ONE.fullmatch(cell.decimal or ""):
        return cell
    for places in range(PLACES + 1, MOST_PLACES + 1):
        text: str = entry.decimal(places)
        if not _ONE.fullmatch(text):
            return replace(cell, decimal=text)
    return cell


def decimal_weights(model: Model) -> bool:
    """Whether some weights are written as decimals, 0.2 rather than 3/4; floats always are."""
    return any(tensor.floats for tensor in model.weights.values()) or any(
        isinstance(x, Fraction) and x.denominator % 5 == 0 and in_full(x) is not None
        for tensor in model.weights.values()
        if not tensor.floats
        for x in tensor.data.flat
    )


class Showing(Steps):
    """The numbers of one trace.

    With `everything`, no table is cut, and each number has its working if workings are wanted.
    """

    numbered = True

    def __init__(
        self,
        trace: Trace,
        *,
        everything: bool,
        window: Window,
        claims: Mapping[str, VerdictLine] | None = None,
        workings: bool = True,
    ) -> None:
        self.inside = _Inside(trace)
        super().__init__(trace, window, self.inside.forms)
        self.everything = everything
        self.workings = workings and everything
        self.claims = claims or {}
        self._numbers: dict[tuple[str, bool], Number] = {}  # many occur in several places
        self._cells: dict[tuple[str, Index, bool], Cell] = {}

    @property
    def followed(self) -> int:
        """The position whose numbers are written out: the last one."""
        return len(self.trace.tokens) - 1

    # ------------------------------------------------------------------ one number

    def number(self, worked: Worked, index: Index, *, form: bool = True) -> Number:
        """One entry of a step, with its working and with the printed claim."""
        address = worked.address + write_index(index)
        key = (address, form)
        if key not in self._numbers:
            cell = self.cell(worked, index, form=form)
            working = self.line(worked, index) if self.workings else None
            self._numbers[key] = Number(address, cell, working, self.claims.get(address))
        return self._numbers[key]

    def cell(self, worked: Worked, index: Index, *, form: bool = True) -> Cell:
        """The forms of one entry; a probability is told apart from 1."""
        key = (worked.address, index, form)
        if key not in self._cells:
            cell = super().cell(worked, index, form=form)
            softmax = worked.step.op == "softmax" and not cell.masked
            self._cells[key] = told_from_one(cell, worked.at(index)) if softmax else cell
        return self._cells[key]

    def written_out(self, step: Step) -> bool:
        """Whether a line of working stands beside a number in a table."""
        return self.everything and step.op not in COPIES

    def line(self, worked: Worked, index: Index) -> WorkingLine | None:
        """The working of one entry; a value in letters is shown by its decimals."""
        if worked.missing is not None or worked.whole:
            return None
        return self.inside.line(worked, index, self.cell(worked, index))

    def card(self, worked: Worked, index: Index) -> WorkingLine | None:
        """The working of the entry that a formula writes out."""
        if worked.missing is not None or worked.whole:
            return None
        return self.inside.card(worked, index, self.cell(worked, index))

    # ------------------------------------------------------------------ in sentences

    @cached_property
    def by_decimals(self) -> bool:
        """Whether numbers are shown as decimals, 0.2 rather than 3/4, like the weights."""
        return decimal_weights(self.trace.model)

    def said(self, worked: Worked, index: Index) -> str:
        """An entry for a sentence: 3/2, e/(1 + e) or ≈ 0.4711."""
        return self.cell_said(self.cell(worked, index))

    def cell_said(self, cell: Cell) -> str:
        """A cell for a sentence."""
        value = rational_of(cell.form) if self.by_decimals else None
        decimal = None if value is None else in_full(value)
        return said(cell) if decimal is None else localised(decimal)

    def row_said(self, worked: Worked, at: Index) -> str:
        """A row of a step: (1, −1)."""
        size = worked.step.shape[-1]
        shown = self.window.column_places(size)
        texts = [self.said(worked, (*at, i)) for i in shown]
        return together(texts if len(shown) == size else [*texts[:-1], "…", texts[-1]])
