"""Attention on a GPU where every query sees the first keys: what is hidden is not touched.

The same bounds as in `attention`, worked out in few passes over memory.  What is done entry by
entry is done by three kernels that walk along rows (row_kernels.py), each as far as its query sees:

    scores   sums of products are carried, checked, rounded; the largest score of a row is found
    powers   e^(score - largest), and their sum
    shares   powers over their sum, laid out for the product with the values; sums of bounds

Of the radii of a row of scores only the largest, R, is needed: it is bounded by the largest norms
and radii of the keys the row sees.  Bounds of entries are made when they are asked for (`box`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from byhand.numbers.enclosed.gpu import row_kernels
from byhand.numbers.enclosed.gpu.recording import Rows
from byhand.numbers.enclosed.gpu.row_kernels import RowInputs, RowLayout, RowResults
from byhand.numbers.enclosed.gpu.visible_keys import VisibleKeys
from byhand.numbers.enclosed.limbs import arithmetic, elementwise, exponential
from byhand.numbers.enclosed.limbs.arithmetic import PRODUCT, Move
from byhand.numbers.enclosed.limbs.array_code import carried, horner, placed, products
from byhand.numbers.enclosed.limbs.coefficients import STEP as POINTS
from byhand.numbers.enclosed.limbs.digits import BASE, WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.functions import ERROR, aligned
from byhand.numbers.enclosed.limbs.pairs import Plan, from_the_last, norms_of_limbs
from byhand.numbers.enclosed.limbs.products import assure, norm_with_room
from byhand.numbers.enclosed.limbs.radii import (
    TINY,
    Bound,
    growth,
    largest,
    length,
    over,
    plus,
    root,
    slack,
    times,
)
from byhand.numbers.enclosed.limbs.slices import check_columns
from byhand.numbers.enclosed.limbs.values import NEAR, Enclosed, Origin

if TYPE_CHECKING:
    from byhand.numbers.enclosed.limbs.operations import Limbs

FINEST = 190  # bits; kernels of more limbs take too long to compile
HIGHEST = 34  # scores below 2^34: floats tell the largest of them to far less than 1/8
EXP_TOP = WIDTH - POINTS  # of arguments and results of exp: limb 0 weighs 2^-POINTS


# ------------------------------------------------------------------ scores


@dataclass(frozen=True, slots=True)
class Scored:
    """What softmax needs of scores besides their digits."""

    visible: VisibleKeys
    widest: Array  # (head, query): R
    place: Array  # (head · query): where the largest score is
    slide: Array


def scores_program(given: RowInputs, places: Any) -> RowResults:
    """Sums of products, without the empty limb in front, to digits on the grid of the result."""
    (sums,) = given.entries
    engine = sums.engine
    whole = Rows(engine, [*engine.zeros((1,), sums).rows, *sums.rows])
    carried(whole)
    made = placed(whole, places, given.powers[0] if given.powers else None)
    near = horner(made)
    seen = given.rows[0].rows[0]
    near.set(f"tl.where({given.place.name} < {seen.name}, {near.name}, {row_kernels.LEAST!r})")
    sizes = [abs(row) for row in made.rows[:2]]
    return RowResults(made, whole.rows, sizes, near)


def scores(
    system: Limbs,
    q: Enclosed,
    k: Enclosed,
    power: int,
    visible: VisibleKeys,
    box_of: Callable[[], Bound],
    hidden: Array,
    apart: Array,
) -> Enclosed | None:
    """2^power·q·k; None where this cannot be done so.  `apart`: ‖K - c‖₂ of each head of k."""
    if system.bits > FINEST:
        return None
    engine: Any = q.digits.engine
    heads, queries, keys = visible.shape
    group = heads // k.shape[0]
    reach, rho = (_repeated(part, group) for part in (k.norms, k.ball))
    most = visible.most(rho)
    widest = plus(times(q.norms, most), times(q.ball, visible.most(reach)), times(q.ball, most))
    low = system.grid(widest) - 1
    bound = times(engine.largest(q.norms), engine.largest(k.norms))
    x = q.digits
    y = Digits(_repeated(k.digits.limbs, group, 1).swapaxes(2, 3), k.digits.top)
    ends = [check_columns(engine, y.limbs[..., : block.reach]) for block in visible.blocks]
    sides = [y.limbs, engine.concatenate(ends, 3)]
    rows, columns = norms_of_limbs(engine, x.limbs, sides)
    plan = Plan.of(x, y, rows, columns, low, bound, math.ldexp(1.0, low))
    top = x.top + y.top
    if plan is None or any(step.carries for step in plan.steps):
        return None
    if not bound < math.ldexp(1.0, min(1000, top + 8)):
        return None
    if plan.low + WIDTH * plan.count + max(0, power) > HIGHEST:
        return None
    sums, known = _dot_products(engine, visible, x, y, sides, plan)
    move = Move.of(top - WIDTH * plan.limbs, plan.limbs, plan.low, plan.count)
    made = engine.empty((plan.count, heads, queries, keys), x.limbs)
    sizes = min(2, plan.count)
    found = row_kernels.run(
        scores_program,
        (move.places,),
        visible.walk(whole=True),
        [visible.dense(sums)],
        visible.dense(made),
        rows=[visible.seen_floats],
        powers=move.powers,
        results=plan.limbs + sizes + 1,
    )
    assure(engine, [_differences(found[: plan.limbs].view(-1, heads, queries), known, 3)])
    big = largest(found[plan.limbs : plan.limbs + sizes], 1)
    first = engine.empty_sizes(plan.count, lambda count: big[:count]) if sizes == 2 else 0
    digits = Digits(made[first:], plan.low + WIDTH * (plan.count - first) + power)

    size = math.ldexp(1.0, power)
    local = times(plan.error, size)
    widest = plus(times(widest, size), local)
    changed = root(visible.sum(times(rho, rho)))
    moved = plus(
        times(q.ball, _repeated(apart, group)[:, None]),
        times(q.norms, changed),
        times(q.ball, changed),
    )
    slide = plus(local * math.sqrt(keys) * (1 + 2.0**-50), times(moved, size))
    trail = Scored(visible, widest, found[-1], slide)

    def box() -> Bound:
        return plus(times(box_of(), size), local)

    return Enclosed(
        digits,
        lambda: length(box()),
        box=box,
        hidden=hidden,
        origin=Origin("scores", q, local, trail),
    )


def _dot_products(
    engine: Any, visible: VisibleKeys, x: Digits, y: Digits, sides: list[Array], plan: Plan
) -> tuple[Array, Array]:
    """Sums along diagonals, (limb, head, query, key); checks, (limb, head, query, 2)."""
    heads, queries, keys = visible.shape
    deep = x.shape[-1]
    laid_x = engine.moveaxis(x.limbs, 0, 2).reshape(heads, queries, x.n * deep)
    laid_y, laid_ends = (from_the_last(engine, side).flatten(1, 2) for side in sides)
    sums = engine.empty((plan.limbs - 1, heads, queries, keys), x.limbs)
    ends = engine.zeros((plan.limbs, heads, queries, laid_ends.shape[-1]), x.limbs)

    def along(x: Array, y: Array, into: Array) -> Callable[[], None]:
        def work() -> None:
            for step in plan.steps:
                across = slice(step.start * deep, step.stop * deep)
                where = y_limbs - 1 - (step.d - step.start)
                down = slice(where * deep, (where + step.stop - step.start) * deep)
                _multiply(x[:, :, across], y[:, down], into[step.d], step.fresh)

        return work

    y_limbs = y.n
    works = [along(laid_x, laid_ends, ends[1:])]
    for block in visible.blocks[::-1]:
        some = laid_x[:, block.first : block.last]
        into = sums[:, :, block.first : block.last, : block.reach]
        works.append(along(some, laid_y[:, :, : block.reach], into))
    engine.side_by_side(sums, works)
    own = [
        ends[:, :, block.first : block.last, 2 * number : 2 * number + 2]
        for number, block in enumerate(visible.blocks)
    ]
    return sums, arithmetic.carry(engine.concatenate(own, 2))


def _multiply(x: Array, y: Array, into: Array, fresh: bool) -> None:
    if fresh:
        into.baddbmm_(x, y, beta=0.0)
    else:
        into.baddbmm_(x, y)


def _differences(sums: Array, known: Array, axis: int) -> Array:
    """Zero where sums of columns, or of rows, agree with lo + 2^22·hi; carried."""
    low, high = known.unbind(axis)
    found = sums - low
    found[:-1] -= high[1:]
    found[0] -= high[0] * BASE
    return arithmetic.carry(found)


def _repeated(rows: Array, group: int, axis: int = 0) -> Array:
    return rows if group == 1 else rows.repeat_interleave(group, axis)


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


class Shared(Enclosed):
    """Shares whose digits are worked out together with what they mix, or when asked for."""

    __slots__ = ("_dense", "inverse", "low", "powers", "visible")

    def __init__(
        self,
        visible: VisibleKeys,
        powers: Digits,
        inverse: Digits,
        low: int,
        hidden: Array,
        origin: Origin,
        box: Callable[[Shared], Bound],
    ) -> None:
        self.visible, self.powers, self.inverse, self.low = visible, powers, inverse, low
        self.hidden, self.origin = hidden, origin
        self._box: Any = lambda: box(self)
        self._ball: Any = lambda: length(self.box)
        self._parts = self._norms = self._approx = None
        self._dense: Digits | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.visible.shape

    @property
    def n(self) -> int:
        """Limbs: a share is below 2."""
        return max(1, -(-(2 - self.low) // WIDTH))

    @property
    def top(self) -> int:
        return self.low + WIDTH * self.n

    def folded(self, keys: Sequence[Array]) -> tuple[Array, Array]:
        """Limbs and an approximation, as `VisibleKeys.folded`; Σ limb², Σ share·key, largest share."""
        room = self.powers.limbs.new_empty(self.visible.size * (self.n + 1))
        return room, self._worked(self.visible.folded(room, self.n + 1), keys)

    def _worked(self, out: RowLayout, keys: Sequence[Array]) -> Array:
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
        """(head, query, key); 0 where hidden."""
        if self._dense is None:
            room = self.powers.limbs.new_zeros((self.n + 1, *self.shape))
            self._worked(self.visible.dense(room), [])
            self._dense = Digits(room[: self.n], self.top)
        return self._dense


def softmax(system: Limbs, x: Enclosed, trail_of: Callable[..., Any]) -> Enclosed:
    """`trail_of` makes the Shares (attention.py) that go with the values."""
    assert x.origin is not None
    scored: Scored = x.origin.more
    visible = scored.visible
    engine: Any = x.digits.engine
    heads, queries, count = visible.shape
    grown = growth(times(scored.widest, 2.0))
    low = system.grid(over(grown, float(count)))
    low = min(low, -count.bit_length() - 8)  # however little is known, a sum of shares is not 0
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
    inverse, inverse_error = elementwise.inverse(sums, fine)
    # as in `attention.softmax`
    local = plus(
        times(2.0 * (count + 1), error), times(2.0, inverse_error), PRODUCT * math.ldexp(1.0, low)
    )
    shifts = Digits(shift.view(-1, heads, queries, 1), x.digits.top)
    trail = trail_of(grown, scored.widest, shifts, scored.slide, sums, off)

    def box(shares: Shared) -> Bound:
        share = plus(abs(shares.approx) * NEAR, local)
        bound = plus(times(share, grown[..., None]), local)
        return bound if x.hidden is None else engine.where(x.hidden, 0.0, bound)

    origin = Origin("softmax", x, local, trail)
    return Shared(visible, powers, inverse, low, x.hidden, origin, box)


# ------------------------------------------------------------------ mixing


def mix(
    system: Limbs, weights: Shared, v: Enclosed, apart: tuple[Array, Array, Array]
) -> Enclosed | None:
    """`apart` is what `attention` knows of v less its mean."""
    engine: Any = v.digits.engine
    visible, origin = weights.visible, weights.origin
    assert origin is not None
    local, trail = origin.local, origin.more
    heads, queries, keys = visible.shape
    width, group = v.width, heads // v.shape[0]
    whole, away, lengths = (_repeated(part, group) for part in apart)
    norms, rho = (_repeated(part, group) for part in (v.norms, v.ball))
    shares, found = weights.folded([rho, lengths])
    n, top = weights.n, weights.top
    squares = largest(found[:n], 1)
    sums = found[n : n + 2].view(2, heads, queries) * (NEAR * slack(keys + 2)) + keys * TINY
    sums = engine.where(sums == sums, sums, math.inf)  # 0·∞ is not told from others here
    biggest = plus(found[n + 2].view(heads, queries) * NEAR, local)

    # the bounds of `attention._mixed_ball`, sums over shares taken apart: share <= near + local
    each = plus(sums[0], times(local, visible.sum(rho)))
    spread = plus(sums[1], times(local, visible.sum(lengths)))
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
    one = times(times(plus(once, 1.0), once), plus(spread, center))
    limit = times(biggest, plus(trail.growth, 1.0))
    other = times(whole[:, None], limit, trail.slide)
    ball = plus(ball, engine.where(other < one, other, one))
    low = system.grid(ball, width)

    y = Digits(_repeated(v.digits.limbs, group, 1), v.digits.top)
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
    assure(engine, [_differences(made.sum(2), known, 2)])
    digits = arithmetic.regrid(Digits(made, top + y.top), plan.low + WIDTH * plan.count, plan.low)
    digits = arithmetic.without_empty_limbs(digits)
    more = times(math.sqrt(width) * (1 + 2.0**-50), plan.error) if plan.error else None
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
                _multiply(x[:, :, across], right[:, down], into[step.d + 1], step.fresh)
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
