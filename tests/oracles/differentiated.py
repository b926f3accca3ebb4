"""Gradients of every step of a pass, by torch.autograd through byhand's own steps on tensors.

This knows nothing of `byhand.backward`.  `TorchPass.gradients` knows nothing of the plan either,
but has fewer steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from byhand.evaluate import Admitted, work_out
from byhand.numbers.tensors import Masked, Tensors
from byhand.parameters import learned
from byhand.plan import Plan
from byhand.weights import Weights
from byhand.worked import Worked

Gradients = dict[str, Any]  # by address, as NumPy arrays


def gradients_of(plan: Plan, weights: Weights, **text: Any) -> Gradients:
    """The gradient of the plan's loss with respect to each step and weight that it depends on."""
    numbers = Tensors("float64")
    admitted = Admitted(weights, numbers)
    inside: dict[str, Any] = {}
    for parameter in learned(plan.spec):
        leaf = admitted[parameter.name].detach().requires_grad_()
        admitted.values[parameter.name] = inside[f"weight.{parameter.name}"] = leaf
    steps = work_out(plan, admitted, numbers=numbers, **text)
    for address, worked in steps.items():
        value = worked.value.data if isinstance(worked.value, Masked) else worked.value
        if isinstance(value, torch.Tensor) and value.requires_grad:
            inside[address] = value
    loss = steps["mean_loss" if "mean_loss" in steps else "loss"].value[0]
    found = torch.autograd.grad(loss, list(inside.values()), allow_unused=True)
    return {
        f"grad.{name}": grad.numpy()
        for name, grad in zip(inside, found, strict=True)
        if grad is not None
    }


def furthest(plan: Plan, steps: Mapping[str, Worked], expected: Gradients) -> tuple[float, str]:
    """How far the worst gradient is off, and its address.

    Next to the largest entry of its tensor, or to a thousandth of the largest gradient of all: some
    are zero but for rounding (the bias of the keys).
    """
    floor = max(float(np.abs(grad).max()) for grad in expected.values()) / 1000
    worst = (0.0, "")
    for address, grad in expected.items():
        if address not in plan.known:
            raise AssertionError(f"{address} is missing")
        found = _entries(plan, steps, address)
        here = ~np.ma.getmaskarray(found)
        if address.endswith(".weights"):  # what a table of scores masks has no weight either
            here &= ~np.ma.getmaskarray(_entries(plan, steps, address.removeprefix("grad.")))
        assert found.shape == grad.shape, address
        off = np.abs(np.ma.getdata(found) - grad)[here].max(initial=0.0)
        error = float(off) / max(float(np.abs(grad[here]).max(initial=0.0)), floor)
        if not error <= worst[0]:
            worst = (error, address)
    return worst


def _entries(plan: Plan, steps: Mapping[str, Worked], address: str) -> Any:
    worked = steps[plan[address].address]
    return worked.numbers.entries(worked.value)
