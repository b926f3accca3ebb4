"""Attention without queries, and queries that see nothing: every number system against oracles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from byhand import forward
from byhand.backward import adjoint
from byhand.errors import InputError
from byhand.evaluate import work_out
from byhand.numbers.allowed import Allowed
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.forms import Forms
from byhand.numbers.forms.form import ends
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, spread
from oracles.comparing import assert_arb_is_torch, assert_exact_is_arb
from oracles.differentiated import gradients_of
from oracles.hand_set import dyadic, hand_set
from oracles.torch_pass import TorchPass

WISHES = {"attention": True, "vocab": 3}


@cache
def cases() -> tuple[Case, ...]:
    return tuple(map(hand_set, spread(9, seed=5, among=3, wishes=WISHES, entry=dyadic)))


@cache
def oracles() -> tuple[tuple[ArbPass, TorchPass], ...]:
    return tuple(
        (
            ArbPass(case.plan(), case.weights, case.tokens, case.target),
            TorchPass(case.spec, case.weights, case.tokens, case.target, case.positions, case.mask),
        )
        for case in cases()
    )


def worked(numbers: Numbers) -> Iterator[tuple[Case, Any, ArbPass, TorchPass]]:
    for case, both in zip(cases(), oracles(), strict=True):
        steps = work_out(case.plan(), case.weights, case.tokens, numbers, target=case.target)
        yield case, steps, *both


def test_the_formulas_say_what_torch_computes() -> None:
    for arb_pass, torch_pass in oracles():
        assert_arb_is_torch(arb_pass, torch_pass)


def test_exact_values_are_those_of_arb() -> None:
    compared = [assert_exact_is_arb(steps, arb) for _case, steps, arb, _torch in worked(Exact())]
    assert sum(compared) > 500


def test_some_queries_see_nothing_and_mix_0() -> None:
    alone = 0
    for case, steps, _arb, _torch in worked(Exact()):
        for layer in range(len(case.spec.blocks)):
            if f"block.{layer}.attn.weights" not in steps:
                continue
            weights, mixed = (steps[f"block.{layer}.attn.{name}"].value
                              for name in ("weights", "mixed"))  # fmt: skip
            for place in np.ndindex(weights.shape[:2]):
                if all(entry is ABSENT for entry in weights[place]):
                    assert all(entry == 0 for entry in mixed[place])
                    alone += 1
    assert alone > 10


def test_forms_contain_the_values() -> None:
    for case, (oracle, _torch) in zip(cases(), oracles(), strict=True):
        plan = case.plan().only(["probs"])
        steps = work_out(plan, case.weights, case.tokens, Forms())
        for step in plan:
            if step.op == "given":
                continue
            low, high = (side[0] for side in ends(steps[step.address].value))
            for index, real in oracle.values[step.address].items():
                if real is not None:
                    assert low[index] <= float(real.upper()), (step.address, index)
                    assert float(real.lower()) <= high[index], (step.address, index)
                    assert high[index] - low[index] < 1e-6, (step.address, index)


@pytest.mark.parametrize("numbers", [Balls(120), Limbs(90)], ids=["balls", "limbs"])
def test_enclosures_contain_the_values(numbers: Any) -> None:
    for case, steps, oracle, _torch in worked(numbers):
        for step in case.plan():
            if step.op in ("given", "argmax"):
                continue
            entries = numbers.entries(steps[step.address].value)
            for index, real in oracle.values[step.address].items():
                found = entries[index]
                if real is None:
                    assert found is ABSENT or found is np.ma.masked
                    continue
                low, high = (float(found.mid - s * found.rad) for s in (1, -1))
                assert low - 1e-12 <= float(real) <= high + 1e-12, (step.address, index)
                assert high - low < 1e-9


@pytest.mark.parametrize(
    "numbers",
    [Floats("float64"), Tensors("float64"), Pencil(9)],
    ids=["floats", "tensors", "pencil"],
)
def test_rounded_numbers_come_near_the_values(numbers: Any) -> None:
    near = 1e-5 if isinstance(numbers, Pencil) else 1e-9
    for _case, steps, _arb, torch_pass in worked(numbers):
        for address in ("stream.1", "logits", "probs"):
            if address not in torch_pass.found or address not in steps:
                continue
            found = np.asarray(numbers.entries(steps[address].value), dtype=float)
            assert np.allclose(found, torch_pass.found[address], rtol=near, atol=near)


def test_what_floats_give_is_allowed() -> None:
    floats, allowed = Floats("float32"), Allowed("float32")
    both = zip(worked(floats), worked(allowed), strict=True)
    for (case, given, *_oracles), (_case, steps, *_same) in both:
        for step in case.plan():
            if step.op in ("given", "argmax") or steps[step.address].missing:
                continue
            claim = np.ma.filled(np.ma.asarray(given[step.address].value, dtype=float), 0.0)
            if step.op in ("scores", "table_scores"):
                continue
            judged = allowed.judge(steps[step.address].value, (), claim)
            assert judged.possible, (step.address, judged)


def test_on_a_device_limbs_refuse_rows_that_see_nothing() -> None:
    case = next(case for case in cases() if case.spec.blocks)
    with pytest.raises(InputError, match="need a key to look at for every query") as caught:
        work_out(case.plan(), case.weights, case.tokens, Limbs(90, "cpu"), target=case.target)
    assert caught.value.hint == "leave out --device"


# ------------------------------------------------------------------ learning


@pytest.mark.parametrize(
    "numbers", [Floats("float64"), Tensors("float64"), Balls(90), Limbs(90)],
    ids=["floats", "tensors", "balls", "limbs"],
)  # fmt: skip
def test_gradients_are_those_of_torch(numbers: Any) -> None:
    for case in cases():
        smooth = all(norm.kind == "none" or norm.eps for norm in norms_of(case))
        if not smooth:
            continue
        places = {"positions": case.positions, "mask": case.mask}
        plan = adjoint(forward.plan(case.spec, len(case.tokens), target=True, **places))
        steps = work_out(plan, case.weights, case.tokens, numbers, target=case.target)
        oracle = TorchPass(case.spec, case.weights, case.tokens, 0, learning=True, **places)
        targets = [-1] * (len(case.tokens) - 1) + [case.target]
        for address, expected in oracle.gradients(targets, last=True).items():
            if address in steps and expected.isfinite().all():
                entries = numbers.entries(steps[address].value)
                for index in np.ndindex(expected.shape):
                    found = entries[index]
                    real = 0.0 if found is ABSENT or found is np.ma.masked else float(found)
                    assert abs(real - float(expected[index])) < 1e-8, (address, index)


def test_autograd_finds_its_way_through_rows_that_see_nothing() -> None:
    for case in cases():
        found = gradients_of(case.plan(), case.weights, tokens=case.tokens, target=case.target)
        matrices = {name: grad for name, grad in found.items() if name.startswith("grad.weight.")}
        if all(norm.kind == "none" or norm.eps for norm in norms_of(case)):
            assert matrices
            assert all(np.isfinite(grad).all() for grad in matrices.values())


def norms_of(case: Case) -> Iterator[Any]:
    yield case.spec.final_norm
    for block in case.spec.blocks:
        yield from (block.attn_norm, block.mlp_norm)
        if block.attention:
            yield from (block.attention.q_norm, block.attention.k_norm)


@pytest.mark.parametrize("number", range(9))
def test_a_batch_that_is_learned_from_has_the_same_logits_and_finite_gradients(number: int) -> None:
    import torch

    from byhand.train.module import TorchModel

    case = cases()[number]
    model = TorchModel(case.spec, case.weights, format="float64")
    ids = np.random.default_rng(number).integers(case.spec.vocab, size=(2, 4))
    logits = model(torch.tensor(ids))
    for text, found in zip(ids.tolist(), logits.detach().numpy(), strict=True):
        plan = forward.plan(case.spec, 4)
        expected = work_out(plan, case.weights, text, Floats("float64"))["logits"].array
        assert np.abs(found - expected).max() <= 1e-12 * max(1, np.abs(expected).max())
    logits.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
