"""`tiny` learns exactly: its gradients are SymPy's derivatives, its first steps closed forms."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import sympy as sp
from flint import arb, ctx, fmpq

import byhand
from budgets import LONG
from byhand import forward
from byhand.backward import adjoint
from byhand.batch import read_batch
from byhand.evaluate import prepare, work_out
from byhand.expression import parse
from byhand.learning import Lesson, Training
from byhand.model import Model
from byhand.models import open_model
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.exact import Exact
from byhand.numbers.exact.read import evaluate
from byhand.optimizer import Rule
from byhand.parameters import learned
from byhand.plan import GRAD, Plan
from byhand.proving.digits import asked_steps, gradients_of_weights
from byhand.spec import NO_NORM
from byhand.weights import Tensor, Weights
from oracles.arb_pass import BITS, ArbPass
from oracles.sympy_tiny import Tiny, gradient, text
from oracles.training import Lesson as LessonCase
from oracles.training import lessons

TINY = open_model("tiny")
A_B = TINY.vocabulary.encode("a b")
C = TINY.vocabulary.id("c")
TARGETS = {"last": {1: C}, "mean": {0: A_B[1], 1: C}}
WITHOUT = {"norm", "gain", "bias"}


def without_norms() -> Model:
    """tiny without its norms, so that gradients flow through all of it: in two dimensions, what
    stands before a layernorm moves nothing but a sign."""
    (block,) = TINY.spec.blocks
    spec = replace(TINY.spec, blocks=(replace(block, attn_norm=NO_NORM, mlp_norm=NO_NORM),))
    kept = {name: t for name, t in TINY.weights.items() if not WITHOUT & set(name.split("."))}
    return replace(TINY, spec=spec, weights=Weights(kept))


MODELS = {"tiny": TINY, "tiny without norms": without_norms()}


def flat_weights(model: Model) -> dict[str, list[sp.Expr]]:
    return {
        name: [sp.Rational(q.numerator, q.denominator) for q in tensor.data.ravel()]
        for name, tensor in model.weights.items()
    }


def backward(model: Model, loss: str) -> Plan:
    plan = forward.plan(model.spec, 2, target=loss == "last", losses=loss == "mean")
    return adjoint(plan)


def values_of(model: Model, loss: str) -> tuple[Plan, dict[str, Any]]:
    plan = backward(model, loss)
    targets = tuple(TARGETS["mean"].values())
    return plan, work_out(plan, model.weights, A_B, Exact(), target=C, targets=targets)


DERIVED = [("tiny", "last"), ("tiny without norms", "mean")]


@pytest.mark.parametrize(("name", "loss"), DERIVED if LONG else DERIVED[1:])
def test_every_gradient_is_sympy_s_derivative_of_the_loss(name: str, loss: str) -> None:
    model = MODELS[name]
    oracle = Tiny(flat_weights(model), A_B, normed=name == "tiny")
    plan, found = values_of(model, loss)
    addresses = [
        a.removeprefix(GRAD) for a in plan.known if a.startswith(GRAD) and ".via." not in a
    ]
    compared = 0
    for address in addresses:
        if address.endswith((".slope", ".dot")) or address == "stream.1":
            continue
        if name != "tiny" and address in ("block.0.attn.out", "block.0.mlp.out"):
            continue  # the same as the mixture, and read by the stream alone: tested with norms
        worked = found[plan.known[GRAD + address]]
        values = [value for _index, value in worked.entries() if value is not None]
        expected = gradient(oracle, address, TARGETS[loss])
        for value, truth in zip(values, expected, strict=True):
            known = evaluate(parse(text(truth)), value.space)
            assert value == known, f"{address}: {value}, not {truth}"  # by algebra, or Undecided
            compared += 1
    assert compared > 60


# ----------------------------------------------------------------------- central differences

NEARBY = Fraction(1, 2**60)
SMOOTH = list(lessons(6, seed=21, wishes={"activation": "gelu"}))


def loss_near(lesson: LessonCase, name: str, index: tuple[int, ...], step: Fraction) -> arb:
    """The loss after one entry of a weight is moved, in Arb with 400 bits."""
    case = lesson.case
    data = case.weights[name].data.copy()
    data[index] = data[index] + step
    weights = Weights({**case.weights, name: Tensor(name, data)})
    root = "loss" if lesson.targets is None else "mean_loss"
    plan = lesson.plan.only([root])
    found = ArbPass(plan, weights, case.tokens, case.target, targets=lesson.targets)
    ball = found.values[root][0,]
    assert ball is not None
    return ball


@pytest.mark.parametrize("number", range(6))
def test_gradients_are_arb_s_central_differences(number: int) -> None:
    """(f(w + h) - f(w - h))/2h at h = 2^-60 differs from f'(w) by about 2^-120."""
    lesson = SMOOTH[number]
    worked = lesson.work(Exact(), lesson.plan.only(list(gradients_of_weights(lesson.plan))))
    compared = 0
    for parameter in learned(lesson.case.spec):
        address = lesson.plan.known[f"grad.weight.{parameter.name}"]
        index = tuple(size - 1 for size in parameter.shape)
        if worked[address].missing is not None or lesson.case.weights[parameter.name].same_as:
            continue
        with ctx.workprec(BITS):
            ahead, behind = (
                loss_near(lesson, parameter.name, index, sign * NEARBY) for sign in (1, -1)
            )
            slope = (ahead - behind) / arb(fmpq(1, 2**59))
            gradient = worked[address].at(index).ball(BITS)
            assert abs(slope - gradient) < arb(2) ** -90, f"{parameter.name}{index}"
        compared += 1
    assert compared > 1


