"""How far attention's answer moves, on a GPU where every query sees a prefix of the keys.

The bound is that of `limbs.attention_moves`.  What it needs for each head, query and key is worked
out by one kernel from two arrays, the shares and the products y·ȳ, and summed over the keys at
once:

    most      p·A + B: the largest that a share may be, with what it may be off by
    distance  √(‖y‖² + ‖ȳ‖² - 2y·ȳ) + beside
    result    Σ_s (√(mostᵀ·V·most) + √(fᵀ·O·f))·ζ_s with f = most·factor·distance, over the heads

Sums of what is not negative may be made in any order: their roundings are paid for by 16·ROUGH.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.limbs.attention_moves import SHORT, Slopes
from byhand.numbers.enclosed.limbs.attention_sizes import repeated
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.moves import ROUGH
from byhand.numbers.enclosed.limbs.radii import growth, largest, length, plus, times
from byhand.numbers.enclosed.limbs.values import NEAR

BLOCK = 128
MOST_HEADS = 24  # for which the kernel is not too long


def fits(shares: Any) -> bool:
    """Whether the kernel can work out the slopes at these shares of visible keys."""
    heads, _queries, keys = shares.shape
    return bool(keys > SHORT and heads <= MOST_HEADS)


class CausalSlopes(Slopes):
    """The slopes of one sublayer of many positions."""

    def _share_out(self) -> None:
        """Shares, A and B, and G."""
        at = self.at
        shares: Any = at.shares
        self.short = False
        self.shares = shares.near
        moved = self.long_q * self.off_k + self.off_q * (self.furthest + self.off_k)
        grown = growth(2.0 * at.scale * moved)
        local, rows = shares.origin.local, shares.origin.more.growth
        beside = plus(times(local, rows), local)
        off = plus(times(largest(self.shares) * NEAR, rows), beside)
        self.loose = off * float(self.keys) + self.e
        self.times = NEAR * (1.0 + rows) * (1.0 + grown)
        self.beside = beside * (1.0 + grown)
        self.grown = grown + 2 * self.loose

    def moves(self) -> Array:
        """For each query, all together."""
        at, sizes = self.at, self.sizes
        shares: Any = at.shares
        metric = sizes.out.swapaxes(1, 2)
        self.y, self.mean_y = self.v @ metric, (self.shares @ self.v) @ metric
        dots = self.mean_y @ self.y.swapaxes(1, 2)
        rounding = 4 * self.e**0.5 * self.tall
        beside = 2 * self.off_tall + self.grown * self.tall + rounding
        rows = [
            self.times,
            self.beside,
            length(self.mean_y) ** 2,
            beside,
            at.scale * self._size_of_queries(),
        ]
        shape = self.times.shape
        stacked = self.engine.module.stack([row.expand(shape) for row in rows])
        along = summed(
            self.shares, dots, length(self.y) ** 2, stacked, self.apart,
            shares.visible.seen, sizes.values, sizes.outputs,
        )  # fmt: skip
        return (along + self._queries() * self.apart) * (1 + 16 * ROUGH)

    def _size_of_queries(self) -> Array:
        """‖A_kᵀR_sᵀq_t‖ for each query, whatever the key."""
        at, sizes = self.at, self.sizes
        beside = sizes.sizes[2][:, None] * at.stretch * (self.off_q + self.e * self.long_q)
        if at.turning:
            return self.long_q * at.stretch * sizes.norms[1][:, None] + beside
        keys = repeated(self.engine, sizes.key, self.group)
        return length(self.q @ keys.swapaxes(1, 2)) + beside


# ------------------------------------------------------------------ the kernel


def summed(
    shares: Array, dots: Array, heights: Array, rows: Array, apart: Array, seen: Array,
    values: Array, outputs: Array,
) -> Array:  # fmt: skip
    """The sums over the keys, for each query; rows are A, B, ‖ȳ‖², beside and factor."""
    heads, queries, keys = shares.shape
    kernel = _kernel(heads)
    made = apart.new_empty(queries)
    arrays = [shares.contiguous(), dots.contiguous(), heights.contiguous(), rows.contiguous(),
              apart.contiguous(), seen, _upper(values), _upper(outputs), made]  # fmt: skip
    kernels.launch(kernel, queries, arrays, [queries, keys])
    return made


def _upper(matrix: Array) -> Array:
    """The quadratic form of a matrix by its upper triangle alone."""
    both = matrix + matrix.swapaxes(0, 1)
    return (both.triu(1) + matrix.diag().diag()).contiguous()


@lru_cache(64)
def _kernel(heads: int) -> Any:
    return kernels.compiled(source_of(heads))


def source_of(heads: int) -> str:
    """The kernel for so many heads: one program for each query."""
    each = range(heads)
    lines = [
        "def kernel(shares, dots, heights, rows, apart, seen_of, values, outputs, made, queries,"
        " keys):",
        "query = tl.program_id(0).to(tl.int64)",
        "seen = tl.load(seen_of + query)",
        f"lane = tl.arange(0, {BLOCK})",
        "long = query * 0 + keys",
        "high = query * 0 + queries",
        f"total = tl.zeros(({BLOCK},), tl.float64)",
    ]
    for row, name in enumerate(("a", "b", "c", "d", "e")):
        lines += [f"{name}{h} = tl.load(rows + ({row} * {heads} + {h}) * high + query)"
                  for h in each]  # fmt: skip
    body = ["at = start + lane", "inside = at < seen"]
    for h in each:
        place = f"({h} * high + query) * long + at"
        body += [
            f"m{h} = tl.load(shares + {place}, inside, 0.0) * a{h} + b{h}",
            f"s = tl.load(heights + {h} * long + at, inside, 0.0) + c{h}"
            f" - 2.0 * tl.load(dots + {place}, inside, 0.0)",
            f"f{h} = m{h} * e{h} * (tl.sqrt(tl.where(s < 0.0, 0.0, s)) + d{h})",
        ]
    for sums, entries, matrix in (("v", "m", "values"), ("o", "f", "outputs")):
        body.append(f"{sums} = {entries}0 * 0.0")
        for h in each:
            body.append(f"part = {entries}{h} * tl.load({matrix} + {h * heads + h})")
            body += [f"part = part + {entries}{i} * tl.load({matrix} + {h * heads + i})"
                     for i in range(h + 1, heads)]  # fmt: skip
            body.append(f"{sums} = {sums} + {entries}{h} * part")
    body += [
        "both = (tl.sqrt(v) + tl.sqrt(o)) * tl.load(apart + at, inside, 0.0)",
        "total = total + tl.where(inside, both, 0.0)",
    ]
    lines.append(f"for start in range(0, seen, {BLOCK}):")
    lines += ["    " + line for line in body]
    lines.append("tl.store(made + query, tl.sum(total, 0))")
    return "\n    ".join(lines) + "\n"
