"""How far attention's answer moves when what it reads moves: its slopes at the actual point.

As in `moves`: z, the normalised stream, lies within ζ_s of its middle in row s, and every number is
an upper bound over all such z.  Head h has the shares p, values v, o = Σ p·v, W its part of the
output matrix, and A_q, A_k, A_v from z to queries, keys and values; R_s turns rows of position s.

    d(Σ_s p·v) = Σ_s p·dv + Σ_s p·(v - o)·dscore,   score = scale·qᵀk,

since the slope of a softmax is the covariance under its shares.  So the answer of row t moves by

values   Σ_s ‖Σ_h p·W·A_v‖·ζ_s, where ‖Σ_h p_h·M_h‖² <= Σ_hi p_h·p_i·‖M_hᵀM_i‖
keys     Σ_s ‖Σ_h y_h·x_hᵀ‖·ζ_s, with y = p·W(v_s - o) and x = scale·A_kᵀR_sᵀq: at most its
         Frobenius norm, whose square is Σ_hi (y_h·y_i)·(x_h·x_i) <= Σ_hi |y_h·y_i|·‖x_h‖·‖x_i‖
queries  ‖Σ_h J_h‖·ζ_t, J = scale·W·C·R_t·A_q, C = Σ_s p(v_s - o)(k_s - k̄)ᵀ.  With W = Q_W·S and
         A_qᵀ = Q_q·S_q (`metrics.factor`) and X = S·C·R_t·S_qᵀ, its Frobenius norm's square is
         Σ_hi tr(X_hᵀ(Q_WᵀQ_W)X_i(Q_qᵀQ_q)) <= Σ_hi ω_hi·ω'_hi·‖X_h‖_F·‖X_i‖_F (`overlaps`).

y_h·y_i is worked out from v, o and W_hᵀW_i where texts are short; |y_h·y_i| <= ω_hi·‖S·y_h‖·‖S·y_i‖
elsewhere.  ‖x‖ is at most ‖S_k·R_sᵀ·q‖·scale; on long texts, where turns would have to be worked
out for every pair, ‖A_k‖·‖q‖·scale, as turns keep lengths.

Where one key has nearly all.  o = Σ p·v and Σ p = 1, so v_s - o = Σ_j p_j(v_s - v_j), at most 2L
times r_s, what the other keys have together.  C = ½Σ_sj p_s·p_j(y_s - y_j)(x_s - x_j)ᵀ is at most
2LK·Σ p_s·r_s <= 4LK·r, r what all keys but the first have: for that one r_s = r, and for the others
Σ p_s·r_s <= Σ p_s = r.  No rounding of a length is in these bounds, so they may be tiny.

What lies within the balls.  Shares of the real scores lie within a factor e^±2R of those of the
middle, if no score is off by more than R, and those of the middle are within `off` of what is
known: p <= (p' + off)(1 + g), g = e^2R - 1.  With L and K the largest lengths ‖S‖_F·‖v‖ and
‖S_q‖_F·‖k‖ at the middle, dL and dK what these may be off by, and G = g + 2·keys·off,
    W(v - o)   moves by at most 2dL + G·L
    S·C·R·S_qᵀ moves by at most 4(1 + G)²(G·L·K + dL·K + L·dK + dL·dK)
since of Σ p·y·xᵀ and of (Σ p·y)(Σ p·x)ᵀ each factor moves by at most G and its own error.  The
known shares add up to 1 within keys·off; half of G pays for that, and in variances of up to L²,
which it moves by 3·keys·off·L² at most, √(4·keys·off)·L beside the root.

Roundings: everything is float64.  e = (keys + widths)·2^-49 is above what a sum of that many
products loses, times the lengths of the two sides, with the errors of `approx`.  A squared length
that is a difference of terms up to L² loses 16·e·L² at most, and its root 4·√e·L.  Bounds that are
not negative are raised in the end by ROUGH, which covers 2^20 roundings in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.attention_sizes import AttentionSizes, repeated
from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.moves import ROUGH, with_least
from byhand.numbers.enclosed.limbs.radii import growth, largest, length
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed

SHORT = 64  # positions up to which every pair of positions is looked at for every pair of heads
LONGEST = 1 << 20  # keys and widths together for which the roundings are bounded

# ------------------------------------------------------------------ at the point


@dataclass(frozen=True)
class Attended:
    """The values at the middle that attention's slopes are made of."""

    q: Enclosed  # (head, pos, d_head), turned
    k: Enclosed  # (kv_head, pos, d_head), turned
    v: Enclosed  # (kv_head, pos, d_head)
    shares: Enclosed  # (head, query, key)
    scale: float  # a bound of its size
    hidden: Array | None  # (head, query, key), True where a key is not seen
    turning: bool = False  # whether queries and keys are turned
    turns: Array | None = None  # (pos, d_head, d_head): R of each position, where it is known
    stretch: float = 1.0  # a bound of the norm of R


