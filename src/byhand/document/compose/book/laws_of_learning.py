"""The laws of learning in symbols: losses, adjoints, and the update of a weight.

∂q stands for the gradient of the loss with respect to q.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from byhand.document.compose.book.formula_lines import average
from byhand.document.compose.book.numbers import Showing
from byhand.document.compose.book.strips import near
from byhand.document.compose.short_names import ShortNames
from byhand.document.compose.tables import Index
from byhand.document.parts import Formula, Line, Sign
from byhand.expression import (
    ONE,
    Call,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)
from byhand.numbers.adjoints import UNCOUNTED
from byhand.plan import Step
from byhand.tracing import Trace
from byhand.worked import Worked

TWO = Number(Fraction(2))


def law_of_learning(trace: Trace, names: ShortNames, step: Step) -> Expression:
    """The law of a step of learning, in short names."""
    return _Laws(trace, names, step).law()


class _Laws:
    """The law of one step, with the short names of what it reads."""

    def __init__(self, trace: Trace, names: ShortNames, step: Step) -> None:
        self.trace, self.names, self.step = trace, names, step

    def __getitem__(self, role: str) -> Name:
        """The short name of what is read in a role."""
        return self.called(self.step.inputs[role])

    def called(self, address: str) -> Name:
        return Name(self.names.of(address))

    def law(self) -> Expression:
        settings = self.step.attributes
        match self.step.op:
            case "losses":
                return Negative(Call("ln", Name("probs_target")))
            case "average":
                return average(Name(f"{self['losses'].text}_i"), "n")
            case "loss_back":
                return self._loss_back()
            case "linear":
                return self._linear()
            case "outer":
                return Call("Σ", Product((self["x"], self["grad"])))
            case "column_sums":
                by = [self["by"]] if "by" in self.step.inputs else []
                return Call("Σ", Product((self["x"], *by)) if by else self["x"])
            case "scatter":
                return _scaled(Call("Σ", self["grad"]), settings.get("scale"))
            case "multiply":
                return Product((self["x"], self["y"]))
            case "affine":
                return Product((self["x"], self["gain"]))
            case "total":
                return Sum(tuple(map(self.called, self.step.reads)))
            case "row_dots":
                return Call("Σ", Product((self["x"], self["y"])))
            case "softmax_back":
                return Product((self["weights"], Sum((self["grad"], Negative(self["dot"])))))
            case "scores":
                return Product((self["q"], self["k"]))
            case "along_keys" | "along_queries":
                return _scaled(Call("Σ", Product((self["x"], self["y"]))), settings.get("scale"))
            case _:
                return self._elsewhere()

    def _elsewhere(self) -> Expression:
        """The laws of norms, of the bend, of heads, and of an optimizer."""
        step, settings = self.step, self.step.attributes
        match step.op:
            case "normalize_back":
                return Quotient(self["grad"], self["by"])
            case "divisor_back":
                return Quotient(Negative(self["dot"]), self["by"])
            case "root_back":
                return Quotient(self["grad"], Product((TWO, self["root"])))
            case "mean_square_back":
                return Quotient(Product((self["grad"], TWO, self["x"])), Name("d"))
            case "center_back":
                return Negative(Call("Σ", self["grad"]))
            case "mean_back":
                return Quotient(self["grad"], Name("d"))
            case "slope":
                return Call(f"{settings['kind'].removesuffix('_tanh')}′", self["x"])
            case "rotate":
                angle = Product((Name("pos"), Name("θ_i")))
                first = Product((Name("∂a"), Call("cos", angle)))
                return Sum((first, Product((Name("∂b"), Call("sin", angle)))))
            case "split_heads":
                return Name(f"{self['x'].text}_head")
            case "pack_heads":
                return Call("concat", Name(", ".join(self.called(a).text for a in step.reads)))
            case "sum_groups":
                return Call("Σ", self["x"])
            case "sum_squares":
                return Call("Σ", Power(self["x"], TWO))
            case "norm":
                return Call("sqrt", Call("Σ", Power(Name("∂W"), TWO)))
            case "blend":
                return self._blend()
            case _:
                return Name(step.op)

    def _loss_back(self) -> Expression:
        wrong = Sum((self["probs"], Negative(Name("1_target"))))
        targets = self.trace.targets or ()
        counted = sum(target != UNCOUNTED for target in targets)
        return wrong if counted <= 1 else Quotient(wrong, Number(Fraction(counted)))

    def _linear(self) -> Expression:
        """Back through a matrix: ∂y·Wᵀ, or Wᵀ·∂y where the rows of W are outputs."""
        grad, symbol = self["x"], self["weight"].text
        if symbol == "E":  # the head, which is written x·Eᵀ
            return Product((grad, Name("E")))
        turned = Name(f"{symbol}ᵀ")
        across = self.step.attributes["layout"] == "out_in"
        return Product((grad, turned) if across else (turned, grad))

    def _blend(self) -> Expression:
        settings = self.step.attributes
        change = Product((Number(abs(settings["of_y"])), self["y"]))
        if "x" not in self.step.inputs:
            return change
        before: Expression = self["x"]
        if settings["of_x"] != 1:
            before = Product((Number(settings["of_x"]), before))
        return Sum((before, Negative(change) if settings["of_y"] < 0 else change))


def _scaled(x: Expression, scale: Expression | None) -> Expression:
    match scale:
        case None:
            return x
        case Quotient(top=top, bottom=bottom) if top == ONE:
            return Quotient(x, bottom)
        case _:
            return Product((scale, x))


# ------------------------------------------------------------------ the law with one entry


def formula_of_learning(showing: Showing, worked: Worked, index: Index | None = None) -> Formula:
    """The law of a step, and one of its entries written out: the one furthest from 0.

    The norm of all gradients, and a step whose numbers are all 0, have the law alone.
    """
    step, names = worked.step, showing.inside.names
    left = Name(names.of(step.address))
    law: Line = (left, Sign("="), law_of_learning(showing.trace, names, step))
    plain = step.op == "norm" or (index is None and not np.any(near(worked)))
    if worked.missing is not None or plain:
        return Formula(step.address, law)
    return Formula(step.address, law, worked=showing.card(worked, index or furthest(worked)))


def furthest(worked: Worked) -> Index:
    """The entry furthest from 0; of equals the first."""
    sizes = np.nan_to_num(np.abs(near(worked)), nan=-1.0)
    return tuple(int(i) for i in np.unravel_index(int(sizes.argmax()), sizes.shape))
