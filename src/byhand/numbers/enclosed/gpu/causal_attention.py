"""Softmax and mixing on a GPU where every query sees a prefix of the keys; the rest is skipped.

The same bounds as in `limbs.attention`, in few passes over memory.  Elementwise work is done by
kernels that walk along rows (`row_kernels`), each as far as its query sees:

    powers   e^(score - largest), and their sum
    shares   powers over their sum, laid out for the product with the values; sums of bounds
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from byhand.numbers.enclosed.gpu import row_kernels
from byhand.numbers.enclosed.gpu.causal_scores import ScoreTrail, differences, multiply, repeated
from byhand.numbers.enclosed.gpu.recording import Rows
from byhand.numbers.enclosed.gpu.row_kernels import RowInputs, RowLayout, RowResults
from byhand.numbers.enclosed.gpu.visible_keys import VisibleKeys
from byhand.numbers.enclosed.limbs import arithmetic, exponential, functions
from byhand.numbers.enclosed.limbs.arithmetic import PRODUCT, Move
from byhand.numbers.enclosed.limbs.array_code import carried, horner, placed, products
from byhand.numbers.enclosed.limbs.checksums import assure
from byhand.numbers.enclosed.limbs.coefficients import STEP as POINTS
from byhand.numbers.enclosed.limbs.digits import BASE, WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.functions import ERROR, aligned
from byhand.numbers.enclosed.limbs.pairs import Plan, from_the_last
from byhand.numbers.enclosed.limbs.radii import (
    TINY,
    Bound,
    growth,
    largest,
    length,
    over,
    plus,
    slack,
    spread,
    times,
)
from byhand.numbers.enclosed.limbs.row_norms import norm_with_room
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin

EXP_TOP = WIDTH - POINTS  # of arguments and results of exp: limb 0 weighs 2^-POINTS


# ------------------------------------------------------------------ softmax


def powers_program(given: RowInputs, places: Any) -> RowResults:
    """e^(x - shift)."""
    (x,), (shift,) = given.entries, given.rows
    less = Rows(x.engine, [a - b for a, b in zip(x.rows, shift.rows, strict=True)])
    moved = placed(carried(less), places, given.powers[0] if given.powers else None)
    points, near = given.tables
    made = exponential.evaluate(points, near, moved)
    return RowResults(made, made.rows)


def shares_program(given: RowInputs, keep: int, places: Any) -> RowResults:
    """Powers times the inverse of their sum; the approximation is one row more."""
    (x,), (inverse,) = given.entries, given.rows
    unit = given.powers[-1]
    limbs_made = carried(products(x, inverse, keep))
    made = placed(limbs_made, places, given.powers[0] if places[3] else None)
    near = horner(made)
    near *= unit
    size = abs(near)
    squares = [row * row for row in made.rows]
    out = Rows(x.engine, [*made.rows, near])
    return RowResults(out, [*squares, *(size * key for key in given.keys)], [size])


class DeferredShares(Enclosed):
    """Shares whose digits are worked out together with the mixing, or on demand."""

    __slots__ = ("_dense", "_near", "inverse", "low", "powers", "visible")

    def __init__(
        self,
        visible: VisibleKeys,
        powers: Digits,
        inverse: Digits,
        low: int,
        hidden: Array,
        origin: Origin,
        box: Callable[[DeferredShares], Bound],
    ) -> None:
        self.visible, self.powers, self.inverse, self.low = visible, powers, inverse, low
        self.hidden, self.origin = hidden, origin
        self._box: Any = lambda: box(self)
        self._ball: Any = lambda: length(self.box)
        self._parts = self._norms = self._approx = self._zeros = None
        self._dense: Digits | None = None
        self._near: Array | None = None

    @property
    def slopes(self) -> Any:
        """What works out how far attention's answer moves (`limbs.attention_moves`)."""
        from byhand.numbers.enclosed.gpu.causal_moves import CausalSlopes, fits
        from byhand.numbers.enclosed.limbs.attention_moves import Slopes

        return CausalSlopes if fits(self) else Slopes

    @property
    def near(self) -> Array:
        """The shares in floats (head, query, key), within 2^-51 of the digits; 0 where hidden."""
        if self._near is None:
            _digits = self.digits
        assert self._near is not None
        return self._near

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the attention weights."""
        return self.visible.shape

    @property
    def n(self) -> int:
        """The number of limbs; a share is below 2."""
        return max(1, -(-(2 - self.low) // WIDTH))

    @property
    def top(self) -> int:
        """The exponent above the highest limb."""
        return self.low + WIDTH * self.n

    def folded(self, keys: Sequence[Array]) -> tuple[Array, Array]:
        """Limbs and an approximation as `VisibleKeys.folded`; Σ limb², Σ share·key, the largest."""
        room = self.powers.limbs.new_empty(self.visible.size * (self.n + 1))
        return room, self._laid_out(self.visible.folded(room, self.n + 1), keys)

    def _laid_out(self, out: RowLayout, keys: Sequence[Array]) -> Array:
        x, y = self.powers, self.inverse
        top = x.top + y.top
        keep = min(x.n + y.n, max(1, -(-(top - self.low) // WIDTH)) + 2)
        move = Move.of(top - WIDTH * keep, keep, self.low, self.n)
        return row_kernels.run(
            shares_program,
            (keep, move.places),
            self.visible.walk(),
            [self.visible.dense(x.limbs)],
            out,
            rows=[y.limbs.reshape(y.n, -1)],
            keys=[key.contiguous() for key in keys],
            powers=[*move.powers, self.top - WIDTH],
            results=self.n + len(keys) + 1,
        )

    @property
    def digits(self) -> Digits:  # type: ignore[override]
        """The digits (head, query, key), 0 where hidden."""
        if self._dense is None:
            room = self.powers.limbs.new_zeros((self.n + 1, *self.shape))
            self._laid_out(self.visible.dense(room), [])
            self._dense, self._near = Digits(room[: self.n], self.top), room[self.n]
        return self._dense


def softmax(system: System, x: Enclosed, trail_of: Callable[..., Any]) -> Enclosed:
    """`trail_of` makes the Shares (attention.py) that go with the values."""
    assert x.origin is not None
    scored: ScoreTrail = x.origin.more
    visible = scored.visible
    engine: Any = x.digits.engine
    heads, queries, count = visible.shape
    grown = growth(times(scored.widest, 2.0))
    low = system.grid(over(grown, float(count)))
    low = min(low, -count.bit_length() - 8)  # so fine that a sum of shares is not 0
    fine = aligned(low - count.bit_length() - 4)
    last = (-POINTS - fine) // WIDTH
    flat = x.digits.limbs.reshape(x.digits.n, -1, count)
    place = scored.place.to(engine.module.int64)
    shift = flat.gather(2, place[None, :, None].expand(x.digits.n, -1, 1))[..., 0]
    grid = aligned(x.digits.low)
    move = Move.of(x.digits.low, x.digits.n, grid, (EXP_TOP - grid) // WIDTH)
    points, near = exponential.tables(last, 1 << 22, x.digits.limbs)
    made = engine.empty((last + 1, heads, queries, count), x.digits.limbs)
    found = row_kernels.run(
        powers_program,
        (move.places,),
        visible.walk(),
        [visible.dense(x.digits.limbs)],
        visible.dense(made),
        rows=[shift.contiguous()],
        powers=move.powers,
        tables=[(None, points), (replace(near, rows=None), near.rows)],
        results=last + 1,
    )
    powers = Digits(made, EXP_TOP)
    error = ERROR["exp"] * math.ldexp(1.0, fine)
    sums = arithmetic.settle(found.view(-1, heads, queries).clone(), EXP_TOP)
    off = times(float(count), error)
    inverse, inverse_error = functions.inverses(sums, fine)
    # as in `attention.softmax`
    local = plus(
        times(2.0 * (count + 1), error), times(2.0, inverse_error), PRODUCT * math.ldexp(1.0, low)
    )
    shifts = Digits(shift.view(-1, heads, queries, 1), x.digits.top)
    trail = trail_of(grown, scored.widest, shifts, scored.slide, sums, off)

    def box(shares: DeferredShares) -> Bound:
        share = plus(abs(shares.approx) * NEAR, local)
        bound = plus(times(share, grown[..., None]), local)
        return bound if x.hidden is None else engine.where(x.hidden, 0.0, bound)

    origin = Origin("softmax", x, local, trail)
    return DeferredShares(visible, powers, inverse, low, x.hidden, origin, box)


# ------------------------------------------------------------------ mixing


def mix(
    system: System, weights: DeferredShares, v: Enclosed, apart: tuple[Array, Array, Array]
) -> Enclosed | None:
    """`apart` is what `attention` knows of v less its mean."""
    engine: Any = v.digits.engine
    visible, origin = weights.visible, weights.origin
    assert origin is not None
    local, trail = origin.local, origin.more
    heads, queries, keys = visible.shape
    width, group = v.width, heads // v.shape[0]
    whole, away, lengths = (repeated(part, group) for part in apart)
    norms, rho = (repeated(part, group) for part in (v.norms, v.ball))
    shares, found = weights.folded([rho, lengths])
    n, top = weights.n, weights.top
    squares = largest(found[:n], 1)
    sums = found[n : n + 2].view(2, heads, queries) * (NEAR * slack(keys + 2)) + keys * TINY
    sums = engine.where(sums == sums, sums, math.inf)  # 0·∞ is not told from others here
    biggest = plus(found[n + 2].view(heads, queries) * NEAR, local)

    # the bounds of `attention._mixed_ball`, sums over shares taken apart: share <= near + local
    each = plus(sums[0], times(local, visible.sum(rho)))
    scattered = plus(sums[1], times(local, visible.sum(lengths)))
    ball = plus(times(local, visible.sum(norms)), each, times(trail.growth, each))
    near = [
        visible.block_of(shares, n + 1, block)[:, :, n] @ away[:, : block.reach]
        for block in visible.blocks
    ]
    mean = length(engine.concatenate(near, 1))
    rounding = (keys + 8) * 2.0**-50
    most = largest(lengths)[:, None]
    center = plus(mean, times(most, plus(times(local, float(keys)), rounding)))
    once = growth(trail.widest)
    one = times(times(plus(once, 1.0), once), plus(scattered, center))
    limit = times(biggest, plus(trail.growth, 1.0))
    other = times(whole[:, None], limit, trail.slide)
    ball = plus(ball, engine.where(other < one, other, one))
    low = system.grid(ball, width)

    y = Digits(repeated(v.digits.limbs, group, 1), v.digits.top)
    folds = [visible.block_of(shares, n + 1, block)[:, :, :n] for block in visible.blocks]
    checks = _check_rows(engine, folds, keys)  # (head, 2, n, key)
    rows = largest(engine.lengths(checks, -1).flatten(0, 1), 0)
    rows = engine.module.maximum(rows, engine.root(squares))
    columns = engine.largest_of(engine.lengths(y.limbs, 2))
    bounds = engine.bounds(engine.concatenate([rows, columns]), norm_with_room)
    bounds = [norm * slack(keys + 4) for norm in bounds]
    # shares add up to less than 2
    bound = times(2.0, engine.largest(abs(v.approx)) * NEAR)
    x = Digits(shares.new_empty((n, 0)), top)
    plan = Plan.of(x, y, bounds[:n], bounds[n:], low, bound, math.ldexp(1.0, low))
    if plan is None or not bound < math.ldexp(1.0, min(1000, top + y.top + 8)):
        return None
    made, known = _mixed(engine, visible, folds, checks, y, plan)
    assure(engine, [differences(made.sum(2), known, 2)])
    digits = arithmetic.regrid(Digits(made, top + y.top), plan.low + WIDTH * plan.count, plan.low)
    digits = arithmetic.without_empty_limbs(digits)
    more = spread(plan.error, width) if plan.error else None
    return Enclosed(digits, plus(ball, more))


def _check_rows(engine: Any, folds: list[Array], keys: int) -> Array:
    """(head, query, n, key) … → (head, 2, n, key): lo + 2^22·hi is the sum of all queries."""
    heads, _queries, n, _reach = folds[0].shape
    sums = engine.zeros((heads, n, keys), folds[0])
    for fold in folds:
        sums[..., : fold.shape[-1]] += fold.sum(1)
    high = engine.rint(sums * (1.0 / BASE))
    return engine.module.stack([sums - high * BASE, high], 1)


def _mixed(
    engine: Any, visible: VisibleKeys, folds: list[Array], checks: Array, y: Digits, plan: Plan
) -> tuple[Array, Array]:
    """Sums along diagonals (limb, head, query, entry); of all queries (limb, head, 2, entry)."""
    heads, queries, keys = visible.shape
    width = y.shape[-1]
    laid = from_the_last(engine, y.limbs)  # (head, limb from the last, key, entry)
    made = engine.empty((plan.limbs, heads, queries, width), y.limbs)
    known = engine.empty((plan.limbs, heads, 2, width), y.limbs)

    def along(x: Array, right: Array, into: Array, reach: int) -> Callable[[], None]:
        def work() -> None:
            into[0] = 0.0
            for step in plan.steps:
                if step.carries:
                    arithmetic.carry(into[: step.d + 2])
                    continue
                where = y.n - 1 - (step.d - step.start)
                down = slice(where * reach, (where + step.stop - step.start) * reach)
                across = slice(step.start * reach, step.stop * reach)
                multiply(x[:, :, across], right[:, down], into[step.d + 1], step.fresh)
            arithmetic.carry(into)

        return work

    works = [along(checks.flatten(2), laid.flatten(1, 2), known, keys)]
    for block, fold in list(zip(visible.blocks, folds, strict=True))[::-1]:
        right = laid[:, :, : block.reach].reshape(heads, -1, width)
        rows = slice(block.first, block.last)
        left = fold.as_strided((*fold.shape[:2], fold.shape[2] * fold.shape[3]),
                               (*fold.stride()[:2], 1))  # fmt: skip
        works.append(along(left, right, made[:, :, rows], block.reach))
    engine.side_by_side(made, works)
    return made, known
