"""A number system that works a plan out as one port of benchmarks/tightness would.

Values are float64 arrays of numbers of the port's format, masked as NumPy masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.tightness.machines import nearest
from benchmarks.tightness.ports import Port
from byhand.expression import Expression
from byhand.numbers.base import Array, Numbers, Prediction
from byhand.numbers.floats import nearest as constants
from byhand.numbers.floats.attention import hidden
from byhand.numbers.floats.formats import FORMATS

Data = Any


class Simulated(Numbers):
    """What a port gives for every step.  A port that is `whole` takes mean and variance of a row in
    one go, and one that is `online` goes through the keys block by block: neither has the steps
    between.  With `islands`, norms and softmax are in float32, as transformers has them; of float64
    layernorm is not."""

    def __init__(self, port: Port, *, islands: bool = False) -> None:
        super().__init__()
        self.port, self.machine = port, port.machine
        single = replace(port.machine, format="float32", wide_steps=False)
        self.inner = replace(port, machine=single) if islands else port
        self.layered = port if port.machine.format == "float64" else self.inner
        self.made_of: dict[int, tuple[Data, ...]] = {}  # of a value, what it was made from
        self.centred: set[int] = set()  # parts of layernorms

    @property
    def name(self) -> str:
        return f"simulated {self.port.name}"

    def register(self, entry: Any) -> str:
        return "rounded"

    def admit(self, data: Any) -> Array:
        return nearest(np.asarray(data, dtype=np.float64), self.machine.format)

    def _remember(self, value: Data, *parts: Data) -> Data:
        self.made_of[id(value)] = (value, *parts)
        return value

    # ------------------------------------------------------------------- the stream

    def embed(self, table: Array, ids: Sequence[int], *, scale: Expression | None = None) -> Array:
        rows = self.machine.read(table[np.asarray(ids)])
        return rows if scale is None else self.machine.store(rows * self._constant(scale))

    def _constant(self, value: Expression | Fraction) -> Data:
        near = float(constants.constant(value, FORMATS["float64"]))
        return self.machine.step(np.asarray(near))

    def sinusoid(self, *, positions: Sequence[int], width: int, base: Fraction) -> Array:
        raise NotImplementedError

    def add(self, x: Array, y: Array) -> Array:
        return self.port.add(self.machine.read(x), self.machine.read(y))

    def multiply(self, x: Array, y: Array) -> Array:
        return self.port.multiply(self.machine.read(x), self.machine.read(y))

    def linear(
        self,
        x: Array,
        weight: Array,
        *,
        bias: Array | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Array:
        rows = self.machine.read(self.merge_heads(x) if x.ndim == 3 else x)
        matrix = self.machine.read(weight if layout == "in_out" else weight.T)
        more = None if bias is None else self.machine.read(bias)
        result = self.port.linear(rows, matrix, more)
        if heads is None:
            return result
        width = result.shape[1] // heads
        return self.split_heads(result, start=0, heads=heads, width=width, stride=width)

    def split_heads(self, x: Array, *, start: int, heads: int, width: int, stride: int) -> Array:
        columns = [slice(start + h * stride, start + h * stride + width) for h in range(heads)]
        return np.stack([x[:, each] for each in columns])

    def merge_heads(self, x: Array) -> Array:
        heads, positions, width = x.shape
        return x.transpose(1, 0, 2).reshape(positions, heads * width)

    def join(self, x: Array, y: Array) -> Array:
        return np.concatenate((x, y), axis=-2)

    def head_outputs(self, mixed: Array, *, weight: Array | None = None, layout: str) -> Array:
        raise NotImplementedError

    # ------------------------------------------------------------------- norms

    def _norm(self, x: Data) -> Port:
        """The port that works out the norm of which this is a part."""
        return self.layered if id(x) in self.centred else self.inner

    def _part(self, value: Data, of: Data, *parts: Data) -> Data:
        if id(of) in self.centred:
            self.centred.add(id(value))
        return self._remember(value, *parts)

    def mean(self, x: Array) -> Array:
        value = self.layered.mean(self.machine.read(x))
        self.centred.add(id(value))
        return self._remember(value)

    def center(self, x: Array, mean: Array) -> Array:
        x = self.machine.read(x)
        value = self.layered.center(x, self.layered.machine.read(mean))
        return self._part(value, mean, x, mean)

    def mean_square(self, x: Array) -> Array:
        port = self._norm(x)
        if port.whole and id(x) in self.centred:
            return self._part(port.machine.step(port.welford(self.made_of[id(x)][1])[1]), x)
        return self._part(port.mean_square(self._into(port, x)), x)

    def _into(self, port: Port, x: Data) -> Data:
        """A number as an island reads it: float64 is cast."""
        cast = x if port is self.port else nearest(x, port.machine.format)
        return port.machine.read(cast)

    def root(self, x: Array, *, eps: Fraction) -> Array:
        port = self._norm(x)
        return self._part(port.root(port.machine.read(x), float(eps)), x)

    def normalize(self, x: Array, by: Array) -> Array:
        port = self._norm(by)
        m = port.machine
        with np.errstate(all="ignore"):
            if port.whole and id(x) in self.centred:
                _centred, whole, mean = self.made_of[id(x)]
                below = m.read(by)[..., None]
                value = m.step(m.step(whole / below) - m.step(mean[..., None] / below))
            else:
                value = port.normalize(self._into(port, x), m.read(by))
        if id(by) not in self.centred:  # RMSNorm is stored before its gain
            value = (
                self.machine.step(value) if self.inner is self.port else self.machine.store(value)
            )
        return self._part(value, by)

    def affine(self, x: Array, *, gain: Array | None = None, bias: Array | None = None) -> Array:
        x = self.machine.read(x)
        if gain is None:
            return x if bias is None else self.machine.store(x + self.machine.read(bias))
        more = None if bias is None else self.machine.read(bias)
        return self.port.affine(x, self.machine.read(gain), more)

    # ------------------------------------------------------------------- attention

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
        x = self.machine.read(x)
        places = np.arange(width)
        if pairing == "interleaved":
            places = np.concatenate((places[0::2], places[1::2]))
        result = np.array(x)
        result[..., places] = self.port.rotate(x[..., places], list(positions), float(base))
        return result

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
        q, k = self.machine.read(q), self.machine.read(k)
        k = np.repeat(k, len(q) // len(k), axis=0)
        factor = 1.0 if scale is None else float(constants.constant(scale, FORMATS["float64"]))
        result = self.port.scores(q, k, factor)
        away = hidden(mask)
        away = np.zeros(result.shape, bool) if away is None else np.broadcast_to(away, result.shape)
        return np.ma.MaskedArray(result, mask=away)

    def softmax(self, x: Array) -> Array:
        away = np.ma.getmaskarray(x)
        scores = np.where(away, -np.inf, self.machine.read(np.ma.getdata(x)))
        shares = self.inner.softmax(self._into(self.inner, scores))
        return self._remember(np.ma.MaskedArray(self.machine.store(shares), mask=away), scores)

    def mix(self, weights: Array, v: Array) -> Array:
        v = np.repeat(self.machine.read(v), len(weights) // len(v), axis=0)
        if self.port.online:
            return self.port.online_attention(self.made_of[id(weights)][1], v)
        return self.port.mix(self.machine.read(np.ma.filled(weights, 0.0)), v)

    # ------------------------------------------------------------------- the end

    def activate(self, x: Array, *, kind: str) -> Array:
        return self.port.activate(self.machine.read(x), kind)

    def argmax(self, x: Array) -> list[Prediction]:
        return [Prediction(int(row.argmax()), None, proven=False) for row in x]

    def loss(self, probs: Array, *, target: int) -> Array:
        with np.errstate(divide="ignore"):
            shares = self.machine.read(np.ma.getdata(probs))
            return self.machine.store(self.inner.loss(self._into(self.inner, shares), target))
