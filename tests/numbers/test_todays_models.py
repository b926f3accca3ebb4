"""What today's models have, in every number system against oracles: one test an assurance."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from byhand.backward import adjoint
from byhand.evaluate import work_out
from byhand.numbers.allowed import Allowed
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from byhand.parameters import learned, parameters
from byhand.plan import Plan
from byhand.spec import ACTIVATIONS
from byhand.weights import Tensor, Weights
from byhand.worked import Worked
from oracles.arb_pass import ArbPass
from oracles.architectures import nasty
from oracles.comparing import assert_arb_is_torch, assert_exact_is_arb
from oracles.hand_set import dyadic
from oracles.todays import Todays, todays
from oracles.todays_pass import TodaysPass

MANY, SOME = range(24), range(6)


@cache
def case(number: int) -> Todays:
    return todays(number, nasty if number % 4 == 3 else dyadic)


@cache
def oracle(number: int) -> ArbPass:
    here = case(number)
    return ArbPass(here.plan(), here.weights, here.tokens, here.target, source=here.source)


@cache
def torch_pass(number: int) -> TodaysPass:
    here = case(number)
    return TodaysPass(
        here.spec, here.weights, here.tokens, here.target, here.positions,
        source=here.source, segments=here.segments,
    )  # fmt: skip


def worked(number: int, numbers: Numbers) -> dict[str, Any]:
    here = case(number)
    return work_out(
        here.plan(), here.weights, here.tokens, numbers, target=here.target, source=here.source
    )


def test_the_cases_have_every_newer_option() -> None:
    ops = {step.op for number in MANY for step in case(number).plan()}
    assert ops >= {
        "rescale", "soft_cap", "clamp", "weigh", "beside", "constants", "bucket_scores", "choose",
        "expert_shares", "sinusoid",
    }  # fmt: skip
    settings = {(step.op, name, value if isinstance(value, str | bool) else None)
                for number in MANY for step in case(number).plan()
                for name, value in step.attributes.items()}  # fmt: skip
    assert settings >= {
        ("affine", "plus_one", True), ("sinusoid", "pairing", "half"), ("rescale", "plus", None),
        ("rescale", "by", None), ("choose", "groups", None), ("choose", "group_rule", "top2"),
        ("expert_shares", "alone", True), ("expert_shares", "scale", None),
        ("expert_shares", "eps", None),
        *(("activate", "kind", kind) for kind in ACTIVATIONS),
    }  # fmt: skip


@pytest.mark.parametrize("number", MANY)
def test_the_formulas_say_what_torch_computes(number: int) -> None:
    assert_arb_is_torch(oracle(number), torch_pass(number))


@pytest.mark.parametrize("number", SOME)
def test_exact_values_are_those_of_arb(number: int) -> None:
    assert assert_exact_is_arb(worked(number, Exact()), oracle(number)) > 200


@pytest.mark.parametrize("number", SOME)
def test_balls_contain_the_values_and_are_narrow(number: int) -> None:
    numbers = Balls(120)
    steps = worked(number, numbers)
    for address, values in oracle(number).values.items():
        entries = numbers.entries(steps[address].value)
        for index, real in values.items():
            found = entries[index]
            if real is None:
                assert found is ABSENT
            else:
                assert found.overlaps(Enclosure.of(real)), (address, index)
                assert found.rad < Fraction(1, 10**20), (address, index)


@pytest.mark.parametrize(
    ("numbers", "near"),
    [(Floats("float64"), 1e-12), (Tensors("float64"), 1e-12), (Pencil(9), 1e-5)],
    ids=["floats", "tensors", "pencil"],
)
def test_rounded_numbers_come_near_the_values(numbers: Any, near: float) -> None:
    for number in SOME:
        steps, plan = worked(number, numbers), case(number).plan()
        for address, tensor in torch_pass(number).found.items():
            if address == "next":
                continue
            found = np.ma.asarray(numbers.entries(steps[plan[address].address].value), dtype=float)
            found = np.ma.masked_invalid(found)
            real = np.ma.MaskedArray(tensor.numpy(), mask=np.ma.getmaskarray(found))
            assert np.ma.allclose(found, real, rtol=near, atol=near), (number, address)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "transformers:float16"])
def test_what_floats_give_is_allowed_line_by_line(precision: str) -> None:
    """Each line from the claimed lines that it reads, as `check` reads a dump."""
    allowed, floats = Allowed(precision), Floats(precision.rpartition(":")[2])
    worst: list[float] = []
    for number in SOME:
        given = worked(number, floats)

        def judged(work: Worked, given: dict[str, Worked] = given) -> Worked:
            if work.step.op in ("given", "argmax"):
                return work
            found = floats.entries(given[work.step.address].value)
            claim = np.ma.filled(np.ma.asarray(found, dtype=float), 0.0)
            verdict = allowed.judge(work.value, (), claim)
            assert verdict.possible, (work.step.address, verdict.share)
            worst.append(verdict.times or 0.0)
            return Worked(work.step, allowed.overlay(work.value, (), claim), allowed)

        here = case(number)
        work_out(
            here.plan(), here.weights, here.tokens, allowed, target=here.target,
            source=here.source, revise=judged,
        )  # fmt: skip
    assert max(worst) < 8


OPS_BACK = (
    "cap_back", "clamp_back", "sinks_back", "bucket_back", "expert_shares_back", "expert_dots",
    "spread", "sum_experts", "expert_outer", "columns", "unmasked",
)  # fmt: skip


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradients_that_floats_give_are_allowed_line_by_line(precision: str) -> None:
    """And one that is a hundredth too large is not, in float32."""
    allowed, floats = Allowed(precision), Floats(precision)
    seen: dict[str, bool] = {}  # whether a planted mistake was seen in a line of the operation
    for number in range(24):
        here = case(number)
        plan = adjoint(here.plan())
        given = work_out(plan, here.weights, here.tokens, floats, target=here.target,
                         source=here.source)  # fmt: skip

        def judged(work: Worked, given: dict[str, Worked] = given) -> Worked:
            step = work.step
            if step.op in ("given", "argmax"):
                return work
            found = floats.entries(given[step.address].value)
            claim = np.ma.filled(np.ma.asarray(found, dtype=float), 0.0)
            assert allowed.judge(work.value, (), claim).possible, (step.address, step.op)
            if step.op in OPS_BACK:
                wrong = allowed.judge(work.value, (), claim * 1.01)
                seen[step.op] = seen.get(step.op, False) or not wrong.possible
            return Worked(step, allowed.overlay(work.value, (), claim), allowed)

        work_out(plan, here.weights, here.tokens, allowed, target=here.target,
                 source=here.source, revise=judged)  # fmt: skip
    assert seen.keys() == {*OPS_BACK}
    assert precision != "float32" or all(seen.values()), seen


@pytest.mark.parametrize("number", MANY)
def test_the_gradients_are_the_slope_of_the_loss_along_a_random_line(number: int) -> None:
    """All weights at once: a wrong rule of the way back bends the line's slope."""
    here, random = case(number), np.random.default_rng(number)
    known = {p.name: random.normal(size=p.shape) * 0.7 for p in parameters(here.spec)}
    along = {p.name: random.normal(size=p.shape) for p in learned(here.spec)}

    def passed(plan: Plan, step: float = 0.0) -> dict[str, Worked]:
        moved = {name: data + step * along.get(name, 0.0) for name, data in known.items()}
        weights = Weights({name: Tensor(name, data) for name, data in moved.items()})
        return work_out(plan, weights, here.tokens, Floats("float64"), target=here.target,
                        source=here.source)  # fmt: skip

    plan, small = adjoint(here.plan()), 1e-6
    found = passed(plan)
    told = sum(
        float((np.asarray(found[plan.known[f"grad.weight.{name}"]].value) * line).sum())
        for name, line in along.items()
        if f"grad.weight.{name}" in plan.known
    )
    above, below = (float(passed(here.plan(), s)["loss"].value[0]) for s in (small, -small))
    slope = (above - below) / (2 * small)
    assert told == pytest.approx(slope, rel=2e-5, abs=2e-6)
