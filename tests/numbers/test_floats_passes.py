"""Whole passes in floats: against torch in float64, and the narrow formats against float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from byhand.evaluate import Admitted, work_out
from byhand.numbers.base import Numbers
from byhand.numbers.floats import Floats
from byhand.numbers.floats.formats import narrowed, widened
from byhand.numbers.tensors import Tensors
from byhand.plan import WEIGHT
from oracles.architectures import Case, spread
from oracles.torch_pass import TorchPass


def well_conditioned(case: Case) -> bool:
    """Whether no norm divides by next to nothing: at eps 0 that shows nothing but rounding."""
    steps = work_out(case.plan(), case.weights, case.tokens, Floats("float64"), target=case.target)
    return all(w.value.min() > 1e-3 for w in steps.values() if w.step.op == "root")


CASES = [case for case in spread(40, seed=41) if well_conditioned(case)]


def relative_errors(case: Case, numbers: Numbers) -> dict[str, float]:
    """How far each tensor is from torch's, next to its own largest entry (or 0.01: it may be 0)."""
    plan = case.plan()
    steps = work_out(plan, case.weights, case.tokens, numbers, target=case.target)
    oracle = TorchPass(case.spec, case.weights, case.tokens, case.target, case.positions, case.mask)
    errors = {}
    for address, tensor in oracle.found.items():
        if plan[address].op == "argmax":
            continue
        array = steps[plan[address].address].array
        expected = tensor.numpy()
        seen = ~np.ma.getmaskarray(array)
        assert set(expected[~seen]) <= {-np.inf, 0.0}, address
        if seen.any():
            off = np.abs(np.ma.getdata(array)[seen] - expected[seen]).max()
            errors[address] = float(off / max(np.abs(expected[seen]).max(), 0.01))
    return errors


@pytest.mark.parametrize("make", [Floats, Tensors])
def test_a_float64_pass_is_torchs_to_twelve_digits(make: Callable[[str], Numbers]) -> None:
    for case in CASES:
        for address, error in relative_errors(case, make("float64")).items():
            assert error < 1e-12, f"{address}: {error}\n{case}"


@pytest.mark.parametrize("make", [Floats, Tensors])
def test_a_float32_pass_is_torchs_float64_one_to_five_digits(
    make: Callable[[str], Numbers],
) -> None:
    for case in CASES:
        for address, error in relative_errors(case, make("float32")).items():
            assert error < 1e-5, f"{address}: {error}\n{case}"


@pytest.mark.parametrize("format", ["bfloat16", "float16"])
def test_a_narrow_step_is_the_float32_step_rounded_once(format: str) -> None:
    narrow, wide = Floats(format), Floats("float32")
    for case in CASES[:15]:
        plan = case.plan()
        steps = work_out(plan, case.weights, case.tokens, narrow, target=case.target)
        admitted = Admitted(case.weights, narrow)
        for step in plan:
            if step.op in ("given", "argmax"):
                continue
            inputs: dict[str, Any] = {}
            for role, address in step.inputs.items():
                if address.startswith(WEIGHT):
                    inputs[role] = wider(admitted[address.removeprefix(WEIGHT)])
                else:
                    inputs[role] = wider(steps[address].value)
            value = getattr(wide, step.op)(**inputs, **step.attributes)
            expected = narrowed(np.ma.getdata(value), narrow.dtype)
            found = np.ma.getdata(steps[step.address].value)
            if step.op == "sinusoid":  # rounded from float64, not by way of float32
                continue
            assert found.dtype == narrow.dtype
            assert np.array_equal(found, expected), step


def wider(value: Any) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.MaskedArray(wider(value.data), mask=value.mask)
    if isinstance(value, np.ndarray) and value.dtype != np.float64:
        return widened(value, np.dtype(np.float32))
    return value
