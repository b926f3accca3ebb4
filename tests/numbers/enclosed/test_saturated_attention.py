"""Slopes of attention where one key has nearly all, and where values or shares are hardly known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_slopes_at_the_point import Heads, bound_of, enclosed, weight

from byhand.numbers.enclosed.limbs import attention_moves
from byhand.numbers.enclosed.limbs.attention_moves import Attended
from byhand.numbers.enclosed.limbs.attention_sizes import attention_sizes
from byhand.numbers.enclosed.limbs.moves import Part


@pytest.fixture(params=["short", "long"], autouse=True)
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test looks at pairs of positions, and then does without."""
    if request.param == "long":
        monkeypatch.setattr(attention_moves, "SHORT", 0)


@pytest.mark.parametrize("turned", [False, True])
def test_where_one_key_has_all_scores_hardly_count(turned: bool) -> None:
    """Scores near 10^6: the largest share is 1 but for 10^-1000, and only values move."""
    random = np.random.default_rng(10)
    heads = Heads(random, 4, 2, 4, 8, 300.0, turned=turned)
    z = random.standard_normal((5, 8)) * math.sqrt(8)
    mask, apart = np.ones((5, 5), bool), np.full(5, 1e-12)
    bound = bound_of(heads, z, mask, 0.5, apart, turns=True, off=1e-40)
    shares, v = heads.inner(z, mask, 0.5)[3], np.asarray(heads.v.floats, float)
    assert shares.max(-1).min() == 1.0
    values = [
        np.asarray(heads.out.floats, float)[:, 4 * head : 4 * head + 4]
        @ v[4 * (head // 2) : 4 * (head // 2) + 4]
        for head in range(4)
    ]
    for row in range(5):
        most = sum(
            np.linalg.norm(np.einsum("h,hij->ij", shares[:, row, key], values), 2)
            for key in range(5)
        )
        assert most * 1e-12 <= bound[row] * (1 + 1e-6) < 2 * most * 1e-12


@pytest.mark.parametrize("unsure", ["values", "shares"])
def test_what_is_not_known_of_values_and_shares_counts_as_distance(unsure: str) -> None:
    """Two keys whose distance from the mean is 0 as far as is known, and is not 0."""
    one, small = weight([[1.0]]), weight([[2.0**-10]])
    q, k, v, out = (Part(m, "out_in", None, 0, 1, 1, 1) for m in (one, one, small, one))
    sizes = attention_sizes(Part(out.weight, "out_in"), q, k, v)
    assert sizes is not None
    known, off = ([0.0, 0.0], 0.5) if unsure == "values" else ([0.5, -0.5], 1e-13)
    real = [0.5, -0.5]
    shares, loose = ([0.5, 0.5], 1e-13) if unsure == "values" else ([1.0, 0.0], 0.3)
    p = shares[0] if unsure == "values" else 0.7  # the real share of the first key
    keys = math.log(p / (1 - p)), 0.0
    at = Attended(
        enclosed([[[1.0], [1.0]]]), enclosed([[[keys[0]], [keys[1]]]], 1e-13),
        enclosed([[[known[0]], [known[1]]]], off), enclosed([[shares] * 2], loose), 1.0, None,
    )  # fmt: skip
    apart = np.array([1e-6, 0.0])  # of the first key alone
    moved = p * (1 - p) * (real[0] - real[1]) * 1e-6
    bound = attention_moves.attention_moves(apart, sizes, at)
    assert (bound >= moved * (1 - 1e-6)).all()
    assert moved > 20 * 2.0**-10 * 1e-6, "more than values move"


@pytest.mark.parametrize("through", ["query", "key"])
def test_of_two_opposite_keys_nearly_all_that_is_allowed_is_used(through: str) -> None:
    """Values and keys ±1, all but 10^-9 with the first: 4LK·r, and 2L·r of a distance, are met."""
    one, none = weight([[1.0]]), weight([[2.0**-100]])
    sides = {"query": (one, none, none, one), "key": (none, one, none, one)}[through]
    q, k, v, out = (Part(m, "out_in", None, 0, 1, 1, 1) for m in sides)
    sizes = attention_sizes(Part(out.weight, "out_in"), q, k, v)
    assert sizes is not None
    left = 1e-9
    asked = math.log((1 - left) / left) / 2
    at = Attended(
        enclosed([[[asked], [asked]]]), enclosed([[[1.0], [-1.0]]]),
        enclosed([[[1.0], [-1.0]]]), enclosed([[[1 - left, left]] * 2], 1e-25), 1.0, None,
    )  # fmt: skip
    rise = left * (1 - left) * 2 * (2 if through == "query" else asked) * 1e-12
    bound = attention_moves.attention_moves(np.array([1e-12, 0.0]), sizes, at)[0]
    assert rise * (1 - 1e-6) <= bound <= 1.01 * rise
