"""The pencil number system: what a person gets who rounds every line to so many decimals.

Every operation is worked out exactly from the rounded numbers above it, and each entry of the
result is then rounded, half away from zero; that the rounding is right is proven.  Values are
Fractions.  Weights that are rational stay as they are given, others are rounded on the way in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.base import ABSENT, Array, Numbers, Prediction, Printed
from byhand.numbers.exact import Exact, Value


class Pencil(Numbers):
    """Decimals rounded by hand: every line to `decimals` places."""

    def __init__(self, decimals: int) -> None:
        super().__init__()
        if decimals < 0:
            raise InputError(_("the number of decimals cannot be negative"), found=str(decimals))
        self.decimals = decimals

    @property
    def name(self) -> str:
        return f"decimals {self.decimals}"

    # ------------------------------------------------------------------- values in and out

    def admit(self, data: Any) -> Array:
        """Rational weights as they are given, others rounded; of a printed one, what is printed."""
        exact = Exact()
        entries = np.asarray(data)
        shape = entries.shape
        flat = [e.value if isinstance(e, Printed) else e for e in entries.astype(object).ravel()]
        admitted = exact.admit(_array(flat, (len(flat),)))
        return _array([v if v is ABSENT else self._kept(v) for v in admitted], shape)

    def _kept(self, value: Value) -> Fraction:
        return self.rounded(value) if value.fraction is None else value.fraction

    def rounded(self, value: Value) -> Fraction:
        """The value rounded to the decimals of this system, half away from zero."""
        return value.rounded(self.decimals)

    def register(self, entry: Any) -> str:
        return "rounded"

    def text(self, entry: Fraction) -> str:
        """A number with its decimals; a weight that has more of them is shown whole."""
        scaled = entry * 10**self.decimals
        if scaled.denominator != 1:
            return str(entry)
        sign = "-" if entry < 0 else ""
        digits = str(abs(scaled.numerator)).rjust(self.decimals + 1, "0")
        cut = len(digits) - self.decimals
        return sign + digits[:cut] + ("." + digits[cut:] if self.decimals else "")

    def _worked(self, operate: Callable[[Exact], Array]) -> Array:
        """An operation on exact values, every entry of the result rounded."""
        exact = Exact()
        result = operate(exact)
        self.notes.extend(exact.notes)
        flat = [v if v is ABSENT else self.rounded(v) for v in result.ravel()]
        return _array(flat, result.shape)

    # ------------------------------------------------------------------- the operations

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        return self._worked(lambda n: n.embed(n.admit(table), ids, scale=scale))

    def sinusoid(self, *, positions: Sequence[int], width: int, base: Fraction) -> Array:
        return self._worked(lambda n: n.sinusoid(positions=positions, width=width, base=base))

    def add(self, x: Array, y: Array) -> Array:
        return self._worked(lambda n: n.add(n.admit(x), n.admit(y)))

    def multiply(self, x: Array, y: Array) -> Array:
        return self._worked(lambda n: n.multiply(n.admit(x), n.admit(y)))

    def mean(self, x: Array) -> Array:
        return self._worked(lambda n: n.mean(n.admit(x)))

    def center(self, x: Array, mean: Array) -> Array:
        """x - mean, with the mean as it was rounded."""
        return self._worked(lambda n: n.add(n.admit(x), n.admit(-mean[..., np.newaxis])))

    def mean_square(self, x: Array) -> Array:
        return self._worked(lambda n: n.mean_square(n.admit(x)))

    def root(self, x: Array, *, eps: Fraction) -> Array:
        return self._worked(lambda n: n.root(n.admit(x), eps=eps))

    def normalize(self, x: Array, by: Array) -> Array:
        for place in np.ndindex(by.shape):
            if by[place] == 0 and any(entry != 0 for entry in x[place]):
                raise self._lost(_("the divisor of row {row} became 0").format(row=list(place)))
        return self._worked(lambda n: n.normalize(n.admit(x), n.admit(by)))

    def affine(self, x: Array, *, gain: Array | None = None, bias: Array | None = None) -> Array:
        return self._worked(
            lambda n: n.affine(
                n.admit(x),
                gain=None if gain is None else n.admit(gain),
                bias=None if bias is None else n.admit(bias),
            )
        )

    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        return self._worked(
            lambda n: n.linear(
                n.admit(x),
                n.admit(weight),
                bias=None if bias is None else n.admit(bias),
                layout=layout,
                heads=heads,
            )
        )

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        cut = [x[:, start + h * stride : start + h * stride + width] for h in range(heads)]
        return np.stack(cut)

    def merge_heads(self, x: Array) -> Array:
        return np.concatenate(list(x), axis=1)

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
        return self._worked(
            lambda n: n.rotate(
                n.admit(x),
                frequencies=None if frequencies is None else n.admit(frequencies),
                positions=positions,
                width=width,
                base=base,
                pairing=pairing,
            )
        )

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
        return self._worked(
            lambda n: n.scores(
                n.admit(q),
                n.admit(k),
                table=None if table is None else n.admit(table),
                slopes=None if slopes is None else n.admit(slopes),
                scale=scale,
                mask=mask,
                queries=queries,
                keys=keys,
            )
        )

    def softmax(self, x: Array) -> Array:
        return self._worked(lambda n: n.softmax(n.admit(x)))

    def mix(self, weights: Array, v: Array) -> Array:
        return self._worked(lambda n: n.mix(n.admit(weights), n.admit(v)))

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        return self._worked(
            lambda n: n.head_outputs(
                n.admit(mixed), weight=None if weight is None else n.admit(weight), layout=layout
            )
        )

    def activate(self, x: Array, *, kind: str) -> Array:
        return self._worked(lambda n: n.activate(n.admit(x), kind=kind))

    def argmax(self, x: Array) -> list[Prediction]:
        """The largest of the rounded numbers: never proven of the model itself."""
        predictions = []
        for row in x:
            best = max(row)
            tied = tuple(k for k, entry in enumerate(row) if entry == best)
            rest = [entry for entry in row if entry != best]
            margin = Fraction(0) if len(tied) > 1 else best - max(rest) if rest else None
            predictions.append(
                Prediction(tied[0], margin, False, tied=tied if len(tied) > 1 else ())
            )
        return predictions

    def loss(self, probs: Array, *, target: int) -> Array:
        if probs[-1, target] <= 0:
            raise self._lost(_("the probability of the target became 0, which has no logarithm"))
        return self._worked(lambda n: n.loss(n.admit(probs), target=target))

    def _lost(self, what: str) -> InputError:
        return InputError(
            _("rounded to {count} decimals, {what}").format(count=self.decimals, what=what),
            hint=_("use more decimals"),
        )


def _array(entries: Sequence[Any], shape: tuple[int, ...]) -> Array:
    result = np.empty(len(entries), dtype=object)
    result[:] = entries
    return result.reshape(shape)
