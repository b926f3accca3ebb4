"""The operations of learning, by name: losses, the adjoints of a pass, and an optimizer's step.

`backward.py` writes plans of the adjoints and `optimizer.py` plans of a training step.  A number
system that is made for forward passes alone may leave them out; a backward pass then says so.

The gradient of a value has the value's own shape.  Axes are those of `base`.  Masked entries of
gradients of scores and attention weights are ABSENT, as those of the scores and weights are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Never

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _

Array = Any
UNCOUNTED = -1  # in place of a target: the loss at this position does not count


class Adjoints:
    """Losses, adjoints and updates.  Each raises an InputError unless the system has its own."""

    @property
    def learns(self) -> bool:
        """Whether the system has these operations of its own."""
        return type(self).losses is not Adjoints.losses

    def _not_here(self) -> Never:
        raise InputError(
            _("{numbers} cannot work out gradients").format(numbers=type(self).__name__)
        )

    # ----------------------------------------------------------------------- the loss of a text

    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        """-ln probs[position, target], one for each position; ABSENT where it is UNCOUNTED."""
        self._not_here()

    def logprobs(self, x: Array, targets: Sequence[int]) -> Array:
        """ln of the share of e^x[position, target] in its row's sum; ABSENT where UNCOUNTED."""
        self._not_here()

    def average(self, losses: Array) -> Array:
        """The mean of the losses that are not ABSENT: an array of one value, shape (1,)."""
        self._not_here()

    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        """(probs - 1 at the target)/n in each counted position, n of them; 0 in the others.

        One id is the last position's target, and n is 1.
        """
        self._not_here()

    # ----------------------------------------------------------------------- sums

    def total(self, **terms: Array) -> Array:
        """The sum of arrays of one shape, entry by entry."""
        self._not_here()

    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Array:
        """The sums of x, or of x · by, over all axes but the last.

        With `merged` and three axes, the heads stand side by side: Σ over positions alone.  With
        `each`, the sums over positions of each head: (head, 1, width).
        """
        self._not_here()

    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Array:
        """Σ x · y over the last axis, which goes away; entries that are ABSENT in x are left out.

        `y` may have entries where x is ABSENT.  With `kept`, the last axis stays, of one entry.
        """
        self._not_here()

    def sum_groups(self, x: Array, *, heads: int) -> Array:
        """(head, pos, width) → (kv_head, pos, width): the sum over the heads that share one."""
        self._not_here()

    # ----------------------------------------------------------------------- products

    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        """Σ over positions of x[pos, i] · grad[pos, j], at [i, j] ("in_out") or [j, i] ("out_in").

        Heads stand side by side in each of them that has three axes.
        """
        self._not_here()

    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        """scale · Σ_key x[head, query, key] · y[kv_head, key]; x of any sign, ABSENT left out."""
        self._not_here()

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        """scale · Σ_query x[head, query, key] · y[head, query]: (head, key, d_head)."""
        self._not_here()

    def scale_by(self, x: Array, by: Array) -> Array:
        """x times one number, `by` of shape (1,)."""
        self._not_here()

    # ----------------------------------------------------------------------- places

    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        """A table of so many rows: scale · the sum of grad's rows of each id, 0 in other rows."""
        self._not_here()

    def pack_heads(
        self,
        queries: Array,
        keys: Array | None = None,
        values: Array | None = None,
        *,
        starts: Sequence[int],
        stride: int,
    ) -> Array:
        """The inverse of up to three `split_heads`: head h of each is columns start + h·stride
        onwards.

        (head, pos, width), as often → (pos, all columns).
        """
        self._not_here()

    def columns(self, x: Array, *, start: int, width: int) -> Array:
        """The entries from `start` on of each row, so many."""
        return x[..., start : start + width]

    def unmasked(self, x: Array) -> Array:
        """x, with 0 in place of ABSENT."""
        self._not_here()

    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Array:
        """A table (rows, head): the sum of grad[head] over the queries and keys of each bucket."""
        self._not_here()

    # ----------------------------------------------------------------------- adjoints

    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        """weights · (grad - dot), where `dot` is Σ weights · grad of the row; ABSENT as weights."""
        self._not_here()

    def sinks_back(self, weights: Array, dot: Array) -> Array:
        """-Σ_query (1 - Σ_key weights) · dot, for each head: what its sink gets."""
        self._not_here()

    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Array:
        """grad · (1 - tanh²(x/cap)), entry by entry; ABSENT as grad."""
        self._not_here()

    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        """grad where x is within the limits, which belong to it; else 0."""
        self._not_here()

    def slope(self, x: Array, *, kind: str) -> Array:
        """The derivative of the activation, entry by entry; that of relu at 0 is 0."""
        self._not_here()

    def normalize_back(self, grad: Array, by: Array) -> Array:
        """grad / by, row by row.  Undecided over zero, unless the row is zero: then it is zero."""
        self._not_here()

    def divisor_back(self, dot: Array, by: Array) -> Array:
        """-dot / by, one number for each row."""
        self._not_here()

    def root_back(self, grad: Array, root: Array) -> Array:
        """grad / (2 · root), one number for each row."""
        self._not_here()

    def mean_square_back(self, grad: Array, x: Array) -> Array:
        """grad · 2x/width, row by row."""
        self._not_here()

    def center_back(self, grad: Array) -> Array:
        """-Σ grad over the last axis, which goes away."""
        self._not_here()

    def mean_back(self, grad: Array, *, width: int) -> Array:
        """grad/width in each of `width` entries of a new last axis."""
        self._not_here()

    # ----------------------------------------------------------------------- experts

    def sum_experts(self, x: Array) -> Array:
        """(expert, pos, width) → (pos, width): the sum over the experts."""
        return self.total(**{f"expert_{k}": x[k] for k in range(len(x))})

    def expert_outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        """`outer` of each expert; x is (pos, any), the same for all, or (expert, pos, any)."""
        here: Any = self
        rows = ((x if x.ndim == 2 else x[k], grad[k]) for k in range(len(grad)))
        return here.stack([self.outer(x, grad, layout=layout) for x, grad in rows])

    def expert_sums(self, x: Array) -> Array:
        """The sums over positions of each expert: (expert, width)."""
        here: Any = self
        return here.stack([self.column_sums(x[k]) for k in range(len(x))])

    def spread(self, grad: Array, shares: Array) -> Array:
        """grad[pos] · shares[pos, expert]: (expert, pos, width)."""
        here: Any = self
        return here.stack([here.weigh(grad, shares[:, k : k + 1]) for k in range(shares.shape[-1])])

    def expert_dots(self, x: Array, grad: Array) -> Array:
        """Σ x[expert, pos] · grad[pos] over the width: (pos, expert)."""
        here: Any = self
        return here.stack([self.row_dots(x[k], grad) for k in range(len(x))]).transpose(1, 0)

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
        """What the router's scores x get of the gradient of `expert_shares`; the choice is fixed.

        Of a softmax: share · (grad - Σ share·grad), with the softmax of all in place of the first
        share, and grad of the chosen alone, where shares are not normalised.  Of scores alone:
        grad of the chosen, or where normalised (grad - Σ share·grad)/Σ chosen scores.
        """
        self._not_here()

    # ----------------------------------------------------------------------- an optimizer's step

    def sum_squares(self, x: Array) -> Array:
        """The sum of the squares of all entries, shape (1,)."""
        self._not_here()

    def norm(self, **squares: Array) -> Array:
        """The root of the sum of numbers of shape (1,)."""
        self._not_here()

    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        """The smaller of 1 and limit/(norm + eps), shape (1,)."""
        self._not_here()

    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        """of_x · x + of_y · y, entry by entry; with `squared`, y² in place of y.  No x is 0."""
        self._not_here()

    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        """√x + eps, entry by entry."""
        self._not_here()

    def divide(self, x: Array, y: Array) -> Array:
        """x / y, entry by entry."""
        self._not_here()
