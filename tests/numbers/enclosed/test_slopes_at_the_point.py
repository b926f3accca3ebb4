"""How far sublayers move, by their slopes at the actual point: contained, and not far too wide.

The rules of `moves`, `attention_moves` and `metrics` against sublayers in float64, moved in random
directions and in those that hurt most.  With BYHAND_LONG=1 each rule is held to 10^6 samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from budgets import LONG
from byhand.numbers.enclosed.limbs import arithmetic, attention_moves, moves
from byhand.numbers.enclosed.limbs.attention_moves import Attended
from byhand.numbers.enclosed.limbs.attention_sizes import attention_sizes
from byhand.numbers.enclosed.limbs.metrics import coherence, factor, overlaps, pair_norms
from byhand.numbers.enclosed.limbs.moves import NEARLY, SLOPES, Part, mlp_moves, mlp_sizes
from byhand.numbers.enclosed.limbs.values import Enclosed, by_entry
from byhand.numbers.enclosed.limbs.weights import read_weight

CASES = 1000 if LONG else 12  # sublayers of each rule
SAMPLES = 1000 if LONG else 12  # directions of each
FLOATS = 1e-9  # the part of an answer that float64 may lose here


def enclosed(floats: Any, off: float = 0.0) -> Enclosed:
    """Floats as midpoints, every entry off by at most this much."""
    digits = arithmetic.from_floats(np.asarray(floats, dtype=float))[0]
    return by_entry(digits, None if off == 0.0 else np.full(np.shape(floats), off))


def weight(floats: Any) -> Any:
    return read_weight(np.asarray(floats, dtype=np.float32))


def directions(random: Any, shape: tuple[int, ...], slopes: Any = None) -> Any:
    """Rows of length 1; some follow the steepest direction of a matrix."""
    made = random.standard_normal(shape)
    if slopes is not None:
        made[::2] = np.linalg.svd(slopes)[2][0] * random.choice([-1, 1])
    sizes = np.sqrt((made**2).sum(-1, keepdims=True))
    return made / np.where(sizes > 0, sizes, 1)


# ------------------------------------------------------------------ metrics of matrices


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_factor_is_never_shorter_than_its_matrix_and_hardly_longer(rank: int) -> None:
    random = np.random.default_rng(rank)
    for _case in range(CASES):
        deep = int(random.integers(1, 12))
        matrix = random.standard_normal((deep, rank)) @ random.standard_normal((rank, 6))
        matrix *= 10.0 ** random.integers(-12, 12)
        found = factor(matrix)
        ways = np.vstack([random.standard_normal((SAMPLES, 6)), np.linalg.svd(matrix)[2]])
        own, bound = (np.sqrt(((ways @ one.T) ** 2).sum(1)) for one in (matrix, found))
        assert (own <= bound * (1 + FLOATS)).all()
        assert np.linalg.norm(found, 2) <= np.linalg.norm(matrix, 2) * (1 + 1e-6)


def test_no_product_of_two_parts_is_above_its_overlap() -> None:
    random = np.random.default_rng(1)
    for _case in range(CASES):
        count, width, deep = (int(random.integers(1, most)) for most in (4, 5, 9))
        parts = random.standard_normal((count, deep, width))
        if width > 1 and random.random() < 0.3:
            parts[0, :, 0] = 0.0
        whole = np.concatenate(list(parts), 1)
        gram = (whole.T @ whole).reshape(count, width, count, width).swapaxes(1, 2)
        factors = np.array([factor(part) for part in parts])
        sizes = np.array([np.linalg.norm(part) for part in parts])
        found = overlaps(factors, gram, sizes, deep)
        y, z = random.standard_normal((2, SAMPLES, count, width))
        form = np.einsum("nip,ijpq,njq->nij", y, gram, z)
        one, other = (
            np.sqrt((np.einsum("ipq,niq->nip", factors, each) ** 2).sum(-1)) for each in (y, z)
        )
        assert (abs(form) <= found * one[:, :, None] * other[:, None] * (1 + FLOATS)).all()
        assert found.max() <= 1.0
    apart = np.eye(6)[:, :3], np.eye(6)[:, 3:]  # nothing in common
    gram = np.array([[one.T @ other for other in apart] for one in apart])
    factors = np.array([factor(part) for part in apart])
    found = overlaps(factors, gram, np.full(2, math.sqrt(3)), 6)
    assert found[0, 1] < 1e-3 < 0.99 < found[0, 0]


def test_the_norms_of_pairs_bound_products_through_values() -> None:
    random = np.random.default_rng(2)
    for _case in range(CASES):
        outs, values = random.standard_normal((2, 3, 7, 4))
        gram = np.einsum("idp,jdq->ijpq", outs, outs)
        lefts = np.array([factor(part) for part in values])
        found = pair_norms(lefts, gram, np.array([np.linalg.norm(part) for part in outs]))
        for i in range(3):
            for j in range(3):
                product = values[i] @ outs[i].T @ outs[j] @ values[j].T
                norm = np.linalg.norm(product, 2)
                assert norm * (1 - FLOATS) <= found[i, j] <= 1.1 * norm + 1e-3


@pytest.mark.parametrize("gated", [False, True])
def test_no_slopes_are_above_the_bound_of_their_coherence(gated: bool) -> None:
    random = np.random.default_rng(3)
    used = []
    for _case in range(CASES):
        width, units = (int(random.integers(2, most)) for most in (8, 30))
        columns = random.standard_normal((width, units)) * 10.0 ** random.integers(-3, 3, units)
        rows = [random.standard_normal((units, width)) for _part in range(1 + gated)]
        rows[0][0] = 0.0
        form = coherence(columns, *rows)
        sizes = np.concatenate([np.linalg.norm(columns, axis=0) * np.linalg.norm(a, axis=1)
                                for a in rows])  # fmt: skip
        c = random.standard_normal((SAMPLES, sizes.size)) * (random.random(sizes.size) < 0.6)
        c[0] = 1.0
        made = c[:, :units, None] * rows[0]
        if gated:
            made = made + c[:, units:, None] * rows[1]
        whole = np.linalg.norm(columns @ made, axis=(1, 2))
        w = c * sizes
        along = (w @ form.directions.T) ** 2 @ form.weights
        bound = np.sqrt(form.rest * (w**2).sum(1) + along)
        assert (whole <= bound * (1 + FLOATS)).all()
        assert (whole <= np.sqrt(form.top * (w**2).sum(1)) * (1 + FLOATS)).all()
        used += (whole / np.where(bound > 0, bound, 1)).tolist()
    assert max(used) > 0.9


# ------------------------------------------------------------------ activations


def test_the_slope_of_gelu_is_nearly_that_of_its_likeness() -> None:
    """A proof: pieces of [0, 64] are halved until Arb encloses the difference below NEARLY."""
    from flint import arb, ctx

    left = [(0.0, 64.0)]
    most = arb(NEARLY["gelu"])
    with ctx.workprec(80):
        root = (arb(8) / arb.pi()).sqrt()
        while left:
            a, b = left.pop()
            x = arb((a + b) / 2, (b - a) / 2)
            normal = (x / arb(2).sqrt()).erfc() / 2
            rise = root * (1 + 3 * arb(44715) / 10**6 * x * x)
            density = (-x * x / 2).exp() / (2 * arb.pi()).sqrt()
            if not abs(x * density - x * normal * (1 - normal) * rise) < most:
                assert b - a > 1e-6
                left += [(a, (a + b) / 2), ((a + b) / 2, b)]


@pytest.mark.parametrize("kind", sorted(set(SLOPES) - {"relu", "identity"}))
def test_slopes_are_within_what_is_said_of_them(kind: str) -> None:
    """At points of every size, and at all that lies around them."""
    random = np.random.default_rng(4)
    x = random.standard_normal(SAMPLES * CASES) * 10.0 ** random.integers(-5, 3, SAMPLES * CASES)
    reach = abs(random.standard_normal(x.size)) * 10.0 ** random.integers(-9, 1, x.size)
    off = 1e-12
    near, apart = moves.slopes_near(kind, x, value_of(kind, x), off, reach)
    for share in (-1.0, -0.3, 0.0, 0.7, 1.0):
        there = slope_of(kind, x + share * reach)
        assert (abs(there - near) <= apart + 1e-8).all()
    if kind in NEARLY:
        assert np.median(apart[reach < 1e-6]) < 0.01


def value_of(kind: str, x: Any) -> Any:
    return x * likeness(kind, x)[0] if kind in NEARLY else {"sigmoid": share_of(x)}.get(
        kind, np.tanh(x)
    )  # fmt: skip


def slope_of(kind: str, x: Any) -> Any:
    if kind == "sigmoid":
        return share_of(x) * (1 - share_of(x))
    if kind == "tanh":
        return 1 - np.tanh(x) ** 2
    share, density = likeness(kind, x)
    return share + x * density


def share_of(w: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(w, -700, 700)))


def likeness(kind: str, x: Any) -> tuple[Any, Any]:
    """s and its slope, where the activation is x·s(x)."""
    if kind == "gelu":
        normal = 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2))
        return normal, np.exp(-np.minimum(x * x, 1400) / 2) / math.sqrt(2 * math.pi)
    root = {"gelu_fast": 0.7978845608, "gelu_bloom": 0.79788456}.get(kind, math.sqrt(2 / math.pi))
    if kind == "silu":
        w, rise = x, 1.0
    elif kind == "quick_gelu":
        w, rise = 1.702 * x, 1.702
    else:
        w, rise = 2 * root * (x + 0.044715 * x**3), 2 * root * (1 + 3 * 0.044715 * x * x)
    share = share_of(w)
    return share, share * (1 - share) * rise


# ------------------------------------------------------------------ the MLP


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("kind", ["relu", "gelu_tanh", "gelu", "silu", "sigmoid"])
def test_no_mlp_moves_further_than_its_bound(kind: str, gated: bool) -> None:
    random = np.random.default_rng(5)
    used = []
    for case in range(CASES):
        width, units, rows = (int(random.integers(1, most)) for most in (9, 30, 5))
        scale = 10.0 ** random.integers(-2, 3)
        reading = [random.standard_normal((units, width)) * scale for _part in range(1 + gated)]
        weights = [weight(one) for one in (*reading, random.standard_normal((width, units)))]
        a, b, v = (
            np.asarray(one.floats, float) for one in (*weights[:1], weights[-2], weights[-1])
        )
        parts = tuple(Part(one, "out_in") for one in weights[:-1])
        sizes = mlp_sizes(Part(weights[-1], "out_in"), parts)
        z = random.standard_normal((rows, width)) * math.sqrt(width)
        apart = np.full(rows, 10.0 ** random.integers(-6, 2))

        def answer(z: Any, a: Any = a, b: Any = b, v: Any = v) -> Any:
            inner = value_at(kind, z @ a.T)
            return (inner * (z @ b.T) if gated else inner) @ v.T

        h, off = z @ a.T, 1e-12
        up = enclosed(z @ b.T, off) if gated else None
        bound = mlp_moves(
            apart, sizes, kind, enclosed(h, off), enclosed(value_at(kind, h), off), up
        )
        slopes = steepest(answer, z[0])
        way = directions(random, (SAMPLES, *z.shape), slopes) * apart[:, None]
        middle = answer(z)
        moved = np.sqrt(((answer(z + way) - middle) ** 2).sum(-1))
        assert (moved <= bound * (1 + FLOATS) + 1e-9 * abs(middle).max()).all(), case
        used.append((moved / np.where(bound > 0, bound, 1)).max())
    assert max(used) > 0.3


def value_at(kind: str, x: Any) -> Any:
    return np.maximum(x, 0) if kind == "relu" else value_of(kind, x)


def steepest(answer: Any, z: Any) -> Any:
    """The Jacobian of a row, by differences."""
    step = 1e-6
    return np.array([(answer((z + step * way)[None]) - answer((z - step * way)[None]))[0]
                     for way in np.eye(z.size)]).T / (2 * step)  # fmt: skip


# ------------------------------------------------------------------ attention


@dataclass
class Heads:
    """Attention with random weights of these sizes, in float64."""

    random: Any
    heads: int
    group: int
    width: int
    stream: int
    size: float
    turned: bool

    def __post_init__(self) -> None:
        def drawn(rows: int) -> Any:
            return weight(self.random.standard_normal((rows, self.stream)) * self.size)

        kv = self.heads // self.group
        self.q, self.k, self.v = (drawn(count * self.width) for count in (self.heads, kv, kv))
        self.out = weight(self.random.standard_normal((self.stream, self.heads * self.width)))

    def parts(self) -> tuple[Part, ...]:
        kv = self.heads // self.group
        each = (self.heads, kv, kv)
        made = [
            Part(one, "out_in", None, 0, self.width, self.width, count)
            for one, count in zip((self.q, self.k, self.v), each, strict=True)
        ]
        return Part(self.out, "out_in"), *made

    def turns(self, positions: int) -> Any:
        """(pos, d, d): pairs of entries turned by an angle for each position."""
        made = np.zeros((positions, self.width, self.width))
        for place in range(positions):
            for pair in range(self.width // 2):
                angle = place * 0.7 ** (pair + 1)
                i, c, s = 2 * pair, math.cos(angle), math.sin(angle)
                made[place, i : i + 2, i : i + 2] = [[c, -s], [s, c]]
            if self.width % 2:
                made[place, -1, -1] = 1.0
        return made

    def split(self, z: Any, matrix: Any, turned: bool) -> Any:
        rows = z @ np.asarray(matrix.floats, float).T
        made = rows.reshape(*z.shape[:-1], -1, self.width).swapaxes(-3, -2)
        if turned:
            made = (self.turns(z.shape[-2]) @ made[..., None])[..., 0]
        return made

    def inner(self, z: Any, mask: Any, scale: float) -> tuple[Any, ...]:
        q, k = (self.split(z, one, self.turned) for one in (self.q, self.k))
        v = self.split(z, self.v, False)
        scores = scale * (q @ np.repeat(k, self.group, -3).swapaxes(-1, -2))
        scores = np.where(mask, scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return q, k, v, powers / powers.sum(-1, keepdims=True)

    def answer(self, z: Any, mask: Any, scale: float) -> Any:
        _q, _k, v, shares = self.inner(z, mask, scale)
        mixed = shares @ np.repeat(v, self.group, -3)
        rows = mixed.swapaxes(-3, -2).reshape(*z.shape[:-1], -1)
        return rows @ np.asarray(self.out.floats, float).T


def some_heads(random: Any, *, turned: bool, size: float) -> Heads:
    group = int(random.integers(1, 4))
    heads = group * int(random.integers(1, 3))
    width = int(random.integers(1, 5))
    return Heads(random, heads, group, width, int(random.integers(2, 9)), size, turned)


def bound_of(
    heads: Heads, z: Any, mask: Any, scale: float, apart: Any, *, turns: bool, off: float = 1e-12
) -> Any:
    q, k, v, shares = heads.inner(z, mask, scale)
    sizes = attention_sizes(*heads.parts())
    assert sizes is not None
    at = Attended(
        enclosed(q, 1e-13), enclosed(k, 1e-13), enclosed(v, 1e-13), enclosed(shares, off), scale,
        None if mask.all() else np.broadcast_to(~mask, shares.shape), heads.turned,
        heads.turns(len(z)) if turns and heads.turned else None,
    )  # fmt: skip
    return attention_moves.attention_moves(apart, sizes, at)


def random_mask(random: Any, positions: int) -> Any:
    """Causal, all, or random rows with a key each."""
    kind = random.integers(3)
    if kind == 0:
        return np.tril(np.ones((positions, positions), bool))
    if kind == 1:
        return np.ones((positions, positions), bool)
    return (random.random((positions, positions)) < 0.4) | np.eye(positions, dtype=bool)


@pytest.mark.parametrize("length", ["short", "long"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [1e-3, 0.3, 3.0])  # of shares: even, uneven, one key alone
def test_no_attention_moves_further_than_its_bound(
    monkeypatch: pytest.MonkeyPatch, size: float, turned: bool, length: str
) -> None:
    if length == "long":
        monkeypatch.setattr(attention_moves, "SHORT", 0)
    random = np.random.default_rng(6)
    used = []
    for _case in range(CASES):
        heads = some_heads(random, turned=turned, size=size)
        positions = int(random.integers(1, 8))
        mask, scale = random_mask(random, positions), 1 / math.sqrt(heads.width)
        z = random.standard_normal((positions, heads.stream)) * math.sqrt(heads.stream)
        apart = 10.0 ** random.integers(-7, 1) * random.random(positions)
        bound = bound_of(heads, z, mask, scale, apart, turns=random.random() < 0.8)
        middle = heads.answer(z, mask, scale)
        row = int(random.integers(positions))
        worst = steepest_rows(heads, z, mask, scale, row, apart)
        way = directions(random, (SAMPLES, *z.shape)) * apart[:, None]
        way[0] = worst
        moved = np.sqrt(((heads.answer(z + way, mask, scale) - middle) ** 2).sum(-1))
        assert (moved <= bound * (1 + FLOATS) + 1e-10 * abs(middle).max()).all()
        used.append((moved / np.where(bound > 0, bound, 1)).max())
    assert max(used) > 0.25


def steepest_rows(
    heads: Heads, z: Any, mask: Any, scale: float, row: int, apart: Any
) -> Any:  # fmt: skip
    """A move of all rows that moves one row of the answer far: along its slopes by differences."""
    step = 1e-6
    columns = []
    for place in np.ndindex(*z.shape):
        way = np.zeros(z.shape)
        way[place] = step
        up, down = (heads.answer(z + sign * way, mask, scale)[row] for sign in (1, -1))
        columns.append((up - down) / (2 * step))
    slopes = np.array(columns).reshape(*z.shape, -1) * apart[:, None, None]
    out = np.linalg.svd(slopes.reshape(-1, slopes.shape[-1]), full_matrices=False)[2][0]
    way = slopes @ out
    sizes = np.sqrt((way**2).sum(1, keepdims=True))
    return way / np.where(sizes > 0, sizes, 1) * apart[:, None]


def test_pairs_of_heads_and_of_positions_make_the_bound_narrower() -> None:
    random = np.random.default_rng(7)
    heads = Heads(random, 6, 1, 8, 48, 0.15, turned=True)
    z = random.standard_normal((12, 48)) * math.sqrt(48)
    mask, apart = np.tril(np.ones((12, 12), bool)), np.full(12, 1e-9)
    exactly = bound_of(heads, z, mask, 0.35, apart, turns=True)
    roughly = bound_of(heads, z, mask, 0.35, apart, turns=False)
    assert exactly[-1] < 0.9 * roughly[-1]
    largest = sum(  # of the blocks of the last row's slopes
        np.linalg.norm(block, 2) for block in blocks_of(heads, z, mask, 0.35, row=11)
    )
    assert largest * 1e-9 <= exactly[-1] * (1 + 1e-6) < 3 * largest * 1e-9


def blocks_of(heads: Heads, z: Any, mask: Any, scale: float, row: int) -> Any:
    step = 1e-6
    for place in range(len(z)):
        columns = []
        for entry in range(z.shape[1]):
            way = np.zeros(z.shape)
            way[place, entry] = step
            up, down = (heads.answer(z + sign * way, mask, scale)[row] for sign in (1, -1))
            columns.append((up - down) / (2 * step))
        yield np.array(columns).T


def test_a_row_that_is_not_known_at_all_claims_nothing() -> None:
    random = np.random.default_rng(8)
    heads = Heads(random, 2, 1, 4, 8, 0.3, turned=False)
    z = random.standard_normal((3, 8))
    mask = np.tril(np.ones((3, 3), bool))
    bound = bound_of(heads, z, mask, 0.5, np.array([0.0, np.inf, 1e-9]), turns=False)
    assert bound[1] == bound[2] == np.inf


def test_exact_rows_do_not_move() -> None:
    random = np.random.default_rng(9)
    heads = Heads(random, 2, 2, 4, 8, 0.3, turned=True)
    z = random.standard_normal((3, 8))
    bound = bound_of(heads, z, np.ones((3, 3), bool), 0.5, np.zeros(3), turns=True)
    assert (bound == 0.0).all()
