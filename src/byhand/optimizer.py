"""One step of an optimizer, once: from gradients to new weights, as a plan of value-free steps.

`update` continues a plan that ends in gradients.  It writes the norm of all gradients and their
clipping, then for each weight the moments, their corrections, the decay and the change.

    update.norm          the root of the sum of all squared gradients
    update.clip          what every gradient is multiplied by: at most 1
    update.clipped.W     the gradient of the weight W, clipped
    update.m.W           the running mean of the gradients, or the momentum; the new one
    update.v.W           the running mean of their squares; the new one
    update.weight.W      the new weight
    before.m.W           the running means before this step, given

Read `_sgd`, `_momentum` and `_adam`: each is the rule of a textbook, one line at a time.  The
rules, and the conventions of torch that they follow, are in docs/backward.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from byhand.parameters import Parameter, learned
from byhand.plan import GRAD, WEIGHT, Plan, Sheet

OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
NEARLY = Fraction(1, 10**6)  # added to the norm before it divides, as torch does
LONGEST = 12  # characters of a setting in a formula
UPDATE, BEFORE = "update.", "before."


@dataclass(frozen=True)
class Rule:
    """The settings of an optimizer at one step; `step` counts from 1.

    `decay` is the weight decay.  "adamw" takes it from the weight itself, the others add it to the
    gradient.  Weights of fewer than two axes (biases, gains) decay only with `vectors_decay`, as
    they do in torch where all weights are in one group.
    """

    kind: str = "sgd"
    rate: Fraction = Fraction(1, 10)
    clip: Fraction | None = None
    decay: Fraction = Fraction(0)
    vectors_decay: bool = False
    momentum: Fraction = Fraction(9, 10)
    betas: tuple[Fraction, Fraction] = (Fraction(9, 10), Fraction(999, 1000))
    eps: Fraction = Fraction(1, 10**8)
    step: int = 1

    @property
    def moments(self) -> tuple[str, ...]:
        """The running means that this optimizer keeps from step to step."""
        return {"sgd": (), "momentum": ("m",)}.get(self.kind, ("m", "v"))


def update(plan: Plan, rule: Rule) -> Plan:
    """The plan, followed by the steps from its gradients to new weights."""
    w = Sheet(one=1)
    weights = [p for p in learned(plan.spec) if GRAD + WEIGHT + p.name in plan.known]
    grads = {p.name: plan.known[GRAD + WEIGHT + p.name] for p in weights}
    if rule.step > 1:
        for parameter in weights:
            for moment in rule.moments:
                _given(w, parameter, moment)
    clip = _clipping(w, grads, rule)
    for parameter in weights:
        _weight(w, parameter, grads[parameter.name], clip, rule)
    return Plan(plan.spec, plan.length, (*plan.steps, *w.steps), {**plan.aliases, **w.aliases})


def _given(w: Sheet, parameter: Parameter, moment: str) -> None:
    address = f"{BEFORE}{moment}.{parameter.name}"
    w.shaped(address, "given", "from the step before", (parameter.axes, parameter.shape))


def _clipping(w: Sheet, grads: dict[str, str], rule: Rule) -> str | None:
    """The norm of all gradients together, and the factor that keeps it below a limit."""
    squares = {
        f"square_{place}": w.line(
            f"{UPDATE}squares.{name}", "sum_squares", "Σ grad²", ("one",), {"x": grad}
        )
        for place, (name, grad) in enumerate(grads.items())
    }
    norm = w.line(f"{UPDATE}norm", "norm", "√(Σ squares)", ("one",), squares)
    if rule.clip is None:
        return None
    formula = f"min(1, {said(rule.clip)} / (norm + {said(NEARLY)}))"
    settings = {"limit": rule.clip, "eps": NEARLY}
    return w.line(f"{UPDATE}clip", "clip_factor", formula, ("one",), {"norm": norm}, **settings)


def _weight(w: Sheet, parameter: Parameter, grad: str, clip: str | None, rule: Rule) -> None:
    """One weight: its gradient clipped, the optimizer's change, and the new weight."""
    line = _Lines(w, parameter, rule)
    if clip is not None:
        grad = line("clipped", "scale_by", "grad · clip", {"x": grad, "by": clip})
    decays = rule.decay if rule.vectors_decay or len(parameter.shape) > 1 else Fraction(0)
    weight, kept = WEIGHT + parameter.name, Fraction(1)
    if rule.kind == "adamw":
        kept = 1 - rule.rate * decays
    elif decays:
        formula = f"grad + {said(decays)} · weight"
        grad = line("decayed", "blend", formula, {"y": weight, "x": grad}, of_x=1, of_y=decays)
    change = RULES[rule.kind](line, grad)
    formula = f"weight - {said(rule.rate)} · change"
    if kept != 1:
        formula = f"{said(kept)} · {formula}"
    reads = {"x": weight, "y": change}
    line("weight", "blend", formula, reads, of_x=kept, of_y=-rule.rate)