def attention_moves(apart: Array, sizes: AttentionSizes, at: Attended) -> Array:
    """A bound of how far each row of attention's answer moves; `apart` is ζ."""
    engine: Any = engine_of(apart)
    if at.k.shape[1] + max(at.k.width, at.v.width) + sizes.deep > LONGEST:
        return apart + np.inf
    with np.errstate(invalid="ignore", over="ignore"):  # of unknown rows, which become infinite
        kind = getattr(at.shares, "slopes", Slopes)  # shares on a GPU have kernels for it
        found = with_least(kind(engine, apart, sizes, at).moves(), largest(apart))
    return engine.where(found == found, found, np.inf)


class Slopes:
    """The slopes of one sublayer; arrays are (head, query, …, key) where they have such axes."""

    rest: Array | None = None  # what all keys but the first one have, (head, query)

    def __init__(self, engine: Any, apart: Array, sizes: AttentionSizes, at: Attended) -> None:
        self.engine, self.apart, self.sizes, self.at = engine, apart, sizes, at
        self.group = at.q.shape[0] // at.k.shape[0]
        self.keys = at.k.shape[1]
        self.e = (self.keys + max(at.k.width, at.v.width) + sizes.deep) * 2.0**-49
        self.short = self.keys <= SHORT
        self.q = at.q.approx
        self.k, self.v = (repeated(engine, part.approx, self.group) for part in (at.k, at.v))
        most = largest(apart)
        self.off_q, self.off_k, self.off_v = (
            _off(engine, value, self.q.shape[0]) + each[:, None] * most * stretch
            for value, each, stretch in zip(
                (at.q, at.k, at.v), sizes.lengths, (at.stretch, at.stretch, 1.0), strict=True
            )
        )  # (head, pos)
        self.off_k, self.off_v = (largest(off)[:, None] for off in (self.off_k, self.off_v))
        self.long_q = length(self.q) * NEAR  # (head, pos)
        self.furthest = largest(length(self.k))[:, None] * NEAR  # (head, 1)
        out, query, _key = (each[:, None] for each in sizes.sizes)
        self.tall = out * largest(length(self.v))[:, None] * NEAR  # L, (head, 1)
        self.wide = query * self.furthest * at.stretch  # K
        self.off_tall, self.off_wide = out * self.off_v, query * self.off_k * at.stretch
        self._share_out()

    # ------------------------------------------------------------------ rough numbers

    def _rough(self, array: Array) -> Rough:
        """The array (head, …) in few digits, the largest entry of each head 1."""
        flat = array.reshape(array.shape[0], -1)
        made = self._rough_rows(flat)
        return Rough(made.data.reshape(array.shape), made.scale)

    def _rough_rows(self, array: Array) -> Rough:
        """The rows in few digits, the largest entry of each row 1.

        So what float32 loses below its smallest numbers is far below the roundings of a row, too.
        """
        size = largest(abs(array))
        scale = self.engine.where(size > 0, size, 1.0)
        return Rough(self.engine.rough(array / scale[..., None]), scale)

    @cached_property
    def _turns(self) -> Array:
        return self.engine.rough(self.at.turns)  # entries of about 1 at most

    @property
    def _rough_rounding(self) -> float:
        """What three products in float32 lose of the lengths of what is multiplied.

        Less than 6·width + 3·keys + 45 roundings of 2^-24 each, in any order of summation.
        """
        return (self.keys + 4 * self.at.k.width + 16) * 2.0**-22

    # ------------------------------------------------------------------ shares

    def _share_out(self) -> None:
        """Shares, what they are at most, and G."""
        at, engine = self.at, self.engine
        moved = self.long_q * self.off_k + self.off_q * (self.furthest + self.off_k)
        grown = growth(2.0 * at.scale * moved)
        self.shares = at.shares.approx
        off = 0.0 * self.shares
        if not at.shares.exact:
            off = off + at.shares.box
        most = (self.shares * NEAR + off) * (1.0 + grown)[..., None]
        if at.hidden is not None:
            self.shares = engine.where(at.hidden, 0.0, self.shares)
            most = engine.where(at.hidden, 0.0, most)
        self.most = most
        self._leave_the_first_out(most)
        self.loose = largest(off) * float(self.keys) + self.e
        self.grown = grown + 2 * self.loose

    def _leave_the_first_out(self, most: Array) -> None:
        """r, and r_s of each key: sums of what is not negative, without a difference."""
        engine = self.engine
        first = largest(most)[..., None]
        ahead = most == first
        places = engine.where(ahead, 1.0 + 0.0 * most, 0.0).sum(-1)[..., None]
        behind = engine.where(ahead, 0.0, most).sum(-1)[..., None]
        self.rest = (behind + (places - 1.0) * first)[..., 0]
        others = behind + engine.where(ahead, places - 1.0, places) * first
        self.others = engine.clip(others, None, 1.0)

    def moves(self) -> Array:
        """For each query, all together."""
        every = self._values() + self._keys()  # (query, key)
        return (every @ self.apart + self._queries() * self.apart) * (1 + 16 * ROUGH)

    # ------------------------------------------------------------------ values

    def _values(self) -> Array:
        return self.engine.root(_form(self.most, self.sizes.values))

    # ------------------------------------------------------------------ keys

    def _keys(self) -> Array:
        at, engine = self.at, self.engine
        mean = self.shares @ self.v
        y = self.v @ self.sizes.out.swapaxes(1, 2)
        mean_y = mean @ self.sizes.out.swapaxes(1, 2)
        self.y, self.mean_y = y, mean_y
        squares = length(y)[:, None, :] ** 2 + (length(mean_y) ** 2)[..., None]
        squares = squares - 2 * (mean_y @ y.swapaxes(1, 2))
        rounding = 4 * self.e**0.5 * self.tall
        beside = 2 * self.off_tall + self.grown * self.tall + rounding  # (head, query)
        apart = engine.root(engine.clip(squares, 0.0, None)) + beside[..., None]
        furthest = 2 * (self.tall + self.off_tall)[..., None] * self.others
        distance = engine.where(furthest < apart, furthest, apart)
        size = self._sizes_of_queries()
        factor = self.most * at.scale * size  # p·‖x‖
        if not self.short:
            return engine.root(_form(factor * distance, self.sizes.outputs))
        return engine.root(self._pairs(factor, distance, apart, mean, beside))

    def _pairs(
        self, factor: Array, distance: Array, apart: Array, mean: Array, beside: Array
    ) -> Array:
        """Σ_hi |y_h·y_i|·‖x_h‖·‖x_i‖ with the products of y themselves.

        `apart` bounds the lengths of the y that are known, too.
        """
        gram, engine = self.sizes.gram, self.engine
        heads = gram.shape[0]
        found: Any = 0.0
        along = self.v[:, None] @ gram  # (head, head, key, d): v_hᵀ·W_hᵀW_i
        of_mean = mean[:, None] @ gram  # (head, head, query, d)
        for head in range(heads):
            square = factor[head] * distance[head]
            found = found + square * square
            if head + 1 == heads:
                break
            others = slice(head + 1, heads)
            one, o = along[head, others], of_mean[head, others]
            v, means = self.v[others], mean[others]
            dots = (
                (one * v).sum(-1)[:, None]
                - means @ one.swapaxes(1, 2)
                - o @ v.swapaxes(1, 2)
                + (o * means).sum(-1)[..., None]
            )  # (head, query, key)
            tall = self.tall[head] * self.tall[others]
            limit = distance[head] * distance[others]
            near = abs(dots) + (16 * self.e * tall)[..., None]  # and what is off, times the other
            near = near + beside[head][None, :, None] * apart[others]
            near = near + beside[others][..., None] * apart[head]
            least = engine.where(near < limit, near, limit)
            found = found + 2 * (least * factor[head] * factor[others]).sum(0)
        return found

    def _sizes_of_queries(self) -> Array:
        """‖A_kᵀR_sᵀq_t‖ for each query and key."""
        at, sizes, engine = self.at, self.sizes, self.engine
        beside = sizes.sizes[2][:, None] * at.stretch * (self.off_q + self.e * self.long_q)
        if at.turning and (at.turns is None or not self.short):
            own = self.long_q * at.stretch * sizes.norms[1][:, None] + beside
            return own[..., None] + 0.0 * self.most
        if not at.turning:
            keys = repeated(engine, sizes.key, self.group)
            own = length(self.q @ keys.swapaxes(1, 2)) + beside
            return own[..., None] + 0.0 * self.most
        heads, queries, width = self.q.shape
        keys, rows = self._rough(sizes.key), self._rough_rows(self.q)
        back = keys.data[:, None] @ self._turns.swapaxes(1, 2)  # (kv_head, key, d, d): S·R_sᵀ
        rows_of = rows.data.reshape(-1, 1, self.group * queries, width).swapaxes(2, 3)
        own = _lengths(engine, (back @ rows_of).swapaxes(2, 3))  # (kv_head, key, group·query)
        own = own.reshape(-1, self.keys, self.group, queries).swapaxes(1, 3)
        own = own.swapaxes(1, 2).reshape(heads, queries, self.keys)
        scale = repeated(engine, keys.scale, self.group)[:, None] * rows.scale
        own = own * scale[..., None]
        beside = beside + self._rough_rounding * sizes.sizes[2][:, None] * at.stretch * self.long_q
        return own + beside[..., None]

    # ------------------------------------------------------------------ queries

    def _queries(self) -> Array:
        at = self.at
        unsure = (
            self.grown * self.tall * self.wide
            + self.off_tall * self.wide
            + self.tall * self.off_wide
            + self.off_tall * self.off_wide
        )
        spread = self._covariance() + 4 * (1 + self.grown) ** 2 * unsure
        if self.rest is not None:
            widest = 4 * (self.tall + self.off_tall) * (self.wide + self.off_wide) * self.rest
            spread = self.engine.where(widest < spread, widest, spread)
        return self.engine.root(_form(at.scale * spread, self.sizes.both))

    def _covariance(self) -> Array:
        """‖S·C·R·S_qᵀ‖_F for each query, with its roundings."""
        at, sizes = self.at, self.sizes
        rounding = 16 * self.e * self.tall * self.wide
        if at.turning and (at.turns is None or not self.short):
            # Cov(y, k) by Cauchy and Schwarz, and turns keep lengths
            turned = self.k * (sizes.norms[0][:, None, None] * at.stretch)
            return self._spreads(turned) + rounding
        if not self.short:
            return self._spreads(self.k @ sizes.query.swapaxes(1, 2)) + rounding
        return self._crossed() + rounding

    def _crossed(self) -> Array:
        """The same from all pairs of entries, where keys may be turned back for each query."""
        engine, sizes = self.engine, self.sizes
        k, y = self._rough(self.at.k.approx), self._rough(self.y)
        metric = self._rough(sizes.query)
        turned = k.data[:, None]  # (kv_head, query or 1, key, d): R_tᵀk_s
        if self.at.turning:
            turned = turned @ self._turns
        seen = repeated(engine, turned, self.group) @ metric.data.swapaxes(1, 2)[:, None]
        shares = engine.rough(self.shares)
        weighted = seen * shares[..., None]
        crossed = weighted.swapaxes(2, 3) @ y.data[:, None]  # (head, query, d, d)
        mean = shares[:, :, None] @ y.data[:, None]
        crossed = crossed - weighted.sum(2)[..., None] * mean
        found = _lengths(engine, crossed.reshape(*crossed.shape[:2], -1))
        found = found * (repeated(engine, k.scale, self.group) * y.scale * metric.scale)[:, None]
        return found + self._rough_rounding * self.tall * self.wide

    def _spreads(self, turned: Array) -> Array:
        """√(Σ p‖y - ȳ‖²·Σ p‖x - x̄‖²), x the keys in the metric of the queries."""
        engine = self.engine

        def spread(rows: Array, mean: Array, tall: Array) -> Array:
            squares = (self.shares @ (length(rows) ** 2)[..., None])[..., 0] - length(mean) ** 2
            off = 4 * self.e**0.5 + 2 * engine.root(self.loose)
            return engine.root(engine.clip(squares, 0.0, None)) + off * tall

        one = spread(self.y, self.mean_y, self.tall)
        return one * spread(turned, self.shares @ turned, self.wide)


@dataclass(frozen=True)
class Rough:
    """An array in few digits, each head, or row, to be multiplied by its scale."""

    data: Array
    scale: Array


def _lengths(engine: Any, rows: Array) -> Array:
    """The length of each row in float64, for rows in few digits of entries that are not large."""
    squares = engine.floats((rows * rows).sum(-1))
    return engine.root(squares) * (1 + (rows.shape[-1] + 8) * 2.0**-23)


def _form(numbers: Array, matrix: Array) -> Array:
    """Σ_hi n_h·m_hi·n_i for each entry of (head, …)."""
    flat = numbers.reshape(numbers.shape[0], -1)
    found = (flat * (matrix @ flat)).sum(0)
    return found.reshape(*numbers.shape[1:])


def _off(engine: Any, value: Enclosed, heads: int) -> Array | float:
    """The radius of each row, for each query head."""
    return 0.0 if value.exact else repeated(engine, value.ball, heads // value.shape[0])
