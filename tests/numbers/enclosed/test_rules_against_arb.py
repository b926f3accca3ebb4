"""Rules of slopes at the actual point, each alone, against Arb: no sample lies beyond its bound.

The samples are those of `benchmarks.soundness`, random and adverse, of usual and of nasty sizes.
There each rule has 10^6 of them, and here some thousand; 20,000 with BYHAND_LONG=1.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.soundness.rules import RULES, samples_of
from test_slopes_at_the_point import enclosed, weight

from budgets import LONG
from byhand.numbers.enclosed.limbs.attention_moves import Attended, attention_moves
from byhand.numbers.enclosed.limbs.attention_sizes import attention_sizes
from byhand.numbers.enclosed.limbs.moves import Part, mlp_moves, mlp_sizes
from byhand.numbers.enclosed.limbs.weights import read_weight

MANY = 20_000 if LONG else 2_000


@pytest.mark.parametrize("rule", sorted(RULES))
def test_no_sample_lies_beyond_its_bound(rule: str) -> None:
    many = MANY // 2 if rule.startswith("attention") else MANY  # beside bounds that are nearly met
    count = samples_of(rule, many, seed=3, each=4)
    assert not count.missed, count.first
    assert count.open == 0
    assert count.samples - count.endless > many / 2
    assert count.nearest > 0.9, "some bounds are nearly met"


def test_a_query_far_smaller_than_others_of_its_head_still_moves_scores() -> None:
    """Of numbers 2^100 apart, float32 has both only where each row has a scale of its own."""
    one, small = weight([[1.0], [0.5]]), weight([[2.0**-60], [2.0**-61]])
    q, k, v = (Part(m, "out_in", None, 0, 2, 2, 1) for m in (small, one, small))
    sizes = attention_sizes(Part(weight([[1.0, 0.0]]), "out_in"), q, k, v)
    assert sizes is not None
    at = Attended(
        enclosed([[[2.0**100, 0.0], [1.0, 0.0]]]), enclosed([[[0.0, 0.0], [0.0, 0.0]]]),
        enclosed([[[1.0, 0.0], [-1.0, 0.0]]]), enclosed([[[0.5, 0.5]] * 2], 1e-25), 1.0, None,
        True, np.array([np.eye(2)] * 2),
    )  # fmt: skip
    bound = attention_moves(np.array([1e-40, 0.0]), sizes, at)[1]
    assert bound >= 0.5 * 1e-40 * (1 - 1e-9)  # p(1 - p)·(v - v')·q·ζ


def test_slopes_whose_squares_are_no_floats_are_bounded() -> None:
    tiny = Part(read_weight(np.array([[2.0**-290]])), "out_in")
    sizes = mlp_sizes(tiny, (tiny,))
    bound = mlp_moves(np.ones(1), sizes, "identity", enclosed([[0.0]]), enclosed([[0.0]]), None)
    assert bound[0] >= 2.0**-580
