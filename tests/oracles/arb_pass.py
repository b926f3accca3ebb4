"""Every entry of a plan as an Arb ball, computed from the balls of the entries it reads.

The trees come from `byhand.working`, the arithmetic is Arb's alone.  So it shares no code with
the operations of a number system, only the formulas, which `torch_pass` then checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import add, mul
from typing import Any

from flint import arb, ctx, fmpq

from byhand.expression import (
    Call,
    Entry,
    Expression,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
)
from byhand.numbers.base import ABSENT
from byhand.plan import WEIGHT, Plan
from byhand.weights import Weights
from byhand.working import Working

BITS = 400
VANISHING = arb(2) ** -300  # what is below this at 400 bits is taken for zero

Index = tuple[int, ...]
Leaf = Callable[[Name | Entry], arb]

_FUNCTIONS: dict[str, Callable[[arb], arb]] = {
    "exp": arb.exp,
    "ln": arb.log,
    "sin": arb.sin,
    "cos": arb.cos,
    "tanh": arb.tanh,
    "erf": arb.erf,
    "relu": lambda x: x.max(arb(0)),
    "sqrt": lambda x: arb(0) if vanishes(x) else x.sqrt(),
}


def vanishes(x: arb) -> bool:
    """Whether the ball contains zero and nothing further from it than VANISHING."""
    return bool(x.contains(arb(0)) and abs(x) < VANISHING)


def constant(name: Name | Entry) -> arb:
    """The leaves that every tree may have: e and π."""
    known = {"e": lambda: arb(1).exp(), "pi": arb.pi}
    assert isinstance(name, Name), name
    return known[name.text]()


def ball_of(tree: Expression, leaf: Leaf = constant) -> arb:
    """Returns a ball that contains the value of the tree, at the working precision."""
    match tree:
        case Number(value=v):
            return arb(fmpq(v.numerator, v.denominator))
        case Name() | Entry():
            return leaf(tree)
        case Negative(of=x):
            return -ball_of(x, leaf)
        case Sum(terms=terms):
            return reduce(add, (ball_of(term, leaf) for term in terms), arb(0))
        case Product(factors=factors):
            return reduce(mul, (ball_of(factor, leaf) for factor in factors), arb(1))
        case Quotient(top=a, bottom=b):
            return ball_of(a, leaf) / ball_of(b, leaf)
        case Power(base=Name(text="e"), exponent=x):
            return ball_of(x, leaf).exp()
        case Power(base=base, exponent=Number(value=n)) if n.denominator == 1:
            power = reduce(mul, [ball_of(base, leaf)] * abs(n.numerator), arb(1))
            return power if n >= 0 else 1 / power
        case Power(base=base, exponent=x):
            return (ball_of(x, leaf) * ball_of(base, leaf).log()).exp()
        case Call(function=function, argument=x):
            return _FUNCTIONS[function](ball_of(x, leaf))


def weight_ball(entry: Any) -> arb | None:
    """One entry of a weight: a rational, an expression, a float, or ABSENT."""
    if entry is ABSENT:
        return None
    if isinstance(entry, Fraction):
        return arb(fmpq(entry.numerator, entry.denominator))
    if isinstance(entry, Expression):
        return ball_of(entry)
    return arb(float(entry))


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
    ) -> None:
        self.plan = plan
        self.weights = weights
        self.values: dict[str, dict[Index, arb | None]] = {}
        self.working = Working(plan, {"tokens": tokens, "target": target}, self.absent)
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
        """Whether a score, or the weight made of it, is masked."""
        step = self.plan[address]
        if step.op == "softmax":
            return self.absent(step.inputs["x"], index)
        if step.op != "scores":
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
        tree = self.working.of(address, index)
        if tree is None:
            return None
        if self.plan[address].op == "normalize":
            assert isinstance(tree, Quotient)
            if vanishes(ball_of(tree.bottom, self.leaf)):  # 0/0 is 0 here, the limit eps → 0
                assert vanishes(ball_of(tree.top, self.leaf)), f"{address}{index}: x/0"
                return arb(0)
        return ball_of(tree, self.leaf)

    def leaf(self, name: Name | Entry) -> arb:
        if isinstance(name, Name):
            return constant(name)
        if name.address.startswith(WEIGHT):
            found = weight_ball(self.weights[name.address.removeprefix(WEIGHT)].data[name.index])
        else:
            found = self.values[name.address][name.index]
        assert found is not None, f"{name} is masked and yet read"
        return found
