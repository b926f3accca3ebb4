"""Bounds of attention's slopes that are met, or nearly, so that none may be any smaller.

Heads of width 1, each with a query, keys and values of its own; some of them do not move: their
weights are 2^-60.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_slopes_at_the_point import enclosed

from byhand.numbers.enclosed.limbs import attention_moves
from byhand.numbers.enclosed.limbs.attention_moves import Attended
from byhand.numbers.enclosed.limbs.attention_sizes import attention_sizes
from byhand.numbers.enclosed.limbs.moves import Part
from byhand.numbers.enclosed.limbs.weights import read_weight

STILL = 2.0**-60


@pytest.fixture(params=["short", "long"], autouse=True)
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test looks at pairs of positions, and then does without."""
    if request.param == "long":
        monkeypatch.setattr(attention_moves, "SHORT", 0)


def answer(q: Any, k: Any, v: Any, scale: float = 1.0) -> float:
    """Of the first position, all heads added up; each row is a head."""
    total = 0.0
    for head, query in enumerate(q):
        key = head * len(k) // len(q)
        powers = np.exp(scale * query * np.array(k[key]))
        total += float(powers @ np.array(v[key]) / powers.sum())
    return total


def bound(
    q: Any, k: Any, v: Any, apart: Any, moving: str, scale: float = 1.0, far: float = 1.0,
) -> float:  # fmt: skip
    """The bound of how far the first answer moves, where what is named by `moving` may.

    All queries read one number of the stream, all keys another, all values a third.
    """
    heads, kv, positions = len(q), len(k), len(k[0])

    def reading(name: str, count: int) -> Any:
        rows = np.zeros((count, 3))
        rows[:, "qkv".index(name)] = far if name in moving else STILL
        return Part(read_weight(rows), "out_in", None, 0, 1, 1, count)

    parts = reading("q", heads), reading("k", kv), reading("v", kv)
    sizes = attention_sizes(Part(read_weight(np.ones((1, heads))), "out_in"), *parts)
    assert sizes is not None
    shares = []
    for head, query in enumerate(q):
        powers = np.exp(scale * query * np.array(k[head * kv // heads]))
        shares.append([powers / powers.sum()] * positions)
    at = Attended(
        enclosed([[[query]] * positions for query in q]), enclosed(np.array(k)[..., None]),
        enclosed(np.array(v)[..., None]), enclosed(shares, 1e-18), scale, None,
    )  # fmt: skip
    return float(attention_moves.attention_moves(np.array(apart), sizes, at)[0])


@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_a_key_moves_scores_by_the_scale(scale: float) -> None:
    away = 1e-7
    q, k, v = [[1.0]][0], [[0.0, 0.0]], [[1.0, -1.0]]
    moved = abs(answer(q, [[away, 0.0]], v, scale) - answer(q, k, v, scale))
    assert moved * (1 - 1e-6) <= bound(q, k, v, [away, 0.0], "k", scale) <= 1.01 * moved


@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_of_two_keys_that_share_alike_a_query_decides(scale: float) -> None:
    away = 1e-7
    k, v = [[1.0, -1.0]], [[1.0, -1.0]]
    moved = abs(answer([away], k, v, scale) - answer([0.0], k, v, scale))
    assert moved * (1 - 1e-6) <= bound([0.0], k, v, [away, 0.0], "q", scale) <= 1.01 * moved


@pytest.mark.parametrize("heads", [2, 3])
@pytest.mark.parametrize("moving", ["q", "k", "v"])
def test_heads_that_do_the_same_move_as_one_so_many_times_as_large(heads: int, moving: str) -> None:
    away = 1e-7
    q, k, v = [0.5] * heads, [[1.0, -1.0]], [[1.0, -1.0]]
    there = {
        "q": ([0.5 + away] * heads, k, v),
        "k": (q, [[1.0 + away, -1.0]], v),
        "v": (q, k, [[1.0 + away, -1.0]]),
    }
    moved = abs(answer(*there[moving]) - answer(q, k, v))
    assert moved * (1 - 1e-6) <= bound(q, k, v, [away, 0.0], moving) <= 1.7 * moved


@pytest.mark.parametrize("away", [0.3, 1.0, 2.0])
def test_shares_grow_with_both_scores(away: float) -> None:
    """All but e^-20 with the first of two opposite keys; a query moves both scores apart."""
    k, v = [[1.0, -1.0]], [[1.0, -1.0]]
    moved = abs(answer([10.0 - away], k, v) - answer([10.0], k, v))
    assert moved <= bound([10.0], k, v, [away, 0.0], "q") <= 8 * moved


@pytest.mark.parametrize("away", [0.01, 0.5, 1.5])
def test_a_query_that_is_0_moves_scores_together_with_a_key(away: float) -> None:
    """Nothing moves at first: a key counts only as far as the query has moved."""
    k, v, far = [[0.0, 0.0]], [[1.0, -1.0]], away / math.sqrt(2)
    moved = max(
        abs(answer([sign * far], [[far, -far]], v) - answer([0.0], k, v)) for sign in (1, -1)
    )
    assert moved <= bound([0.0], k, v, [away, away], "qk")


@pytest.mark.parametrize("away", [1e-6, 0.1])
def test_values_move_by_their_shares(away: float) -> None:
    k, v = [[1.0, 0.0, -1.0]], [[1.0, 0.5, -1.0]]
    moved = answer([1.0], k, [[1.0 + away, 0.5 + away, -1.0 + away]]) - answer([1.0], k, v)
    assert moved * (1 - 1e-6) <= bound([1.0], k, v, [away] * 3, "v") <= 1.01 * moved


def test_keys_are_turned_back_before_a_matrix_of_queries_meets_them() -> None:
    """The query moves along its first entry, and is turned by 90° onto the keys' second one."""
    first, still = np.array([[1.0], [STILL]]), np.full((2, 1), STILL)
    sides = first, still, np.array([[STILL]])
    q, k, v = (
        Part(read_weight(rows), "out_in", None, 0, len(rows), len(rows), 1) for rows in sides
    )
    sizes = attention_sizes(Part(read_weight(np.ones((1, 1))), "out_in"), q, k, v)
    assert sizes is not None
    turns = np.array([np.eye(2), [[0.0, -1.0], [1.0, 0.0]]])
    at = Attended(
        enclosed(np.zeros((1, 2, 2))), enclosed([[[0.0, 1.0], [0.0, -1.0]]]),
        enclosed([[[1.0], [-1.0]]]), enclosed([[[0.5, 0.5]] * 2], 1e-18), 1.0, None, True, turns,
    )  # fmt: skip
    away = 1e-7
    moved = answer([away], [[1.0, -1.0]], [[1.0, -1.0]])
    found = attention_moves.attention_moves(np.array([0.0, away]), sizes, at)[1]
    assert moved * (1 - 1e-6) <= found <= 1.01 * moved
