"""The operations of a transformer on affine forms in float64, for many cases at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, sqrt
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note, Prediction
from byhand.numbers.enclosed.enclosure import Enclosure
from byhand.numbers.exact.read import evaluate
from byhand.numbers.exact.space import Space
from byhand.numbers.forms import functions, products, smooth
from byhand.numbers.forms.angles import turns, waves
from byhand.numbers.forms.form import Form, ends, settled
from byhand.numbers.forms.largest import predict
from byhand.numbers.forms.mixing import around_the_mixed
from byhand.numbers.forms.places import Places, side_by_side
from byhand.numbers.forms.rounding import Data, quiet, slack, total
from byhand.numbers.forms.shares import softmax
from byhand.numbers.forms.weights import exact_floats, known_numbers, nearest

LETTERED = 512  # ranges of weights that get letters of their own


class Forms(Places):
    """Affine forms in float64.

    Weights that are known within a radius have the letters 1, 2, …, in the order in which they are
    admitted; the letters of `given` follow.  After the first of those, ranges of weights that are
    admitted get no letter: they are plain errors.  So admit all weights first.

    >>> numbers = Forms()
    >>> digit = numbers.given([[[4.5]], [[4.5]]])  # any number from 0 to 9
    >>> rest = numbers.add(numbers.given([[[9.0]], [[0.0]]]), numbers.scaled(digit, -1))
    >>> low, high = ends(numbers.add(digit, rest))
    >>> bool(9 - 1e-14 < low[0, 0] and high[0, 0] < 9 + 1e-14)
    True
    """

    def __init__(self, lettered: int = LETTERED) -> None:
        super().__init__()
        self.lettered = lettered  # at most so many ranges of weights get letters
        self.weight_letters = 0  # how many have one
        self._closed = False  # whether letters of texts are in use
        self._space = Space()
        self._constants: dict[Any, Form] = {}

    @property
    def name(self) -> str:
        return "forms"

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Form:
        """Weights: one case, and letters of their own for what is known within a radius."""
        if isinstance(data, Form):
            return data
        entries = np.asarray(data)
        if entries.dtype != object:
            return exact_floats(entries)
        first = self.weight_letters + 1
        free = range(first, first if self._closed else self.lettered + 1)
        form, taken = known_numbers(entries, self._space, free)
        self.weight_letters += taken
        return form

    def given(self, terms: Any, errors: Any = None) -> Form:
        """A form from terms (letter, case, …) of letters of the caller's own, the middle first.

        They are numbered after all letters of weights.  Terms are taken as exact; `errors`, if
        given, is one bound for each entry, (case, …) or (1, case, …).
        """
        self._closed = True
        own = np.asarray(terms, dtype=np.float64)
        if self.weight_letters and len(own) > 1:
            skipped = np.zeros((self.weight_letters, *own.shape[1:]))
            own = np.concatenate((own[:1], skipped, own[1:]))
        unsure = np.zeros((1, *own.shape[1:]))
        if errors is not None:
            unsure += np.asarray(errors, dtype=np.float64)
        return settled(np.array(own), unsure)

    def register(self, entry: Any) -> str:
        return "enclosed"

    def entries(self, value: Array) -> Array:
        """Enclosures of each entry, for all letters and all cases; masked ones are ABSENT."""
        low, high = ends(value)
        low, high = low.min(axis=0), high.max(axis=0)
        result = np.empty(low.shape, dtype=object)
        hidden = np.zeros(low.shape, bool) if value.absent is None else value.absent.all(axis=0)
        for place in np.ndindex(low.shape):
            if not hidden[place]:
                result[place] = _enclosure(low[place], high[place])
        return result

    def constant(self, value: Expression | Fraction) -> Form:
        """A number that belongs to the plan."""
        if value not in self._constants:
            known: Any = evaluate(value, self._space) if isinstance(value, Expression) else value
            if not isinstance(known, Fraction) and known.fraction is not None:
                known = known.fraction
            middle, error = nearest(known)
            self._constants[value] = Form(np.full((1, 1), middle), np.full((1, 1), error))
        return self._constants[value]

    def scaled(self, x: Form, by: int | float | Fraction) -> Form:
        """x times a number."""
        return products.scaled(x, self.constant(Fraction(by)))

    # ------------------------------------------------------------------- embedding and sums

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        """Rows of the table; ids of several cases have the axes (case, pos)."""
        places = np.asarray(ids, dtype=np.intp)
        rows = Form(*(part[:, 0][:, np.atleast_2d(places)] for part in (table.terms, table.errors)))
        return rows if scale is None else products.scaled(rows, self.constant(scale))

    def sinusoid(self, *, positions: Sequence[int], width: int, base: Fraction) -> Array:
        return waves(tuple(positions), width, base)

    def add(self, x: Array, y: Array) -> Array:
        return products.added(x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return products.product(x, y, np.multiply)

    # ------------------------------------------------------------------- norms

    def mean(self, x: Array) -> Array:
        return products.divided(products.row_sums(x), x.shape[-1])

    def center(self, x: Array, mean: Array) -> Array:
        return products.added(x, Form(-mean.terms[..., None], mean.errors[..., None]))

    def mean_square(self, x: Array) -> Array:
        squares = products.product(x, x, np.multiply)
        found = products.divided(products.row_sums(squares), x.shape[-1])
        found.made = ("mean_square", x)
        return found

    def root(self, x: Array, *, eps: Fraction) -> Array:
        under = products.added(x, self.constant(eps).aligned(x.ndim)) if eps else x
        found = functions.root(under)
        found.made = ("root", *x.made[1:])
        return found

    @quiet
    def normalize(self, x: Array, by: Array) -> Array:
        zero = ~x.terms.any(axis=0).any(axis=-1) & ~x.errors.any(axis=0).any(axis=-1)
        zero &= ~by.terms.any(axis=0) & ~by.errors.any(axis=0)
        inverse = functions.reciprocal(by).each(lambda part: part[..., None])
        found = products.product(x, inverse, np.multiply)
        if len(by.made) > 1 and by.made[0] == "root" and by.made[1] is x:
            _no_longer_than_root(found, x.shape[-1])
        if zero.any():
            for place in np.argwhere(zero.any(axis=0)):
                self.notes.append(Note("zero-variance", tuple(map(int, place))))
            for part in (found.terms, found.errors):
                np.copyto(part, 0.0, where=zero[..., None])
        return found

    def affine(self, x: Array, *, gain: Array | None = None, bias: Array | None = None) -> Array:
        if gain is not None:
            x = products.product(x, gain.aligned(x.ndim), np.multiply)
        return x if bias is None else products.added(x, bias.aligned(x.ndim))

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
    ) -> Array:
        cos, sin = turns(tuple(positions), width, base, frequencies)
        if pairing == "half":
            first, second = slice(0, width // 2), slice(width // 2, width)
        else:
            first, second = slice(0, width, 2), slice(1, width, 2)
        a, b = (x.each(lambda part, of=of: part[..., of]) for of in (first, second))
        cos, sin = cos.aligned(3), sin.aligned(3)
        less = Form(-sin.terms, sin.errors)
        times = np.multiply
        turned = (
            products.added(products.product(a, cos, times), products.product(b, less, times)),
            products.added(products.product(a, sin, times), products.product(b, cos, times)),
        )
        return _with_columns(x, (first, second), turned)

    # ------------------------------------------------------------------- attention

    def scores(
        self,
        q: Array,
        k: Array,
        *,
        table: Array | None = None,
        slopes: Array | None = None,
        scale: Expression | None = None,
        mask: Sequence[Sequence[bool]],
        queries: Sequence[int],
        keys: Sequence[int],
    ) -> Array:
        result = _by_head(q, k.each(lambda part: part.swapaxes(-1, -2)), q.shape[-1])
        if scale is not None:
            result = products.scaled(result, self.constant(scale))
        if slopes is not None:
            apart = -np.abs(np.subtract.outer(np.asarray(queries), np.asarray(keys)))
            distances = exact_floats(apart.astype(np.float64)[None])
            steep = slopes.each(lambda part: part[..., None, None])
            result = products.added(result, products.product(steep, distances, np.multiply))
        hidden = ~np.asarray(mask, dtype=bool)[None, None]
        if table is not None:
            here = table.each(lambda part: part[..., list(queries), :][..., list(keys)])
            result = products.added(result, here)
            hidden = hidden if here.absent is None else hidden | here.absent
        result = _without_idle_letters(result)
        if hidden.any():
            result.absent = np.broadcast_to(hidden, (len(hidden), *result.shape))
        return result

    def softmax(self, x: Array) -> Array:
        return softmax(x)

    def mix(self, weights: Array, v: Array) -> Array:
        found = _by_head(weights, v, weights.shape[-1])
        return around_the_mixed(found, weights, v) if weights.made == ("softmax",) else found

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        heads, positions, width = mixed.shape
        columns = [slice(head * width, (head + 1) * width) for head in range(heads)]
        parts = [mixed.each(lambda part, h=h: part[..., h, :, :]) for h in range(heads)]
        if weight is None:
            whole = np.zeros((1, 1, positions, heads * width))
            empty = Form(whole, whole)
            rows = [_with_columns(empty, (columns[h],), (part,)) for h, part in enumerate(parts)]
        else:
            cuts = [
                weight.each(lambda w, of=of: w[..., of, :] if layout == "in_out" else w[..., of])
                for of in columns
            ]
            rows = [products.times_matrix(part, cut, layout)
                    for part, cut in zip(parts, cuts, strict=True)]  # fmt: skip
        return Form(
            np.stack([row.terms for row in rows], axis=-3),
            np.stack([row.errors for row in rows], axis=-3),
        )

    # ------------------------------------------------------------------- activations and the end

    def activate(self, x: Array, *, kind: str) -> Array:
        if kind == "identity":
            return x
        if kind == "relu":
            return functions.relu(x)
        if kind not in smooth.FUNCTIONS:
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        return smooth.activated(x, kind)

    def argmax(self, x: Array) -> list[Prediction]:
        """The next token at each position, where it is the same in all cases."""
        return [predict(x.each(lambda part, p=p: part[..., p, :])) for p in range(len(x))]

    def loss(self, probs: Array, *, target: int) -> Array:
        """Not here: a share of a form may reach down to 0."""
        raise InputError(_("{numbers} cannot work out losses").format(numbers=type(self).__name__))


def _by_head(x: Form, y: Form, count: int) -> Form:
    """The products of matrices, head by head; several heads of x may share one of y."""
    heads, rows = x.shape[:2]
    groups = y.shape[0]
    if heads == groups:
        return products.product(x, y, np.matmul, count)

    def grouped(part: Data) -> Data:
        return part.reshape(*part.shape[:-3], groups, heads // groups * rows, part.shape[-1])

    found = products.product(x.each(grouped), y, np.matmul, count)
    return found.each(lambda part: part.reshape(*part.shape[:-3], heads, rows, part.shape[-1]))


def _without_idle_letters(x: Form) -> Form:
    """The form without the letters at the end that move nothing."""
    letters = len(x.terms)
    while letters > 1 and not x.terms[letters - 1].any():
        letters -= 1
    return Form(x.terms[:letters], x.errors)


def _with_columns(x: Form, places: Sequence[slice], parts: Sequence[Form]) -> Form:
    """x with other columns at these places."""

    def replaced(whole: Data, columns: Sequence[Data]) -> Data:
        letters = max(len(part) for part in (whole, *columns))
        cases = max(part.shape[1] for part in (whole, *columns))
        result = np.zeros((letters, cases, *whole.shape[2:]))
        result[: len(whole)] = whole
        for place, part in zip(places, columns, strict=True):
            result[..., place] = 0.0
            result[: len(part), ..., place] = part
        return result

    return Form(
        replaced(x.terms, [part.terms for part in parts]),
        replaced(x.errors, [part.errors for part in parts]),
    )


def _no_longer_than_root(x: Form, width: int) -> None:
    """In place: no entry of x/√(mean(x²) + eps) is beyond √width."""
    most = sqrt(width) * slack(2)
    wide = ~(total(x.errors) < most)
    np.copyto(x.terms, 0.0, where=wide)
    np.copyto(x.errors, 0.0, where=wide)
    np.copyto(x.errors[0], most, where=wide)


def _enclosure(low: float, high: float) -> Enclosure:
    if low == -inf or high == inf:
        return Enclosure(Fraction(0), inf)
    least, most = Fraction(low), Fraction(high)
    return Enclosure((least + most) / 2, (most - least) / 2)
