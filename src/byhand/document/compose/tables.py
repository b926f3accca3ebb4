"""The numbers of a trace in tables: steps, heads of steps and weights, whole or windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.document import words
from byhand.document.compose.forms import Forms, floats, rational_cell, weight_cell, word_instead
from byhand.document.parts import MASKED, Cell, Number, NumberRow, NumberTable
from byhand.language import _, amount, later
from byhand.numbers.adjoints import UNCOUNTED
from byhand.parameters import Parameter, parameters
from byhand.plan import WEIGHT, Step
from byhand.tracing import Trace
from byhand.worked import Worked, weakest

Index = tuple[int, ...]
# axes alone that are written as a column
DOWN = ("pos", "query", "source", "source_query", "one")
STACKED = ("head", "kv_head", "one_head", "expert")  # axes with a table for each of their places
TARGETED = ("losses", "logprobs")  # operations with a target for each position
COPIES = ("embed", "split_heads", "merge_heads")  # operations without new numbers


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a large tensor is shown; smaller tensors are shown whole."""

    rows: int = 12
    columns: int = 12
    heads: int = 4
    terms: int = 8  # of a sum that is written out
    tokens: int = 5  # of a vocabulary too large to show
    weights: int = 64  # entries of the largest weight shown

    def row_places(self, size: int) -> tuple[int, ...]:
        """The rows that are shown: all, or the first and the last."""
        return _ends(size, self.rows, 6, 2)

    def column_places(self, size: int) -> tuple[int, ...]:
        """The columns that are shown: all, or the first and the last."""
        return _ends(size, self.columns, 4, 1)

    def columns_of(self, worked: Worked) -> tuple[int, ...]:
        """The columns shown; of a large vocabulary in floats or enclosures, the largest numbers."""
        size = worked.step.shape[-1]
        if size <= self.columns or worked.step.axes[-1] not in WORDED:
            return self.column_places(size)
        if not floats(worked.array) and worked.numbers.uniform != "enclosed":
            return self.column_places(size)
        found = nearby_floats(worked)
        sizes = found[-1] if worked.step.stage == "forward" else np.abs(found).max(axis=0)
        return tuple(np.argsort(-sizes, kind="stable")[: self.tokens].tolist())

    def head_places(self, size: int) -> tuple[int, ...]:
        """The heads that are shown: all, or the first two."""
        return tuple(range(size)) if size <= self.heads else (0, 1)


def nearby_floats(worked: Worked) -> npt.NDArray[np.float64]:
    """Floats near the numbers, to compare their sizes."""
    if isinstance(worked.array, np.ndarray):
        return np.asarray(worked.array, dtype=np.float64)
    numbers: Any = worked.numbers  # limbs: too many to convert one by one
    value = numbers.enclosed(worked.value)
    return np.asarray(value.digits.engine.to_numpy(value.approx))


def _ends(size: int, most: int, first: int, last: int) -> tuple[int, ...]:
    if size <= most:
        return tuple(range(size))
    return (*range(first), *range(size - last, size))


WORDED = ("vocab", "source_vocab", "outputs")  # the axes whose places are words
OF_SOURCE = ("source", "source_query", "source_key")  # the axes of what an encoder reads


