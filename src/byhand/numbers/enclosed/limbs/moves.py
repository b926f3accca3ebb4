"""How far an MLP's answer moves when what it reads moves: its slopes at the actual point.

A sublayer reads z, the normalised stream, whose row s may lie anywhere within ζ_s of its middle.
The mean value theorem bounds the move of its answer by the largest slope on the way, and a slope at
a point is far smaller than the product of the norms of all matrices: those are not attained
together.  Every number below is an upper bound over all z within the balls.  What a number may
differ by within them is itself of the order of ζ, so crude bounds of it do no harm.

mlp         J = V·diag(c)·A, c = f'(h), h = A·z + b.
gated mlp   J = V·(diag(c₁)·A + diag(c₂)·B), c₁ = u·f'(h), c₂ = f(h): likewise, with both together.

‖J‖² <= ‖J‖_F² = wᵀHw with w_i = c_i·‖v_i‖·‖a_i‖ and H as in `metrics.coherence`: at most
rest·Σ w_i² + Σ_j σ_j·(q_j·w)².  On the ball w is off by δ_i·‖v_i‖·‖a_i‖, δ_i a bound for c_i.

The slopes come from proven values.  An activation f(x) = x·s(x) has s = f/x, and its slope is
s + x·s·(1 - s)·w' where s = 1/(1 + e^-w); for gelu, where s is the normal distribution, that is
within NEARLY of it, w = √(8/π)·(x + 0.044715·x³).  Near 0 (|x| < NEAR_ZERO), s is within
NEAR_ZERO/2 of 1/2, since |w'| <= 1.71 there.  An error e of s moves the slope by at most
e·(1 + |x|·w'), since the slope of s·(1 - s) is at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.kept_bounds import keepable
from byhand.numbers.enclosed.limbs.metrics import Coherence, coherence
from byhand.numbers.enclosed.limbs.norms import root_below
from byhand.numbers.enclosed.limbs.radii import length, less, over, times
from byhand.numbers.enclosed.limbs.slopes import CURVES
from byhand.numbers.enclosed.limbs.values import Enclosed
from byhand.numbers.enclosed.limbs.weights import Weight

ROUGH = 2.0**-26  # covers 2^20 roundings of 2^-52 in a row
LEAST = 2.0**-500  # above the roots of all squares that may have been lost below the smallest float
NEAR_ZERO = 2.0**-10
BEYOND = 64.0  # from there on slopes are 0 or 1 but for 10^-20

# The largest slope of each activation, rounded up: |f(x) - f(y)| <= slope·|x - y|.  That of relu2
# grows: on what lies around a number it is at most the slope there and what this is off by.
SLOPES = {
    "relu": 1.0, "gelu": 1.1290, "gelu_tanh": 1.1291, "gelu_fast": 1.1291, "gelu_bloom": 1.1291,
    "silu": 1.0999, "quick_gelu": 1.0999, "sigmoid": 0.25, "tanh": 1.0, "identity": 1.0,
}  # fmt: skip
# how far f' may be from s + x·s·(1 - s)·w', for the w of `_rise` (a test proves it with Arb)
NEARLY = {"gelu": 2.0**-7, "gelu_tanh": 2.0**-20, "gelu_fast": 2.0**-16, "gelu_bloom": 2.0**-16,
          "silu": 0.0, "quick_gelu": 0.0}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A matrix that reads the normalised stream: some outputs of a weight, with the norm's gain."""

    weight: Weight
    layout: str
    gain: Weight | None = None
    start: int = 0
    stride: int = 0
    width: int = 0  # 0: all outputs
    heads: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other parts of the same weight."""
        return (self.layout, self.gain, self.start, self.stride, self.width, self.heads)

    def matrix(self) -> Array:
        """(outputs, inputs) in float64, each entry rounded twice at most."""
        engine = engine_of(self.weight.floats)
        floats = self.weight.floats
        whole = floats.T if self.layout == "in_out" else floats
        if self.width:
            rows = [
                whole[at : at + self.width]
                for at in range(self.start, self.start + self.heads * self.stride, self.stride)
            ]
            whole = engine.concatenate(rows)
        made = engine.floats(whole)
        return made if self.gain is None else made * engine.floats(self.gain.floats)[None]


def normalized_moves(x: Enclosed, divisor: Enclosed) -> Array:
    """ζ of each row: no two rows within the ball of x are normalised further apart.

    The rule of `norms.normalize`: ρ/(s - ρ/√d), s the divisor at the middle.
    """
    below = less(divisor.approx * (1 - 2.0**-50), divisor.box)
    return over(x.ball, less(below, over(x.ball, root_below(x.width))))


def with_least(moved: Array, apart: Array) -> Array:
    """The bounds and LEAST, but where nothing is apart: slopes are roots of sums of squares."""
    return moved + LEAST * (apart > 0)


# ------------------------------------------------------------------ the MLP


@keepable
@dataclass(frozen=True)
class MlpSizes:
    """What an MLP's weights are to its slopes: ‖v_i‖·‖a_i‖ of each unit, ‖a_i‖, and H."""

    units: Array  # (unit,), of both parts one after the other where it is gated
    rows: tuple[Array, ...]
    coherence: Coherence


