"""The contents of the cells: the formula of an entry, the number it shows, remarks on steps.

Most formulas are the expressions of `byhand.working`.  The others are written here: a token is
looked up, a row of the embedding is chosen by its id, a softmax subtracts the largest score first,
0/0 in a norm without eps is 0, the next token is where the maximum is found.

A spreadsheet program works the formulas out itself.  Other viewers, and LibreOffice when it opens a
file, show the stored results: those of the same pass in float64.

Remarks hold for the original weights and text: a changed weight does not change them, as the guide
says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, isfinite
from typing import Any

import numpy as np

from byhand.document import words
from byhand.document.compose.steps import Steps
from byhand.document.compose.tables import Window
from byhand.document.media.xlsx.cells import Table, refer
from byhand.document.media.xlsx.formulas import formula
from byhand.document.media.xlsx.layout import (
    LARGEST,
    POWERS,
    PROBABILITY,
    TOKEN,
    TOTAL,
    VOCABULARY,
    Layout,
)
from byhand.document.media.xlsx.learning import LARGEST_EXPONENT, LearningFormulas
from byhand.document.media.xlsx.settings import EPS
from byhand.expression import Expression, Number
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT
from byhand.plan import WEIGHT, Plan, Step
from byhand.tracing import Trace
from byhand.worked import Worked
from byhand.working import Index, Working

_PLAIN = re.compile(r"[^\W\d_]+")
NOT_A_NUMBER = "#NUM!"  # a spreadsheet's error value
SIGNS = {"leaves": "◆", "returns": "◇"}  # of remarks on a step
Shown = float | str | None  # None: the cell stays empty


@dataclass(frozen=True)
class Contents:
    """Everything that is known before cells are written."""

    trace: Trace
    labels: tuple[str, ...]  # of the vocabulary, by id
    layout: Layout
    remarks: Remarks
    values: Values
    operations: Operations

    @property
    def plan(self) -> Plan:
        """The plan of everything in the file: the pass, and one training step if it has room."""
        return self.values.floats.plan

    @property
    def loss(self) -> Table:
        """The table of the loss that a training step lowers."""
        return self.layout.tables["mean_loss" if "mean_loss" in self.layout.tables else "loss"]


def plain_lookup(labels: Sequence[str]) -> bool:
    """Whether MATCH alone can tell the tokens apart: it ignores case, and * ? ~ < = are special."""
    folded = {label.casefold() for label in labels}
    return len(folded) == len(labels) and all(_PLAIN.fullmatch(label) for label in labels)


class Operations(LearningFormulas):
    """The formulas of a plan with a layout."""

    def __init__(self, plan: Plan, layout: Layout, working: Working, labels: Sequence[str]) -> None:
        super().__init__(plan, layout, working)
        self.plain_lookup = plain_lookup(labels)

    def of(self, address: str, index: Index) -> str | None:
        """The formula of one cell, without its =; None where the entry is masked."""
        here = self.tables[address].sheet
        name, mark, part = address.partition("~")
        if mark:
            return self.part(name, mark + part, index, here)
        step = self.plan[address]
        if self.working.absent(step.address, index) or self.uncounted(step, index):
            return None
        special = getattr(self, f"_{step.op}", None)
        text: str | None = special(step, index, here) if special else None
        return self.worked(step, index, here) if text is None else text

    def uncounted(self, step: Step, index: Index) -> bool:
        """Whether this is the target of a position that does not count."""
        return step.address == "targets" and self.working.given["targets"][index[0]] == UNCOUNTED

    # ------------------------------------------------------------------ tokens

    def _given(self, step: Step, index: Index, here: str) -> str:
        """The id of a token: its place in the vocabulary, from 0; a target is the next token."""
        if step.address == "targets":
            last = index[0] == step.shape[0] - 1
            return self.at("target", (), here) if last else self.at("tokens", (index[0] + 1,), here)
        typed = refer(self.layout.token_cell(step.address, index[0] if index else 0), sheet=here)
        known = self.vocabulary(here)
        found = f"{typed},{known}" if self.plain_lookup else f"TRUE,EXACT({typed},{known})"
        return f"MATCH({found},0)-1"

    def vocabulary(self, here: str) -> str:
        """The range of all tokens."""
        table = self.tables[VOCABULARY]
        return refer(table.first, table.last, sheet=here)

    def _embed(self, step: Step, index: Index, here: str) -> str | None:
        """The embedding row of the id in the cell, so that another token selects another row."""
        if "ids" not in step.inputs:
            return None
        table = self.tables[step.inputs["table"]]
        rows = table.shape[0] - 1
        column = refer(table.cell((0, index[1])), table.cell((rows, index[1])), sheet=here)
        found = f"INDEX({column},{self.at(step.inputs['ids'], index[:1], here)}+1)"
        scale = step.attributes.get("scale")
        return found if scale is None else f"{found}*({formula(scale, self.where, here)})"

    def _argmax(self, step: Step, index: Index, here: str) -> str:
        row = self.row(step.inputs["x"], index, here)
        return f"MATCH(MAX({row}),{row},0)-1"

    def _loss(self, step: Step, _index: Index, here: str) -> str:
        probs: Table = self.tables[step.inputs["probs"]]
        row = self.row(step.inputs["probs"], (probs.shape[0] - 1,), here)
        return f"-LN(INDEX({row},{self.at(step.inputs['target'], (), here)}+1))"

    # ------------------------------------------------------------------ norms, softmax, silu

    def _root(self, step: Step, index: Index, here: str) -> str:
        """The eps is a cell of its own."""
        x = self.at(step.inputs["x"], index, here)
        return f"SQRT({x}+{self.at(step.address + EPS, (0,), here)})"

    def _normalize(self, step: Step, index: Index, here: str) -> str | None:
        if self.plan[step.inputs["by"]].attributes["eps"]:
            return None
        by = self.at(step.inputs["by"], index[:-1], here)
        return f"IF({by}=0,0,{self.worked(step, index, here)})"

    def _softmax(self, step: Step, index: Index, here: str) -> str:
        power = self.at(step.address + POWERS, index, here)
        return f"{power}/{self.at(step.address + TOTAL, index[:-1], here)}"

    def _choose(self, step: Step, index: Index, here: str) -> str:
        """1 where fewer than `count` scores are larger, or equal and before it."""
        position, expert = index
        table = self.tables[step.inputs["x"]]
        own = self.at(step.inputs["x"], index, here)
        larger = f"SUMPRODUCT(({self.row(step.inputs['x'], (position,), here)}>{own})*1)"
        if expert:
            ends = table.cell((position, 0)), table.cell((position, expert - 1))
            larger += f"+SUMPRODUCT(({refer(*ends, sheet=here)}={own})*1)"
        return f"IF({larger}<{step.attributes['count']},1,0)"

    def _expert_shares(self, step: Step, index: Index, here: str) -> str:
        """Less the largest score, so that no power is too large."""
        x, chosen = step.inputs["x"], step.inputs["chosen"]
        row, marks = (self.row(address, index[:1], here) for address in (x, chosen))
        own = f"{self.at(chosen, index, here)}*EXP({self.at(x, index, here)}-MAX({row}))"
        counted = f"{marks}*" if step.attributes["normalised"] else ""
        return f"{own}/SUMPRODUCT({counted}EXP({row}-MAX({row})))"

    def _activate(self, step: Step, index: Index, here: str) -> str | None:
        if step.attributes["kind"] != "silu":
            return None
        x = self.at(step.inputs["x"], index, here)
        return f"{x}/(1+EXP(MIN({LARGEST_EXPONENT},-{x})))"

    def part(self, address: str, part: str, index: Index, here: str) -> str | None:
        """The formula of a softmax's working, or of the words beside the next id."""
        if part == TOKEN:
            return f"INDEX({self.vocabulary(here)},{self.at('next', index, here)}+1)"
        if part == PROBABILITY:
            chosen = self.at("next", index, here)
            return f"INDEX({self.row('probs', index, here)},{chosen}+1)"
        x = self.plan[address].inputs["x"]
        sinks = self.plan[address].inputs.get("sinks")
        sink = None if sinks is None else self.at(sinks, index[:1], here)
        if part == LARGEST:
            row = self.row(x, index, here)
            return f"MAX({row})" if sink is None else f"MAX({row},{sink})"
        if part == TOTAL:
            total = f"SUM({self.row(address + POWERS, index, here)})"
            if sink is None:
                return total
            return f"{total}+EXP({sink}-{self.at(address + LARGEST, index, here)})"
        if self.working.absent(x, index):
            return None
        return f"EXP({self.at(x, index, here)}-{self.at(address + LARGEST, index[:-1], here)})"


