"""Exact products of two arrays of limbs, as attention needs them for scores and for mixing.

Certificate, checksum and pairs left out are as in `products`.  Here both sides are limbs and new in
every pass, so nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.language import _
from byhand.numbers.enclosed.limbs.arithmetic import (
    BALANCED,
    HALF,
    WIDTH,
    Digits,
    add,
    carry,
    regrid,
    settled,
    without_empty_limbs,
)
from byhand.numbers.enclosed.limbs.checksums import WrongProduct, assure, check, differences
from byhand.numbers.enclosed.limbs.engine import NUMPY, Array, Engine
from byhand.numbers.enclosed.limbs.joined_limbs import EXACT
from byhand.numbers.enclosed.limbs.products import Product, matmul
from byhand.numbers.enclosed.limbs.radii import plus, slack, times
from byhand.numbers.enclosed.limbs.row_norms import norm_with_room
from byhand.numbers.enclosed.limbs.slices import check_columns


@dataclass(frozen=True, slots=True)
class Step:
    """Limbs `start` to `stop` of x times those of y along the diagonal d; or a carry of all."""

    d: int
    start: int = 0
    stop: int = 0
    fresh: bool = False  # the first on its diagonal

    @property
    def carries(self) -> bool:
        """Whether the step only carries."""
        return self.stop == 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Which pairs of limbs are multiplied, exactly, and a bound of those left out."""

    low: int  # the grid of the result
    count: int  # its limbs
    limbs: int  # of the sums
    error: float
    steps: tuple[Step, ...]

    @staticmethod
    def of(
        x: Digits,
        y: Digits,
        rows: Sequence[float],
        columns: Sequence[float],
        low: int,
        largest: float,
        tolerance: float,
    ) -> Plan | None:
        """The plan for the largest row and column norms of each limb; None if halves are needed."""
        top, whole = x.top + y.top, x.n + y.n
        low = max(low, top - WIDTH * whole)
        # what is left out, at most `tolerance`, may be what the rest cancels
        head = math.frexp(plus(largest, tolerance) * (1 + 2.0**-20))[1] + 1
        count = max(1, -(-(head - low) // WIDTH))

        def left_out(limbs: int) -> float:
            missing = 0.0
            for i in range(x.n):
                for j in range(max(0, limbs - 1 - i), y.n):
                    unit = math.ldexp(1.0, max(-1000, top - WIDTH * (i + j + 2)))
                    missing = plus(missing, times(rows[i], columns[j], unit))
            return missing

        limbs = min(whole, max(2, -(-(top - low) // WIDTH)))
        error = left_out(limbs)
        while limbs < whole and error > tolerance:
            limbs += 1
            error = left_out(limbs)
        if low > top - WIDTH * whole:
            error = plus(error, HALF * math.ldexp(1.0, low))
        steps: list[Step] = []
        for d in range(limbs - 1):
            first, last = max(0, d - y.n + 1), min(x.n, d + 1)
            filled, start = 0.0, first
            while start < last:
                stop, bound = start, 0.0
                while stop < last:
                    more = rows[stop] * columns[d - stop] * slack(2)
                    if stop > start and filled + bound + more >= EXACT:
                        break
                    stop, bound = stop + 1, bound + more
                if filled + bound >= EXACT:
                    if filled <= 2 * BALANCED:
                        return None
                    steps.append(Step(d))
                    filled = 2 * BALANCED
                    continue
                filled += bound
                steps.append(Step(d, start, stop, start == first))
                start = stop
        return Plan(low, count, limbs, error, tuple(steps))


def multiply_pairs(x: Digits, y: Digits, low: int, *, largest: float, tolerance: float) -> Product:
    """x·y for (batch, m, k) and (batch, k, n), both in limbs, on the grid 2^low or a finer one.

    Along a diagonal limbs are laid side by side, so that one product sums all its pairs.
    """
    engine = x.engine
    top, whole = x.top + y.top, x.n + y.n
    deep = x.shape[-1]
    laid_x = engine.contiguous(engine.moveaxis(x.limbs, 0, 2))  # (batch, m, limb, k)
    sides = [y.limbs, check_columns(engine, y.limbs)]  # (limb, batch, k, n) and (…, 2)
    batch, m = x.shape[0], x.shape[1]
    laid_x = laid_x.reshape(batch, m, x.n * deep)
    laid_y = [from_the_last(engine, side).reshape(batch, y.n * deep, -1) for side in sides]
    rows, columns = norms_of_limbs(engine, x.limbs, sides)

    plan = Plan.of(x, y, rows, columns, low, largest, tolerance)
    if plan is None:  # a single pair is too long
        return _in_halves(x, y, max(low, top - WIDTH * whole), largest, tolerance)
    low, limbs = plan.low, plan.limbs
    made = [engine.empty((limbs, batch, m, side.shape[-1]), x.limbs) for side in sides]
    for part in made:
        part[0] = 0.0
    for step in plan.steps:
        if step.carries:
            for into in made:
                carry(into[: step.d + 2])
            continue
        some = laid_x[..., step.start * deep : step.stop * deep]
        where = y.n - 1 - (step.d - step.start)
        for into, laid in zip(made, laid_y, strict=True):
            others = laid[:, where * deep : (where + step.stop - step.start) * deep]
            if step.fresh:
                matmul(some, others, into[step.d + 1])
            elif engine is not NUMPY:
                into[step.d + 1].baddbmm_(some, others)
            else:
                part = engine.empty(into.shape[1:], x.limbs)
                matmul(some, others, part)
                into[step.d + 1] += part
    exact, known = made
    wrong = []
    if engine is NUMPY:
        check(carry(exact), carry(known))
    else:
        wrong.append(differences(carry(exact), carry(known)))
    sums = Digits(exact, top)
    if not largest < math.ldexp(1.0, min(1000, top + 8)):
        sums = settled(exact, top)  # a first limb beyond 2^30 could not be shifted without loss
    rounded = regrid(sums, low + WIDTH * plan.count, low)
    assure(engine, wrong)
    return Product(without_empty_limbs(rounded), plan.error)


def norms_of_limbs(engine: Any, x: Array, sides: list[Array]) -> tuple[list[float], list[float]]:
    """The largest row norm of each limb of x, and the largest column norm of each of the sides'."""
    if engine is NUMPY:
        rows = _largest_norms(x, "...ij,...ij->...i")
        columns = [_largest_norms(side, "...ij,...ij->...j") for side in sides]
        return rows.tolist(), np.maximum(*columns).tolist()
    deep = x.shape[-1]
    found = [engine.largest_of(engine.lengths(x, -1))]
    found += [engine.largest_of(engine.lengths(side, 2)) for side in sides]
    known = engine.bounds(engine.concatenate(found), norm_with_room)
    n, m = x.shape[0], sides[0].shape[0]
    known = [norm * slack(deep + 4) for norm in known]
    return known[:n], [max(pair) for pair in zip(known[n : n + m], known[n + m :], strict=True)]


def _largest_norms(limbs: Array, squares: str) -> Any:
    """The largest norm of each limb's rows; limbs are integers, so squares keep within range."""
    deep = limbs.shape[-1 if squares.endswith("->...i") else -2]
    found = np.einsum(squares, limbs, limbs).reshape(limbs.shape[0], -1)
    return np.sqrt(found.max(1, initial=0.0) * slack(deep)) * slack(1)


def from_the_last(engine: Engine, side: Array) -> Array:
    """(limb, batch, k, n) → (batch, limb from the last, k, n), laid out."""
    turned = side[::-1] if engine is NUMPY else side.flip(0)
    return engine.contiguous(engine.moveaxis(turned, 0, 1))


def _in_halves(x: Digits, y: Digits, low: int, largest: float, tolerance: float) -> Product:
    """The sum of the products of the two halves of k, where all of it is too long to be exact."""
    half = x.shape[-1] // 2
    if half == 0:
        raise WrongProduct(_("a product of limbs is too large to be exact"))
    one = multiply_pairs(
        x[..., :half], y[:, :half], low - 2, largest=largest, tolerance=tolerance / 2
    )
    other = multiply_pairs(
        x[..., half:], y[:, half:], low - 2, largest=largest, tolerance=tolerance / 2
    )
    whole = add(one.digits, other.digits)
    error = plus(one.error, other.error)
    if whole.low < low:
        whole, error = regrid(whole, low=low), plus(error, HALF * math.ldexp(1.0, low))
    return Product(whole, error)
