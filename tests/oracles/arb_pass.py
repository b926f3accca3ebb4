"""Every entry of a plan as an Arb ball, computed from the balls of the entries it reads.

The trees come from `byhand.working`, the arithmetic is Arb's alone.  So it shares no code with
the operations of a number system, only the formulas, which `torch_pass` then checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb, ctx, fmpq

from byhand.expression import Entry, Expression, Name, Negative, Quotient
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT
from byhand.plan import SCORES, WEIGHT, Plan
from byhand.weights import Weights
from byhand.working import Working
from oracles import arb_tree
from oracles.arb_tree import Leaf, constant

BITS = 400
NOTHING_OVER_NOTHING = ("normalize", "normalize_back", "divisor_back", "root_back")  # is 0
VANISHING = arb(2) ** -300  # what is below this at 400 bits is taken for zero

Index = tuple[int, ...]


def vanishes(x: arb) -> bool:
    """Whether the ball contains zero and nothing further from it than VANISHING."""
    return bool(x.contains(arb(0)) and abs(x) < VANISHING)


FUNCTIONS = {**arb_tree.FUNCTIONS, "sqrt": lambda x: arb(0) if vanishes(x) else x.sqrt()}


def ball_of(tree: Expression, leaf: Leaf = constant) -> arb:
    """Returns a ball that contains the value of the tree; the root of what vanishes is zero."""
    return arb_tree.ball_of(tree, leaf, FUNCTIONS)


def weight_ball(entry: Any) -> arb | None:
    """One entry of a weight: a rational, an expression, a float, or ABSENT."""
    if entry is ABSENT:
        return None
    if isinstance(entry, Fraction):
        return arb(fmpq(entry.numerator, entry.denominator))
    if isinstance(entry, Expression):
        return ball_of(entry)
    return arb(float(entry))


def ahead_of(scores: Sequence[arb], own: int) -> int:
    """How many come before one of them: larger ones, and equal ones that stand before it."""

    def before(k: int) -> bool:
        ahead = scores[k] - scores[own]
        return k < own if vanishes(ahead) else bool(ahead > 0)

    return sum(before(k) for k in range(len(scores)) if k != own)


class ArbPass:
    """All values of a plan: `values[address][index]` is a ball, or None where masked.

    `given` values (rationals, by address) stand in for what the plan would compute.
    """

    def __init__(
        self,
        plan: Plan,
        weights: Weights,
        tokens: Sequence[int],
        target: int | None = None,
        given: Mapping[str, Any] | None = None,
        targets: Sequence[int] | None = None,
        source: Sequence[int] | None = None,
    ) -> None:
        self.plan = plan
        self.weights = weights
        self.values: dict[str, dict[Index, arb | None]] = {}
        self.ids: dict[str, Any] = {"tokens": tokens, "target": target, "targets": targets}
        self.ids["source"] = source
        self.working = Working(plan, self.ids, self.absent)
        with ctx.workprec(BITS):
            for step in plan:
                if step.op in ("given", "argmax"):
                    continue
                indices = product(*map(range, step.shape))
                if given and step.address in given:
                    table = given[step.address]
                    self.values[step.address] = {i: weight_ball(table[i]) for i in indices}
                else:
                    self.values[step.address] = {}
                    for index in indices:
                        self.values[step.address][index] = self.entry(step.address, index)

    def absent(self, address: str, index: Index) -> bool:
        """Whether a score, or the weight made of it, is masked, or a loss does not count."""
        if address.startswith(WEIGHT):
            return False
        step = self.plan[address]
        if step.op == "losses":
            return bool(self.ids["targets"][index[0]] == UNCOUNTED)
        if step.op in ("softmax", "softmax_back"):
            return self.absent(step.inputs["x" if step.op == "softmax" else "weights"], index)
        if step.op not in SCORES:
            return False
        head, query, key = index
        if not step.attributes["mask"][query][key]:
            return True
        if "table" not in step.inputs:
            return False
        places = step.attributes["queries"][query], step.attributes["keys"][key]
        table = self.weights[step.inputs["table"].removeprefix(WEIGHT)].data
        return table[(head, *places)] is ABSENT

    def entry(self, address: str, index: Index) -> arb | None:
        if self.plan[address].op == "choose":
            return self.chosen(address, index)
        tree = self.working.of(address, index)
        if tree is None:
            return None
        if self.plan[address].op in NOTHING_OVER_NOTHING:
            quotient = tree.of if isinstance(tree, Negative) else tree
            assert isinstance(quotient, Quotient)
            if vanishes(ball_of(quotient.bottom, self.leaf)):  # 0/0 is 0 here, the limit eps → 0
                assert vanishes(ball_of(quotient.top, self.leaf)), f"{address}{index}: x/0"
                return arb(0)
        return ball_of(tree, self.leaf)

    def chosen(self, address: str, index: Index) -> arb:
        """1 or 0, by counting who comes before; what vanishes between two is a tie."""
        step = self.plan[address]
        position, own = index
        row = [self.values[step.inputs["x"]][position, k] for k in range(step.shape[1])]
        scores = [ball for ball in row if ball is not None]
        settings = step.attributes
        among = list(range(len(scores)))
        if (groups := settings.get("groups")) is not None:
            width = len(scores) // groups
            parts = [scores[start : start + width] for start in among[::width]]
            terms = 2 if settings["group_rule"] == "top2" else 1
            worth = [sum(sorted(part, key=float)[-terms:], arb(0)) for part in parts]
            kept = [g for g in range(groups) if ahead_of(worth, g) < settings["groups_chosen"]]
            among = [k for k in among if k // width in kept]
        if own not in among:
            return arb(0)
        there = [scores[k] for k in among]
        return arb(int(ahead_of(there, among.index(own)) < settings["count"]))

    def leaf(self, name: Name | Entry) -> arb:
        if isinstance(name, Name):
            return constant(name)
        if name.address.startswith(WEIGHT):
            found = weight_ball(self.weights[name.address.removeprefix(WEIGHT)].data[name.index])
        else:
            found = self.values[name.address][name.index]
        assert found is not None, f"{name} is masked and yet read"
        return found