class Values:
    """The number stored in each cell, from the pass in float64."""

    def __init__(self, floats: Trace, labels: Sequence[str]) -> None:
        self.floats = floats
        self.labels = labels
        self._rows: dict[tuple[str, Index], tuple[float, list[float | None]]] = {}
        self._weights: dict[str, Any] = {}

    def absent(self, address: str, index: Index) -> bool:
        """Whether an entry is masked."""
        return self._raw(address, index) is ABSENT

    def of(self, address: str, index: Index) -> Shown:
        """The stored value of an entry's cell, or of a line of working."""
        name, mark, part = address.partition("~")
        value = self._part(name, mark + part, index) if mark else self._raw(address, index)
        if value is None or isinstance(value, str):
            return value
        return value if isfinite(value) else NOT_A_NUMBER

    def _raw(self, address: str, index: Index) -> float | None:
        worked = self.floats.steps[self.floats.plan[address].address]
        if worked.step.op == "argmax":
            found = worked.value[index[0]].id
            return float("nan") if found is None else float(found)
        if worked.whole:
            return float(worked.value[index[0]] if index else worked.value)
        entry = worked.at(index)
        return None if entry is ABSENT else float(entry)

    def _part(self, address: str, part: str, index: Index) -> Shown:
        if part in (TOKEN, PROBABILITY):
            chosen = self._raw("next", index)
            if chosen is None or not isfinite(chosen):
                return NOT_A_NUMBER
            id = int(chosen)
            return self.labels[id] if part == TOKEN else self._raw("probs", (*index, id))
        largest, powers = self._shifted(address, index[:-1] if part == POWERS else index)
        if part == LARGEST:
            return largest
        if part == POWERS:
            return powers[index[-1]]
        total = sum(power for power in powers if power is not None)
        sink = self._sink(address, index)
        return total if sink is None else total + exp(sink - largest)

    def _sink(self, address: str, row: Index) -> float | None:
        """The sink of the head of a row; None where a softmax has none."""
        sinks = self.floats.plan[address].inputs.get("sinks")
        return None if sinks is None else self.weight(sinks.removeprefix(WEIGHT), row[:1])

    def _shifted(self, address: str, row: Index) -> tuple[float, list[float | None]]:
        """The largest score of a row, and e to the power of each score less that."""
        if (address, row) not in self._rows:
            plan = self.floats.plan
            x = plan[address].inputs["x"]
            scores = [self._raw(x, (*row, key)) for key in range(plan[x].shape[-1])]
            seen = [score for score in (*scores, self._sink(address, row)) if score is not None]
            largest = max(seen, default=0.0)
            powers = [None if score is None else exp(score - largest) for score in scores]
            self._rows[address, row] = largest, powers
        return self._rows[address, row]

    def setting(self, value: Expression) -> float:
        """An eps or a scale as the nearest float64."""
        data = np.empty(1, dtype=object)
        data[0] = value.value if isinstance(value, Number) else value
        return float(self.floats.numbers.admit(data)[0])

    def weight(self, name: str, index: Index) -> float:
        """A weight as the nearest float64."""
        if name not in self._weights:
            tensor = self.floats.model.weights[name]
            self._weights[name] = self.floats.numbers.admit(tensor.data)
        return float(self._weights[name][index])


