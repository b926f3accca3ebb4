"""The numbers of a trace as a book holds them: with address, forms, working and printed claim.

Cells come from `render.forms`, lines of working from `render.at`; what is left to do here is to
put an address to each of them, and to say which of a large tensor are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from byhand.address import write_index
from byhand.document import words
from byhand.document.compose import working
from byhand.document.compose.book.spoken_numbers import rational_of, said, together
from byhand.document.compose.forms import PLACES, rational_cell
from byhand.document.compose.given import weight_cell, word_instead
from byhand.document.compose.trace import COPIES, Document, left_out_text
from byhand.document.compose.window import Window
from byhand.document.compose.working import Workings, left_out_mark, renamed, short_names
from byhand.document.numerals import in_full, localised
from byhand.document.parts import Number as Figure
from byhand.document.parts import NumberRow, NumberTable
from byhand.document.trace_parts import MASKED, Cell, WorkingLine
from byhand.document.verdict_parts import VerdictLine
from byhand.expression import Entry, substitute
from byhand.expression import Expression as Tree
from byhand.language import _
from byhand.plan import WEIGHT
from byhand.spec import Parameter, parameters
from byhand.tracing import Trace, Worked, weakest

Index = tuple[int, ...]
MOST_PLACES = 24  # of a share that is nearly 1
_ONE = re.compile(r"1\.0*")


class _Inside(Workings):
    """Lines of working; a value that is written into many of them is written once."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._values: dict[Entry, tuple[Tree, bool] | None] = {}

    def value_of(self, leaf: Entry) -> tuple[Tree, bool] | None:
        if leaf not in self._values:
            self._values[leaf] = super().value_of(leaf)
        return self._values[leaf]

    def step_cell(self, worked: Worked, index: Index) -> Cell:
        return told_from_one(super().step_cell(worked, index), worked.at(index))

    def weight_entry(self, address: str, index: Index) -> Any:
        return _entry(self.trace.model.weights[address.removeprefix(WEIGHT)].data, index)


def _entry(data: Any, index: Index) -> Any:
    """An entry of a weight; of a float of any format, the Python float that it is."""
    entry = data[index]
    return entry if data.dtype == np.dtype(object) else float(entry)


def weight_shape(trace: Trace, address: str) -> Index:
    """The shape of a weight; an AddressError with the nearest names where there is none."""
    return working.weight_shape(address, trace.model.weights)


def told_from_one(cell: Cell, entry: Any) -> Cell:
    """A share that is less than 1 but whose decimals would say 1, with as many as tell it apart."""
    if cell.register != "named" or not _ONE.fullmatch(cell.decimal or ""):
        return cell
    for places in range(PLACES + 1, MOST_PLACES + 1):
        text: str = entry.decimal(places)
        if not _ONE.fullmatch(text):
            return replace(cell, decimal=text)
    return cell