class _Lines:
    """Writes the lines of one weight."""

    def __init__(self, sheet: Sheet, parameter: Parameter, rule: Rule) -> None:
        self.sheet, self.parameter, self.rule = sheet, parameter, rule

    def __call__(
        self,
        name: str,
        op: str,
        formula: str,
        reads: Mapping[str, str | None],
        **attributes: object,
    ) -> str:
        p = self.parameter
        given = {k: Fraction(v) if isinstance(v, int) and not isinstance(v, bool) else v
                 for k, v in attributes.items()}  # fmt: skip
        address = f"{UPDATE}{name}.{p.name}"
        return self.sheet.shaped(address, op, formula, (p.axes, p.shape), reads, **given)

    def before(self, moment: str) -> str | None:
        """The running mean before this step; None at the first step, where it is 0."""
        return None if self.rule.step == 1 else f"{BEFORE}{moment}.{self.parameter.name}"


# ------------------------------------------------------------------ the change of a weight


def _sgd(line: _Lines, grad: str) -> str:
    """The gradient itself."""
    return grad


def _momentum(line: _Lines, grad: str) -> str:
    """m = μ·m + grad: a running sum, in which old gradients fade."""
    mu, before = line.rule.momentum, line.before("m")
    formula = "grad" if before is None else f"{said(mu)} · m + grad"
    return line("m", "blend", formula, {"x": before, "y": grad}, of_x=mu, of_y=1)


def _adam(line: _Lines, grad: str) -> str:
    """m̂ / (√v̂ + eps): the mean gradient over the root of the mean square, both corrected."""
    m = _running_mean(line, "m", grad, line.rule.betas[0], squared=False)
    v = _running_mean(line, "v", grad, line.rule.betas[1], squared=True)
    eps = line.rule.eps
    root = line("root", "root_plus", f"√v̂ + {said(eps)}", {"x": v}, eps=eps)
    return line("change", "divide", "m̂ / root", {"x": m, "y": root})


def _running_mean(line: _Lines, moment: str, grad: str, beta: Fraction, *, squared: bool) -> str:
    """β·m + (1 - β)·grad, corrected by 1 - βᵗ, since it began at 0."""
    before, rest, name = line.before(moment), 1 - beta, "grad²" if squared else "grad"
    formula = f"{said(rest)} · {name}"
    if before is not None:
        formula = f"{said(beta)} · {moment} + {formula}"
    reads = {"x": before, "y": grad}
    mean = line(moment, "blend", formula, reads, of_x=beta, of_y=rest, squared=squared or None)
    whole = 1 - beta**line.rule.step
    corrected = f"{moment} / (1 - {said(beta)}^{line.rule.step})"
    return line(f"{moment}_hat", "blend", corrected, {"y": mean}, of_y=1 / whole)


def said(number: Fraction) -> str:
    """A setting as people write it: 0.1, 1e-08 or 1/3; decimals where the fraction is long.

    >>> said(Fraction(1, 10)), said(Fraction(1, 3)), said(Fraction(1, 10**8))
    ('0.1', '1/3', '1e-08')
    """
    short = f"{float(number):g}"
    if Fraction(short) == number:
        return short
    return str(number) if len(str(number)) <= LONGEST else short


RULES = {"sgd": _sgd, "momentum": _momentum, "adam": _adam, "adamw": _adam}