class Remarks:
    """The registers and remarks of a trace; none if all numbers have one register."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.some = trace.numbers.uniform is None
        self._steps = Steps(trace, Window())

    def named(self, address: str, index: Index) -> bool:
        """Whether an entry is known not to be rational."""
        worked = self._worked(address)
        return worked is not None and worked.register_at(index) == "named"

    def register(self, address: str) -> str:
        """The weakest register of a step, in words; empty if unknown."""
        worked = self._worked(address)
        return words.register_word(worked.register) if worked and worked.register else ""

    def lines(self) -> dict[str, tuple[str, ...]]:
        """The remarks of every step that has any."""
        plan = self.trace.plan
        found: dict[str, tuple[str, ...]] = {}
        for step in plan:
            said = tuple(self._boundaries(step.address))
            if step.op == "normalize" and not plan[step.inputs["by"]].attributes["eps"]:
                said += (_("0/0 counts as 0 here, its limit as eps goes to 0"),)
            if said:
                found[step.address] = said
        return found

    def _worked(self, address: str) -> Worked | None:
        worked = self.trace.steps.get(address)
        if worked is None or not self.some or worked.missing is not None or worked.whole:
            return None
        return worked

    def _boundaries(self, address: str) -> Iterator[str]:
        if (worked := self._worked(address)) is not None:
            for remark in self._steps.remarks(worked):
                if remark.kind in SIGNS:
                    yield f"{SIGNS[remark.kind]} {remark.text}"
