"""Machines: the roundings of the ports of benchmarks/tightness.

A real machine rounds to the nearest; an adverse one errs as far as a rounding may, always to one
side.  A flushing machine replaces subnormal numbers by 0 when it reads and writes, as processors do
in their fast mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import frexp, ldexp
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

Data = Any
KINDS = {"float64": np.float64, "float32": np.float32, "tf32": np.float32,
         "float16": np.float16, "bfloat16": bfloat16}  # fmt: skip
HALVES = {"float64": -53, "float32": -24, "tf32": -24, "float16": -11, "bfloat16": -8}
LEAST = {"float64": -1022, "float32": -126, "tf32": -126, "bfloat16": -126}  # normal exponents
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
    flushes: bool = False  # what is below the normal numbers is 0, read and written

    def read(self, x: Data) -> Data:
        """A stored number as an operation reads it."""
        return self._flushed(np.asarray(x, dtype=np.float64), self.format)

    def _flushed(self, x: Data, format: str) -> Data:
        if not self.flushes or format == "float16":  # whose subnormal numbers processors keep
            return x
        return np.where(np.abs(x) < ldexp(1.0, LEAST[format]), 0.0, x)

    def _round(self, x: Data, format: str, side: Data = None) -> Data:
        if self.side == 0:
            return self._flushed(nearest(x, format), format)
        side = self.side if side is None else side
        # a little less than the whole, so that float64 itself does not carry it beyond
        far = x * (1 + side * ldexp(1 - 2**-20, HALVES[format]))
        if format != "float16":
            return far
        # below the normal numbers, half of the spacing of the others
        low = x + side * np.sign(x) * ldexp(1 - 2**-20, -25)
        return np.where(np.abs(x) < ldexp(1.0, -14), low, far)

    def store(self, x: Data) -> Data:
        """A result as stored."""
        return self._round(x, self.format)

    def step(self, x: Data) -> Data:
        """An intermediate result."""
        if self._narrow and self.wide_steps:
            return self._round(x, "float32", self._sides(x))
        near = self._round(x, self.format, self._sides(x))
        if self.format != "float16":
            return near
        # what does not fit float16 is kept in float32: a square, a sum of exponentials
        return np.where(np.isinf(near), self._round(x, "float32", self._sides(x)), near)

    def sum(self, x: Data) -> Data:
        """A partial sum."""
        return self._round(x, "float32" if self._narrow or self.format == "tf32" else self.format)

    def scaled(self, x: Data, factor: float) -> Data:
        """x times a constant: without a rounding where that is a power of 2."""
        if self.side and frexp(factor)[0] == 0.5:
            return x * factor
        return self.step(x * self.step(factor))

    def enter(self, x: Data) -> Data:
        """A factor of a product."""
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
