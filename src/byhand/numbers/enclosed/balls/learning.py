"""The operations of learning on Arb balls: losses, adjoints, and an optimizer's step.

Each entry is a ball that contains the real value for all numbers in the balls it is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT, Array, Note
from byhand.numbers.enclosed.balls import ranges
from byhand.numbers.enclosed.balls.arrays import (
    absent,
    each,
    matrix,
    mixed,
    objects,
    present_or_zero,
    side_by_side,
    table_of,
)
from byhand.numbers.enclosed.balls.slopes import SLOPES
from byhand.numbers.enclosed.balls.system import System, precisely
from byhand.numbers.made import EVERY, cancelling, known_dot, made, made_of, packed


class Learning(System):
    """Losses, adjoints and updates."""

    # ------------------------------------------------------------------- the loss of a text

    @precisely
    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        found = [
            ABSENT if target == UNCOUNTED else self._surprise(probs, place, target)
            for place, target in enumerate(targets)
        ]
        return objects(found, (len(targets),))

    def _surprise(self, probs: Array, place: int, target: int) -> arb:
        """-ln of a share; of a wide one, from the scores it was made of."""
        share: arb = self._balls(probs)[place, target]
        scores = made_of(probs, "softmax")
        if scores is None or ranges.narrow(share):
            return -share.log()
        return ranges.surprise(list(self._balls(scores)[place]), target)

    @precisely
    def logprobs(self, x: Array, targets: Sequence[int]) -> Array:
        found = [x if x is ABSENT else -x for x in self.losses(self.softmax(x), targets)]
        return objects(found, (len(targets),))

    @precisely
    def average(self, losses: Array) -> Array:
        counted = [loss for loss in self._balls(losses) if loss is not ABSENT]
        return objects([sum(counted[1:], counted[0]) / len(counted)], (1,))

    @precisely
    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        shares = self._balls(probs)
        if isinstance(targets, int):
            targets = (*[UNCOUNTED] * (len(shares) - 1), targets)
        counted = sum(1 for target in targets if target != UNCOUNTED)
        result = np.full(shares.shape, arb(0), dtype=object)
        for place, target in enumerate(targets):
            if target != UNCOUNTED:
                result[place] = shares[place] / counted
                result[place, target] = (shares[place, target] - 1) / counted
        return result

    # ------------------------------------------------------------------- sums

    @precisely
    def total(self, **terms: Array) -> Array:
        first, *others = map(self._balls, terms.values())
        return sum(others, first)

    @precisely
    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Array:
        balls = side_by_side(self._balls(x)) if merged else self._balls(x)
        product = balls if by is None else balls * self._balls(by)
        if each:
            return product.sum(axis=1)[:, None, :]
        sums = product.reshape(-1, product.shape[-1]).sum(axis=0)
        if by is None:
            sums[cancelling(x)] = arb(0)
        return sums

    @precisely
    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Array:
        left, right = self._balls(x), self._balls(y)
        products = left.copy()
        present = ~absent(left)
        products[present] = left[present] * right[present]
        dots = np.asarray(present_or_zero(products).sum(axis=-1), dtype=object)
        return dots[..., None] if kept else made(dots, "row_dots", (x, y))

    @precisely
    def sum_groups(self, x: Array, *, heads: int) -> Array:
        balls = self._balls(x)
        sums = balls.reshape(heads, -1, *balls.shape[1:]).sum(axis=1)
        return made(sums, "cancelling", cancelling(x))

    # ------------------------------------------------------------------- products

    @precisely
    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        sides = (matrix(side_by_side(self._balls(one))) for one in (x, grad))
        left, right = sides if layout == "in_out" else reversed(list(sides))
        return table_of(left.transpose() * right)

    @precisely
    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        weights, values = self._balls(x), self._balls(y)
        group = len(weights) // len(values)
        result = np.stack([mixed(rows, values[h // group]) for h, rows in enumerate(weights)])
        return result if scale is None else result * self._scalar(scale)

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        found = self.along_keys(self._balls(x).transpose(0, 2, 1), y, scale=scale)
        return found if made_of(x, "softmax_back") is None else made(found, "cancelling", EVERY)

    @precisely
    def scale_by(self, x: Array, by: Array) -> Array:
        return self._balls(x) * self._balls(by)[0]

    # ------------------------------------------------------------------- places

    @precisely
    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        balls = self._balls(grad)
        result = np.full((rows, balls.shape[1]), arb(0), dtype=object)
        for place, row in enumerate(ids):
            result[row] = result[row] + balls[place]
        return result if scale is None else result * self._scalar(scale)

    def pack_heads(
        self,
        queries: Array,
        keys: Array | None = None,
        values: Array | None = None,
        *,
        starts: Sequence[int],
        stride: int,
    ) -> Array:
        parts = tuple(part for part in (queries, keys, values) if part is not None)
        columns = sum(part.shape[0] * part.shape[2] for part in parts)
        result = np.empty((parts[0].shape[1], columns), dtype=object)
        for start, part in zip(starts, parts, strict=True):
            for head, rows in enumerate(part):
                first = start + head * stride
                result[:, first : first + part.shape[2]] = rows
        return packed(result, parts, starts, stride)

    def unmasked(self, x: Array) -> Array:
        return present_or_zero(self._balls(x))

    @precisely
    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Array:
        balls = self._balls(grad)
        result = np.full((rows, len(balls)), arb(0), dtype=object)
        for place in np.ndindex(balls.shape[1:]):
            row = buckets[place[0]][place[1]]
            result[row] = result[row] + balls[(slice(None), *place)]
        return result

    # ------------------------------------------------------------------- adjoints

    @precisely
    def sinks_back(self, weights: Array, dot: Array) -> Array:
        rest = present_or_zero(self._balls(weights)).sum(axis=-1) - arb(1)
        return (rest * self._balls(dot)).sum(axis=-1)

    @precisely
    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Array:
        slope, limit = SLOPES["tanh"](), self._scalar(cap)
        rises, inner = self._balls(grad), self._balls(x)
        result = np.full(rises.shape, ABSENT, dtype=object)
        for place in zip(*np.nonzero(~absent(rises)), strict=True):
            result[place] = rises[place] * slope(inner[place] / limit)
        return result

    @precisely
    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        low = None if least is None else self._scalar(least)
        high = None if most is None else self._scalar(most)

        def kept(g: arb, v: arb) -> arb:
            if (low is not None and v < low) or (high is not None and v > high):
                return arb(0)
            within = (low is None or v >= low) and (high is None or v <= high)
            return g if within else g.union(arb(0))

        pairs = zip(self._balls(grad).flat, self._balls(x).flat, strict=True)
        return objects([kept(g, v) for g, v in pairs], x.shape)

    @precisely
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
        data, kept, share, back = map(self._balls, (x, chosen, shares, grad))
        factor = self._scalar(Fraction(1) if scale is None else scale)
        dot = (share * back).sum(axis=-1)[:, None] / factor
        if alone and normalised:
            total = (data * kept).sum(axis=-1)[:, None]
            total = total if eps is None else total + self._scalar(eps)
            return kept * (back - dot) * factor / total
        if alone:
            return kept * back * factor
        if normalised:
            return share * (back - dot)
        every = self._balls(self.softmax(x))
        return every * (back * kept - dot) * factor

    @precisely
    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        shares, rises, means = (self._balls(x) for x in (weights, grad, dot))
        result = np.full(shares.shape, ABSENT, dtype=object)
        known = known_dot(weights, grad, dot)
        for place in np.ndindex(shares.shape[:-1]):
            present = np.flatnonzero(~absent(shares[place]))
            above = rises[place][present] - means[place]
            alone = known and len(present) == 1
            result[(*place, present)] = arb(0) if alone else shares[place][present] * above
        return made(result, "softmax_back", grad) if known else result

    @precisely
    def slope(self, x: Array, *, kind: str) -> Array:
        if kind not in SLOPES:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return each(SLOPES[kind](), self._balls(x))

    @precisely
    def normalize_back(self, grad: Array, by: Array) -> Array:
        rows, divisors = self._balls(grad), self._balls(by)
        result = rows / divisors[..., None]
        for place in np.ndindex(divisors.shape):
            if divisors[place] == 0 and all(entry == 0 for entry in rows[place]):
                result[place] = arb(0)
                self.notes.append(Note("zero-variance", place))
        return result

    @precisely
    def divisor_back(self, dot: Array, by: Array) -> Array:
        return _quotients(-self._balls(dot), self._balls(by))

    @precisely
    def root_back(self, grad: Array, root: Array) -> Array:
        return _quotients(self._balls(grad), 2 * self._balls(root))

    @precisely
    def mean_square_back(self, grad: Array, x: Array) -> Array:
        balls = self._balls(x)
        return (self._balls(grad) * 2 / arb(balls.shape[-1]))[..., None] * balls

    @precisely
    def center_back(self, grad: Array) -> Array:
        return np.asarray(-self._balls(grad).sum(axis=-1), dtype=object)

    @precisely
    def mean_back(self, grad: Array, *, width: int) -> Array:
        return np.repeat((self._balls(grad) / arb(width))[..., None], width, axis=-1)

    # ------------------------------------------------------------------- an optimizer's step

    @precisely
    def sum_squares(self, x: Array) -> Array:
        squares = [ranges.power(entry, 2) for entry in self._balls(x).ravel()]
        return objects([sum(squares, arb(0))], (1,))

    @precisely
    def norm(self, **squares: Array) -> Array:
        return each(ranges.root, sum(map(self._balls, squares.values())))

    @precisely
    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        sizes, most = self._balls(norm) + self._scalar(eps), self._scalar(limit)
        return each(lambda size: ranges.clipped(size, most), sizes)

    @precisely
    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        new = self._balls(y)
        if squared:
            new = each(lambda entry: ranges.power(entry, 2), new)
        result = new * self._scalar(of_y)
        return result if x is None else result + self._balls(x) * self._scalar(of_x)

    @precisely
    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        return each(ranges.root, self._balls(x)) + self._scalar(eps)

    @precisely
    def divide(self, x: Array, y: Array) -> Array:
        return self._balls(x) / self._balls(y)


def _quotients(top: Array, below: Array) -> Array:
    """top / below, and 0 where both are 0."""
    result = top / below
    for place in np.ndindex(below.shape):
        if below[place] == 0 and top[place] == 0:
            result[place] = arb(0)
    return result
