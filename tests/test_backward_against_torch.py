"""The backward pass is torch's: forty architectures that pair all options, and every inner step.

Twice each: against a pass written as frameworks write it, and step by step against autograd through
the forward plan.
"""

from __future__ import annotations

from typing import Any

import pytest

from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.numbers.base import Numbers
from byhand.numbers.floats import Floats
from byhand.numbers.tensors import Tensors
from byhand.plan import Plan
from byhand.worked import Worked
from oracles.differentiated import furthest, gradients_of
from oracles.learners import FORBIDDEN, QUESTIONS, SILENCES, Learner, learners, rows
from oracles.pairwise import met, possible
from oracles.torch_pass import TorchPass

NEAR = 1e-11
every_learner = pytest.mark.parametrize("learner", learners(), ids=range(len(learners())))


def text_of(learner: Learner) -> dict[str, Any]:
    return {
        "tokens": learner.tokens,
        "target": learner.targets[-1] if learner.last else None,
        "targets": None if learner.last else learner.targets,
    }


def worked(learner: Learner, numbers: Numbers) -> tuple[Plan, dict[str, Worked]]:
    plan = adjoint(learner.plan())
    return plan, work_out(plan, learner.weights, numbers=numbers, **text_of(learner))


def in_torch(learner: Learner) -> dict[str, Any]:
    oracle = TorchPass(
        learner.spec,
        learner.weights,
        learner.tokens,
        0,
        learner.positions,
        learner.mask,
        learning=True,
    )
    found = oracle.gradients(learner.targets, last=learner.last)
    return {address: grad.numpy() for address, grad in found.items()}


def test_forty_architectures_pair_every_two_options_that_can_meet() -> None:
    left = possible(QUESTIONS, FORBIDDEN, SILENCES)
    assert len(left) > 3000
    for row in rows():
        left -= met(row, SILENCES)
    assert len(rows()) == 40
    assert not left


@every_learner
def test_gradients_are_those_of_a_pass_as_frameworks_write_it(learner: Learner) -> None:
    plan, steps = worked(learner, Floats("float64"))
    expected = in_torch(learner)
    assert {f"grad.weight.{p}" for p in learner.weights} & plan.known.keys() <= expected.keys()
    error, address = furthest(plan, steps, expected)
    assert error < NEAR, f"{address}\n{learner}"


@every_learner
@pytest.mark.parametrize("make", [Floats, Tensors])
def test_the_gradient_of_every_step_is_autograds(make: Any, learner: Learner) -> None:
    plan, steps = worked(learner, make("float64"))
    expected = gradients_of(learner.plan(), learner.weights, **text_of(learner))
    expected.pop("grad.probs", None)  # the loss goes back through the softmax at once
    for name in ("grad.losses", "grad.mean_loss", "grad.loss"):
        expected.pop(name, None)
    error, address = furthest(plan, steps, expected)
    assert error < NEAR, f"{address}\n{learner}"
