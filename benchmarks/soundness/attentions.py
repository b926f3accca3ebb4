"""The rule of attention at the actual point: random and adverse moves, whose true image is Arb's.

Each case is a small attention, some rows, and the balls around them.  Most moves follow the
steepest way of one answer at the rims of the balls; of some attentions only second slopes count.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpq

from benchmarks.soundness.counts import Count
from benchmarks.soundness.drawn import (
    BEYOND,
    Drawn,
    Side,
    apart_by,
    direction,
    enclosed,
    moved,
    roughly_known,
)
from benchmarks.soundness.truth import balls, matrix, near, softmax, through, turned
from byhand.numbers.enclosed.limbs import attention_moves
from byhand.numbers.enclosed.limbs.attention_moves import Attended
from byhand.numbers.enclosed.limbs.attention_sizes import attention_sizes
from byhand.numbers.enclosed.limbs.moves import Part
from byhand.numbers.enclosed.limbs.values import Enclosed


class Heads:
    """Attention with random weights, and its answers in balls."""

    def __init__(self, drawn: Drawn, *, turning: bool) -> None:
        self.drawn = drawn
        small = drawn.yes(0.3)
        most = 1 if small else 3
        self.kv = drawn.whole(1, 2 if not small else 1)
        self.group = drawn.whole(1, most if self.kv == 1 else 2)
        self.heads = self.kv * self.group
        self.width = drawn.whole(1, most)
        self.wide = self.width if drawn.yes(0.7) else drawn.whole(1, 3)  # of a value
        self.stream = drawn.whole(1, 2 if small else 5)
        self.turning = turning and self.width > 1
        self.pairs = self.width // 2 if self.turning else 0
        self.magnitude = drawn.one_of((1.0, 1.0, 1.25, 0.5)) if self.turning else 1.0
        gain, plus_one = drawn.gain(self.stream)
        layout = drawn.one_of(("out_in", "in_out"))
        self.bent = drawn.one_of((0.1, 0.5, 1.0, 3.0, 30.0, drawn.size()))
        sizes = (self.bent, self.bent, drawn.size())
        rows = (self.heads * self.width, self.kv * self.width, self.kv * self.wide)
        self.sides = [
            Side(self._never_zero(drawn.floats(n, self.stream, size=s), n), gain, plus_one, layout)
            for n, s in zip(rows, sizes, strict=True)
        ]
        out = self._never_zero(drawn.floats(self.stream, self.heads * self.wide), 1)
        if self.heads > 1 and drawn.yes(0.2):  # two heads that cancel, or are the same
            out[:, -self.wide :] = out[:, : self.wide] * drawn.one_of((1.0, -1.0))
        self.out = Side(out, None, False, layout)
        self.biases = [drawn.floats(n, size=drawn.one_of((1e-9, 0.3))) for n in rows]
        scales = (1 / math.sqrt(self.width), 1.0, 0.125, 1e-3, 16.0)
        self.scale = drawn.one_of(scales) * (1 if self.bent < 1e3 else self.bent**-2)
        self.exact = [side.exactly() for side in (*self.sides, self.out)]
        self.known = [balls(bias) for bias in self.biases]

    def _never_zero(self, rows: Any, heads: int) -> Any:
        rows = np.array(rows)
        rows[:, 0] += (np.abs(rows).max() + (not rows.any())) * 0.125
        return rows

    def parts(self) -> tuple[Part, ...]:
        made = []
        counts, widths = (self.heads, self.kv, self.kv), (self.width, self.width, self.wide)
        for side, count, width in zip(self.sides, counts, widths, strict=True):
            weight, gain = side.admitted()
            made.append(Part(weight, side.layout, gain, 0, width, width, count))
        return Part(self.out.admitted()[0], self.out.layout), *made

    def angles(self, positions: int) -> list[tuple[list[arb], list[arb]]]:
        """Cosines and sines of each position, times the magnitude."""
        m = arb(self.magnitude)
        made = []
        for place in range(positions):
            turns = [arb(place) * arb(fmpq(7, 10)) ** i for i in range(self.pairs)]
            made.append(([m * x.cos() for x in turns], [m * x.sin() for x in turns]))
        return made

    def turns(self, positions: int) -> Any:
        """(pos, d, d) in floats."""
        made = np.zeros((positions, self.width, self.width))
        for place, (cosines, sines) in enumerate(self.angles(positions)):
            made[place] = np.eye(self.width)
            for i, (c, s) in enumerate(zip(map(float, cosines), map(float, sines), strict=True)):
                j = i + self.pairs
                made[place, [i, i, j, j], [i, j, i, j]] = c, -s, s, c
        return made

    def sides_of(self, rows: arb_mat, positions: int) -> list[list[list[list[arb]]]]:
        """Queries, keys and values: of each row its heads, turned."""
        widths = (self.width, self.width, self.wide)
        angles = self.angles(positions) if self.turning else None
        made = []
        for place, (exact, bias, width) in enumerate(
            zip(self.exact[:3], self.known, widths, strict=True)
        ):
            found = []
            for number, row in enumerate(through(rows, exact, bias)):
                heads = [row[at : at + width] for at in range(0, len(row), width)]
                if angles is not None and place < 2:
                    heads = [turned(head, *angles[number % positions]) for head in heads]
                found.append(heads)
            made.append(found)
        return made

    def shares(self, q: Any, k: Any, mask: Any) -> list[list[arb]]:
        """Of one query, for each head; 0 where a key is not seen."""
        scale = arb(self.scale)
        made = []
        for head in range(self.heads):
            key = head // self.group
            seen = [s for s in range(len(k)) if mask[s]]
            found = softmax([
                scale * sum((a * b for a, b in zip(q[head], k[s][key], strict=True)), arb(0))
                for s in seen
            ])  # fmt: skip
            row = [arb(0)] * len(k)
            for s, p in zip(seen, found, strict=True):
                row[s] = p
            made.append(row)
        return made

    def mixed(self, shares: Any, v: Any) -> list[arb]:
        """Σ p·v of each head, side by side."""
        made = []
        for head, row in enumerate(shares):
            key = head // self.group
            for entry in range(self.wide):
                terms = (p * v[s][key][entry] for s, p in enumerate(row) if not p.is_zero())
                made.append(sum(terms, arb(0)))
        return made

    def answers(self, rows: arb_mat, positions: int, row: int, mask: Any) -> list[list[arb]]:
        """The answer of one position, for each text."""
        q, k, v = self.sides_of(rows, positions)
        mixed: list[arb] = []
        for start in range(0, len(q), positions):
            keys = k[start : start + positions]
            shares = self.shares(q[start + row], keys, mask[row])
            mixed += self.mixed(shares, v[start : start + positions])
        n = self.heads * self.wide
        return through(arb_mat(len(mixed) // n, n, mixed), self.exact[3])


class Simple(Heads):
    """Queries, keys and values read numbers of their own, many of them 0 or equal.

    Some do not move: their weights are 2^-40, and the numbers they read 2^40 times as large.
    """

    def __init__(self, drawn: Drawn, *, turning: bool) -> None:
        self.drawn = drawn
        self.kv, self.group = drawn.one_of(((1, 1), (1, 1), (1, 2), (2, 1)))
        self.heads = self.kv * self.group
        self.turning = turning
        self.width, self.wide = (2, 1) if turning else (1, 1)
        self.pairs = 1 if turning else 0
        self.magnitude = drawn.one_of((1.0, 1.25, 0.5)) if turning else 1.0
        counts = (self.heads * self.width, self.kv * self.width, self.kv * self.wide)
        self.stream = sum(counts)
        self.powers = np.concatenate(
            [np.full(count, drawn.one_of((1.0, 1.0, 2.0**-40))) for count in counts]
        )
        whole = np.diag(self.powers)
        ends = np.cumsum((0, *counts))
        self.sides = [
            Side(whole[start:stop], None, False, "out_in") for start, stop in pairwise(ends)
        ]
        out = drawn.random.choice([1.0, -1.0], (1, self.heads))
        self.out = Side(out, None, False, "out_in")
        self.biases = [np.zeros(count) for count in counts]
        self.scale = drawn.one_of((1.0, 4.0, 0.25))
        self.exact = [side.exactly() for side in (*self.sides, self.out)]
        self.known = [balls(bias) for bias in self.biases]

    def point(self, positions: int) -> Any:
        return self.drawn.values(positions, self.stream) / self.powers


def attention_case(drawn: Drawn, count: Count, samples: int, *, turning: bool, short: bool) -> None:
    """One attention, some positions, and so many moves of all of them; one answer is looked at."""
    simple = drawn.yes(0.6)
    positions = drawn.whole(1, 3 if simple else 4)
    if simple:
        heads: Heads = Simple(drawn, turning=turning)
        z = heads.point(positions)  # type: ignore[attr-defined]
        apart = 10.0 ** (drawn.random.uniform(-3, 0.7) + np.zeros(positions))
        if positions > 1 and drawn.yes(0.3):
            apart[drawn.whole(0, positions - 1)] = 0.0
    else:
        heads = Heads(drawn, turning=turning)
        z, apart = drawn.point(positions, heads.stream), drawn.apart(positions)
    mask = _mask(drawn, positions)
    row = drawn.whole(0, positions - 1)
    at = _attended(heads, z, mask, turns=drawn.yes(0.8))
    sizes = attention_sizes(*heads.parts())
    if sizes is None or not all((np.abs(x.approx) <= BEYOND).all() for x in (at.q, at.k, at.v)):
        return
    usual, attention_moves.SHORT = attention_moves.SHORT, 64 if short else 0
    try:
        bound = float(attention_moves.attention_moves(apart, sizes, at)[row])
    finally:
        attention_moves.SHORT = usual
    if simple and drawn.yes(0.8):
        way = drawn.axes(samples, apart, heads.stream)
    else:
        way = drawn.moves(samples, apart, worst_moves(heads, at, z, row, apart))
    answers = heads.answers(moved(z, way), positions, row, mask)
    here = heads.answers(matrix(z), positions, row, mask)[0]
    said = "simple" if simple else ""
    count.add(bound, [apart_by(answer, here) for answer in answers], said)


def _mask(drawn: Drawn, positions: int) -> Any:
    """Causal, all, or random rows with a key each."""
    if drawn.yes(0.4):
        return np.tril(np.ones((positions, positions), bool))
    if drawn.yes():
        return np.ones((positions, positions), bool)
    return (drawn.random.random((positions, positions)) < 0.4) | np.eye(positions, dtype=bool)


def _attended(heads: Heads, z: Any, mask: Any, *, turns: bool) -> Attended:
    """What a pass knows at the middle: floats near the true numbers, with what they are off by."""
    positions = len(z)
    q, k, v = heads.sides_of(matrix(z), positions)
    shares = [heads.shares(q[t], k, mask[t]) for t in range(positions)]

    def known(rows: Any, count: int, width: int) -> Enclosed:
        flat = [x for h in range(count) for row in rows for x in row[h]]
        middles, off = roughly_known(heads.drawn, flat)
        return enclosed(middles.reshape(count, positions, width), off.reshape(count, -1, width))

    flat = [p for h in range(heads.heads) for row in shares for p in row[h]]
    middles, off = near(flat, (len(flat),))
    if heads.drawn.yes(0.3):
        more = 10.0 ** heads.drawn.random.uniform(-20, -0.5)
        here = np.clip(middles + heads.drawn.random.uniform(-1, 1, off.size) * more, 0.0, 1.0)
        off, middles = (off + np.abs(here - middles)) * (1 + 1e-9), here
    shape = (heads.heads, positions, positions)
    hidden = None
    if not mask.all():
        hidden = np.broadcast_to(~mask, shape)
    return Attended(
        known(q, heads.heads, heads.width), known(k, heads.kv, heads.width),
        known(v, heads.kv, heads.wide), enclosed(middles.reshape(shape), off.reshape(shape)),
        heads.scale, hidden, heads.turning,
        heads.turns(positions) if heads.turning and turns else None, max(1.0, heads.magnitude),
    )  # fmt: skip


def worst_moves(heads: Heads, at: Attended, z: Any, row: int, apart: Any) -> Any:
    """Rows of length 1: moves that take one answer furthest, by its slopes at the middle."""
    with np.errstate(all="ignore"):
        slopes = _slopes_of(heads, at, row) * np.maximum(apart, 1e-300)[:, None, None]
        slopes = np.nan_to_num(slopes / np.abs(slopes).max())
    out = heads.drawn.random.standard_normal(slopes.shape[1])
    way = direction(out @ slopes)
    for _round in range(12):
        out = direction((slopes @ way[..., None])[..., 0].sum(0)[None])[0]
        way = direction(out @ slopes)
    return way


def _slopes_of(heads: Heads, at: Attended, row: int) -> Any:
    """(position, out, in): the slopes of one answer, in floats."""
    q, k, v, p = at.q.approx, at.k.approx, at.v.approx, at.shares.approx
    aq, ak, av = (side.roughly() for side in heads.sides)
    w = heads.out.roughly()
    positions = k.shape[1]
    turns = heads.turns(positions) if heads.turning else np.array([np.eye(heads.width)] * positions)
    made = np.zeros((positions, w.shape[0], heads.stream))
    d, e = heads.width, heads.wide
    for h in range(heads.heads):
        key = h // heads.group
        part = w[:, h * e : (h + 1) * e]
        share = p[h, row].copy()
        if at.hidden is not None:
            share[at.hidden[h, row]] = 0.0
        o = share @ v[key]
        a_v, a_k = av[key * e : (key + 1) * e], ak[key * d : (key + 1) * d]
        a_q = aq[h * d : (h + 1) * d]
        y = share[:, None] * (v[key] - o)
        for s in range(positions):
            x = heads.scale * (turns[s] @ a_k).T @ q[h, row]
            made[s] += share[s] * part @ a_v + np.outer(part @ y[s], x)
        made[row] += heads.scale * part @ (y.T @ k[key]) @ turns[row] @ a_q
    return made
