"""What tensors add to learning: gradients that are differentiated again, and other devices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from byhand.backward import adjoint
from byhand.evaluate import Admitted, work_out
from byhand.numbers.tensors import Tensors
from byhand.optimizer import Rule, update
from byhand.parameters import learned
from byhand.plan import Plan
from byhand.worked import Worked
from oracles.learners import Learner, learners


def worked(learner: Learner, plan: Plan, weights: Any, numbers: Tensors) -> dict[str, Worked]:
    target, targets = (learner.targets[-1], None) if learner.last else (None, learner.targets)
    return work_out(plan, weights, learner.tokens, numbers, target=target, targets=targets)


def leaves_of(learner: Learner, numbers: Tensors) -> tuple[Admitted, list[torch.Tensor]]:
    """The weights, where all that are learned keep their gradients."""
    admitted = Admitted(learner.weights, numbers)
    leaves = []
    for parameter in learned(learner.spec):
        leaf = admitted[parameter.name].detach().requires_grad_()
        admitted.values[parameter.name] = leaf
        leaves.append(leaf)
    return admitted, leaves


@pytest.mark.parametrize("number", range(0, len(learners()), 5))
def test_a_gradient_may_be_differentiated_again(number: int) -> None:
    """How the square of the gradient changes with the weights, by two ways."""
    learner, numbers = learners()[number], Tensors("float64")
    admitted, leaves = leaves_of(learner, numbers)
    forward = worked(learner, learner.plan(), admitted, numbers)
    loss = forward["loss" if learner.last else "mean_loss"].value[0]
    twice = torch.autograd.grad(loss, leaves, create_graph=True)
    expected = torch.autograd.grad(sum((g * g).sum() for g in twice), leaves)

    plan = adjoint(learner.plan())
    steps = worked(learner, plan, admitted, numbers)
    grads = [steps[plan[f"grad.weight.{p.name}"].address].value for p in learned(learner.spec)]
    found = torch.autograd.grad(sum((g * g).sum() for g in grads), leaves)
    largest = max(float(g.abs().max()) for g in expected)
    for one, other in zip(found, expected, strict=True):
        assert float((one - other).abs().max()) < 1e-11 * largest


def test_nothing_that_was_given_is_changed() -> None:
    learner, numbers = learners()[1], Tensors("float32")
    admitted = Admitted(learner.weights, numbers)
    before = {p.name: admitted[p.name].clone() for p in learned(learner.spec)}
    plan = update(adjoint(learner.plan()), Rule("adamw", clip=Fraction(1, 2)))
    first, again = (worked(learner, plan, admitted, numbers) for _twice in range(2))
    for name, value in before.items():
        assert torch.equal(admitted[name], value)
    for address, one in first.items():
        if not one.whole:
            here, there = (numbers.entries(x.value) for x in (one, again[address]))
            assert np.array_equal(np.ma.getdata(here), np.ma.getdata(there))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("format", ["float64", "float32"])
def test_a_step_of_learning_on_the_gpu_is_that_on_the_processor(format: str) -> None:
    unit = 2.0 ** -Tensors(format).format.bits
    for learner in learners():
        plan = update(adjoint(learner.plan()), Rule("momentum", clip=Fraction(1, 2)))
        here, there = (
            worked(learner, plan, learner.weights, Tensors(format, device))
            for device in ("cpu", "cuda")
        )
        numbers = {name: np.ma.filled(one.array, 0) for name, one in here.items() if not one.whole}
        least = max(np.abs(a).max() for a in numbers.values()) / 100  # small ones may be what
        for address, a in numbers.items():  # is left of larger ones that cancel
            b = np.ma.filled(there[address].array, 0)
            assert np.abs(a - b).max() <= 2000 * unit * max(np.abs(a).max(), least), address
