"""Attention scores on a GPU where every query sees a prefix of the keys; the rest is skipped.

The same bounds as in `limbs.scores`.  A kernel walks along rows as far as each query sees.  It
carries, checks and rounds the sums of products, and finds the largest score of a row.  Only the
largest radius R of a row is needed.  It is bounded by the largest norms and radii of the keys that
the row sees.  Bounds of entries are made on demand (`box`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from byhand.numbers.enclosed.gpu import row_kernels
from byhand.numbers.enclosed.gpu.recording import Rows
from byhand.numbers.enclosed.gpu.row_kernels import RowInputs, RowResults
from byhand.numbers.enclosed.gpu.visible_keys import VisibleKeys
from byhand.numbers.enclosed.limbs import arithmetic
from byhand.numbers.enclosed.limbs.arithmetic import Move
from byhand.numbers.enclosed.limbs.array_code import carried, horner, placed
from byhand.numbers.enclosed.limbs.checksums import assure
from byhand.numbers.enclosed.limbs.digits import BASE, WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.pairs import Plan, from_the_last, norms_of_limbs
from byhand.numbers.enclosed.limbs.radii import Bound, largest, length, plus, root, times
from byhand.numbers.enclosed.limbs.slices import check_columns
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, Origin

FINEST = 190  # bits; kernels of more limbs take too long to compile
HIGHEST = 34  # scores are below 2^34: floats find the largest to far less than 1/8


@dataclass(frozen=True, slots=True)
class ScoreTrail:
    """The data that softmax needs besides the digits of the scores."""

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
    system: System,
    q: Enclosed,
    k: Enclosed,
    power: int,
    visible: VisibleKeys,
    box_of: Callable[[], Bound],
    hidden: Array,
    apart: Array,
) -> Enclosed | None:
    """2^power·q·k; None where this method does not apply.  `apart`: ‖K - c‖₂ of each head of k."""
    if system.bits > FINEST:
        return None
    engine: Any = q.digits.engine
    heads, _queries, keys = visible.shape
    group = heads // k.shape[0]
    reach, rho = (repeated(part, group) for part in (k.norms, k.ball))
    most = visible.most(rho)
    widest = plus(times(q.norms, most), times(q.ball, visible.most(reach)), times(q.ball, most))
    low = system.grid(widest) - 1
    bound = times(engine.largest(q.norms), engine.largest(k.norms))
    x = q.digits
    y = Digits(repeated(k.digits.limbs, group, 1).swapaxes(2, 3), k.digits.top)
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
    rounded, place = _rounded(engine, visible, sums, known, plan, top)
    digits = arithmetic.shift(rounded, power)
    size = math.ldexp(1.0, power)
    local = times(plan.error, size)
    widest = plus(times(widest, size), local)
    changed = root(visible.sum(times(rho, rho)))
    moved = plus(
        times(q.ball, repeated(apart, group)[:, None]),
        times(q.norms, changed),
        times(q.ball, changed),
    )
    slide = plus(local * math.sqrt(keys) * (1 + 2.0**-50), times(moved, size))
    trail = ScoreTrail(visible, widest, place, slide)

    def box() -> Bound:
        return plus(times(box_of(), size), local)

    return Enclosed(
        digits,
        lambda: length(box()),
        box=box,
        hidden=hidden,
        origin=Origin("scores", q, local, trail),
    )


def _rounded(
    engine: Any, visible: VisibleKeys, sums: Array, known: Array, plan: Plan, top: int
) -> tuple[Digits, Array]:
    """The sums of products, checked, on the grid of the plan, and where each row is largest."""
    heads, queries, keys = visible.shape
    move = Move.of(top - WIDTH * plan.limbs, plan.limbs, plan.low, plan.count)
    made = engine.empty((plan.count, heads, queries, keys), sums)
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
    assure(engine, [differences(found[: plan.limbs].view(-1, heads, queries), known, 3)])
    big = largest(found[plan.limbs : plan.limbs + sizes], 1)
    first = engine.empty_sizes(plan.count, lambda count: big[:count]) if sizes == 2 else 0
    return Digits(made[first:], plan.low + WIDTH * (plan.count - first)), found[-1]


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
                multiply(x[:, :, across], y[:, down], into[step.d], step.fresh)

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


def multiply(x: Array, y: Array, into: Array, fresh: bool) -> None:
    """into = x·y, or += where it is not fresh."""
    if fresh:
        into.baddbmm_(x, y, beta=0.0)
    else:
        into.baddbmm_(x, y)


def differences(sums: Array, known: Array, axis: int) -> Array:
    """Zero where sums of columns, or of rows, agree with lo + 2^22·hi; carried."""
    low, high = known.unbind(axis)
    found = sums - low
    found[:-1] -= high[1:]
    found[0] -= high[0] * BASE
    return arithmetic.carry(found)


def repeated(rows: Array, group: int, axis: int = 0) -> Array:
    """One row for each query head, from one for each key head."""
    return rows if group == 1 else rows.repeat_interleave(group, axis)
