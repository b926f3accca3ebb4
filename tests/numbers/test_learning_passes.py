"""A whole training step, exactly and in balls, against Arb through the expressions of `working`.

`working` itself is compared with torch's gradients elsewhere.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import ctx

from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from oracles.arb_pass import ArbPass
from oracles.architectures import HALF_ROOT_TWO, nasty
from oracles.comparing import assert_exact_is_arb
from oracles.training import Lesson, lessons

SHARED = {"layers": 1, "attention": True, "out": True, "heads": 4, "d_head": 2, "kv_heads": 2,
          "packed": None, "scale": HALF_ROOT_TWO, "length": 3, "q_bias": True, "k_bias": True,
          "v_bias": True}  # fmt: skip
PACKED = SHARED | {"heads": 2, "packed": "per_head", "scale": None}
LESSONS = [
    *lessons(3, seed=5, wishes=SHARED),
    *lessons(2, seed=6, wishes=PACKED),
    *lessons(14, seed=4),
    *lessons(6, seed=12, entry=nasty),
]
PRECISIONS = (53, 120, 400)
NEAR_A_STEP = ("update.change.", "update.weight.")  # g/(|g| + eps) jumps where g is nearly 0


@pytest.mark.parametrize("number", range(len(LESSONS)))
def test_every_number_of_a_training_step_is_exactly_what_arb_finds(number: int) -> None:
    lesson = LESSONS[number]
    assert assert_exact_is_arb(lesson.work(Exact()), lesson.oracle()) > 30


@pytest.mark.parametrize("number", range(len(LESSONS)))
def test_every_ball_of_a_training_step_holds_the_truth(number: int) -> None:
    lesson = LESSONS[number]
    oracle = lesson.oracle()
    for bits in PRECISIONS:
        assert contained(lesson, oracle, bits) > 30


def contained(lesson: Lesson, oracle: ArbPass, bits: int) -> int:
    """How many balls there are; each must hold Arb's, at a precision far above its own."""
    found = 0
    for address, worked in lesson.work(Balls(bits)).items():
        if worked.step.op in ("given", "argmax"):
            continue
        for index in np.ndindex(worked.step.shape):
            ball, truth = worked.value[index], oracle.values[address][index]
            assert (ball is ABSENT) == (truth is None), f"{address}{index}"
            if truth is not None:
                with ctx.workprec(bits):
                    assert ball.overlaps(truth), f"{address}{index}: {ball}, not {truth}"
                found += 1
    return found


@pytest.mark.parametrize("number", range(len(LESSONS)))
def test_the_working_of_every_entry_is_what_floats_compute(number: int) -> None:
    lesson = LESSONS[number]
    oracle = lesson.oracle()
    for address, worked in lesson.work(Floats("float64")).items():
        jumps = lesson.rule.moments == ("m", "v") and address.startswith(NEAR_A_STEP)
        if worked.step.op in ("given", "argmax") or jumps:
            continue
        for index in np.ndindex(worked.step.shape):
            truth = oracle.values[address][index]
            entry = np.ma.asarray(worked.value)[index]
            assert (entry is np.ma.masked) == (truth is None), f"{address}{index}"
            if truth is not None:
                assert math.isclose(entry, float(truth), rel_tol=1e-9, abs_tol=1e-11), (
                    f"{address}{index}: {entry}, not {truth}"
                )
