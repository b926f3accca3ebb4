"""Every step of a pass in floats, against Arb, from the very numbers the step was given.

The bounds are computed, entry by entry, from the sizes of what is added up: a sum of K terms is off
by at most K + 1 roundings of the sum of their sizes, in the format it is worked in; bfloat16 and
float16 then round once more (torch twice: a product, and what is added to it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import ctx

from byhand.evaluate import Admitted, work_out
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.floats import FORMATS, Floats
from byhand.numbers.floats.formats import Format
from byhand.numbers.tensors import Tensors
from byhand.plan import WEIGHT, Plan, Step
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from byhand.working import Working
from oracles.arb_pass import BITS, ArbPass, weight_ball
from oracles.architectures import Case, nasty, spread

SYSTEMS: list[Callable[[], Numbers]] = [
    *(lambda name=name: Floats(name) for name in FORMATS),  # type: ignore[misc]
    *(lambda name=name: Tensors(name) for name in FORMATS),  # type: ignore[misc]
]
NAMES = [*FORMATS, *(f"{name} on cpu" for name in FORMATS)]
EXP = 4  # units of the last place that an elementary function may be off


class FromItsOwnInputs(ArbPass):
    """What each step should be, given the numbers that the pass itself has for what it reads."""

    def __init__(self, plan: Plan, weights: Weights, case: Case, found: Mapping[str, Any]) -> None:
        self.plan, self.weights = plan, weights
        asked = {"tokens": case.tokens, "target": case.target}
        self.working = Working(plan, asked, self.absent)
        self.values = {}
        for step in plan:
            if step.op not in ("given", "argmax"):
                array = found[step.address]
                self.values[step.address] = {
                    index: weight_ball(entry(array, index)) for index in np.ndindex(*step.shape)
                }


def entry(array: Any, index: tuple[int, ...]) -> Fraction | None:
    value = array[index]
    return ABSENT if value is np.ma.masked else Fraction(float(value))


def as_fractions(numbers: Numbers, weights: Weights) -> Weights:
    """The weights as the system has them, in numbers Arb can read."""
    admitted, made = Admitted(weights, numbers), {}
    for name in weights:
        array = numbers.entries(admitted[name])
        data = np.empty(array.shape, dtype=object)
        for index in np.ndindex(*array.shape):
            data[index] = entry(array, index)
        made[name] = Tensor(name, data)
    return Weights(made)


# ------------------------------------------------------------------ how far a result may be off


def allowed(step: Step, read: Callable[[str], Any], value: Any, form: Format, extra: int) -> Any:
    """The bound for each entry; `extra` counts roundings to the format beyond the last."""
    unit = 2.0**-form.working.bits
    with np.errstate(all="ignore"):
        bound = np.abs(terms(step, read, value)) * unit
    if form is not form.working:
        bound = bound + (1 + extra) * np.abs(value) * 2.0**-form.bits * 1.01
        if extra:  # what a product was rounded from
            bound = bound + np.abs(terms(step, read, value)) * 2.0**-form.bits
    return bound + 4 * 2.0 ** (form.least - form.bits)


def terms(step: Step, read: Callable[[str], Any], value: Any) -> Any:
    """Roundings times the sizes of what is rounded, in units of the working format."""
    has = step.inputs
    size = {role: np.abs(read(role)) for role in has if role not in ("ids", "target")}
    match step.op:
        case "embed":
            return 2 * value
        case "sinusoid":
            return np.full(step.shape, 3.0 + max(step.attributes["positions"]))
        case "add" | "multiply" | "center" | "normalize":
            return value
        case "mean":
            return (1 + read("x").shape[-1]) * size["x"].mean(-1)
        case "mean_square":
            return (2 + read("x").shape[-1]) * value
        case "root":
            return 3 * value
        case "affine":
            gain = size.get("gain", 1.0)
            return 2 * (size["x"] * gain + size.get("bias", 0.0))
        case "linear":
            return linear_terms(step, size)
        case "split_heads" | "merge_heads" | "join":
            return 0 * value
        case "rotate":
            turn = 4 + 2 * max(step.attributes["positions"])
            return np.full(step.shape, turn * size["x"].max(initial=0.0))
        case "scores":
            return score_terms(step, size)
        case "softmax":
            spread = np.ma.max(read("x"), -1, keepdims=True) - read("x")
            return (step.shape[-1] + 2 * EXP + 2 * np.ma.filled(spread, 0)) * value
        case "mix":
            heads, _queries, keys = read("weights").shape
            values = size["v"].repeat(heads // size["v"].shape[0], axis=0)
            return (keys + 1) * np.ma.filled(size["weights"], 0) @ values
        case "head_outputs":
            return (
                (1 + read("mixed").shape[-1])
                * size["mixed"].max()
                * np.ones(step.shape)
                * read("mixed").shape[-1]
                * (size["weight"].max() if "weight" in has else 1)
            )
        case "activate":
            exponent = {"silu": np.abs(read("x")), "gelu_tanh": 2 * np.abs(read("x")) ** 3 + 4}
            steep = exponent.get(step.attributes["kind"], 0)
            return (16 + 6 * steep) * value
        case "loss":
            return EXP * value + EXP
    raise AssertionError(step.op)


def linear_terms(step: Step, size: Mapping[str, Any]) -> Any:
    x = size["x"]
    flat = x.transpose(1, 0, 2).reshape(x.shape[1], -1) if x.ndim == 3 else x
    matrix = size["weight"] if step.attributes["layout"] == "in_out" else size["weight"].T
    total = (2 + flat.shape[1]) * (flat @ matrix + size.get("bias", 0.0))
    heads = step.attributes.get("heads")
    return total if heads is None else total.reshape(len(total), heads, -1).transpose(1, 0, 2)


def score_terms(step: Step, size: Mapping[str, Any]) -> Any:
    settings, q, k = step.attributes, size["q"], size["k"]
    k = k.repeat(q.shape[0] // k.shape[0], axis=0)
    total = q @ k.transpose(0, 2, 1)
    if "scale" in settings:
        total = total * abs(float(weight_ball(settings["scale"])))
    queries, keys = settings["queries"], settings["keys"]
    if "slopes" in size:
        distance = np.abs(np.subtract.outer(queries, keys))
        total = total + size["slopes"][:, None, None] * distance
    if "table" in size:
        here = size["table"][np.ix_(range(len(q)), queries, keys)]
        total = total + np.ma.filled(here, 0)
    return (6 + q.shape[-1]) * total


# ------------------------------------------------------------------ the tests


def assert_each_step_follows(case: Case, numbers: Numbers) -> int:
    plan = case.plan()
    steps = work_out(plan, case.weights, case.tokens, numbers, target=case.target)
    admitted = Admitted(case.weights, numbers)
    form: Format = numbers.format  # type: ignore[attr-defined]
    found = {address: worked.array for address, worked in steps.items()}
    compared = 0
    with ctx.workprec(BITS):
        oracle = FromItsOwnInputs(plan, as_fractions(numbers, case.weights), case, found)
        for step in plan:
            if step.op in ("given", "argmax"):
                continue
            assert steps[step.address].notes in ((), *zero_variance(steps[step.address])), step

            def read(role: str, step: Step = step) -> Any:
                address = step.inputs[role]
                if address.startswith(WEIGHT):
                    array = numbers.entries(admitted[address.removeprefix(WEIGHT)])
                else:
                    array = found[address]
                return array.astype(np.float64)

            array = found[step.address].astype(np.float64)
            rounded_twice = step.op in ("linear", "scores", "mix", "head_outputs")
            extra = int(isinstance(numbers, Tensors) and rounded_twice)
            bounds = np.broadcast_to(allowed(step, read, array, form, extra), step.shape)
            if step.op == "activate" and isinstance(numbers, Tensors):  # torch's 1 + erf cancels
                bounds = bounds + 4 * np.abs(read("x")) * 2.0**-form.working.bits
            for index in np.ndindex(*step.shape):
                ball = oracle.entry(step.address, index)
                value = entry(array, index)
                if value is ABSENT or ball is None:
                    assert value is ball is None, f"{step.address}{index}"
                    continue
                off = abs(weight_ball(value) - ball).upper()
                limit = float(bounds[index])
                assert off <= limit, f"{step.address}{index}: {value} {ball} {off} > {limit}"
                compared += 1
    return compared


def zero_variance(worked: Worked) -> list[Any]:
    """Notes that are right: rows of zeros over zero."""
    zeros = tuple(note for note in worked.notes if note.kind == "zero-variance")
    return [zeros] if worked.step.op == "normalize" else []


@pytest.mark.parametrize("make", SYSTEMS, ids=NAMES)
def test_every_step_follows_from_its_inputs_as_closely_as_its_format_allows(
    make: Callable[[], Numbers],
) -> None:
    compared = sum(assert_each_step_follows(case, make()) for case in spread(12, seed=31))
    assert compared > 2500


@pytest.mark.parametrize("make", SYSTEMS, ids=NAMES)
def test_hand_set_weights_with_much_cancellation_follow_too(make: Callable[[], Numbers]) -> None:
    for case in spread(3, seed=32, entry=nasty):
        assert_each_step_follows(case, make())
