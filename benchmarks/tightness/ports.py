"""Ports: the operations of a transformer as various programs compute them, for `check`.

Each is written here on its own, step by step, in NumPy or by torch's own functions; none uses
byhand's number systems but for rounding to bfloat16.  A `Port` has an order of summation, fused or
rounded products, 16-bit intermediate results or float32 ones, and takes its roundings from a
`Machine`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from benchmarks.tightness.machines import FORMATS, HALVES, NARROW, Machine, nearest
from benchmarks.tightness.orders import total

Data = Any
__all__ = ["FORMATS", "HALVES", "NARROW", "Machine", "Port", "adverse", "nearest", "ports"]

KEYS = 64  # that attention block by block takes at a time


@dataclass(frozen=True)
class Port:
    """One way to compute: a machine, and its choices."""

    name: str
    machine: Machine
    order: str = "forward"  # of summation: a name of orders.ORDERS
    fused: bool = False  # products are not rounded before they are added
    reciprocal: bool = False  # 1/std, then a product; 1/n likewise
    whole: bool = False  # x/std - mean/std, and Welford's mean and variance
    scale_first: bool = False
    shift: bool = True  # softmax less its maximum
    online: bool = False  # attention block by block of keys, without the shares

    # ------------------------------------------------------------------- sums

    def total(self, terms: Data) -> Data:
        """The sum of a row, in the port's order; tensor cores add products alone."""
        order = "forward" if self.order == "cores" else self.order
        return total(terms, order, self.machine.sum)

    def dot(self, x: Data, y: Data) -> Data:
        """Σ x·y over the last axis."""
        m = self.machine
        x, y = m.enter(x), m.enter(y)
        if self.order == "cores":
            return total(x * y, "cores", m.sum)
        return self.total(x * y if self.fused else m.sum(x * y))

    # ------------------------------------------------------------------- operations

    def add(self, x: Data, y: Data) -> Data:
        return self.machine.store(x + y)

    def multiply(self, x: Data, y: Data) -> Data:
        return self.machine.store(x * y)

    def linear(self, x: Data, weight: Data, bias: Data | None = None) -> Data:
        """x (rows, in) times weight (in, out)."""
        m = self.machine
        result = self.dot(x[:, None, :], weight.T[None])
        if bias is None:
            return m.store(result)
        if m.format in NARROW and not m.wide_steps:
            result = m.store(result)
        return m.store(m.sum(result + bias))

    def mean(self, x: Data) -> Data:
        m, n = self.machine, x.shape[-1]
        if self.whole:
            return m.step(self.welford(x)[0])
        total = self.total(x)
        return m.step(m.sum(total * m.sum(1 / n)) if self.reciprocal else m.sum(total / n))

    def center(self, x: Data, mean: Data) -> Data:
        return self.machine.step(x - mean[..., None])

    def mean_square(self, x: Data) -> Data:
        m, n = self.machine, x.shape[-1]
        total = self.total(m.step(x * x))
        return m.step(m.sum(total * m.sum(1 / n)) if self.reciprocal else m.sum(total / n))

    def root(self, x: Data, eps: float) -> Data:
        m = self.machine
        return m.function("sqrt", m.step(x + m.step(eps)))

    def normalize(self, x: Data, by: Data) -> Data:
        m = self.machine
        if self.reciprocal:
            return m.step(x * m.step(1 / by)[..., None])
        return m.step(x / by[..., None])

    def affine(self, x: Data, gain: Data, bias: Data | None) -> Data:
        m = self.machine
        if bias is None:
            return m.store(x * gain)
        return m.store(m.step(x * gain) + bias)

    def layernorm(self, x: Data, eps: float, gain: Data, bias: Data) -> Data:
        m = self.machine
        if self.whole:
            mean, variance = map(m.step, self.welford(x))
            rstd = m.function("rsqrt", m.step(variance + m.step(eps)))[..., None]
            return self.affine(
                m.step(m.step(x * rstd) - m.step(mean[..., None] * rstd)), gain, bias
            )
        centred = self.center(x, self.mean(x))
        by = self.root(self.mean_square(centred), eps)
        return self.affine(self.normalize(centred, by), gain, bias)

    def rmsnorm(self, x: Data, eps: float, gain: Data) -> Data:
        m = self.machine
        by = self.mean_square(x)
        if self.reciprocal:
            rstd = m.function("rsqrt", m.step(by + m.step(eps)))[..., None]
            return self.affine(m.step(x * rstd), gain, None)
        return self.affine(self.normalize(x, self.root(by, eps)), gain, None)

    def welford(self, x: Data) -> tuple[Data, Data]:
        m = self.machine
        mean, square = x[..., 0], np.zeros(x.shape[:-1])
        for k in range(1, x.shape[-1]):
            off = m.sum(x[..., k] - mean)
            mean = m.sum(mean + m.sum(off / (k + 1)))
            square = m.sum(square + m.sum(off * m.sum(x[..., k] - mean)))
        return mean, m.sum(square / x.shape[-1])

    def rotate(self, x: Data, positions: list[int], base: float) -> Data:
        """RoPE on halves, from float32 angles."""
        m, width = self.machine, x.shape[-1]
        kind = np.float64 if m.format == "float64" else np.float32
        rates = kind(1) / kind(base) ** (np.arange(0, width, 2).astype(kind) / kind(width))
        angles = np.multiply.outer(np.asarray(positions, dtype=kind), rates)
        cos, sin = (m.function(name, angles) for name in ("cos", "sin"))
        a, b = x[..., : width // 2], x[..., width // 2 :]
        one = m.store(m.step(a * cos) + m.step(-b * sin))
        return np.concatenate((one, m.store(m.step(b * cos) + m.step(a * sin))), axis=-1)

    def scores(self, q: Data, k: Data, scale: float) -> Data:
        m = self.machine
        if self.scale_first:
            left, right = m.scaled(q, sqrt(scale)), m.scaled(k, sqrt(scale))
            return m.store(self.dot(left[:, :, None], right[:, None]))
        return m.scaled(m.store(self.dot(q[:, :, None], k[:, None])), scale)

    def softmax(self, x: Data) -> Data:
        """Masked scores are -∞."""
        m = self.machine
        with np.errstate(invalid="ignore"):
            top = x.max(axis=-1, keepdims=True)
            far = m.format == "float16" or np.abs(top).max() > 80  # e^x must not overflow
            down = m.step(x - top) if self.shift or far else x
            exps = m.function("exp", np.where(np.isneginf(x), -np.inf, down))
        total = m.step(self.total(exps))[..., None]
        return m.store(exps * m.step(1 / total)) if self.reciprocal else m.store(exps / total)

    def mix(self, weights: Data, v: Data) -> Data:
        return self.machine.store(self.dot(weights[:, :, None], v.transpose(0, 2, 1)[:, None]))

    def attention(self, q: Data, k: Data, v: Data, scale: float, hidden: Data) -> Data:
        scores = np.where(hidden, -np.inf, self.scores(q, k, scale))
        return self.mix(self.softmax(scores), v)

    def online_attention(self, scores: Data, v: Data) -> Data:
        """Attention block by block: the mix so far is rescaled at each new maximum."""
        m = self.machine
        top = np.full((*scores.shape[:-1], 1), -np.inf)
        below, mixed = np.zeros(top.shape), np.zeros((*scores.shape[:-1], v.shape[-1]))
        for start in range(0, scores.shape[-1], KEYS):
            here = slice(start, start + KEYS)
            highest = np.maximum(top, scores[..., here].max(axis=-1, keepdims=True))
            with np.errstate(invalid="ignore"):  # a block that is hidden altogether
                exps = m.function("exp", m.step(np.nan_to_num(scores[..., here] - highest,
                                                              nan=-np.inf)))  # fmt: skip
                again = m.function("exp", m.step(np.nan_to_num(top - highest, nan=-np.inf)))
            below = m.sum(m.sum(below * again) + self.total(exps)[..., None])
            values = v[:, here].transpose(0, 2, 1)[:, None]
            mixed = m.sum(m.sum(mixed * again) + self.dot(exps[:, :, None], values))
            top = highest
        return m.store(mixed / below)

    def activate(self, x: Data, kind: str) -> Data:
        m = self.machine
        with np.errstate(all="ignore"):
            if kind == "relu":
                return np.maximum(x, 0.0)
            if kind == "gelu":
                inner = m.function("erf", m.step(x * m.step(sqrt(0.5))))
                return m.store(m.step(x * 0.5) * m.step(1 + inner))
            if kind == "gelu_tanh":
                cube = m.step(m.step(0.044715) * m.function("cube", x))
                inner = m.function("tanh", m.step(m.step(sqrt(2 / pi)) * m.step(x + cube)))
                return m.store(m.step(x * 0.5) * m.step(1 + inner))
            inner = x if kind == "silu" else m.step(m.step(1.702) * x)
            below = m.step(1 + m.function("exp", -inner))
            return m.store(x * m.step(1 / below)) if self.reciprocal else m.store(x / below)

    def loss(self, probs: Data, target: int) -> Data:
        return self.machine.store(-self.machine.function("log", probs[-1:, target]))

    def loss_of_logits(self, x: Data, target: int) -> Data:
        """ln Σe^x - x_target, shifted by the maximum."""
        m = self.machine
        down = m.step(x - x.max(axis=-1, keepdims=True))
        total = self.total(m.function("exp", down))
        return m.store(m.function("log", total) - down[:, target])[-1:]


def ports(format: str) -> Iterator[Port]:
    """The ways of real programs, on a machine that rounds to the nearest."""
    real = Machine(format)
    yield Port("one after the other", real)
    yield Port("backwards, fused", real, "backward", fused=True, scale_first=True)
    yield Port("shuffled", real, "shuffled", reciprocal=True, shift=False)
    yield Port("by halves", real, "pairs", whole=True)
    yield Port("in blocks", real, "blocks", fused=True, reciprocal=True, scale_first=True)
    if format in NARROW:
        wide = Machine(format, wide_steps=True)
        yield Port("float32 inside", wide, "blocks")
        yield Port("float32 inside, Welford", wide, "pairs", whole=True, reciprocal=True)


def adverse(format: str) -> Iterator[Port]:
    """The same ways with every rounding as far off as possible."""
    if format == "float64":  # the float64 they are played in would add its own roundings
        return
    for side in (1, -1):
        for wide in (False, True) if format in NARROW else (False,):
            machine = Machine(format, side, wide)
            yield Port(f"adverse {side:+d}", machine)
            yield Port(
                f"adverse {side:+d}, otherwise", machine, "backward", False, True, True, True
            )
            turning = Machine(format, side, wide, turning=True)
            yield Port(f"adverse {side:+d}, turning", turning, reciprocal=True)
