"""The operations of a transformer on enclosed arrays of limbs, with their radius rules.

Midpoints are digits in limbs (`limbs`), products are exact (`products`), functions carry a written
error (`functions`).  One Euclidean ball for each row (token, or token and head) bounds the distance
of real values from midpoints.  Bounds of entries are used where they are tighter (`values`).  Each
operation says how the radius grows and why; `numbers/README.md` has the rules in one place.

Two things happen to a radius in every operation:

    rho     of what is read is carried along: the operation's Lipschitz constant times it
    local   the operation's own rounding of midpoints is added

The rules of larger operations have rooms of their own: `matrices`, `norms`, `positions`, `scores`,
`attention`, and `prediction` for the next token and the loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import Array, Note
from byhand.numbers.enclosed.distance import Apart
from byhand.numbers.enclosed.enclosure import Logs
from byhand.numbers.enclosed.limbs import (
    arithmetic,
    attention,
    entrywise,
    experts,
    functions,
    indexing,
    known_zeros,
    learned_weights,
    matrices,
    norms,
    prediction,
    scores,
    slopes,
    stream_points,
)
from byhand.numbers.enclosed.limbs import positions as places
from byhand.numbers.enclosed.limbs.arithmetic import HALF, PRODUCT, without_empty_limbs
from byhand.numbers.enclosed.limbs.distances import apart_from, floats_near
from byhand.numbers.enclosed.limbs.learning import Learning
from byhand.numbers.enclosed.limbs.moves import SLOPES
from byhand.numbers.enclosed.limbs.radii import Bound, plus, times
from byhand.numbers.enclosed.limbs.values import Enclosed, entries_of
from byhand.numbers.enclosed.limbs.weights import Weight, read_weight

WIDEST = {"sigmoid": 1.0, "tanh": 2.0}  # no two values are further apart


class Limbs(Learning):
    """Enclosures for models with float weights, in NumPy or torch.  `bits` is the stream's grid."""

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Array:
        return read_weight(data, self.device)

    def admit_frequencies(self, data: Any) -> Array:
        """The frequencies as given: expressions, fractions or floats."""
        return tuple(np.asarray(data).ravel().tolist())

    def entries(self, value: Array) -> Array:
        return entries_of(value) if isinstance(value, Enclosed | Weight) else value

    def magnitudes(self, value: Array) -> tuple[Logs, Logs]:
        value = self.enclosed(value)
        engine = value.digits.engine
        with np.errstate(divide="ignore"):
            middles = np.log2(np.abs(engine.to_numpy(value.approx)))
            box = value.box
            if box is None:
                return middles, np.full(value.shape, -math.inf)
            radii = np.log2(engine.to_numpy(box))
        if value.hidden is not None:
            hidden = np.asarray(engine.to_numpy(value.hidden))
            middles, radii = (np.where(hidden, -math.inf, logs) for logs in (middles, radii))
        return middles, radii

    def in_floats(self, value: Array) -> tuple[Logs, Logs]:
        return floats_near(self.enclosed(value))

    def apart(self, value: Array, floats: Logs) -> Apart:
        return apart_from(self.enclosed(value), floats)

    def take_rows(self, x: Array, places: Sequence[int]) -> Array:
        return indexing.rows(self.enclosed(x), places)

    def take_columns(self, x: Array, places: Sequence[int]) -> Array:
        return indexing.columns(self.enclosed(x), places)

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        return indexing.stack([self.enclosed(part) for part in parts])

    def stack(self, parts: Sequence[Array]) -> Array:
        return indexing.together([self.enclosed(part) for part in parts])

    # ------------------------------------------------------------------- along the stream

    def along_stream(
        self, sublayer: Any, given: Mapping[str, Any], weights: Any
    ) -> stream_points.Point | None:
        """The point from which a sublayer is worked out (`stream_points`)."""
        return stream_points.point_of(self, sublayer, given, weights)

    def coarser(self, values: Iterable[Array]) -> Limbs:
        """The same numbers, no finer than the radii of these rows ask for."""
        return self.at(stream_points.bits_for(values, self.bits))

    # ------------------------------------------------------------------- embedding and sums

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = (
            indexing.rows(table, ids)
            if isinstance(table, Enclosed)
            else self.settled(table.rows(ids))
        )
        return rows if scale is None else self.scaled(rows, self.constant(scale))

    def sinusoid(
        self,
        *,
        positions: Sequence[int],
        width: int,
        base: Fraction,
        pairing: str = "interleaved",
    ) -> Array:
        return places.sinusoid(self, positions, width, base, pairing)

    def add(self, x: Array, y: Array) -> Array:
        """rho_x + rho_y."""
        x, y = self.enclosed(x), self.enclosed(y)
        ball = plus(x.ball, y.ball)
        exact = min(x.digits.low, y.digits.low)
        low = max(exact, self.grid(ball, x.width))
        digits = without_empty_limbs(arithmetic.add(x.digits, y.digits, low))
        local = HALF * math.ldexp(1.0, low) if low > exact else None
        box = (lambda: plus(x.box, y.box, local)) if x.has_box or y.has_box else None
        ball = self.rounded(ball, local, digits)
        return Enclosed(digits, ball, box=box)

    def multiply(self, x: Array, y: Array) -> Array:
        """xy - ab = a(y - b) + b(x - a) + (x - a)(y - b): so max|a|·rho_y + max|b|·rho_x + both."""
        x, y = self.enclosed(x), self.enclosed(y)
        ball = plus(times(x.most, y.ball), times(y.most, x.ball), times(x.ball, y.ball))
        exact = x.digits.low + y.digits.low
        low = max(exact, self.grid(ball, x.width))
        digits = without_empty_limbs(arithmetic.multiply(x.digits, y.digits, low))
        local = PRODUCT * math.ldexp(1.0, low) if low > exact else None

        def box() -> Bound:
            one, other = abs(x.approx) * (1 + 2.0**-48), abs(y.approx) * (1 + 2.0**-48)
            return plus(times(one, y.box), times(other, x.box), times(x.box, y.box), local)

        ball = self.rounded(ball, local, digits)
        box_of = box if x.has_box or y.has_box else None
        return Enclosed(digits, ball, box=box_of, zeros=known_zeros.one_of(x, y))

    # ------------------------------------------------------------------- norms

    def mean(self, x: Array) -> Array:
        return norms.mean(self, self.enclosed(x))

    def center(self, x: Array, mean: Array) -> Array:
        return norms.center(self, self.enclosed(x), self.enclosed(mean))

    def mean_square(self, x: Array) -> Array:
        return norms.mean_square(self, self.enclosed(x))

    def root(self, x: Array, *, eps: Fraction) -> Array:
        return norms.root(self, self.enclosed(x), eps)

    def normalize(self, x: Array, by: Array) -> Array:
        made, zero = norms.normalize(self, self.enclosed(x), self.enclosed(by))
        for index in zero:
            self.notes.append(Note("zero-variance", index))
        return made

    def affine(
        self,
        x: Array,
        *,
        gain: Array | None = None,
        bias: Array | None = None,
        plus_one: bool = False,
    ) -> Array:
        """max|gain|·rho; entry by entry |gain_j| times the radius."""
        x = self.enclosed(x)
        if not (isinstance(gain, Enclosed) or isinstance(bias, Enclosed)):
            return norms.affine(self, x, gain.plus_one if plus_one and gain else gain, bias)
        if gain is not None:
            gain = self.rescale(gain, plus=Fraction(1)) if plus_one else gain
            x = self.multiply(x, learned_weights.for_each_row(self.enclosed(gain), x))
        return x if bias is None else self.plus_bias(x, bias)

    def plus_bias(self, x: Enclosed, bias: Array) -> Enclosed:
        """The rows plus a bias that may be a value."""
        made: Enclosed = self.add(x, learned_weights.for_each_row(self.enclosed(bias), x))
        return made

    # ------------------------------------------------------------------- entry by entry

    def rescale(
        self, x: Array, *, by: Expression | None = None, plus: Fraction | None = None
    ) -> Array:
        """|by|·rho."""
        x = self.enclosed(x)
        x = x if by is None else self.scaled(x, self.constant(by))
        return x if plus is None else entrywise.raised(self, x, self.constant(plus))

    def soft_cap(self, x: Array, *, cap: Fraction) -> Array:
        """rho; entry by entry at most 2·cap."""
        return entrywise.soft_cap(self, self.enclosed(x), cap)

    def clamp(
        self, x: Array, *, least: Fraction | None = None, most: Fraction | None = None
    ) -> Array:
        """rho; 0 for an entry beyond a limit."""
        return entrywise.clamp(self, self.enclosed(x), least, most)

    def weigh(self, x: Array, by: Array) -> Array:
        return entrywise.weigh(self, self.enclosed(x), self.enclosed(by))

    def beside(self, x: Array, y: Array) -> Array:
        return entrywise.beside(self.enclosed(x), self.enclosed(y))

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
        """‖W‖₂·rho for the row, ‖w_j‖·rho for entry j, and for a head the norm of its columns."""
        x = self.enclosed(x)
        rows = self.merge_heads(x) if x.ndim == 3 else x
        if isinstance(weight, Enclosed) or isinstance(bias, Enclosed):
            made = learned_weights.times_values(self, rows, self.enclosed(weight), layout)
            made = made if bias is None else self.plus_bias(made, bias)
        else:
            made = matrices.times_matrix(self, rows, weight, layout, bias)
        if heads is None:
            return made
        width = made.width // heads
        return self.split_heads(made, start=0, heads=heads, width=width, stride=width)

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        places = [start + head * stride for head in range(heads)]
        return indexing.split_heads(self.enclosed(x), places, width)

    def merge_heads(self, x: Array) -> Array:
        return indexing.merge_heads(self.enclosed(x))

    def join(self, x: Array, y: Array) -> Array:
        return indexing.join(self.enclosed(x), self.enclosed(y))

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
        """rho; for the turned entries times the magnitude."""
        factor = None if magnitude is None else self.constant(magnitude)
        turn = (frequencies, positions, width, base, pairing, factor)
        return places.rotate(self, self.enclosed(x), *turn)

    def constants(self, *, values: Sequence[Expression]) -> Array:
        return places.constants(self, values)

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
        factor = None if scale is None else self.constant(scale)
        beside = None if bias is None else self.enclosed(bias)
        settings = scores.Settings(table, slopes, factor, mask, queries, keys, beside, cap)
        return scores.scores(self, self.enclosed(q), self.enclosed(k), settings)

    def bucket_scores(self, table: Array, *, buckets: Sequence[Sequence[int]]) -> Array:
        return entrywise.bucket_scores(self, table, buckets)

    def softmax(self, x: Array, *, sinks: Array | None = None) -> Array:
        if sinks is not None:
            return attention.softmax_with_sinks(self, self.enclosed(x), self.enclosed(sinks))
        return attention.softmax(self, self.enclosed(x))

    def mix(self, weights: Array, v: Array) -> Array:
        return attention.mix(self, self.enclosed(weights), self.enclosed(v))

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        if isinstance(weight, Enclosed):
            return learned_weights.head_outputs(self, self.enclosed(mixed), weight, layout)
        return matrices.head_outputs(self, self.enclosed(mixed), weight, layout)

    # ------------------------------------------------------------------- experts

    def expert_linear(
        self, x: Array, weight: Array, *, bias: Array | None = None, layout: str
    ) -> Array:
        return experts.linear(self, self.enclosed(x), weight, bias, layout)

    def choose(
        self,
        x: Array,
        *,
        count: int,
        groups: int | None = None,
        groups_chosen: int | None = None,
        group_rule: str | None = None,
    ) -> Array:
        """0 where the choice is proven; [0, 1] elsewhere."""
        choice = experts.Choice(count, groups, groups_chosen, group_rule)
        made, tied = experts.choose(self.enclosed(x), choice)
        self.notes += [Note("tied-experts", (row,)) for row in tied]
        return made

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
        x, chosen = self.enclosed(x), self.enclosed(chosen)
        of = (self, x, chosen, normalised, alone, eps or Fraction(0))
        made = experts.shares(*of)
        return made if scale is None else self.scaled(made, self.constant(scale))

    def combine(self, x: Array, shares: Array) -> Array:
        return experts.combine(self, self.enclosed(x), self.enclosed(shares))

    # ------------------------------------------------------------------- activations and the end

    def activate(self, x: Array, *, kind: str) -> Array:
        """The largest slope times rho, for the row and entry by entry."""
        if kind not in (*SLOPES, "relu2"):
            raise InputError(_("there is no activation {name}").format(name=repr(kind)))
        x = self.enclosed(x)
        if kind == "identity":
            return x
        if kind == "relu2":
            return self._squared(self.activate(x, kind="relu"))
        slope = SLOPES[kind]
        ball = x.ball if slope == 1.0 else times(x.ball, slope)
        if kind == "relu":
            digits, local = functions.relu(x.digits), None  # exact
        else:
            low = self.grid(ball, x.width)
            digits, local = functions.activation(kind, x.digits, low)
            digits = without_empty_limbs(digits)
        if local is not None and kind in WIDEST:
            limits = {"slope": slope, "apart": WIDEST[kind]}
            return entrywise.within_limits(self, x, digits, local, **limits)
        box = (lambda: plus(times(x.box, slope), local)) if x.has_box else None
        ball = self.rounded(ball, local, digits)
        zeros = (lambda: slopes.dead(x)) if kind == "relu" and not x.exact else None
        return Enclosed(digits, ball, box=box, zeros=zeros)

    def _squared(self, x: Enclosed) -> Enclosed:
        """x², where x² - y² = (x - y)·(x + y): so (2·max|y| + rho)·rho."""
        made: Enclosed = self.multiply(x, x)
        return made

    def argmax(self, x: Array) -> Any:
        """The predictions; in a repeated pass they are made when they are read."""
        return prediction.predictions(self.enclosed(x))

    def loss(self, probs: Array, *, target: int) -> Array:
        return prediction.loss(self, self.enclosed(probs), target)
