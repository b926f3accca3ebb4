"""Mistakes in the rules of learning show in gradients: a sample of `python -m benchmarks.mutants`.

All of them, there and in the optimizer, take minutes.
"""

from __future__ import annotations

from types import ModuleType

import pytest
from benchmarks.mutants import Mutant, mutants

from byhand import backward
from byhand.evaluate import work_out
from byhand.numbers.floats import Floats
from byhand.plan import Plan
from oracles.differentiated import furthest
from oracles.learners import Learner, learners
from test_backward_against_torch import NEAR, in_torch, text_of

MISTAKES = {  # what is left out or turned round in one line of backward.py
    'b.pass_on(step, "y", grad)': "left out",
    'b.give(step, "x", "linear", turned, back, layout=OTHER[layout], heads=heads)': "layout",
    'b.give(step, "bias", "column_sums", "Σ_pos grad", {"x": grad}, merged=True)': "merged",
    'b.give(step, "mean", "center_back", "-Σ grad", {"grad": grad})': "left out",
    'b.give(step, "by", "divisor_back", "-dot / divisor", {"dot": dot, "by": by})': "left out",
    'settings["positions"] = tuple(-position for position in settings["positions"])': "sign",
    '_to_keys(b, step, "k", "scale · Σ_query grad·q", {"x": grad, "y": q}, scale=scale)': "scale",
    'b.give(step, "y", "multiply", "grad · x", {"x": grad, "y": step.inputs["x"]})': "left out",
}


def mistaken(line: str, change: str) -> Mutant:
    return next(m for m in mutants("byhand.backward") if m.source == line and change in m.change)


def plan_of(mutant: Mutant, learner: Learner) -> Plan:
    module = ModuleType("mutant")
    exec(compile(mutant.tree(), backward.__file__, "exec"), vars(module))
    plan: Plan = module.adjoint(learner.plan())
    return plan


def noticed(mutant: Mutant, learner: Learner) -> bool:
    """Whether the gradients of this model are others now, or cannot be worked out."""
    plan = plan_of(mutant, learner)
    if plan.steps == backward.adjoint(learner.plan()).steps:
        return False
    try:
        steps = work_out(plan, learner.weights, numbers=Floats("float64"), **text_of(learner))
        return not furthest(plan, steps, in_torch(learner))[0] < NEAR
    except (AssertionError, KeyError, TypeError, ValueError):
        return True


@pytest.mark.parametrize("line", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_in_one_line_is_noticed(line: str) -> None:
    mutant = mistaken(line, MISTAKES[line])
    assert any(noticed(mutant, learner) for learner in learners())
