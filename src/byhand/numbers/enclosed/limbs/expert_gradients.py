"""Gradients of experts, of their shares and of what they read, with their radius rules.

spread              share·g, the rule of `weigh`; exactly 0 where a share is.
expert_dots         a dot product of each answer, as in `sums`.
expert_shares_back  with m = Σ share·g/scale of the row: that of softmax_back (`row_gradients`) for
                    share·(g - m), or p·(c·g - m)·scale with p all shares and c the choice; of
                    scores alone scale·c·g, or the quotient scale·c·(g - m)/Σ c·x.  Where one expert
                    alone may be chosen and shares are normalised, nothing moves its share: exactly
                    0, but for eps.
The sums over experts and positions are those of `sums`, the outer products of `weighted_sums`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from byhand.numbers.enclosed.limbs import (
    attention,
    experts,
    indexing,
    row_gradients,
    sums,
    updates,
    weighted_sums,
)
from byhand.numbers.enclosed.limbs.arithmetic import Digits
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed


def sum_experts(x: Enclosed) -> Enclosed:
    """The sum over the experts."""
    return indexing.part(sums.sum_groups(x, 1), 0)


def expert_outer(system: System, x: Enclosed, grad: Enclosed, layout: str) -> Enclosed:
    """`outer` of each expert; x may be the same for all."""
    made = [
        weighted_sums.outer(
            system, x if x.ndim == 2 else indexing.part(x, k), indexing.part(grad, k), layout
        )
        for k in range(grad.shape[0])
    ]
    return indexing.together(made)


def expert_sums(system: System, x: Enclosed) -> Enclosed:
    """The sums over positions of each expert."""
    made = sums.column_sums_of_heads(system, x, None)
    return sums.reshaped(made, (x.shape[0], x.width))


def spread(system: System, grad: Enclosed, shares: Enclosed) -> Enclosed:
    """grad[pos]·shares[pos, expert]: (expert, pos, width)."""
    made = [
        system.weigh(grad, indexing.columns(shares, [expert])) for expert in range(shares.width)
    ]
    return indexing.together(made)


def expert_dots(system: System, x: Enclosed, grad: Enclosed) -> Enclosed:
    """Σ x[expert, pos]·grad[pos]: (pos, expert)."""
    made = [sums.row_dots(system, indexing.part(x, k), grad) for k in range(x.shape[0])]
    return weighted_sums.turned(indexing.together(made))


@dataclass(frozen=True, slots=True)
class Sharing:
    """How experts share: as `expert_shares` has it."""

    normalised: bool
    alone: bool
    scale: Fraction
    eps: Fraction


def expert_shares_back(
    system: System, x: Enclosed, chosen: Enclosed, shares: Enclosed, grad: Enclosed, how: Sharing
) -> Enclosed:
    """What the router's scores get; the choice is fixed."""
    factor = system.constant(how.scale)
    if how.alone and not how.normalised:
        return system.scaled(_product(system, grad, chosen), factor)
    dot = sums.row_dots(system, system.scaled(shares, system.constant(1 / how.scale)), grad)
    if how.alone:
        above = row_gradients.softmax_back(system, chosen, grad, dot)
        below = experts.sum_of(system, _product(system, x, chosen), how.eps)
        made = updates.divide(system, system.scaled(above, factor), below)
        return made if how.eps else _still(made, chosen)
    if how.normalised:
        return _still(row_gradients.softmax_back(system, shares, grad, dot), chosen)
    every = attention.softmax(system, x)
    made = row_gradients.softmax_back(system, every, _product(system, grad, chosen), dot)
    return system.scaled(made, factor)


def _product(system: System, x: Enclosed, y: Enclosed) -> Enclosed:
    made: Enclosed = system.multiply(x, y)
    return made


def _still(made: Enclosed, chosen: Enclosed) -> Enclosed:
    """The gradients, exactly 0 in rows where one alone may be chosen."""
    if made.exact:
        return made
    engine, marks = made.digits.engine, chosen.approx
    alone = ((marks != 0.0).sum(-1) <= 1)[..., None]
    gone = alone & (made.box < math.inf)
    digits = Digits(engine.where(gone, 0.0, made.digits.limbs), made.digits.top)
    zeros = gone | made.zeros if made.has_zeros else gone
    return Enclosed(digits, lambda: made.ball, box=lambda: made.box, zeros=zeros)
