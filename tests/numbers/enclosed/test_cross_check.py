"""The two systems of enclosures against each other: what one proves, the other does not deny.

Balls are checked against Arb in `test_balls`; here they judge limbs, on every architecture, with
weights of ordinary, huge and tiny sizes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest

from byhand.evaluate import work_out
from byhand.expression import Expression
from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.weights import Tensor, Weights
from oracles.architectures import Case, spread

LONG = os.environ.get("BYHAND_LONG") == "1"
COUNT = 150 if LONG else 4  # cases for each scale


def cases(scale: float) -> Iterator[tuple[Case, Weights]]:
    """Models of every kind, whose weights are float32s of about this size."""
    for number, case in enumerate(spread(COUNT, seed=41, among=4)):
        random = Random(number)
        tensors = {
            name: Tensor(name, in_float32(tensor.data, scale, random))
            for name, tensor in case.weights.items()
        }
        yield case, Weights(tensors)


def in_float32(data: Any, scale: float, random: Random) -> Any:
    """The weights as floats; objects where some are absent, as model files have them."""

    def entry(x: Any) -> Any:
        if x is ABSENT:
            return ABSENT
        value = random.uniform(-1, 1) if isinstance(x, Expression) else float(x)
        return Fraction(float(np.float32(value * scale)))

    made = np.empty(data.shape, dtype=object)
    made.flat = [entry(x) for x in data.flat]
    return made if any(x is ABSENT for x in made.flat) else made.astype(np.float32)


@pytest.mark.parametrize("scale", [1.0, 30.0, 2000.0, 1e-3, 1e-9])
def test_limbs_and_balls_have_a_number_in_common_everywhere(scale: float) -> None:
    compared = unknown = 0
    for case, weights in cases(scale):
        given = case.plan(), weights, case.tokens
        balls = work_out(*given, Balls(400), target=case.target)
        for bits in (40, 90, 200):
            limbs = work_out(*given, Limbs(bits), target=case.target)
            for address, worked in limbs.items():
                if worked.step.op == "argmax":
                    for one, other in zip(worked.value, balls[address].value, strict=True):
                        assert not (one.proven and other.proven) or one.id == other.id
                for index, found in worked.entries():
                    expected = balls[address].at(index)
                    assert (found is ABSENT) == (expected is ABSENT), f"{address}{index}"
                    if found is not ABSENT:
                        compared += 1
                        unknown += found.rad == inf
                        assert found.overlaps(expected), (
                            f"{address}{index} at {bits} bits: {found}, not {expected}\n{case}"
                        )
    assert unknown < compared / 10