class Showing:
    """The numbers of one trace.  `everything`: no table is cut, and each number has its working
    unless none are wanted."""

    def __init__(
        self,
        trace: Trace,
        *,
        everything: bool,
        claims: Mapping[str, VerdictLine],
        window: Window,
        workings: bool = True,
    ) -> None:
        self.trace = trace
        self.everything = everything
        self.workings = workings and everything
        self.claims = claims
        self.window = window
        self.inside = _Inside(trace)
        self.forms = self.inside.forms
        self.document = Document(trace, window, False, "byhand")
        self._numbers: dict[tuple[str, bool], Figure] = {}  # many stand in several places
        self._cells: dict[tuple[str, Index, bool], Cell] = {}

    @property
    def followed(self) -> int:
        """The position whose numbers are written out one by one: the last one."""
        return len(self.trace.tokens) - 1

    # ------------------------------------------------------------------ one number

    def number(self, worked: Worked, index: Index, *, form: bool = True) -> Figure:
        """One entry of a step."""
        address = worked.address + write_index(index)
        key = (address, form)
        if key not in self._numbers:
            self._numbers[key] = Figure(
                address,
                self.cell(worked, index, form=form),
                self.line(worked, index) if self.workings else None,
                self.claims.get(address),
            )
        return self._numbers[key]

    def cell(self, worked: Worked, index: Index, *, form: bool = True) -> Cell:
        """The forms of one entry."""
        if worked.missing is not None:
            return MASKED
        if worked.whole:
            return self._id(worked, index)
        key = (worked.address, index, form)
        if key not in self._cells:
            self._cells[key] = self._cell(worked, worked.at(index), form)
        return self._cells[key]

    def _cell(self, worked: Worked, entry: Any, form: bool) -> Cell:
        cell = self.forms.cell(entry, form=form, worked=self._shows_working(worked))
        return told_from_one(cell, entry) if worked.step.op == "softmax" else cell

    def _id(self, worked: Worked, index: Index) -> Cell:
        value = worked.value[index[0]] if index else worked.value
        found = value if isinstance(value, int) else value.id  # a prediction, which may be open
        return MASKED if found is None else rational_cell(found)

    def _shows_working(self, worked: Worked) -> bool:
        return self.everything and worked.step.op not in COPIES

    def line(self, worked: Worked, index: Index) -> WorkingLine | None:
        """How one entry comes about; what it is in letters is left to its decimals."""
        if worked.missing is not None or worked.whole:
            return None
        tree = self.inside.working.of(worked.address, index)
        if tree is None:
            return None
        shown, left_out = self.inside.shortened(tree)
        names = short_names(worked.step, shown, self.trace)
        values, decimals = self.inside.with_values(shown)
        line = WorkingLine(
            worked.address + write_index(index),
            cell=self.cell(worked, index),
            symbols=substitute(shown, lambda leaf: renamed(leaf, names)),
            values=values,
            decimals=decimals,
            sources=tuple((name, address) for address, name in names.items()),
        )
        if not left_out:
            return line
        return replace(line, marks=(left_out_mark(left_out),))

    # ------------------------------------------------------------------ in sentences

    @cached_property
    def by_decimals(self) -> bool:
        """Whether the weights are decimals by nature, 0.2 rather than 3/4: so are the numbers."""
        if not self.everything:
            return False
        return any(
            isinstance(x, Fraction) and x.denominator % 5 == 0 and in_full(x) is not None
            for tensor in self.trace.model.weights.values()
            if not tensor.floats
            for x in tensor.data.flat
        )

    def said(self, worked: Worked, index: Index) -> str:
        """An entry as a sentence says it: 3/2, e/(1 + e) or ≈ 0.4711."""
        return self.cell_said(self.cell(worked, index))

    def cell_said(self, cell: Cell) -> str:
        """A cell as a sentence says it."""
        value = rational_of(cell.form) if self.by_decimals else None
        decimal = None if value is None else in_full(value)
        return said(cell) if decimal is None else localised(decimal)

    def row_said(self, worked: Worked, at: Index) -> str:
        """A row of a step: (1, −1)."""
        size = worked.step.shape[-1]
        shown = self.window.column_places(size)
        texts = [self.said(worked, (*at, i)) for i in shown]
        return together(texts if len(shown) == size else [*texts[:-1], "…", texts[-1]])

    # ------------------------------------------------------------------ labels

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """0 the, 1 cat, …"""
        return tuple(
            f"{place} {words.token_label(self.trace.token(id))}"
            for place, id in enumerate(self.trace.tokens)
        )

    def position(self, place: int) -> str:
        """1 (cat), as sentences say it."""
        return f"{place} ({self.token(self.trace.tokens[place])})"

    def token(self, id: int) -> str:
        return words.token_label(self.trace.token(id))

    def heads_of(self, axis: str, columns: Sequence[int], size: int) -> tuple[str, ...]:
        """The words above columns."""
        match axis:
            case "vocab":
                return tuple(map(self.token, columns))
            case "key":
                return tuple(self.labels[place] for place in columns)
            case _:
                return () if len(columns) == size and size <= 2 else tuple(map(str, columns))

    # ------------------------------------------------------------------ tables of steps

    def tables(self, worked: Worked) -> Iterator[NumberTable]:
        """A step as tables, one a head; of a large one, windows."""
        step = worked.step
        if worked.missing is not None:
            return
        if worked.whole:
            yield self._ids(worked)
        elif step.axes[0] in ("head", "kv_head"):
            shown = self.window.head_places(step.shape[0])
            for head in shown:
                title = f"{step.axes[0]} {head}" if step.shape[0] > 1 else ""
                hidden = step.shape[0] - len(shown) if head == shown[-1] else 0
                yield self._table(worked, (head,), title, hidden)
        else:
            yield self._table(worked, (), "", 0)

    def _ids(self, worked: Worked) -> NumberTable:
        ids = worked.value if isinstance(worked.value, tuple | list) else (worked.value,)
        places = self.window.row_places(len(ids))
        several = isinstance(worked.value, tuple | list)
        rows = tuple(
            NumberRow(
                place,
                self.labels[place] if several else "",
                "exact",
                (self.number(worked, (place,) if several else ()),),
            )
            for place in places
        )
        left_out = left_out_text(len(ids) - len(places), 0, 0)
        step = worked.step
        return NumberTable(step.address, "", step.axes, step.shape, (0,), ("id",), rows, left_out)

    def _table(self, worked: Worked, head: Index, title: str, heads_left_out: int) -> NumberTable:
        step = worked.step
        wide = len(step.shape) > len(head) + 1
        size = step.shape[-1] if wide else 1
        columns = self.window.columns_of(worked) if wide else (0,)
        length = step.shape[len(head)]
        places = self.window.row_places(length)
        rows = []
        for place in places:
            at = (*head, place)
            indices = [(*at, column) for column in columns] if wide else [at]
            numbers = tuple(
                self.number(worked, index, form=len(columns) == size) for index in indices
            )
            label = self.labels[place] if step.position_axis is not None else ""
            rows.append(NumberRow(place, label, self.row_register(worked, at), numbers))
        return NumberTable(
            address=step.address + (write_index(head) if head else ""),
            title=title,
            axes=step.axes,
            shape=step.shape,
            columns=columns,
            heads=self.heads_of(step.axes[-1], columns, size) if wide else (),
            rows=tuple(rows),
            left_out=left_out_text(
                length - len(places),
                size - len(columns),
                heads_left_out,
                list(columns) != sorted(columns),
            ),
        )

    def row_register(self, worked: Worked, at: Index) -> str | None:
        """The weakest register of a row, the entries left out included."""
        if worked.missing is not None:
            return None
        if worked.numbers.uniform:
            return worked.numbers.uniform
        if len(worked.step.shape) == len(at):
            return worked.register_at(at)
        found = (worked.register_at((*at, i)) for i in range(worked.step.shape[-1]))
        return weakest(register for register in found if register is not None)

    def row(self, worked: Worked, place: int) -> NumberRow:
        """One position of a step with two axes, as a figure shows it."""
        columns = self.window.column_places(worked.step.shape[-1])
        numbers = tuple(self.number(worked, (place, i)) for i in columns)
        register = self.row_register(worked, (place,))
        return NumberRow(place, self.labels[place], register, numbers)

    # ------------------------------------------------------------------ tables of weights

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        return {p.name: p for p in parameters(self.trace.model.spec)}

    def weight(self, name: str, title: str) -> Iterator[NumberTable]:
        """A weight as a table, whole or a window of it, or as a word; of three axes, one a head."""
        data = self.trace.model.weights[name].data
        if data.ndim <= 2:
            yield self._weight_table(name, title, data, ())
            return
        shown = self.window.head_places(len(data))
        for head in shown:
            own = f"{title}, {_('head {head}').format(head=head)}" if len(data) > 1 else title
            table = self._weight_table(name, own, data[head], (head,))
            if head == shown[-1] and len(shown) < len(data):
                more = left_out_text(0, 0, len(data) - len(shown))
                table = replace(table, left_out=" · ".join(filter(None, (table.left_out, more))))
            yield table

    def _weight_table(self, name: str, title: str, data: Any, head: Index) -> NumberTable:
        parameter = self.parameters[name]
        rows, columns = data.shape if data.ndim == 2 else (1, data.shape[0])
        shown, across = self.window.row_places(rows), self.window.column_places(columns)
        whole = data.size <= self.window.weights or self.everything
        word = word_instead(data.tolist(), data.ndim) if whole else ""
        return NumberTable(
            address=WEIGHT + name + (write_index(head) if head else ""),
            title=title,
            axes=parameter.axes,
            shape=parameter.shape,
            columns=across,
            heads=self._weight_heads(parameter.axes[-1], across, columns),
            rows=()
            if word
            else tuple(self._weight_row(name, data, head, place, across) for place in shown),
            left_out="" if word else left_out_text(rows - len(shown), columns - len(across), 0),
            word=word,
            kind="weight",
        )

    def _weight_row(
        self, name: str, data: Any, head: Index, place: int, across: Sequence[int]
    ) -> NumberRow:
        down = self.parameters[name].axes[-2] if data.ndim == 2 else ""
        label = self.token(place) if down == "vocab" else str(place) if down else ""
        indices = [(place, i) if data.ndim == 2 else (i,) for i in across]
        cells = [weight_cell(_entry(data, index)) for index in indices]
        numbers = tuple(
            Figure(WEIGHT + name + write_index((*head, *index)), cell)
            for index, cell in zip(indices, cells, strict=True)
        )
        register = weakest(cell.register for cell in cells if cell.register is not None)
        return NumberRow(place, label, register, numbers)

    def _weight_heads(self, axis: str, across: Sequence[int], size: int) -> tuple[str, ...]:
        if axis == "vocab":
            return tuple(map(self.token, across))
        return () if size <= 2 else tuple(map(str, across))

    def weight_rows(self, name: str) -> tuple[tuple[Cell, ...], ...]:
        """Every entry of a weight, for a matrix in a formula."""
        data = self.trace.model.weights[name].data
        rows = data if data.ndim == 2 else data[None]
        return tuple(
            tuple(weight_cell(_entry(rows, (i, j))) for j in range(rows.shape[1]))
            for i in range(rows.shape[0])
        )
