"""Limbs of x that are multiplied as one: the first two, exactly, and the last two, with a bound.

The first two.  Where numbers use but few bits of the first limb, x_0·2^22 + x_1 is a limb that is
hardly longer than others.  If the certificate holds for it, x has one limb less, and is otherwise
the same number: Σ limb_i·2^(top - 22 - 22(i+1)).

The last two.  Limbs far down need no exact products: their rounding is far below the grid of the
result.  With r = x_(n-2)·2^22 + x_(n-1), an integer below 2^53, a slice is multiplied by r at once
instead of by two limbs.  Products with the first two slices are added up as Y, in units of
2^(top - 22(n+1)).

Rounding.  Whatever the order of summation, with or without fused multiply-add, a sum of K products
errs by at most γ_K·Σ|r_k·s_k| (Higham, Accuracy and Stability of Numerical Algorithms, 2002,
chapter 3), and Σ|r_k·s_k| <= ‖r‖·‖s‖.  Sums of groups of inputs and of two slices are a few
roundings more.  So |Y - r·W| <= γ_m·reach, with reach = ‖r‖·Σ_t ‖s_t‖·2^(-22t) and
m = K + 2·groups + 16; of a third slice all of r is left out, and bounded as other pairs are.

Rounding to limbs.  b = rint(Y·2^-22) is added to the limb of x_(n-2)·s_0: at most half a unit of
that limb is lost.  |b| <= reach·2^-22 + 1 has to leave the sum exact: it is carried before, if not.

Check.  Σ_j Y_j and r·Σ_j W_j must agree within what the rounding of both allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.numbers.enclosed.limbs.arithmetic import BASE, HALF, WIDTH, Digits
from byhand.numbers.enclosed.limbs.engine import NUMPY
from byhand.numbers.enclosed.limbs.radii import length, plus, slack, times
from byhand.numbers.enclosed.limbs.slices import Matrix, joint

SLICES = 2  # the slices that r is multiplied by
UNIT = 2.0**-53
LARGEST = 2.0**53  # integers below are exact
EXACT = 2.0**52 - 2.0**33  # float64 and `carry` are exact below 2^52; the rest is for a bias
FILLED = 2.0**32  # a bound of carried sums; the first limb holds most of it


@dataclass(frozen=True, slots=True)
class Tail:
    """How two limbs are multiplied as one: bounds of Y and of its error, in units of Y."""

    first: int  # the first of the two limbs
    size: float  # a bound of ‖r‖
    reach: float
    rounding: float

    @staticmethod
    def of(x: Digits, matrix: Matrix, norms: Any, top: int) -> tuple[Tail, float]:
        """The tail, and a bound of its error; `norms` are those of limbs, for each block."""
        size = float(length(norms[-2] * BASE * slack(0) + norms[-1] * slack(0)))
        count = max((len(tile.slices) for tile in matrix.tiles), default=0)
        columns = [times(matrix.column_norm(t), BASE**-t) for t in range(count)]
        reach = times(size, plus(0.0, *columns[:SLICES]))
        terms = matrix.inputs + 2 * len(matrix.blocks) + 16
        rounding = terms * UNIT * (1 + 2.0**-20) * reach  # γ_m, for m below 2^30
        unit = math.ldexp(1.0, max(-1000, top - WIDTH * (x.n + 1)))
        missing = times(size, plus(0.0, *columns[SLICES:]))
        return Tail(x.n - 2, size, reach, rounding), times(
            plus(rounding, missing, HALF * BASE), unit
        )

    @property
    def fits(self) -> bool:
        """Whether r is exact, and a limb to which it is added."""
        return self.size < LARGEST and self.height < EXACT - FILLED

    @property
    def height(self) -> float:
        """A bound of what is added to a limb."""
        return float(times(self.reach, slack(2) / BASE)) + 1.0

    def agrees(self, made: Any, expected: Any) -> bool:
        """Whether sums of the columns of Y are as expected, up to rounding."""
        columns = made.shape[-1]
        most = 4 * columns * (self.rounding + columns * UNIT * self.reach)
        return bool((abs(made.sum(-1) - expected) <= most).all())

    def add_to(self, sums: Any, made: Any) -> Any:
        """Adds Y to the limbs of the sums; gives what was added, summed over the columns."""
        made *= 1 / BASE
        np.rint(made, out=made)
        sums[self.first + 1] += made
        added = np.zeros(sums.shape[:2])
        added[self.first + 1] = made.sum(-1)
        return added


def first_joined(x: Digits, matrix: Matrix, largest: float) -> Digits:
    """x with its first two limbs as one, if products are exact so; else x."""
    top = x.top + matrix.top - WIDTH
    if x.n < 3 or not largest < math.ldexp(1.0, min(1000, top + 8)):
        return x
    first = x.limbs[0] * BASE
    first += x.limbs[1]
    norm = float(np.sqrt(NUMPY.squares(first).max(initial=0.0) * slack(x.shape[-1]))) * slack(1)
    columns = [
        max(matrix.column_norm(t), joint(check.norms))
        for t, check in enumerate(matrix.checks.slices)
    ]
    if norm >= LARGEST or times(norm, plus(0.0, *columns)) >= EXACT - FILLED:
        return x
    limbs = np.concatenate([first[None], x.limbs[2:]])
    return Digits(limbs, x.top - WIDTH)


def laid_out(x: Any, tail: Tail | None) -> Any:
    """(limb, rows, inputs) → (limb·rows, inputs), the last two limbs as one for a tail."""
    if tail is None:
        return np.ascontiguousarray(x).reshape(-1, x.shape[-1])
    made = np.empty((tail.first + 1, *x.shape[1:]))
    made[:-1] = x[:-2]
    np.multiply(x[-2], BASE, out=made[-1])
    made[-1] += x[-1]
    return made.reshape(-1, x.shape[-1])
