"""The formula of every cell: the working of its entry, and what only a spreadsheet has to know.

Most formulas are the expression that `byhand.working` gives.  The others are here: a token is
looked up, a row of the embedding is chosen by its id, a softmax subtracts the largest score first,
0/0 in a norm without eps is 0, the next token is where the maximum is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from byhand.document.media.xlsx.cells import Cell, Table, refer
from byhand.document.media.xlsx.formulas import formula
from byhand.document.media.xlsx.pages import (
    LARGEST,
    POWERS,
    PROBABILITY,
    TOKEN,
    TOTAL,
    VOCABULARY,
    Layout,
)
from byhand.expression import Entry
from byhand.plan import Plan, Step
from byhand.working import Index, Working

LARGEST_EXPONENT = 700  # e^710 is beyond what a spreadsheet holds
_PLAIN = re.compile(r"[^\W\d_]+")


def plain_lookup(labels: Sequence[str]) -> bool:
    """Whether MATCH alone tells the tokens apart: it knows no capitals, and * ? ~ < = mean more."""
    folded = {label.casefold() for label in labels}
    return len(folded) == len(labels) and all(_PLAIN.fullmatch(label) for label in labels)


class Operations:
    """The formulas of a plan that is laid out."""

    def __init__(self, plan: Plan, layout: Layout, working: Working, labels: Sequence[str]) -> None:
        self.plan = plan
        self.layout = layout
        self.tables = layout.tables
        self.working = working
        self.plain_lookup = plain_lookup(labels)

    def of(self, address: str, index: Index) -> str | None:
        """The formula of one cell, without its =; None where the entry is masked."""
        here = self.tables[address].sheet
        name, mark, part = address.partition("~")
        if mark:
            return self.part(name, mark + part, index, here)
        step = self.plan[address]
        if self.working.absent(step.address, index):
            return None
        special = getattr(self, f"_{step.op}", None)
        text: str | None = special(step, index, here) if special else None
        return self.worked(step, index, here) if text is None else text

    def worked(self, step: Step, index: Index, here: str) -> str:
        tree = self.working.of(step.address, index)
        assert tree is not None
        return formula(tree, self.where, here)

    def where(self, entry: Entry) -> Cell:
        return self.tables[entry.address].cell(entry.index)

    def at(self, address: str, index: Index, here: str) -> str:
        return refer(self.tables[address].cell(index), sheet=here)

    def row(self, address: str, before: Index, here: str) -> str:
        """The range of a row: all entries whose index starts so."""
        table = self.tables[address]
        last = table.shape[-1] - 1
        return refer(table.cell((*before, 0)), table.cell((*before, last)), sheet=here)

    # ------------------------------------------------------------------ tokens

    def _given(self, step: Step, index: Index, here: str) -> str:
        """The id of a token: its place in the vocabulary, from 0."""
        typed = refer(self.layout.token_cell(step.address, index[0] if index else 0), sheet=here)
        known = self.vocabulary(here)
        found = f"{typed},{known}" if self.plain_lookup else f"TRUE,EXACT({typed},{known})"
        return f"MATCH({found},0)-1"

    def vocabulary(self, here: str) -> str:
        table = self.tables[VOCABULARY]
        return refer(table.first, table.last, sheet=here)

    def _embed(self, step: Step, index: Index, here: str) -> str | None:
        """The row of the table that the id says, so that another token is another row."""
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

    def _normalize(self, step: Step, index: Index, here: str) -> str | None:
        if self.plan[step.inputs["by"]].attributes["eps"]:
            return None
        by = self.at(step.inputs["by"], index[:-1], here)
        return f"IF({by}=0,0,{self.worked(step, index, here)})"

    def _softmax(self, step: Step, index: Index, here: str) -> str:
        power = self.at(step.address + POWERS, index, here)
        return f"{power}/{self.at(step.address + TOTAL, index[:-1], here)}"

    def _activate(self, step: Step, index: Index, here: str) -> str | None:
        if step.attributes["kind"] != "silu":
            return None
        x = self.at(step.inputs["x"], index, here)
        return f"{x}/(1+EXP(MIN({LARGEST_EXPONENT},-{x})))"

    def part(self, address: str, part: str, index: Index, here: str) -> str | None:
        """The working of a softmax, and what is said with the next id.  Masked cells are empty,
        and neither MAX nor SUM sees an empty cell."""
        if part == TOKEN:
            return f"INDEX({self.vocabulary(here)},{self.at('next', index, here)}+1)"
        if part == PROBABILITY:
            chosen = self.at("next", index, here)
            return f"INDEX({self.row('probs', index, here)},{chosen}+1)"
        x = self.plan[address].inputs["x"]
        if part == LARGEST:
            return f"MAX({self.row(x, index, here)})"
        if part == TOTAL:
            return f"SUM({self.row(address + POWERS, index, here)})"
        if self.working.absent(x, index):
            return None
        return f"EXP({self.at(x, index, here)}-{self.at(address + LARGEST, index[:-1], here)})"
