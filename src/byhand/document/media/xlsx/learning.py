"""Formulas of learning that only a spreadsheet needs: targets and tokens may be typed anew.

The other formulas of a backward pass are the expressions of `byhand.working`.
"""

from __future__ import annotations

from byhand.document.media.xlsx.cells import refer
from byhand.document.media.xlsx.formulas import formula
from byhand.document.media.xlsx.references import References
from byhand.document.media.xlsx.training import GRADIENT, StepPage, gradient_of, typed
from byhand.numbers.adjoints import UNCOUNTED
from byhand.optimizer import UPDATE
from byhand.plan import Step
from byhand.working import Index

LARGEST_EXPONENT = 700  # e^710 is beyond what a spreadsheet holds


class LearningFormulas(References):
    """The formulas of losses, adjoints and new weights, as far as `working` does not write them."""

    # ------------------------------------------------------------------ losses

    def target(self, step: Step, position: int, here: str) -> str | None:
        """The cell of the id that should follow a position; None where it does not count."""
        address = step.inputs["target" if step.op == "loss" else "targets"]
        ids = self.working.given[address]
        if isinstance(ids, int):  # the target of the last position
            last = self.plan[step.inputs["probs"]].shape[0] - 1
            return self.at(address, (), here) if position == last else None
        return None if ids[position] == UNCOUNTED else self.at(address, (position,), here)

    def _losses(self, step: Step, index: Index, here: str) -> str:
        row = self.row(step.inputs["probs"], index, here)
        return f"-LN(INDEX({row},{self.target(step, index[0], here)}+1))"

    def _logprobs(self, step: Step, index: Index, here: str) -> str:
        row = self.row(step.inputs["x"], index, here)
        own = f"INDEX({row},{self.target(step, index[0], here)}+1)"
        return f"{own}-MAX({row})-LN(SUMPRODUCT(EXP({row}-MAX({row}))))"

    def _loss_back(self, step: Step, index: Index, here: str) -> str:
        position, token = index
        target = self.target(step, position, here)
        if target is None:
            return "0"
        found = f"{self.at(step.inputs['probs'], index, here)}-IF({target}={token},1,0)"
        counted = sum(self.target(step, at, here) is not None for at in range(step.shape[0]))
        return found if counted == 1 else f"({found})/{counted}"

    # ------------------------------------------------------------------ places, norms, slopes

    def _scatter(self, step: Step, index: Index, here: str) -> str | None:
        """The gradients of a table's row: the sum over the positions whose id is this row."""
        if "ids" not in step.inputs:
            return None
        ids, grad = self.tables[step.inputs["ids"]], self.tables[step.inputs["grad"]]
        last = grad.shape[0] - 1
        column = refer(grad.cell((0, index[1])), grad.cell((last, index[1])), sheet=here)
        found = f"SUMIF({refer(ids.first, ids.last, sheet=here)},{index[0]},{column})"
        scale = step.attributes.get("scale")
        return found if scale is None else f"{found}*({formula(scale, self.where, here)})"

    def _normalize_back(self, step: Step, index: Index, here: str) -> str | None:
        return self.unless_zero(step, step.inputs["by"], index[:-1], index, here)

    def _divisor_back(self, step: Step, index: Index, here: str) -> str | None:
        return self.unless_zero(step, step.inputs["by"], index, index, here)

    def _root_back(self, step: Step, index: Index, here: str) -> str | None:
        return self.unless_zero(step, step.inputs["root"], index, index, here)

    def unless_zero(self, step: Step, by: str, at: Index, index: Index, here: str) -> str | None:
        """A quotient that is 0 over a root of 0; None where eps keeps the root above 0."""
        if self.plan[by].attributes["eps"]:
            return None
        return f"IF({self.at(by, at, here)}=0,0,{self.worked(step, index, here)})"

    def _slope(self, step: Step, index: Index, here: str) -> str | None:
        if step.attributes["kind"] != "silu":
            return None
        x = self.at(step.inputs["x"], index, here)
        share = f"1/(1+EXP(MIN({LARGEST_EXPONENT},-{x})))"
        return f"{share}*(1+{x}*(1-{share}))"

    # ------------------------------------------------------------------ the step

    def _blend(self, step: Step, index: Index, here: str) -> str:
        """The new weight: the old one less the learning rate times the gradient."""
        old = step.address.removeprefix(UPDATE)
        rate = refer(self.page.rate, sheet=here, fixed=True)
        now, grad = (self.at(table, index, here) for table in (typed(old), old + GRADIENT))
        return f"{now}-{rate}*{grad}"

    def _norm(self, _step: Step, _index: Index, here: str) -> str:
        ranges = (
            refer(row.gradient.first, row.gradient.last, sheet=here) for row in self.page.rows
        )
        return f"SQRT(SUMSQ({','.join(ranges)}))"

    def copied_gradient(self, address: str, index: Index, here: str) -> str:
        """The reference to a gradient on the sheet of the backward pass."""
        return self.at(self.plan[gradient_of(address)].address, index, here)

    @property
    def page(self) -> StepPage:
        """The sheet of the training step."""
        assert self.layout.step is not None
        return self.layout.step
