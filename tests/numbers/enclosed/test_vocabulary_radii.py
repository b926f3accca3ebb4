"""Radii of the newer operations in limbs at their rim: none may be narrower than it is.

Each test moves real numbers as far as their radii allow, in the direction that hurts most, and asks
for most of the radius that results.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from real_values import ORACLE, contained

from byhand.numbers.enclosed.limbs import arithmetic, entrywise
from byhand.numbers.enclosed.limbs.operations import Limbs
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry
from oracles.vocabulary import Truth, number

SYSTEM, TRUTH = Limbs(120), Truth(ORACLE.bits)
RIM = 2.0**-30
SEEN: dict[str, Any] = {"mask": [[True] * 2], "queries": range(1), "keys": range(2)}


def moved(rows: Any, way: Any, radius: float = RIM) -> tuple[Enclosed, Any]:
    """Numbers with a radius for each, and real ones at its end: above (1) or below (-1)."""
    floats = np.array(rows, dtype=float)
    ways = np.broadcast_to(way, floats.shape).ravel().tolist()
    real = [Fraction(x) + up * Fraction(radius) for x, up in zip(floats.flat, ways, strict=True)]
    digits = arithmetic.from_floats(floats)[0]
    known = ORACLE.admit(np.array(real, object).reshape(floats.shape))
    return by_entry(digits, np.full(floats.shape, radius)), TRUTH._balls(known)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_limit_is_reached_for_sure_only_by_the_whole_radius(side: int) -> None:
    """Beyond a limit by 95 parts of a hundred of its radius, a number may be within it."""
    x, real = moved([[side * (2 + 0.95 * RIM)]], -side)
    limits: dict[str, Any] = {"most" if side > 0 else "least": Fraction(2 * side)}
    made, truth = SYSTEM.clamp(x, **limits), TRUTH.clamp(real, **limits)
    assert contained(SYSTEM, made, truth) > 0.04
    x, real = moved([[side * (2 + 1.05 * RIM)]], -side)
    assert contained(SYSTEM, SYSTEM.clamp(x, **limits), TRUTH.clamp(real, **limits)) == 0


@pytest.mark.parametrize("cap", ["127/64", "63"])
def test_a_capped_number_may_err_as_far_as_its_bound_says(cap: str) -> None:
    """Half a unit of the last product, and a quarter of those of x/c and of tanh, which is 5.25."""
    limit, low = Fraction(cap), -44
    floats = np.random.default_rng(1).standard_normal(2000) * float(limit)
    made, local = entrywise.capped(arithmetic.from_floats(floats)[0], limit, low)
    found = arithmetic.to_fractions(made).tolist()
    with ctx.workprec(200):
        true = [number(limit) * (arb(x) / number(limit)).tanh() for x in floats]
        worst = max(float(abs(t - number(x))) for t, x in zip(true, found, strict=True))
    assert 0.6 < worst * 2.0**-low < local * 2.0**-low
    assert (
        local * 2.0**-low > 0.5 + (0.5 + 5.25) / 4 * float(limit) / 2 ** np.frexp(float(limit))[1]
    )


def test_angles_that_lost_their_trees_turn_as_far_as_they_may() -> None:
    """A rate known to 2^-30 only: after seven positions, half a turn, the second entry moves."""
    rates, real = moved([math.pi / 7], 1)
    more: dict[str, Any] = {
        "positions": (0, 7), "width": 2, "base": Fraction(10), "pairing": "half"
    }  # fmt: skip
    x = np.broadcast_to([3.0, 0.0], (1, 2, 2))
    made = SYSTEM.rotate(Enclosed(arithmetic.from_floats(x)[0]), frequencies=rates, **more)
    truth = TRUTH.rotate(ORACLE.admit(x), frequencies=real, **more)
    assert contained(SYSTEM, made, truth) > 0.64  # √2 counts as 1.5


def test_a_bias_that_is_not_exact_counts_in_scores_shares_and_mixtures() -> None:
    """Queries and keys are known far better, and values exactly."""
    q, real_q = moved([[[1.0, 0.5]]], 1, 2.0**-80)
    k, real_k = moved([[[0.5, 1.0], [0.25, 1.5]]], 1, 2.0**-80)
    bias, real_bias = moved([[[0.0, 0.0]]], [1, -1])
    v = np.array([[[1.0], [-1.0]]])
    ours = SYSTEM.scores(q, k, bias=bias, **SEEN)
    real = TRUTH.scores(real_q, real_k, bias=real_bias, **SEEN)
    assert contained(SYSTEM, ours, real) > 0.95
    shares, true_shares = SYSTEM.softmax(ours), TRUTH.softmax(real)
    assert contained(SYSTEM, shares, true_shares) > 0.4
    mixed = SYSTEM.mix(shares, Enclosed(arithmetic.from_floats(v)[0]))
    assert contained(SYSTEM, mixed, TRUTH.mix(true_shares, ORACLE.admit(v))) > 0.4


@pytest.mark.parametrize("exact", [False, True])
def test_a_share_beside_a_sink_moves_with_its_score_and_with_the_sink(exact: bool) -> None:
    """The score rises and the sink falls, or stays."""
    x, real = moved([[[-3.0]]], 1)
    sinks, real_sinks = moved([0.0], -1)
    if exact:
        sinks, real_sinks = Enclosed(sinks.digits), ORACLE.admit(np.zeros(1))
    ours, truth = SYSTEM.softmax(x, sinks=sinks), TRUTH.softmax(real, sinks=real_sinks)
    used = contained(SYSTEM, ours, truth)
    v = np.array([[[1.0]]])
    mixed = SYSTEM.mix(ours, Enclosed(arithmetic.from_floats(v)[0]))
    also = contained(SYSTEM, mixed, TRUTH.mix(truth, ORACLE.admit(v)))
    assert used > (0.4 if exact else 0.8)
    assert also > (0.7 if exact else 0.8)


def test_a_sink_that_is_not_exact_moves_the_share_of_an_exact_score() -> None:
    """Its factor is that of two scores that err, so one alone uses nearly half of it."""
    score, real = Enclosed(arithmetic.from_floats(np.array([[[-3.0]]]))[0]), [[[Fraction(-3)]]]
    sinks, real_sinks = moved([0.0], -1)
    made = SYSTEM.softmax(score, sinks=sinks)
    truth = TRUTH.softmax(ORACLE.admit(np.array(real, object)), sinks=real_sinks)
    assert 0.4 < contained(SYSTEM, made, truth) < 0.5