def mlp_sizes(out: Part, reading: tuple[Part, ...]) -> MlpSizes:
    """Made once for each pair of matrices; the output's weight keeps it."""

    def make() -> MlpSizes:
        columns = out.matrix()
        engine: Any = engine_of(columns)
        rows = [part.matrix() for part in reading]
        heights = length(columns, 0)
        lengths = tuple(length(part) * (1 + ROUGH) for part in rows)
        units = engine.concatenate([heights * each * (1 + ROUGH) for each in lengths])
        return MlpSizes(units, lengths, coherence(columns, *rows))

    key = ("mlp sizes", out.key, *((part.weight, part.key) for part in reading))
    made: MlpSizes = out.weight._once(key, make)
    return made


def mlp_moves(
    apart: Array, sizes: MlpSizes, kind: str, hidden: Enclosed, made: Enclosed, up: Enclosed | None
) -> Array:
    """A bound of how far each row of an MLP's answer moves; `apart` is ζ, `made` is f(hidden)."""
    with np.errstate(invalid="ignore", over="ignore"):  # of unknown rows, which become infinite
        near, off = _slopes_of_units(apart, sizes, kind, hidden, made, up)
        return with_least(times(_largest_of_form(sizes.coherence, near, off), apart), apart)


def _slopes_of_units(
    apart: Array, sizes: MlpSizes, kind: str, hidden: Enclosed, made: Enclosed, up: Enclosed | None
) -> tuple[Array, Array]:
    """(w, δ) of every unit, of both parts one after the other."""
    engine: Any = engine_of(apart)
    reach = apart[:, None] * sizes.rows[0] + _off(hidden)
    near, off = slopes_near(kind, hidden.approx, made.approx, _off(made), reach)
    if up is not None:
        higher, more = up.approx, apart[:, None] * sizes.rows[1] + _off(up)
        steepest = SLOPES.get(kind, abs(near) + off)
        values, away = made.approx, _off(made) + steepest * reach
        off = engine.concatenate([abs(higher) * off + more * (abs(near) + off), away], 1)
        near = engine.concatenate([higher * near, values], 1)
    return near * sizes.units, (off + abs(near) * ROUGH) * sizes.units


def _largest_of_form(form: Coherence, near: Array, off: Array) -> Array:
    """A bound of √(wᵀHw) for each row, where |w - near| <= off."""
    engine: Any = engine_of(near)
    beside = length(off)  # also in any direction q, times ‖q‖
    whole = length(near) + beside
    along = abs(near @ form.directions.T) + form.lengths * (beside + ROUGH * whole)[:, None]
    apart = form.rest * whole**2 + (along * along) @ form.weights
    plain = form.top * whole**2
    found = engine.root(engine.where(apart < plain, apart, plain)) * (1 + ROUGH)
    return engine.where(found == found, found, np.inf)


def _off(value: Enclosed) -> Array | float:
    """Bounds for the entries, where there are any."""
    box = value.box
    return 0.0 if box is None else box


def slopes_near(
    kind: str, x: Array, made: Array, off: Array | float, reach: Array
) -> tuple[Array, Array]:
    """(c, δ): f' is within δ of c on all that lies within `reach` of x; made ± off is f(x)."""
    engine: Any = engine_of(x)
    if kind == "relu":
        return 1.0 * (x > 0), 1.0 * (abs(x) <= reach * (1 + ROUGH))
    if kind == "relu2":  # 2·relu, whose own slope is at most 2
        return 2.0 * engine.clip(x, 0.0, None), 2.0 * reach + ROUGH * abs(x)
    if kind == "identity":
        return 0.0 * x + 1.0, 0.0 * x
    if kind not in NEARLY:
        return 0.0 * x, 0.0 * x + SLOPES[kind]
    small = abs(x) < NEAR_ZERO
    share = engine.clip(made / engine.where(small, 1.0 + 0.0 * x, x), 0.0, 1.0)
    share = engine.where(small, 0.5 + 0.0 * x, share)
    at = engine.clip(x, -BEYOND, BEYOND)
    rise = _rise(kind, at)
    steep = 1.0 + abs(at) * rise
    error = engine.where(small, NEAR_ZERO / 2 + 0.0 * x, off / NEAR_ZERO + 2.0**-48)
    slope = share + at * share * (1.0 - share) * rise
    wide = error * steep + (NEARLY[kind] + ROUGH) + CURVES[kind] * reach
    # no slope is further from [0, 1] than SLOPES - 1, so neither are two of them
    return engine.clip(slope, 1.0 - SLOPES[kind], SLOPES[kind]), engine.clip(
        wide, None, 2 * SLOPES[kind] - 1.0
    )


def _rise(kind: str, x: Array) -> Array:
    """w', where f(x) is x/(1 + e^-w(x)), or nearly."""
    if kind == "silu":
        return 1.0 + 0.0 * x
    if kind == "quick_gelu":
        return 1.702 + 0.0 * x
    return 2 * (2 / np.pi) ** 0.5 * (1 + 3 * 0.044715 * x * x)
