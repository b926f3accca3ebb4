"""What today's models have, in every number system against oracles: one test an assurance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from byhand.evaluate import work_out
from byhand.numbers.allowed import Allowed
from byhand.numbers.base import ABSENT, Numbers
from byhand.numbers.enclosed.balls.operations import Balls
from byhand.numbers.exact import Exact
from byhand.numbers.floats import Floats
from byhand.numbers.pencil import Pencil
from byhand.numbers.tensors import Tensors
from oracles.arb_pass import ArbPass
from oracles.architectures import nasty
from oracles.comparing import assert_arb_is_torch, assert_exact_is_arb
from oracles.hand_set import dyadic
from oracles.todays import Todays, todays
from oracles.todays_pass import TodaysPass

MANY = range(12)


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


@pytest.mark.parametrize("number", MANY)
def test_the_formulas_say_what_torch_computes(number: int) -> None:
    assert_arb_is_torch(oracle(number), torch_pass(number))
