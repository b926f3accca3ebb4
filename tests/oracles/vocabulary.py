"""The newer operations of the plan in Arb, written from their definitions alone.

`Truth` works at so many bits that its balls are points beside anything they are compared with.
What it overrides shares no line with the number systems; the older operations are those of `Balls`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq

from byhand.numbers.base import ABSENT
from byhand.numbers.enclosed.balls.operations import Balls

Data = Any


def number(value: Any) -> arb:
    """A rational number as a ball."""
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def _gated(x: arb, inner: arb) -> arb:
    return x / (1 + (-inner).exp())


def _gelu_like(root: str) -> Any:
    return lambda x: _gated(x, 2 * number(root) * (x + number("0.044715") * x**3))


KINDS: dict[str, Any] = {
    "relu2": lambda x: (x if x > 0 else arb(0)) ** 2,
    "quick_gelu": lambda x: _gated(x, number("1.702") * x),
    "gelu_fast": _gelu_like("0.7978845608"),
    "gelu_bloom": _gelu_like("0.79788456"),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "tanh": arb.tanh,
}


def each(function: Any, x: Data) -> Data:
    """The function of each entry."""
    found = np.empty(x.shape, dtype=object)
    for index in np.ndindex(x.shape):
        found[index] = function(x[index])
    return found


class Truth(Balls):
    """The real numbers, to so many bits."""

    def _scale(self, expression: Any) -> arb:
        return self._scalar(expression)

    def affine(self, x: Data, *, gain: Any = None, bias: Any = None, plus_one: bool = False) -> Any:
        with ctx.workprec(self.bits):
            x = self._balls(x)
            if gain is not None:
                x = x * (self._balls(gain) + arb(1) if plus_one else self._balls(gain))
            return x if bias is None else x + self._balls(bias)

    def rescale(self, x: Data, *, by: Any = None, plus: Any = None) -> Any:
        with ctx.workprec(self.bits):
            x = self._balls(x) if by is None else self._balls(x) * self._scale(by)
            return x if plus is None else x + number(plus)

    def soft_cap(self, x: Data, *, cap: Fraction) -> Any:
        with ctx.workprec(self.bits):
            return each(lambda entry: number(cap) * (entry / number(cap)).tanh(), self._balls(x))

    def clamp(self, x: Data, *, least: Any = None, most: Any = None) -> Any:
        with ctx.workprec(self.bits):
            x = self._balls(x)
            if least is not None:
                x = each(lambda entry: entry.max(number(least)), x)
            return x if most is None else each(lambda entry: entry.min(number(most)), x)

    def weigh(self, x: Data, by: Data) -> Any:
        with ctx.workprec(self.bits):
            return self._balls(x) * self._balls(by)

    def beside(self, x: Data, y: Data) -> Any:
        x, y = self._balls(x), self._balls(y)
        return np.concatenate((x, np.broadcast_to(y, (len(x), *y.shape[1:]))), axis=-1)

    def bucket_scores(self, table: Data, *, buckets: Any) -> Any:
        return self._balls(table)[np.asarray(buckets)].transpose(2, 0, 1)

    def sinusoid(self, *, positions: Any, width: int, base: Any, pairing: str = "") -> Any:
        found = super().sinusoid(positions=positions, width=width, base=base)
        if pairing != "half":
            return found
        return np.concatenate((found[:, 0::2], found[:, 1::2]), axis=1)

    def scores(self, q: Data, k: Data, *, bias: Any = None, **others: Any) -> Any:
        found = super().scores(q, k, **others)
        if bias is None:
            return found
        with ctx.workprec(self.bits):
            more = self._balls(bias)
            for index in np.ndindex(found.shape):
                if found[index] is not ABSENT:
                    found[index] = found[index] + more[index]
            return found

    def activate(self, x: Data, *, kind: str) -> Any:
        if kind not in KINDS:
            return super().activate(x, kind=kind)
        with ctx.workprec(self.bits):
            return each(KINDS[kind], self._balls(x))

    # ------------------------------------------------------------------- experts

    def choose(
        self,
        x: Data,
        *,
        count: int,
        groups: Any = None,
        groups_chosen: Any = None,
        group_rule: Any = None,
    ) -> Any:
        """By midpoints, which decide unless two numbers agree to all bits."""
        found = np.full(x.shape, arb(0), dtype=object)
        for place, row in enumerate(self._balls(x)):
            middles = [entry.mid() for entry in row]
            among = list(range(len(row)))
            if groups is not None:
                size = len(row) // groups
                worth = []
                for first in range(0, len(row), size):
                    top = sorted(middles[first : first + size], reverse=True)
                    worth.append(top[0] + top[1] if group_rule == "top2" else top[0])
                best = sorted(range(groups), key=lambda g: (-worth[g], g))[:groups_chosen]
                among = [k for k in among if k // size in best]
            for k in sorted(among, key=lambda k: (-middles[k], k))[:count]:
                found[place, k] = arb(1)
        return found

    def expert_shares(
        self,
        x: Data,
        chosen: Data,
        *,
        normalised: bool,
        alone: bool = False,
        scale: Any = None,
        eps: Any = None,
    ) -> Any:
        with ctx.workprec(self.bits):
            worth = self._balls(x) if alone else each(arb.exp, self._balls(x))
            taken = worth * chosen
            if normalised:
                whole = taken.sum(axis=-1, keepdims=True) + number((alone and eps) or 0)
            else:
                whole = arb(1) if alone else worth.sum(axis=-1, keepdims=True)
            return taken / whole * number(1 if scale is None else scale)

    def combine(self, x: Data, shares: Data) -> Any:
        with ctx.workprec(self.bits):
            return np.asarray((self._balls(x) * shares.T[..., None]).sum(axis=0), dtype=object)
