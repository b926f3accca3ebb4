"""The operations of learning on enclosed arrays of limbs: losses, adjoints, an optimizer's step.

Each rule of a radius stands in its room: `losses`, `sums`, `weighted_sums`, `row_gradients`,
`slopes`, `expert_gradients`, `updates`.  The operations that a backward pass shares with a forward
one are in `operations`.  An entry that is exactly 0 stays exactly 0 (`known_zeros`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note
from byhand.numbers.enclosed.limbs import (
    expert_gradients,
    indexing,
    row_gradients,
    slopes,
    sums,
    updates,
    weighted_sums,
)
from byhand.numbers.enclosed.limbs import losses as text_losses
from byhand.numbers.enclosed.limbs.system import System
from byhand.numbers.enclosed.limbs.values import Enclosed, Origin


class Learning(System):
    """Losses, adjoints and updates."""

    # ------------------------------------------------------------------- the loss of a text

    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        return text_losses.losses(self, self.enclosed(probs), targets)

    def logprobs(self, x: Array, targets: Sequence[int]) -> Array:
        return text_losses.logprobs(self, self.enclosed(x), targets)

    def average(self, losses: Array) -> Array:
        return text_losses.average(self.enclosed(losses))

    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        return text_losses.loss_back(self, self.enclosed(probs), targets)

    # ------------------------------------------------------------------- sums

    def total(self, **terms: Array) -> Array:
        """Σ rho."""
        return sums.total(self, [self.enclosed(term) for term in terms.values()])

    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Array:
        other = None if by is None else self.enclosed(by)
        if each:
            return sums.column_sums_of_heads(self, self.enclosed(x), other)
        return sums.column_sums(self, self.enclosed(x), other, merged)

    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Array:
        made = sums.row_dots(self, self.enclosed(x), self.enclosed(y))
        return sums.each_alone(made) if kept else made

    def sum_groups(self, x: Array, *, heads: int) -> Array:
        return sums.sum_groups(self.enclosed(x), heads)

    # ------------------------------------------------------------------- products

    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        return weighted_sums.outer(self, self.enclosed(x), self.enclosed(grad), layout)

    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        made = weighted_sums.along_keys(self, self.enclosed(x), self.enclosed(y))
        return made if scale is None else self.scaled(made, self.constant(scale))

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        x = self.enclosed(x)
        made = weighted_sums.along_queries(self, x, self.enclosed(y))
        made = made if scale is None else self.scaled(made, self.constant(scale))
        if x.origin is not None and x.origin.kind == "softmax_back":
            columns = range(made.shape[0] * made.width)
            made.origin = Origin("cancelling", x, more=columns)
        return made

    def scale_by(self, x: Array, by: Array) -> Array:
        return updates.scale_by(self, self.enclosed(x), self.enclosed(by))

    # ------------------------------------------------------------------- places

    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        given = self.enclosed(grad)
        scaled = given if scale is None else self.scaled(given, self.constant(scale))
        return sums.scatter(scaled, ids, rows)

    def pack_heads(
        self,
        queries: Array,
        keys: Array | None = None,
        values: Array | None = None,
        *,
        starts: Sequence[int],
        stride: int,
    ) -> Array:
        parts = [self.enclosed(part) for part in (queries, keys, values) if part is not None]
        return sums.pack_heads(parts, starts, stride)

    def columns(self, x: Array, *, start: int, width: int) -> Array:
        return indexing.columns(self.enclosed(x), range(start, start + width))

    def unmasked(self, x: Array) -> Array:
        return sums.shown(self.enclosed(x))

    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Array:
        return sums.bucket_back(self.enclosed(grad), buckets, rows)

    # ------------------------------------------------------------------- adjoints

    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        parts = (self.enclosed(part) for part in (weights, grad, dot))
        return row_gradients.softmax_back(self, *parts)

    def sinks_back(self, weights: Array, dot: Array) -> Array:
        return row_gradients.sinks_back(self, self.enclosed(weights), self.enclosed(dot))

    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Array:
        grad = self.enclosed(grad)
        inner = sums.shown(self.enclosed(x), grad.hidden)
        made: Enclosed = self.multiply(sums.shown(grad), slopes.cap_slope(self, inner, cap))
        made.hidden = grad.hidden
        return made

    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        return self.multiply(grad, slopes.clamp_slope(self, self.enclosed(x), least, most))

    def slope(self, x: Array, *, kind: str) -> Array:
        if kind not in slopes.KINDS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return slopes.slope(self, self.enclosed(x), kind)

    def normalize_back(self, grad: Array, by: Array) -> Array:
        made, zero = row_gradients.normalize_back(self, self.enclosed(grad), self.enclosed(by))
        for index in zero:
            self.notes.append(Note("zero-variance", index))
        return made

    def divisor_back(self, dot: Array, by: Array) -> Array:
        return row_gradients.divisor_back(self, self.enclosed(dot), self.enclosed(by))

    def root_back(self, grad: Array, root: Array) -> Array:
        return row_gradients.root_back(self, self.enclosed(grad), self.enclosed(root))

    def mean_square_back(self, grad: Array, x: Array) -> Array:
        return row_gradients.mean_square_back(self, self.enclosed(grad), self.enclosed(x))

    def center_back(self, grad: Array) -> Array:
        return row_gradients.center_back(self.enclosed(grad))

    def mean_back(self, grad: Array, *, width: int) -> Array:
        return row_gradients.mean_back(self, self.enclosed(grad), width)

    # ------------------------------------------------------------------- experts

    def sum_experts(self, x: Array) -> Array:
        return expert_gradients.sum_experts(self.enclosed(x))

    def expert_outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        both = self.enclosed(x), self.enclosed(grad)
        return expert_gradients.expert_outer(self, *both, layout)

    def expert_sums(self, x: Array) -> Array:
        return expert_gradients.expert_sums(self, self.enclosed(x))

    def spread(self, grad: Array, shares: Array) -> Array:
        return expert_gradients.spread(self, self.enclosed(grad), self.enclosed(shares))

    def expert_dots(self, x: Array, grad: Array) -> Array:
        return expert_gradients.expert_dots(self, self.enclosed(x), self.enclosed(grad))

    def expert_shares_back(
        self,
        x: Array,
        chosen: Array,
        shares: Array,
        grad: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Array:
        how = expert_gradients.Sharing(
            normalised, alone, Fraction(1) if scale is None else scale, eps or Fraction(0)
        )
        router = self.enclosed(x), self.enclosed(chosen), self.enclosed(shares)
        return expert_gradients.expert_shares_back(self, *router, self.enclosed(grad), how)

    # ------------------------------------------------------------------- an optimizer's step

    def sum_squares(self, x: Array) -> Array:
        return updates.sum_squares(self, self.enclosed(x))

    def norm(self, **squares: Array) -> Array:
        return updates.norm(self, [self.enclosed(square) for square in squares.values()])

    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        return updates.clip_factor(self, self.enclosed(norm), limit, eps)

    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        known = self.enclosed(y)
        if squared:
            known = updates.squared(self, known)
        terms = [updates.times_constant(self, known, self.constant(of_y))]
        if x is not None:
            terms.append(updates.times_constant(self, self.enclosed(x), self.constant(of_x)))
        return updates.added(self, terms)

    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        return updates.root_plus(self, self.enclosed(x), self.constant(eps))

    def divide(self, x: Array, y: Array) -> Array:
        return updates.divide(self, self.enclosed(x), self.enclosed(y))
