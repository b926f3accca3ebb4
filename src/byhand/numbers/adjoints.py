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

    def column_sums(self, x: Array, *, by: Array | None = None, merged: bool = False) -> Array:
        """The sums of x, or of x · by, over all axes but the last.

        With `merged` and three axes, the heads stand side by side: Σ over positions alone.
        """
        self._not_here()

    def row_dots(self, x: Array, y: Array) -> Array:
        """Σ x · y over the last axis, which goes away; entries that are ABSENT in x are left out.

        `y` may have entries where x is ABSENT.
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
        self, queries: Array, keys: Array, values: Array, *, starts: Sequence[int], stride: int
    ) -> Array:
        """The inverse of three `split_heads`: head h of each is columns start + h·stride onwards.

        (head, pos, width), three times → (pos, all columns).
        """
        self._not_here()

    # ----------------------------------------------------------------------- adjoints

    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        """weights · (grad - dot), where `dot` is Σ weights · grad of the row; ABSENT as weights."""
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
