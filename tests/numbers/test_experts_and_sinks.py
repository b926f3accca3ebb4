"""Sinks, experts and the magnitude of turns: every number system against oracles."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from byhand.evaluate import work_out
from byhand.expression import parse
from byhand.numbers.allowed import Allowed
from byhand.numbers.base import ABSENT, Note, Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from oracles.arb_pass import ArbPass
from oracles.architectures import Case, nasty, spread
from oracles.comparing import assert_arb_is_torch, assert_exact_is_arb
from oracles.experts import modern
from oracles.hand_set import dyadic
from oracles.torch_pass import TorchPass

WISHES = {"attention": True, "mlp": True, "vocab": 3, "layers": 1, "score table": False}


@cache
def cases() -> tuple[Case, ...]:
    found = []
    for number, case in enumerate(spread(6, seed=7, among=3, wishes=WISHES)):
        found.append(modern(case, number, nasty if number % 4 == 3 else dyadic))
    return tuple(found)


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


def test_balls_contain_the_values() -> None:
    numbers = Balls(120)
    for case, steps, oracle, _torch in worked(numbers):
        for step in case.plan():
            if step.op in ("given", "argmax"):
                continue
            entries = numbers.entries(steps[step.address].value)
            for index, real in oracle.values[step.address].items():
                found = entries[index]
                if real is None:
                    assert found is ABSENT
                    continue
                low, high = (float(found.mid - s * found.rad) for s in (1, -1))
                assert low - 1e-12 <= float(real) <= high + 1e-12, (step.address, index)


@pytest.mark.parametrize(
    "numbers",
    [Floats("float64"), Tensors("float64"), Pencil(9)],
    ids=["floats", "tensors", "pencil"],
)
def test_rounded_numbers_come_near_the_values(numbers: Any) -> None:
    near = 1e-5 if isinstance(numbers, Pencil) else 1e-9
    for case, steps, _arb, torch_pass in worked(numbers):
        for address in ("block.0.attn.weights", "block.0.mlp.shares", "stream.1", "logits"):
            found = np.asarray(steps[case.plan()[address].address], dtype=float)
            assert np.allclose(found, torch_pass.found[address], rtol=near, atol=near), address


@pytest.mark.parametrize("format", ["float32", "bfloat16"])
def test_what_floats_give_is_allowed_line_by_line_and_the_truth_as_well(format: str) -> None:
    floats, allowed = Floats(format), Allowed(format)
    both = zip(worked(floats), worked(allowed), strict=True)
    for (case, given, *_oracles), (_case, steps, oracle, _torch) in both:
        for step in case.plan():
            if step.op in ("given", "argmax", "scores") or steps[step.address].missing:
                continue
            found = floats.entries(given[step.address].value)
            claim: Any = np.ma.filled(np.ma.asarray(found, dtype=float), 0.0)
            judged = allowed.judge(steps[step.address].value, (), claim)
            assert judged.possible, (step.address, judged)
            if format == "float32":
                truth = np.zeros(step.shape)
                for index, real in oracle.values[step.address].items():
                    truth[index] = 0.0 if real is None else float(real)
                assert allowed.judge(steps[step.address].value, (), truth).possible, step.address


# ------------------------------------------------------------------ ties, and what is left open

TIED = [parse(text) for text in ("sqrt(2)*sqrt(3)", "sqrt(6)", "2")]


def test_exact_numbers_prove_a_tie_and_say_so() -> None:
    numbers = Exact()
    scores = numbers.admit(np.array([TIED], dtype=object))
    for count, chosen in ((1, [1, 0, 0]), (2, [1, 1, 0])):
        numbers.notes.clear()
        marks = numbers.choose(scores, count=count)
        assert marks.tolist() == [chosen]
        assert numbers.notes == ([Note("tied-experts", (0,))] if count == 1 else [])


def test_balls_that_cannot_separate_two_scores_contain_either_choice() -> None:
    numbers = Balls(64)
    scores = numbers.admit(np.array([TIED], dtype=object))
    marks = numbers.choose(scores, count=1)
    shares = numbers.expert_shares(scores, marks, normalised=True)
    for value in (marks, shares):
        ends = [(float(x.mid - x.rad), float(x.mid + x.rad)) for x in numbers.entries(value)[0]]
        assert np.allclose(ends, [(0, 1), (0, 1), (0, 0)], rtol=0, atol=1e-8)
    answers = numbers.admit(np.array([[[1.0]], [[3.0]], [[9.0]]]))
    (out,) = numbers.entries(numbers.combine(answers, shares)).ravel()
    assert out.mid - out.rad <= 1
    assert 3 <= out.mid + out.rad < 9


def test_floats_say_that_experts_tie_and_take_the_first() -> None:
    numbers = Floats("float32")
    marks = numbers.choose(np.array([[1, 2, 2], [3, 2, 1]], dtype=np.float32), count=1)
    assert marks.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert numbers.notes == [Note("tied-experts", (0,))]


class Counting(Floats):
    """Floats that count the rows each matrix is applied to."""

    def __init__(self) -> None:
        super().__init__("float64")
        self.rows: list[int] = []

    def linear(self, x: Any, weight: Any, **settings: Any) -> Any:
        self.rows.append(len(x))
        return super().linear(x, weight, **settings)


def test_an_expert_is_worked_out_where_it_has_a_share_and_elsewhere_when_it_is_read() -> None:
    rng = np.random.default_rng(0)
    x, shares = rng.standard_normal((5, 3)), np.zeros((5, 4))
    shares[[0, 3], 1], shares[4, 2] = 0.5, 0.25  # experts 0 and 3 have none
    into, out = rng.standard_normal((4, 3, 6)), rng.standard_normal((4, 6, 3))
    numbers = Counting()
    hidden = numbers.expert_linear(x, into, layout="in_out")
    answers = numbers.expert_linear(
        numbers.activate(hidden, kind="relu"), out, bias=np.ones((4, 3)), layout="in_out"
    )
    total = numbers.combine(answers, shares)
    assert numbers.rows == [2, 2, 1, 1]
    every = np.maximum(x @ into, 0) @ out + 1
    assert np.allclose(total, np.einsum("pe,epd->pd", shares, every), rtol=1e-14)
    assert np.allclose(numbers.entries(answers), every, rtol=1e-14)
    assert numbers.rows[4:] == [5, 5] * 4
    assert np.array_equal(pickle.loads(pickle.dumps(answers)), numbers.entries(answers))


def test_an_expert_without_a_share_does_no_harm() -> None:
    answers = np.array([[[1.0]], [[np.inf]]])
    shares = np.array([[1.0, 0.0]])
    assert Floats("float64").combine(answers, shares).tolist() == [[1.0]]
    found = Tensors("float64").combine(torch.tensor(answers), torch.tensor(shares))
    assert found.tolist() == [[1.0]]