# ----------------------------------------------------------------------- one step


def learn(kind: str, **settings: Any) -> Training:
    batch = read_batch(TINY, ("a b",), target=C)
    return Lesson(TINY, batch, last=True).learn([Rule(kind, **settings)], Exact())


def forms(training: Training, address: str) -> list[str]:
    return [str(value) for _index, value in training.steps[0].trace.steps[address].entries()]


def test_the_loss_after_one_step_of_sgd_is_exact() -> None:
    training = learn("sgd", rate=Fraction(1, 10))
    before, after = training.losses
    assert str(before) == "ln(1 + e + e^2) - 1"
    assert forms(training, "update.norm") == ["√2·√(3 + 2e^2 + 3e^4)/(1 + e + e^2)"]
    assert forms(training, "update.weight.block.0.mlp.norm.bias") == [
        "1/(10(1 + e + e^2))", "e^2/(10(1 + e + e^2))",
    ]  # fmt: skip
    e, n = sp.E, 10 * (1 + sp.E + sp.E**2)
    weights = flat_weights(TINY) | {
        "embed.token": [1 - e**2 / n, e**2 / n, -1 / n, 1 + 1 / n, 1 + (1 + e**2) / n,
                        1 - (1 + e**2) / n],
        "block.0.mlp.norm.gain": [1 + 1 / n, 1 - e**2 / n],
        "block.0.mlp.norm.bias": [1 / n, e**2 / n],
    }  # fmt: skip
    decimals = {name: [sp.N(entry, 120) for entry in flat] for name, flat in weights.items()}
    (truth,) = Tiny(decimals, A_B).losses({1: C})
    assert after.register == "named"
    assert after < before
    assert after.places(100) == str(sp.N(truth, 101))


def test_the_first_step_of_adamw_is_a_gradient_over_its_size_and_eps() -> None:
    training = learn("adamw", rate=Fraction(1), decay=Fraction(1, 100))
    first, *_others = forms(training, "update.change.embed.token")
    assert first == "100000000e^2/(1 + e + 100000001e^2)"
    roots = [value for _i, value in training.steps[0].trace["update.root.embed.token"].entries()]
    grads = [value for _i, value in training.steps[0].trace["grad.weight.embed.token"].entries()]
    eps = Fraction(1, 10**8)
    assert [root == abs(g) + eps for root, g in zip(roots, grads, strict=True)] == [True] * 6
    new = training.new["embed.token"]
    for (index, weight), g in zip(new.entries(), grads, strict=True):
        start = TINY.weights["embed.token"].data[index]
        assert weight == Fraction(99, 100) * start - g / (abs(g) + eps)


def test_a_clipped_step_is_written_with_the_norm_as_a_letter() -> None:
    training = learn("sgd", clip=Fraction(1, 2))
    factor = training.steps[0].trace["update.clip"].at((0,))
    norm = training.steps[0].trace["update.norm"].at((0,))
    assert factor == Fraction(1, 2) / (norm + Fraction(1, 10**6))
    assert len(str(factor)) < 40


# ----------------------------------------------------------------------- proofs


@pytest.mark.parametrize("model", ["tiny", "journey", "abc"])
def test_every_gradient_gets_its_digits_or_is_a_proven_zero(model: str) -> None:
    proven = byhand.trace(model, backward=True, target=2, numbers="digits 6")
    assert proven.proof is not None
    assert proven.proof.complete
    exact = byhand.trace(model, backward=True, target=2, numbers="exact")
    for address, worked in proven.steps.items():
        if not address.startswith(GRAD):
            continue
        for index, enclosure in worked.entries():
            value = exact.steps[address].at(index)
            if enclosure is None:
                assert value is None
            elif enclosure.rad == 0:
                assert value == enclosure.mid
            else:
                with ctx.workprec(BITS):
                    middle, radius = (
                        arb(fmpq(*x.as_integer_ratio())) for x in (enclosure.mid, enclosure.rad)
                    )
                    assert value.ball(BITS).overlaps(middle + radius * arb(0, 1)), address


def test_the_bias_of_keys_has_no_gradient_and_needs_no_proof_of_it() -> None:
    """abc packs q, k and v: of the bias, the part of k is exactly 0 without exact numbers."""
    proven = byhand.trace("abc", backward=True, target=2, numbers="digits 6")
    assert proven.proof is not None
    assert proven.proof.by_exact == ()
    assert proven.proof.bits < 128
    bias = [value for _i, value in proven.grad["weight.block.0.attn.qkv_bias"].entries()]
    third = len(bias) // 3
    zeros = [value.mid == 0 and value.rad == 0 for value in bias]
    assert zeros[third : 2 * third] == [True] * third
    assert not any(zeros[2 * third :])


def test_a_larger_model_is_asked_for_the_gradients_of_its_weights() -> None:
    model = open_model("minigpt-init")
    job = prepare(model, backward=True, numbers=Balls(64))
    asked = asked_steps(job)
    assert set(gradients_of_weights(job.plan)) <= set(asked)
    assert {"logits", "next", "losses", "mean_loss"} <= set(asked)
    assert len(asked) == len(learned(model.spec)) + 4
