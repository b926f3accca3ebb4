"""How the formulas of a plan refer to its numbers: an entry, a row, the expression of an entry."""

from __future__ import annotations

from byhand.document.media.xlsx.cells import Cell, refer
from byhand.document.media.xlsx.formulas import formula
from byhand.document.media.xlsx.layout import Layout
from byhand.expression import Entry
from byhand.plan import Plan, Step
from byhand.working import Index, Working


class References:
    """The numbers of a plan with a layout, as formulas name them."""

    def __init__(self, plan: Plan, layout: Layout, working: Working) -> None:
        self.plan = plan
        self.layout = layout
        self.tables = layout.tables
        self.working = working

    def worked(self, step: Step, index: Index, here: str) -> str:
        """The expression of an entry as a formula."""
        tree = self.working.of(step.address, index)
        assert tree is not None
        return formula(tree, self.where, here)

    def where(self, entry: Entry) -> Cell:
        """The cell of an entry."""
        address = entry.address if entry.address in self.tables else self.plan.known[entry.address]
        return self.tables[address].cell(entry.index)

    def at(self, address: str, index: Index, here: str) -> str:
        """The reference to an entry, in a formula on a sheet."""
        return refer(self.tables[address].cell(index), sheet=here)

    def row(self, address: str, before: Index, here: str) -> str:
        """The range of all entries whose index starts so."""
        table = self.tables[address]
        last = table.shape[-1] - 1
        return refer(table.cell((*before, 0)), table.cell((*before, last)), sheet=here)
