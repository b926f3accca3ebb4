"""Whole backward passes and training steps in `Limbs` contain the real values, entry by entry.

`python -m benchmarks.enclosed_backward` tries several hundred passes.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.enclosed_backward import Tally, compare, passes
from flint import arb, ctx, fmpq
from test_limbs_passes import SPECS, as_floats, llama, post_norm, random_weights

from byhand import forward
from byhand.backward import adjoint
from byhand.batch import Batch
from byhand.evaluate import prepare, work_out
from byhand.learning import Lesson as Course
from byhand.models import open_model
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.floats import Floats
from byhand.optimizer import Rule
from byhand.proving.digits import gradients_of_weights, prove
from byhand.tracing import Trace
from oracles.arb_pass import VANISHING
from oracles.architectures import nasty
from oracles.training import Lesson, lessons

DATA = Path(os.environ.get("BYHAND_DATA", Path(__file__).parents[4] / "shared" / "data"))
STORIES = DATA / "stories260K"


# ------------------------------------------------------------------ small models, against Arb


def float_lessons() -> list[Lesson]:
    """Lessons whose weights are floats, as limbs want them."""
    found = [*lessons(5, seed=21), *lessons(3, seed=22, entry=nasty)]
    return [
        replace(lesson, case=replace(lesson.case, weights=as_floats(lesson.case.weights)))
        for lesson in found
    ]


@pytest.mark.parametrize("number", range(0, 8, 1 if os.environ.get("BYHAND_LONG") else 2))
def test_every_number_of_a_training_step_contains_what_arb_finds(number: int) -> None:
    lesson = float_lessons()[number]
    oracle = lesson.oracle()
    for numbers in (Limbs(50), Limbs(150), Limbs(150, "cpu")):
        found = 0
        for address, worked in lesson.work(numbers).items():
            if worked.step.op in ("given", "argmax"):
                continue
            entries = numbers.entries(worked.value)
            for index in np.ndindex(worked.step.shape):
                truth, entry = oracle.values[address][index], entries[index]
                assert (entry is np.ma.masked) == (truth is None), f"{address}{index}"
                if truth is not None and entry.rad < math.inf:
                    assert holds(entry, truth), f"{address}{index}: {entry}, not {truth}"
                    found += 1
        assert found > 30


def holds(entry: Any, truth: arb) -> bool:
    """Whether a ball of the oracle meets the enclosure; what vanishes counts as zero."""
    with ctx.workprec(600):
        mid, rad = (arb(fmpq(x.numerator, x.denominator)) for x in (entry.mid, entry.rad))
        return not abs(truth - mid) > rad + VANISHING


def test_random_backward_passes_contain_the_real_values() -> None:
    tally = Tally()
    for learning, bits, device in passes(seed=0, count=4):
        compare(learning, bits, device, tally)
    assert not tally.outside, tally.outside[:3]
    assert tally.sharp > 5000


# ------------------------------------------------------------------ larger models


def text_of(spec: Any, length: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ids = np.random.default_rng(seed).integers(0, spec.vocab, length + 1)
    return tuple(map(int, ids[:-1])), tuple(map(int, ids[1:]))


CASES = [
    ("gpt2", "random", None), ("llama", "outliers", None), ("neox", "tiny", "cpu"),
    ("post", "flat", None), ("llama", "bfloat16", "cpu"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "kind", "device"), CASES)
def test_gradients_of_larger_models_contain_those_of_balls(
    family: str, kind: str, device: str | None
) -> None:
    spec = SPECS[family](1)
    weights = random_weights(spec, np.random.default_rng(3), kind)
    tokens, targets = text_of(spec, 3, 4)
    plan = adjoint(forward.plan(spec, 3, losses=True))
    ours, truth = Limbs(140, device), Balls(400)
    mine = work_out(plan, weights, tokens, ours, targets=targets)
    real = work_out(plan, weights, tokens, truth, targets=targets)
    sharp = count = 0
    for address in gradients_of_weights(plan):
        found, known = ours.entries(mine[address].value), truth.entries(real[address].value)
        places = list(np.ndindex(*plan[address].shape))
        for index in places[:: max(1, len(places) // 40)]:
            entry, value = found[index], known[index]
            assert abs(entry.mid - value.mid) <= entry.rad + value.rad, f"{address}{index}"
            sharp += entry.rad * 2**20 <= abs(entry.mid) or entry.mid == entry.rad == 0
            count += 1
    assert sharp > 0.8 * count, f"{sharp} of {count} are known well"


def test_six_digits_of_every_gradient_are_proven() -> None:
    model = open_model("minigpt")
    job = prepare(model, None, Limbs(80), losses=True, backward=True)
    job = replace(job, asked=tuple(gradients_of_weights(job.plan)))
    trace = prove(job, 6)
    assert trace.proof is not None
    assert trace.proof.complete
    floats = replace(job, numbers=Floats("float64")).work()
    for address in job.asked:
        near = np.asarray(floats.steps[address].value)
        value = trace.steps[address].value
        sizes = np.abs(near).max()
        assert np.abs(value.approx - near).max() < 1e-10 * sizes


@pytest.mark.skipif(not STORIES.exists(), reason="the model stories260K is not here")
def test_gradients_of_a_trained_model_are_enclosed_near_those_of_float64() -> None:
    job = prepare(open_model(STORIES), "Once upon a time", Limbs(240), losses=True, backward=True)
    trace, floats = job.work(), replace(job, numbers=Floats("float64")).work()
    for address in gradients_of_weights(job.plan):
        value, near = trace.steps[address].value, np.asarray(floats.steps[address].value)
        assert value.box.max() < 1e-14
        assert np.abs(value.approx - near).max() < 1e-9 * np.abs(near).max()


# ------------------------------------------------------------------ zeros


def test_zeros_of_a_whole_pass_are_known() -> None:
    """Units of relu that never fire, tokens and positions that nobody took, positions before the
    last, which do not count: exact zeros; and nothing else is."""
    spec = post_norm(1)
    weights = random_weights(spec, np.random.default_rng(5), "random")
    tokens, _targets = text_of(spec, 4, 6)
    numbers, plan = Limbs(150), adjoint(forward.plan(spec, 4, target=True))
    steps = work_out(plan, weights, tokens, numbers, target=1)
    hidden = np.asarray(steps["block.0.mlp.hidden"].value.approx)
    dead = (hidden <= 0).all(0)
    assert dead.any()
    incoming = numbers.entries(steps[plan.known["grad.weight.block.0.mlp.hidden"]].value)
    outgoing = numbers.entries(steps[plan.known["grad.weight.block.0.mlp.out"]].value)
    for unit, gone in enumerate(dead):
        assert (incoming[3, unit].rad == 0) == (gone or hidden[-1, unit] <= 0)
        assert (outgoing[unit, 3].rad == 0) == (gone or hidden[-1, unit] <= 0)
    logits = numbers.entries(steps["grad.logits"].value)
    assert all(logits[p, 0].mid == logits[p, 0].rad == 0 for p in range(3))
    assert logits[3, 0].rad > 0


# ------------------------------------------------------------------ several steps of training


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_the_second_step_reads_the_weights_that_the_first_one_made(kind: str) -> None:
    spec = replace(llama(1, 12), vocab=8)
    weights = random_weights(spec, np.random.default_rng(8), "random")
    tokens, targets = text_of(spec, 3, 9)
    model = replace(open_model("tiny"), spec=spec, weights=weights)
    course = Course(model, Batch("", tokens, targets, (3,)))
    rules = [
        Rule(kind=kind, clip=Fraction(1, 2), decay=Fraction(1, 10), step=step) for step in (1, 2)
    ]
    ours, real = course.learn(rules, Limbs(200)), course.learn(rules, Balls(500))
    pairs = [*zip((s.trace for s in ours.steps), (s.trace for s in real.steps), strict=True)]
    for mine, theirs in [*pairs, (ours.after, real.after)]:
        assert within(mine, theirs) > 100
    assert ours.losses[2].rad < 2.0**-80


def within(mine: Trace, theirs: Trace) -> int:
    """How many entries there are; each contains the real one, and every weight is known well."""
    count = 0
    for address, worked in mine.steps.items():
        if worked.step.op in ("given", "argmax"):
            continue
        places = list(np.ndindex(*worked.step.shape))
        for index in places[:: max(1, len(places) // 20)]:
            entry, value = worked.at(index), theirs.steps[address].at(index)
            if value is ABSENT or entry is np.ma.masked:
                continue
            assert abs(entry.mid - value.mid) <= entry.rad + value.rad, f"{address}{index}"
            count += 1
    return count
