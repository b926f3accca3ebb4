"""Ports: the operations of a transformer as various programs compute them, to be judged by check.

Each is written here on its own, step by step, in NumPy or by torch's own functions; none uses
byhand's number systems but for rounding to bfloat16.  A `Port` has an order of summation, fused
or rounded products, 16-bit intermediate results or float32 ones, and takes its roundings from a
`Machine`: a real one rounds to the nearest, an adverse one errs as far as a rounding may, always to
one side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import frexp, ldexp, pi, sqrt
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

Data = Any
KINDS = {"float64": np.float64, "float32": np.float32, "tf32": np.float32,
         "float16": np.float16, "bfloat16": bfloat16}  # fmt: skip
HALVES = {"float64": -53, "float32": -24, "tf32": -24, "float16": -11, "bfloat16": -8}
NARROW = ("float16", "bfloat16")
FORMATS = tuple(KINDS)


def nearest(x: Data, format: str) -> Data:
    """The nearest numbers of a format, as float64 again; from float32 numbers or exact float64."""
    kind = KINDS[format]
    if kind is np.float64:
        return np.asarray(x, dtype=np.float64)
    if kind is bfloat16:
        from byhand.numbers.floats.formats import BFLOAT16, narrowed

        return narrowed(np.asarray(x, dtype=np.float64), BFLOAT16).astype(np.float64)
    return np.asarray(x, dtype=np.float64).astype(kind).astype(np.float64)


@dataclass(frozen=True)
class Machine:
    """The roundings of a format.  `side` 0: to the nearest; ±1: as far off as may be."""

    format: str
    side: int = 0
    wide_steps: bool = False  # 16-bit formats: intermediate results stay in float32
    turning: bool = False  # the side changes from each entry of a row to the next

    def _round(self, x: Data, format: str, side: Data = None) -> Data:
        if self.side == 0:
            return nearest(x, format)
        side = self.side if side is None else side
        # a little less than the whole, so that float64 itself does not carry it beyond
        far = x * (1 + side * ldexp(1 - 2**-20, HALVES[format]))
        if format != "float16":
            return far
        # below the normal numbers, half of the spacing of the others
        low = x + side * np.sign(x) * ldexp(1 - 2**-20, -25)
        return np.where(np.abs(x) < ldexp(1.0, -14), low, far)

    def store(self, x: Data) -> Data:
        """A result as it is kept."""
        return self._round(x, self.format)

    def step(self, x: Data) -> Data:
        """An intermediate result."""
        format = "float32" if self._narrow and self.wide_steps else self.format
        return self._round(x, format, self._sides(x))

    def sum(self, x: Data) -> Data:
        """A partial sum."""
        return self._round(x, "float32" if self._narrow or self.format == "tf32" else self.format)

    def scaled(self, x: Data, factor: float) -> Data:
        """x times a constant: without a rounding where that is a power of 2."""
        if self.side and frexp(factor)[0] == 0.5:
            return x * factor
        return self.step(x * self.step(factor))

    def enter(self, x: Data) -> Data:
        """What enters a product."""
        if self.format != "tf32":
            return x
        if self.side:
            return x * (1 + self.side * ldexp(1.0, -11))
        bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)

    def function(self, name: str, x: Data) -> Data:
        """An elementary function: NumPy's in the format or float32, or off by 4 units."""
        kind = np.float64 if self.format == "float64" else np.float32
        if self.side == 0:
            with np.errstate(all="ignore"):
                return self.step(FUNCTIONS[name](np.asarray(x, dtype=kind)).astype(np.float64))
        with np.errstate(all="ignore"):
            exact = FUNCTIONS[name](np.asarray(x, dtype=np.float64))
        side = self._sides(exact)
        off = ldexp(8.0, -53 if kind is np.float64 else -24) * (1 - 2**-20)
        if self._narrow and not self.wide_steps:
            return self.step(exact * (1 + side * off))
        return exact * (1 + side * off)

    def _sides(self, x: Data) -> Data:
        if not self.turning or np.ndim(x) < 2:
            return self.side
        return self.side * (1 - 2 * (np.arange(np.shape(x)[-1]) % 2))

    @property
    def _narrow(self) -> bool:
        return self.format in NARROW


def _erf(x: Data) -> Data:
    import torch

    return torch.special.erf(torch.from_numpy(np.ascontiguousarray(x))).numpy()


FUNCTIONS: dict[str, Callable[[Data], Data]] = {
    "exp": np.exp, "tanh": np.tanh, "erf": _erf, "sqrt": np.sqrt, "log": np.log, "sin": np.sin,
    "cos": np.cos, "rsqrt": lambda x: x.dtype.type(1) / np.sqrt(x), "cube": lambda x: x**3,
}  # fmt: skip


@dataclass(frozen=True)
class Port:
    """One way to compute: a machine, and habits."""

    name: str
    machine: Machine
    order: str = "forward"  # "backward" | "shuffled" | "pairs" | "blocks"
    fused: bool = False  # products are not rounded before they are added
    reciprocal: bool = False  # 1/std, then a product; 1/n likewise
    whole: bool = False  # x/std - mean/std, and Welford's mean and variance
    scale_first: bool = False
    shift: bool = True  # softmax less its maximum

    # ------------------------------------------------------------------- sums

    def total(self, terms: Data) -> Data:
        """The sum over the last axis, in the port's order."""
        m = self.machine
        n = terms.shape[-1]
        if self.order == "pairs":
            while n > 1:
                half = n // 2
                paired = m.sum(terms[..., :half] + terms[..., half : 2 * half])
                terms = np.concatenate((paired, terms[..., 2 * half :]), axis=-1)
                n = terms.shape[-1]
            return terms[..., 0]
        if self.order == "blocks":
            size = 16
            blocks = [terms[..., i : i + size] for i in range(0, n, size)]
            inner = Port("", m, "forward")
            return inner.total(np.stack([inner.total(block) for block in blocks], axis=-1))
        places = list(range(n))
        if self.order == "backward":
            places.reverse()
        if self.order == "shuffled":
            np.random.default_rng(n).shuffle(places)
        so_far = terms[..., places[0]]
        for place in places[1:]:
            here = terms[..., place]
            both = m.sum(so_far + here)
            so_far = np.where(here == 0, so_far, np.where(so_far == 0, here, both))
        return so_far

    def dot(self, x: Data, y: Data) -> Data:
        """Σ x·y over the last axis."""
        m = self.machine
        x, y = m.enter(x), m.enter(y)
        products = x * y if self.fused else m.sum(x * y)
        return self.total(products)

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
    """Ways that real programs go, on a machine that rounds to the nearest."""
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
    """The same where every rounding errs as far as it may."""
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
