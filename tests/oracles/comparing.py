"""A trace against the oracles, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from flint import arb, ctx

from byhand.numbers.base import ABSENT, Prediction
from byhand.plan import Plan
from byhand.worked import Worked
from oracles.arb_pass import ArbPass
from oracles.torch_pass import TorchPass

TIGHT = arb(2) ** -100  # the widest ball, next to 1 or to the value, that counts as an answer
CLOSE = 1e-12


def tight(ball: arb) -> bool:
    """Whether the ball says some thirty digits."""
    return bool(ball.is_finite() and ball.rad() <= TIGHT * (1 + abs(ball.mid())))


def tight_ball(value: Any) -> arb:
    """The value's ball at the first precision that makes it tight, as whoever needs digits asks."""
    for bits in (128, 256, 512, 1024):
        with ctx.workprec(bits):
            ball: arb = value.ball(bits)
            if tight(ball):
                return ball
    raise AssertionError(f"not tight at 1024 bits: {ball}")


def assert_exact_is_arb(steps: Mapping[str, Worked], oracle: ArbPass) -> int:
    """Every entry of every step overlaps Arb's ball, both tight; returns how many there were."""
    compared = 0
    for address, worked in steps.items():
        assert worked.missing is None, f"{address}: {worked.missing}"
        if worked.step.op == "argmax":
            assert_predictions(worked.value, oracle)
        for index, value in worked.entries():
            expected = oracle.values[address][index]
            if value is ABSENT or expected is None:
                assert value is ABSENT, f"{address}{index} should be masked"
                assert expected is None, f"{address}{index} should not be masked"
                continue
            found = tight_ball(value)
            assert tight(expected), f"{address}{index}: {expected}"
            assert found.overlaps(expected), f"{address}{index}: {found}, not {expected}"
            compared += 1
    return compared


def assert_predictions(predictions: list[Prediction], oracle: ArbPass) -> None:
    """The proven token is the largest by Arb; where Arb cannot separate, the two are tied."""
    vocab = oracle.plan.spec.vocab
    for position, prediction in enumerate(predictions):
        logits = [oracle.values["logits"][position, token] for token in range(vocab)]
        balls = [ball for ball in logits if ball is not None]
        assert prediction.proven, f"next[{position}]: {prediction}"
        assert prediction.id is not None
        best = balls[prediction.id]
        same = tuple(i for i, ball in enumerate(balls) if ball.overlaps(best))
        assert all(ball < best for i, ball in enumerate(balls) if i not in same), position
        assert prediction.id == same[0]
        assert prediction.tied == (same if len(same) > 1 else ())


def assert_arb_is_torch(oracle: ArbPass, torch_pass: TorchPass) -> None:
    """The formulas say what the framework computes, wherever the framework was asked."""
    for address, tensor in torch_pass.found.items():
        step = oracle.plan[address]
        assert tuple(tensor.shape) == step.shape, address
        if step.op == "argmax":
            continue
        for index in product(*map(range, step.shape)):
            ball = oracle.values[step.address][index]
            _assert_close(f"{address}{index}", ball, float(tensor[index]))


def assert_exact_is_torch(plan: Plan, steps: Mapping[str, Worked], torch_pass: TorchPass) -> None:
    """The exact values, as decimals, are what the framework computes."""
    for address, tensor in torch_pass.found.items():
        worked = steps[plan[address].address]
        for index, value in worked.entries():
            ball = None if value is ABSENT else tight_ball(value)
            _assert_close(f"{address}{index}", ball, float(tensor[index]))


def _assert_close(entry: str, ball: Any, found: float) -> None:
    if ball is None:  # a masked score is -∞ there and a masked weight 0
        assert found in (-math.inf, 0.0), f"{entry} should be masked"
        return
    expected = float(ball)
    assert math.isclose(found, expected, rel_tol=CLOSE, abs_tol=CLOSE), f"{entry}: {found} {ball}"
