"""The operations of learning on exact-or-named values: losses, adjoints, and an optimizer's step.

A sum is one sum of products wherever it can be: letters that appear in several terms then cancel.
A gradient that is zero by form is the number 0, and sums leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import fmpq

from byhand.errors import InputError, Undecided
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.adjoints import UNCOUNTED
from byhand.numbers.base import ABSENT, Array, Note
from byhand.numbers.exact import within
from byhand.numbers.exact.names import ONE, ZERO
from byhand.numbers.exact.slopes import SLOPES
from byhand.numbers.exact.system import System, array
from byhand.numbers.exact.value import How, Value
from byhand.numbers.made import EVERY, cancelling, known_dot, made, made_of, packed


class Learning(System):
    """Losses, adjoints and updates."""

    # ------------------------------------------------------------------- the loss of a text

    def losses(self, probs: Array, targets: Sequence[int]) -> Array:
        scores = made_of(probs, "softmax")
        result = np.full(len(targets), ABSENT, dtype=object)
        for place, target in enumerate(targets):
            if target != UNCOUNTED:
                row = None if scores is None else list(scores[place])
                result[place] = within.loss(self.space, probs[place, target], row, target)
        return result

    def logprobs(self, x: Array, targets: Sequence[int]) -> Array:
        losses = self.losses(self.softmax(x), targets)
        found = [loss if loss is ABSENT else loss.times(-ONE) for loss in losses]
        return array(found, (len(targets),))

    def average(self, losses: Array) -> Array:
        counted = [loss for loss in losses if loss is not ABSENT]
        share, one = fmpq(1, len(counted)), self.space.plain(ONE)
        how = How("mean", counted)
        return array([self.space.total([(share, loss, one) for loss in counted], how)], (1,))

    def loss_back(self, probs: Array, targets: int | Sequence[int]) -> Array:
        if isinstance(targets, int):
            targets = (*[UNCOUNTED] * (len(probs) - 1), targets)
        share = fmpq(1, sum(1 for target in targets if target != UNCOUNTED))
        one = self.space.plain(ONE)
        result = self._zeros(probs.shape)
        for place, target in enumerate(targets):
            if target != UNCOUNTED:
                for token, p in enumerate(probs[place]):
                    wrong = self.space.subtract(p, one) if token == target else p
                    result[place, token] = wrong if share == 1 else wrong.times(share)
        return result

    def _zeros(self, shape: tuple[int, ...]) -> Array:
        return np.full(shape, self.space.plain(ZERO), dtype=object)

    # ------------------------------------------------------------------- sums

    def _sum(self, xs: Iterable[Value], scale: fmpq = ONE) -> Value:
        terms = list(xs)
        return self.space.combine([scale] * len(terms), terms)

    def _added(self, *terms: Array) -> Array:
        return self._each(lambda *xs: self._sum(xs), *terms) if len(terms) > 1 else terms[0]

    def total(self, **terms: Array) -> Array:
        return self._added(*terms.values())

    def column_sums(
        self, x: Array, *, by: Array | None = None, merged: bool = False, each: bool = False
    ) -> Array:
        if each:
            others = [None] * len(x) if by is None else by
            pairs = zip(x, others, strict=True)
            return np.stack([self.column_sums(one, by=other) for one, other in pairs])[:, None, :]
        rows = _flat(_side_by_side(x) if merged else x)
        if by is None:
            sums = array([self._sum(column) for column in rows.T], rows.shape[1:])
            sums[cancelling(x)] = self.space.plain(ZERO)
            return sums
        pairs = zip(rows.T, _flat(by).T, strict=True)
        return array([self.space.dot(xs, ys) for xs, ys in pairs], rows.shape[1:])

    def row_dots(self, x: Array, y: Array, *, kept: bool = False) -> Array:
        rows = zip(_flat(x), _flat(y), strict=True)
        dots = array([self._scaled_dot(xs, ys) for xs, ys in rows], x.shape[:-1])
        return dots[..., None] if kept else made(dots, "row_dots", (x, y))

    def _scaled_dot(self, xs: Array, ys: Array, scale: Value | None = None) -> Value:
        """scale · Σ x·y over the entries that are present in x."""
        present = [(x, y) for x, y in zip(xs, ys, strict=True) if x is not ABSENT]
        left, right = [x for x, _y in present], [y for _x, y in present]
        if scale is None or scale.num is None:
            return self.space.dot(left, right, ONE if scale is None else scale.q)
        parts = [(ONE, self.space.dot(left, right), scale)]
        return self.space.total(parts, How("scores", left, right, scale))

    def sum_groups(self, x: Array, *, heads: int) -> Array:
        groups = x.reshape(heads, -1, *x.shape[1:])
        return made(self._added(*groups.transpose(1, 0, 2, 3)), "cancelling", cancelling(x))

    # ------------------------------------------------------------------- products

    def outer(self, x: Array, grad: Array, *, layout: str) -> Array:
        sides = _side_by_side(x), _side_by_side(grad)
        left, right = sides if layout == "in_out" else sides[::-1]
        entries = [self.space.dot(list(a), list(b)) for a in left.T for b in right.T]
        return array(entries, (left.shape[1], right.shape[1]))

    def along_keys(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        factor = None if scale is None else self.scalar(scale)
        group = len(x) // len(y)
        entries = [
            self._scaled_dot(row, column, factor)
            for head, rows in enumerate(x)
            for row in rows
            for column in y[head // group].T
        ]
        return array(entries, (*x.shape[:2], y.shape[-1]))

    def along_queries(self, x: Array, y: Array, *, scale: Expression | None = None) -> Array:
        found = self.along_keys(x.transpose(0, 2, 1), y, scale=scale)
        return found if made_of(x, "softmax_back") is None else made(found, "cancelling", EVERY)

    def scale_by(self, x: Array, by: Array) -> Array:
        return self._each(lambda entry: self.space.multiply(entry, by[0]), x)

    # ------------------------------------------------------------------- places

    def scatter(
        self, grad: Array, ids: Sequence[int], *, rows: int, scale: Expression | None = None
    ) -> Array:
        factor = None if scale is None else self.scalar(scale)
        result = self._zeros((rows, grad.shape[1]))
        for row in set(ids):
            taken = grad[[place for place, token in enumerate(ids) if token == row]]
            sums = self._added(*taken)
            result[row] = sums if factor is None else self.scale_by(sums, [factor])
        return result

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
        result = np.empty((queries.shape[1], columns), dtype=object)
        for start, part in zip(starts, parts, strict=True):
            for head, rows in enumerate(part):
                first = start + head * stride
                result[:, first : first + part.shape[2]] = rows
        return packed(result, parts, starts, stride)

    def unmasked(self, x: Array) -> Array:
        return self._each(lambda v: self.space.plain(ZERO) if v is ABSENT else v, x)

    def bucket_back(self, grad: Array, *, buckets: Sequence[Sequence[int]], rows: int) -> Array:
        result = self._zeros((rows, len(grad)))
        places = np.asarray(buckets)
        for row, head in np.ndindex(result.shape):
            if (places == row).any():
                result[row, head] = self._sum(grad[head][places == row])
        return result

    # ------------------------------------------------------------------- adjoints

    def sinks_back(self, weights: Array, dot: Array) -> Array:
        one = self.space.plain(ONE)
        sinks = []
        for rows, dots in zip(weights, dot, strict=True):
            present = [[w for w in row if w is not ABSENT] for row in rows]
            rest = [self.space.subtract(self._sum(row), one) for row in present]
            sinks.append(self.space.dot(rest, list(dots)))
        return array(sinks, (len(sinks),))

    def cap_back(self, grad: Array, x: Array, *, cap: Fraction) -> Array:
        one, below = self.space.plain(ONE), self.value(1 / cap).q

        def bent(g: Any, v: Value) -> Any:
            if g is ABSENT:
                return ABSENT
            t = self.space.odd_function("tanh", v.times(below))
            return self.space.multiply(g, self.space.total([(ONE, one, one), (-ONE, t, t)]))

        return self._each(bent, grad, x)

    def clamp_back(
        self, grad: Array, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        limits = [(least, -1), (most, 1)]

        def kept(g: Value, v: Value) -> Value:
            beyond = any(
                limit is not None and self.space.compare(v, self.value(limit)) == side
                for limit, side in limits
            )
            return self.space.plain(ZERO) if beyond else g

        return self._each(kept, grad, x)

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
        factor = ONE if scale is None else self.value(scale).q
        zero = self.space.plain(ZERO)
        result = self._zeros(x.shape)
        for pos, row in enumerate(x):
            there = [k for k in range(len(row)) if self.space.sign(chosen[pos, k]) != 0]
            share, back = [shares[pos, k] for k in there], [grad[pos, k] for k in there]
            dot = self.space.dot(share, back).times(1 / factor)
            above = {k: self.space.subtract(grad[pos, k], dot) for k in there}
            if alone and not normalised:
                result[pos, there] = [grad[pos, k].times(factor) for k in there]
            elif alone:
                total = self._sum(row[k] for k in there)
                total = total if eps is None else total + eps
                result[pos, there] = [
                    self.space.divide(above[k].times(factor), total) for k in there
                ]
            elif normalised:
                result[pos, there] = [self.space.multiply(shares[pos, k], above[k]) for k in there]
            else:
                every = self.softmax(row[None])[0]
                for k in range(len(row)):
                    lost = above[k] if k in above else self.space.subtract(zero, dot)
                    result[pos, k] = self.space.multiply(every[k], lost).times(factor)
        return result

    def softmax_back(self, weights: Array, grad: Array, dot: Array) -> Array:
        result = np.full(weights.shape, ABSENT, dtype=object)
        for place in np.ndindex(weights.shape):
            if weights[place] is not ABSENT:
                above = self.space.subtract(grad[place], dot[place[:-1]])
                result[place] = self.space.multiply(weights[place], above)
        return made(result, "softmax_back", grad) if known_dot(weights, grad, dot) else result

    def slope(self, x: Array, *, kind: str) -> Array:
        if kind == "relu":
            return self._steps(x)
        if kind == "relu2":
            return self._each(lambda v: v.times(fmpq(2)), self.activate(x, kind="relu"))
        if kind not in SLOPES:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return self._each(partial(within.sloped, self.space, kind), x)

    def _steps(self, x: Array) -> Array:
        result = np.empty_like(x)
        for place in np.ndindex(x.shape):
            result[place], decided = within.step(self.space, x[place])
            if not decided:
                self.notes.append(Note("undecided-sign", place))
        return result

    def normalize_back(self, grad: Array, by: Array) -> Array:
        result = np.empty_like(grad)
        for place in np.ndindex(by.shape):
            row = grad[place]
            result[place] = array(self._divided(row, by[place], place), row.shape)
        return result

    def divisor_back(self, dot: Array, by: Array) -> Array:
        return self._each(lambda top, below: self._over(top.times(-ONE), below), dot, by)

    def root_back(self, grad: Array, root: Array) -> Array:
        return self._each(lambda top, below: self._over(top, below.times(fmpq(2))), grad, root)

    def _over(self, top: Value, below: Value) -> Value:
        """top / below, where 0/0 is 0."""
        if self.space.sign(below) != 0:
            return self.space.divide(top, below)
        if self.space.sign(top) != 0:
            raise Undecided(_("a number that is not zero cannot be divided by zero"))
        return self.space.plain(ZERO)

    def mean_square_back(self, grad: Array, x: Array) -> Array:
        share = fmpq(2, x.shape[-1])
        return self._each(lambda g, v: self.space.dot((g,), (v,), share), grad[..., None], x)

    def center_back(self, grad: Array) -> Array:
        return self._rows(lambda row: self._sum(row, -ONE), grad)

    def mean_back(self, grad: Array, *, width: int) -> Array:
        shares = self._each(lambda g: g.times(fmpq(1, width)), grad)
        return np.repeat(shares[..., None], width, axis=-1)

    # ------------------------------------------------------------------- an optimizer's step

    def sum_squares(self, x: Array) -> Array:
        return array([within.mean_of_squares(self.space, list(x.ravel()), ONE)], (1,))

    def norm(self, **squares: Array) -> Array:
        whole = self._sum(square[0] for square in squares.values())
        return array([within.root(self.space, whole)], (1,))

    def clip_factor(self, norm: Array, *, limit: Fraction, eps: Fraction) -> Array:
        size = self.space.letter(norm[0]) + eps  # a root of its own would leave the denominator
        return array([within.clipped(self.space, size, self.value(limit))], (1,))

    def blend(
        self,
        y: Array,
        x: Array | None = None,
        *,
        of_y: Fraction,
        of_x: Fraction = Fraction(0),
        squared: bool = False,
    ) -> Array:
        share, kept = self.value(of_y).q, self.value(of_x).q
        one = self.space.plain(ONE)

        def entry(new: Value, old: Value | None = None) -> Value:
            if squared:
                self._as_multiples_of_one_letter([new])  # so that the root of its square is seen
            parts = [(share, new, new if squared else one)]
            if old is not None:
                parts.insert(0, (kept, old, one))
            return self.space.total(parts, How("blend", parts))

        return self._each(entry, y) if x is None else self._each(entry, y, x)

    def root_plus(self, x: Array, *, eps: Fraction) -> Array:
        return self._each(lambda v: within.root(self.space, v) + eps, x)

    def divide(self, x: Array, y: Array) -> Array:
        return self._each(self._ratio, x, y)

    def _ratio(self, top: Value, below: Value) -> Value:
        if self.space.sign(below) == 0:
            raise Undecided(_("a number cannot be divided by zero"))
        return self.space.divide(self.space.under_its_letter(top), below)


def _flat(x: Array) -> Array:
    """All rows, one below the other."""
    return x.reshape(-1, x.shape[-1])


def _side_by_side(x: Array) -> Array:
    """(head, pos, width) → (pos, head·width); two axes as they are."""
    return np.concatenate(list(x), axis=1) if x.ndim == 3 else x
