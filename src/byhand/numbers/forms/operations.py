"""The operations of a transformer on affine forms, for many cases at once.

What is linear is the same in both arithmetics.  `functions`, `smooth`, `shares` and `mixing` bound
the rest in float64, `precise` in Arb.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note, Prediction
from byhand.numbers.forms import experts, functions, products, smooth
from byhand.numbers.forms.angles import given_turns, turns, waves
from byhand.numbers.forms.arithmetic import BITS
from byhand.numbers.forms.form import Form, ends, negative
from byhand.numbers.forms.largest import predict
from byhand.numbers.forms.mixing import around_the_mixed
from byhand.numbers.forms.places import (
    side_by_side,
    side_by_side_columns,
    with_columns,
    without_idle_letters,
)
from byhand.numbers.forms.rounding import Data
from byhand.numbers.forms.shares import softmax
from byhand.numbers.forms.system import System
from byhand.numbers.forms.weights import known_floats

Function = Callable[[Form], Form]


class Forms(System):
    """Affine forms in float64.

    >>> from byhand.numbers.forms import ends
    >>> numbers = Forms()
    >>> digit = numbers.given([[[4.5]], [[4.5]]])  # any number from 0 to 9
    >>> rest = numbers.given([[[4.5]], [[-4.5]]])  # 9 less that number
    >>> low, high = ends(numbers.add(digit, rest))
    >>> low.round(9).item(), high.round(9).item(), bool(high - low < 1e-14)
    (9.0, 9.0, True)
    """

    bits: int = BITS  # of sines and cosines

    @property
    def name(self) -> str:
        return "forms"

    # ------------------------------------------------------------------- what depends on the kind

    _root: Function = staticmethod(functions.root)
    _reciprocal: Function = staticmethod(functions.reciprocal)
    _relu: Function = staticmethod(functions.relu)
    _smooth: Callable[[Form, str], Form] = staticmethod(smooth.activated)
    _rising: Callable[[Form, str], Form] = staticmethod(smooth.risen)
    _softmax: Function = staticmethod(softmax)
    _surprise: Function = staticmethod(functions.surprise)
    _mixed: Callable[[Form, Form, Form], Form] = staticmethod(around_the_mixed)
    _at_most: Callable[[Form, int], Form] = staticmethod(functions.at_most_root)

    # ------------------------------------------------------------------- embedding and sums

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        """Rows of the table; ids of several cases have the axes (case, pos)."""
        places = np.atleast_2d(np.asarray(ids, dtype=np.intp))
        rows = Form(table.terms[:, 0][:, places], table.errors[:, 0][:, places])
        return rows if scale is None else products.scaled(rows, self.constant(scale))

    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        found = waves(tuple(positions), width, base, self.arithmetic, self.bits)
        if pairing != "half":
            return found
        order = [*range(0, width, 2), *range(1, width, 2)]
        return found.each(lambda part: part[..., order])

    def add(self, x: Array, y: Array) -> Array:
        return products.added(x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return products.product(x, y)

    # ------------------------------------------------------------------- norms

    def mean(self, x: Array) -> Array:
        return products.row_means(x)

    def center(self, x: Array, mean: Array) -> Array:
        return products.added(x, Form(-mean.terms[..., None], mean.errors[..., None]))

    def mean_square(self, x: Array) -> Array:
        found = products.row_means(products.product(x, x))
        found.made = ("mean_square", x)
        return found

    def root(self, x: Array, *, eps: Fraction) -> Array:
        under = products.added(x, self.constant(eps).aligned(x.ndim)) if eps else x
        found = self._root(under)
        found.made = ("root", *x.made[1:])
        return found

    def normalize(self, x: Array, by: Array) -> Array:
        """x/by.  Where a row may be zero, or is not known to be, nothing is claimed but √width."""
        some = self.arithmetic.nonzero
        there = np.any(some(x.terms), axis=(0, -1)) | np.any(some(x.errors), axis=(0, -1))
        below = np.any(some(by.terms), axis=0) | np.any(some(by.errors), axis=0)
        zero: Data = np.asarray(~(there | below))
        inverse = self._reciprocal(by).each(lambda part: part[..., None])
        found = products.product(x, inverse)
        if len(by.made) == 2 and by.made[0] == "root" and by.made[1] is x:
            found = self._at_most(found, x.shape[-1])
        if zero.any():
            for place in np.argwhere(zero.any(axis=0)):
                self.notes.append(Note("zero-variance", tuple(map(int, place))))
            nothing = self.arithmetic.zeros(())[()]
            for part in (found.terms, found.errors):
                np.copyto(part, nothing, where=zero[..., None])
        return found

    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        if gain is not None:
            gain = self.rescale(gain, plus=Fraction(1)) if plus_one else gain
            x = products.product(x, gain.aligned(x.ndim))
        return x if bias is None else products.added(x, bias.aligned(x.ndim))

    # ------------------------------------------------------------------- entry by entry

    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        x = x if by is None else products.scaled(x, self.constant(by))
        return x if plus is None else products.added(x, self.constant(plus).aligned(x.ndim))

    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        inner = products.scaled(x, self.constant(1 / cap))
        return products.scaled(self._rising(inner, "tanh"), self.constant(cap))

    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        """max(x, c) is c + relu(x - c), and min(x, c) is c - relu(c - x)."""
        if least is not None:
            limit = self.constant(least).aligned(x.ndim)
            x = products.added(limit, self._relu(products.added(x, negative(limit))))
        if most is not None:
            limit = self.constant(most).aligned(x.ndim)
            beyond = self._relu(products.added(limit, negative(x)))
            x = products.added(limit, negative(beyond))
        return x

    def weigh(self, x: Array, by: Array) -> Array:
        return products.product(x, by)

    # ------------------------------------------------------------------- products

    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        flat = side_by_side(x) if x.ndim == 3 else x
        result = products.times_matrix(flat, weight, layout)
        if bias is not None:
            result = products.added(result, bias.aligned(2))
        if heads is None:
            return result
        width = result.shape[-1] // heads
        return self.split_heads(result, start=0, heads=heads, width=width, stride=width)

    def rotate(
        self,
        x: Array,
        *,
        frequencies: Array | None = None,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str,
        magnitude: Expression | None = None,
    ) -> Array:
        places = tuple(positions)
        if frequencies is None:
            cos, sin = turns(places, width, base, self.arithmetic, self.bits)
        else:
            cos, sin = given_turns(places, frequencies, self.arithmetic, self.bits)
        if pairing == "half":
            first, second = slice(0, width // 2), slice(width // 2, width)
        else:
            first, second = slice(0, width, 2), slice(1, width, 2)
        a, b = (x.each(lambda part, of=of: part[..., of]) for of in (first, second))
        cos, sin = cos.aligned(3), sin.aligned(3)
        less = Form(-sin.terms, sin.errors)
        turned = (
            products.added(products.product(a, cos), products.product(b, less)),
            products.added(products.product(a, sin), products.product(b, cos)),
        )
        if magnitude is not None:
            one, other = (products.scaled(part, self.constant(magnitude)) for part in turned)
            turned = one, other
        return with_columns(x, (first, second), turned)

    # ------------------------------------------------------------------- attention

    def scores(
        self,
        q: Array,
        k: Array,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        bias: Array | None = None,
        scale: Expression | None = None,
        cap: Fraction | None = None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        result = _by_head(q, k.each(lambda part: part.swapaxes(-1, -2)))
        if scale is not None:
            result = products.scaled(result, self.constant(scale))
        if cap is not None:
            result = self.soft_cap(result, cap=cap)
        if slopes is not None:
            apart = -np.abs(np.subtract.outer(np.asarray(queries), np.asarray(keys)))
            distances = known_floats(apart[None], self.arithmetic)
            steep = slopes.each(lambda part: part[..., None, None])
            result = products.added(result, products.product(steep, distances))
        if bias is not None:
            result = products.added(result, bias)
        hidden = ~np.asarray(mask, dtype=bool)[None, None]
        if table is not None:
            here = table.each(lambda part: part[..., list(queries), :][..., list(keys)])
            result = products.added(result, here)
            hidden = hidden if here.absent is None else hidden | here.absent
        result = without_idle_letters(result)
        if hidden.any():
            result.absent = np.broadcast_to(hidden, (len(hidden), *result.shape))
        return result

    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        if sinks is None:
            return self._softmax(x)
        last = sinks.each(lambda part: part[..., None, None])
        every = self._softmax(side_by_side_columns(x, last))
        shares = every.each(lambda part: part[..., :-1])
        return Form(shares.terms, shares.errors, x.absent)  # which do not add up to 1

    def mix(self, weights: Array, v: Array) -> Array:
        found = _by_head(weights, v)
        return self._mixed(found, weights, v) if weights.made == ("softmax",) else found

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        heads, positions, width = mixed.shape
        columns = [slice(head * width, (head + 1) * width) for head in range(heads)]
        parts = [mixed.each(lambda part, h=h: part[..., h, :, :]) for h in range(heads)]
        if weight is None:
            whole = self.arithmetic.zeros((1, 1, positions, heads * width))
            empty = Form(whole, whole)
            rows = [with_columns(empty, (columns[h],), (part,)) for h, part in enumerate(parts)]
        else:
            cuts = [
                weight.each(lambda w, of=of: w[..., of, :] if layout == "in_out" else w[..., of])
                for of in columns
            ]
            rows = [
                products.times_matrix(part, cut, layout)
                for part, cut in zip(parts, cuts, strict=True)
            ]
        return Form(
            np.stack([row.terms for row in rows], axis=-3),
            np.stack([row.errors for row in rows], axis=-3),
        )

    # ------------------------------------------------------------------- experts

    def expert_linear(
        self, x: Array, weight: Array, *, bias: Array | None = None, layout: str
    ) -> Array:
        def of(whole: Form, expert: int) -> Form:
            return whole.each(lambda part: part[:, :, expert])

        made = [
            self.linear(
                x if x.ndim == 2 else of(x, expert),
                of(weight, expert),
                bias=None if bias is None else of(bias, expert),
                layout=layout,
            )
            for expert in range(len(weight))
        ]
        return experts.stacked(made)

    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        choice = experts.Choice(count, groups, groups_chosen, group_rule)
        sure, possible, tied = experts.chosen_rows(x, choice)
        self.notes += [Note("tied-experts", (row,)) for row in tied]
        return experts.marks(sure, possible, self.arithmetic)

    def expert_shares(
        self,
        x: Array,
        chosen: Array,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Fraction | None = None,
        eps: Fraction | None = None,
    ) -> Array:
        if normalised and not alone:
            found = self._softmax(experts.seen(x, chosen))
            found = experts.any_share(found, chosen, experts.open_rows(chosen))
        else:
            found = products.product(x if alone else self._softmax(x), chosen)
        if normalised and alone:
            sums = products.row_sums(found)
            sums = sums if eps is None else products.added(sums, self.constant(eps).aligned(1))
            by = self._reciprocal(sums).each(lambda part: part[..., None])
            low, _high = ends(x)
            positive = ((low >= 0) | experts.away(chosen)).all(axis=-1)
            found = products.product(found, by)
            found = experts.any_share(found, chosen, experts.open_rows(chosen) & positive)
        return found if scale is None else products.scaled(found, self.constant(scale))

    def combine(self, x: Array, shares: Array) -> Array:
        return experts.combined(x, shares)

    # ------------------------------------------------------------------- activations and the end

    def activate(self, x: Array, *, kind: str) -> Array:
        if kind == "identity":
            return x
        if kind in ("relu", "relu2"):
            above = self._relu(x)
            return above if kind == "relu" else products.product(above, above)
        if kind in smooth.RISING:
            return self._rising(x, kind)
        if kind not in smooth.FUNCTIONS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return self._smooth(x, kind)

    def argmax(self, x: Array) -> list[Prediction]:
        """The next token at each position, where it is the same in all cases."""
        return [predict(x.each(lambda part, p=p: part[..., p, :])) for p in range(len(x))]

    def loss(self, probs: Array, *, target: int) -> Array:
        """-ln of the share; nothing is claimed where that may be 0."""
        return self._surprise(probs.each(lambda part: part[..., -1:, target]))


def _by_head(x: Form, y: Form) -> Form:
    """The products of matrices, head by head; several heads of x may share one of y."""
    heads, rows = x.shape[:2]
    groups = y.shape[0]
    if heads == groups:
        return products.matrix_product(x, y)

    def grouped(part: Data) -> Data:
        return part.reshape(*part.shape[:-3], groups, heads // groups * rows, part.shape[-1])

    found = products.matrix_product(x.each(grouped), y)
    return found.each(lambda part: part.reshape(*part.shape[:-3], heads, rows, part.shape[-1]))