class Tables:
    """The tables of one trace, and the labels of its positions and words.

    With `numbered`, rows and columns without words have their indices.
    """

    numbered = False

    def __init__(self, trace: Trace, window: Window, forms: Forms | None = None) -> None:
        self.trace = trace
        self.window = window
        self.forms = forms or Forms(trace.numbers, digits=trace.digits)

    # ------------------------------------------------------------------ labels

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each position: 0 the, 1 cat, …"""
        return tuple(f"{place} {self.token(id)}" for place, id in enumerate(self.trace.tokens))

    @cached_property
    def source_labels(self) -> tuple[str, ...]:
        """The label of each position of the source that an encoder reads."""
        ids = () if self.trace.source is None else self.trace.source.tokens
        return tuple(f"{place} {self.source_token(id)}" for place, id in enumerate(ids))

    def labels_along(self, axis: str) -> tuple[str, ...]:
        """The labels of the positions of an axis: of the text, or of the source."""
        return self.source_labels if axis in OF_SOURCE else self.labels

    def labels_of(self, step: Step) -> tuple[str, ...]:
        """The labels of a step's rows: positions of the text, or of the source."""
        return self.source_labels if step.of_source else self.labels

    def position(self, place: int, *, of_source: bool = False) -> str:
        """A position for sentences: 1 (cat)."""
        if of_source and self.trace.source is not None:
            return f"{place} ({self.source_token(self.trace.source.tokens[place])})"
        return f"{place} ({self.token(self.trace.tokens[place])})"

    def source_token(self, id: int) -> str:
        """The word of an id of the source."""
        return words.token_label(self.trace.source_token(id))

    def position_of(self, step: Step, place: int) -> str:
        """A position of a step's rows for sentences: of the text, or of the source."""
        return self.position(place, of_source=step.of_source)

    def token(self, id: int) -> str:
        """The word of an id, for a table or a sentence."""
        return words.token_label(self.trace.token(id))

    def answer(self, id: int) -> str:
        """The word of an output's id: a next token, a target."""
        return words.token_label(self.trace.answer(id))

    def worded(self, axis: str, id: int) -> str:
        """The word at a place of an axis of WORDED."""
        if axis == "source_vocab":
            return self.source_token(id)
        return self.token(id) if axis == "vocab" else self.answer(id)

    def names(self, address: str, axes: Sequence[str]) -> tuple[Sequence[str], ...]:
        """The names that the maker gave to the places of each axis; empty where there are none."""
        dimensions = self.trace.model.dimensions
        name = address.rpartition(WEIGHT)[2]
        if WEIGHT in address and name in self.parameters:
            return dimensions.of_sides(self.parameters[name], self.trace.model.spec, (), ())
        return tuple(dimensions.along(axis, address) for axis in axes)

    def heads(
        self, axis: str, columns: Sequence[int], size: int, names: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """The words above some of `size` columns; indices if some are left out."""
        match axis:
            case "vocab" | "source_vocab" | "outputs":
                return tuple(self.worded(axis, place) for place in columns)
            case "key" | "source_key":
                labels = self.labels_along(axis)
                return tuple(labels[place] for place in columns)
        if names:
            return tuple(names[place] for place in columns)
        whole = len(columns) == size
        return () if whole and (size <= 2 or not self.numbered) else tuple(map(str, columns))

    # ------------------------------------------------------------------ one number

    def number(self, worked: Worked, index: Index, *, form: bool = True) -> Number:
        """One entry of a step, with its address."""
        return Number(worked.address + write_index(index), self.cell(worked, index, form=form))

    def cell(self, worked: Worked, index: Index, *, form: bool = True) -> Cell:
        """The forms of one entry; none for an unknown step."""
        if worked.missing is not None:
            return MASKED
        if worked.whole:
            value = worked.value[index[0]] if index else worked.value
            found = value if isinstance(value, int) else value.id  # a prediction, perhaps undecided
            return MASKED if found is None else rational_cell(found)
        return self.forms.cell(worked.at(index), form=form, worked=self.written_out(worked.step))

    def written_out(self, step: Step) -> bool:
        """Whether a line of working is short enough to stand in a table."""
        if step.op in COPIES:
            return False
        shapes = [self.trace.plan[read].shape for read in step.reads if read in self.trace.steps]
        return all(shape[-1] <= self.window.terms for shape in shapes if shape)

    # ------------------------------------------------------------------ tables of steps

    def tables(self, worked: Worked) -> Iterator[NumberTable]:
        """A step as tables, one for each head; windows of a large step."""
        step = worked.step
        if worked.missing is not None:
            return
        if worked.whole:
            yield self.ids(worked)
        elif step.axes[0] in STACKED or len(step.shape) > 2:  # heads, or experts of a weight
            shown = self.window.head_places(step.shape[0])
            for head in shown:
                title = f"{step.axes[0]} {head}" if step.shape[0] > 1 else ""
                hidden = step.shape[0] - len(shown) if head == shown[-1] else 0
                yield self.table(worked, (head,), title, hidden)
        else:
            yield self.table(worked, (), "", 0)

    def ids(self, worked: Worked) -> NumberTable:
        """The table of a step whose numbers are token ids."""
        step, several = worked.step, isinstance(worked.value, tuple | list)
        count = len(worked.value) if several else 1
        places = self.window.row_places(count)
        labels = self.labels_along(step.axes[0]) if several else ()
        rows = tuple(
            NumberRow(
                place,
                labels[place] if several else "",
                "exact",
                (self.number(worked, (place,) if several else ()),),
            )
            for place in places
        )
        left_out = left_out_text(count - len(places), 0, 0)
        return NumberTable(step.address, "", step.axes, step.shape, (0,), ("id",), rows, left_out)

    def table(self, worked: Worked, head: Index, title: str, heads_left_out: int) -> NumberTable:
        """A step of at most two axes, or one head of it."""
        step = worked.step
        if len(step.shape) == 1 and step.axes[0] not in DOWN:
            return self.row_of(worked, title)
        wide = len(step.shape) > len(head) + 1
        size = step.shape[-1] if wide else 1
        columns = self.window.columns_of(worked) if wide else (0,)
        length = step.shape[len(head)]
        rows = []
        for place in self.rows_shown(step, length):
            at = (*head, place)
            indices = [(*at, column) for column in columns] if wide else [at]
            form = len(columns) == size
            numbers = tuple(self.number(worked, index, form=form) for index in indices)
            register = self.row_register(worked, at)
            rows.append(NumberRow(place, self.row_label(step, place), register, numbers))
        hidden = length - len(self.row_places(step, length))
        in_order = list(columns) == sorted(columns)
        names = self.names(step.address, step.axes)
        largest = "" if in_order else step.stage
        return NumberTable(
            address=step.address + (write_index(head) if head else ""),
            title=title,
            axes=step.axes,
            shape=step.shape,
            columns=columns,
            heads=self.heads(step.axes[-1], columns, size, names[-1]) if wide else (),
            rows=tuple(rows),
            left_out=left_out_text(hidden, size - len(columns), heads_left_out, largest),
        )

    def row_of(self, worked: Worked, title: str) -> NumberTable:
        """A step of one axis that is no position, such as the gradient of a bias, as a row."""
        step, (size,) = worked.step, worked.step.shape
        columns = self.window.column_places(size)
        whole = len(columns) == size
        numbers = tuple(self.number(worked, (i,), form=whole) for i in columns)
        registers = (number.cell.register for number in numbers)
        register = weakest(found for found in registers if found is not None)
        return NumberTable(
            address=step.address,
            title=title,
            axes=step.axes,
            shape=step.shape,
            columns=columns,
            heads=self.heads(step.axes[-1], columns, size, self.names(step.address, step.axes)[-1]),
            rows=(NumberRow(0, "", register, numbers),),
            left_out=left_out_text(0, size - len(columns), 0),
        )

    def row_label(self, step: Step, place: int) -> str:
        """The label of a row: its position and token, or what the row of a table is of."""
        if step.op in TARGETED:
            targets = self.trace.targets or ()
            target = targets[place] if place < len(targets) else UNCOUNTED
            shown = "·" if target == UNCOUNTED else self.answer(target)
            return f"{self.labels[place]} → {shown}"
        if step.position_axis is not None:
            return self.labels_along(step.axes[step.position_axis])[place]
        if step.stage == "forward" or len(step.axes) < 2:
            return ""
        down = step.axes[-2]
        if down in WORDED:
            return self.worded(down, place)
        if names := self.names(step.address, step.axes)[-2]:
            return names[place]
        return str(place) if down == "context" else ""

    def rows_shown(self, step: Step, length: int) -> Sequence[int]:
        """The rows of a step that are shown."""
        return self.row_places(step, length)

    def row_places(self, step: Step, length: int) -> Sequence[int]:
        """The rows inside the window; of a large table's gradient, those of the text's tokens."""
        places = self.window.row_places(length)
        if len(places) < length and step.stage != "forward" and step.axes[0] == "vocab":
            read = {*self.trace.tokens}
            if self.trace.model.output_words is None:  # the targets are tokens too
                target = () if self.trace.target is None else (self.trace.target,)
                read |= {*target, *(self.trace.targets or ())} - {UNCOUNTED}
            return sorted(read)[: self.window.rows]
        return places

    def row_register(self, worked: Worked, at: Index) -> str | None:
        """The weakest register of a row, including entries left out."""
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
        label = self.labels_along(worked.step.axes[0])[place]
        return NumberRow(place, label, self.row_register(worked, (place,)), numbers)

    # ------------------------------------------------------------------ tables of weights

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Every tensor of the model by its name."""
        return {p.name: p for p in parameters(self.trace.model.spec)}

    def weight(self, name: str, title: str) -> Iterator[NumberTable]:
        """A weight as a table, a window or a word; with three axes, a table for each head."""
        data = self.trace.model.weights[name].data
        if data.ndim <= 2:
            yield self._weight_table(name, title, data, ())
            return
        shown = self.window.head_places(len(data))
        for head in shown:
            which = _("head {head}").format(head=head)
            if self.parameters[name].part == "mlp":
                which = _("expert {expert}").format(expert=head)
            own = f"{title}, {which}" if len(data) > 1 else title
            table = self._weight_table(name, own, data[head], (head,))
            if head == shown[-1] and len(shown) < len(data):
                more = left_out_text(0, 0, len(data) - len(shown))
                table = replace(table, left_out=" · ".join(filter(None, (table.left_out, more))))
            yield table

    def _weight_table(self, name: str, title: str, data: Any, head: Index) -> NumberTable:
        axes, shape = self.parameters[name].axes, self.parameters[name].shape
        rows, columns = data.shape if data.ndim == 2 else (1, data.shape[0])
        shown, across = self.window.row_places(rows), self.window.column_places(columns)
        word = ""
        if data.size <= self.window.weights:
            shown, across = tuple(range(rows)), tuple(range(columns))
            word = word_instead(data.tolist(), data.ndim)
        return NumberTable(
            address=WEIGHT + name + (write_index(head) if head else ""),
            title=title,
            axes=axes,
            shape=shape,
            columns=across,
            heads=self.heads(axes[-1], across, columns, self.names(WEIGHT + name, axes)[-1]),
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
        label = str(place) if down == "context" or (down and self.numbered) else ""
        indices = [(place, i) if data.ndim == 2 else (i,) for i in across]
        numbers = tuple(
            Number(WEIGHT + name + write_index((*head, *at)), weight_cell(entry_of(data, at)))
            for at in indices
        )
        register = weakest(n.cell.register for n in numbers if n.cell.register is not None)
        names = self.names(WEIGHT + name, self.parameters[name].axes)[-2] if down else ()
        label = names[place] if names else label
        label = self.worded(down, place) if down in WORDED else label
        return NumberRow(place, label, register, numbers)

    def weight_rows(self, name: str) -> tuple[tuple[Cell, ...], ...]:
        """Every entry of a weight, for a matrix in a formula."""
        data = self.trace.model.weights[name].data
        rows = data if data.ndim == 2 else data[None]
        return tuple(
            tuple(weight_cell(entry_of(rows, (i, j))) for j in range(rows.shape[1]))
            for i in range(rows.shape[0])
        )


def entry_of(data: Any, index: Index) -> Any:
    """An entry of a weight; a float of any format as a Python float."""
    entry = data[index]
    return entry if data.dtype == np.dtype(object) else float(entry)


def left_out_text(rows: int, columns: int, heads: int, largest: str = "") -> str:
    """What a window leaves out, in words; empty if nothing.

    `largest` is the stage of a step whose largest columns are shown.
    """
    in_columns = {
        "": (later("1 more column"), later("{count} more columns")),
        "forward": (
            later("1 more column, not larger in the last row"),
            later("{count} more columns, none larger in the last row"),
        ),
    }
    smaller = (
        later("1 more column of smaller numbers"),
        later("{count} more columns of smaller numbers"),
    )
    said = (
        (rows, (later("1 more row"), later("{count} more rows"))),
        (columns, in_columns.get(largest, smaller)),
        (heads, (later("1 more head"), later("{count} more heads"))),
    )
    return ", ".join(amount(count, *forms) for count, forms in said if count > 0)
