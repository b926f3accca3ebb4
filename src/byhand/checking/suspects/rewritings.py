"""Rewritings of a weight: what a port may have made of it, as small functions of an array.

A matrix is written (input, output) here, whatever its layout in the file; a bias has one axis.  A
rewriting returns a new array, without touching the old one, in the format of the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.casts import rounded_to

Data = npt.NDArray[Any]
Rewriting = Callable[[Data], Data]
NF4 = (  # the levels of the 4-bit normal float, from the quantiles of a normal distribution
    -1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
)  # fmt: skip


@dataclass(frozen=True)
class EntriesSet:
    """Some entries replaced."""

    places: tuple[tuple[int, ...], ...]
    values: tuple[float, ...]

    def __call__(self, data: Data) -> Data:
        new = np.array(data)
        new[tuple(map(list, zip(*self.places, strict=True)))] = self.values
        return new


@dataclass(frozen=True, eq=False)
class LinesSet:
    """Some lines along an axis replaced."""

    axis: int
    lines: Sequence[int] | Data
    values: Data  # (lines, the other axis)

    def __call__(self, data: Data) -> Data:
        new = np.array(data)
        np.moveaxis(new, self.axis, 0)[list(self.lines)] = self.values
        return new


@dataclass(frozen=True, eq=False)
class LinesScaled:
    """Some lines along an axis multiplied by a factor, or by one each."""

    axis: int
    lines: Sequence[int] | Data
    factors: float | Data

    def __call__(self, data: Data) -> Data:
        new = np.array(data)
        part = np.moveaxis(new, self.axis, 0)
        factors = np.asarray(self.factors, dtype=np.float64)
        if factors.ndim:
            factors = factors.reshape(-1, *[1] * (part.ndim - 1))
        part[list(self.lines)] = part[list(self.lines)].astype(np.float64) * factors
        return new


@dataclass(frozen=True, eq=False)
class LinesTaken:
    """The lines along an axis in another order; lines may be repeated."""

    axis: int
    order: Data

    def __call__(self, data: Data) -> Data:
        return np.take(data, self.order, axis=self.axis)


@dataclass(frozen=True, eq=False)
class GroupsMended:
    """Groups of input channels, each scaled and shifted: by one number, or by one per output."""

    size: int
    factors: Data | float = 1.0  # (group,), (group, output) or a number
    shifts: Data | float = 0.0

    def __call__(self, data: Data) -> Data:
        inputs = data.shape[0]
        grouped = data.reshape(inputs // self.size, self.size, -1).astype(np.float64)
        new = grouped * _by_group(self.factors) + _by_group(self.shifts)
        return new.reshape(data.shape).astype(data.dtype)


def _by_group(numbers: Data | float) -> Data:
    each = np.asarray(numbers, dtype=np.float64)
    return each if not each.ndim else each[:, None, None] if each.ndim == 1 else each[:, None, :]


@dataclass(frozen=True)
class Quantised:
    """Weights in few levels: by output, or in groups of inputs, each with its scale.

    `scales` takes the scale of the group so many before, `zero` adds to every level.  `format` is
    the format in which a port works this out, where that is narrow.
    """

    levels: str  # "int8", "int4", "int4 with a zero point", "nf4", …
    by: int | str  # the size of a group of input channels, "output" or "matrix"
    scales: int = 0
    zero: int = 0
    format: str | None = None

    def __call__(self, data: Data) -> Data:
        wide = np.where(np.isfinite(data), data, 0.0).astype(np.float64)
        inputs, outputs = wide.shape
        if self.by == "matrix":
            grouped = wide.reshape(1, -1, 1)
        else:
            size = inputs if self.by == "output" else int(self.by)
            grouped = wide.reshape(inputs // size, size, outputs)
        return self._levelled(grouped).reshape(data.shape).astype(data.dtype)

    def _held(self, values: Data) -> Data:
        return values if self.format is None else rounded_to(self.format, values)

    def _levelled(self, groups: Data) -> Data:
        """Each group, along its middle axis, rounded to its levels."""
        if self.levels.startswith("multiples of 1/"):
            grid = float(self.levels.removeprefix("multiples of 1/"))
            return np.asarray(np.rint(groups * grid) / grid)
        if self.levels == "powers of two":
            with np.errstate(divide="ignore"):
                powers = np.exp2(np.rint(np.log2(np.abs(groups))))
            return np.asarray(np.sign(groups) * powers)
        low = groups.min(axis=1, keepdims=True)
        high = groups.max(axis=1, keepdims=True)
        most = np.maximum(np.abs(low), np.abs(high))
        if self.levels == "nf4":
            scale, marks = _not_zero(most), np.asarray(NF4)
            place = np.searchsorted((marks[1:] + marks[:-1]) / 2, groups / scale)
            return np.asarray(marks[place] * np.roll(scale, self.scales, axis=0))
        if self.levels == "int4 with a zero point":
            step = _not_zero(self._held((high - low) / 15))
            zero = np.rint(self._held(-low / step))
            whole = np.clip(np.rint(self._held(groups / step)) + zero, 0, 15) - zero
        elif self.levels == "int4 as llama.cpp has it":  # the largest entry becomes -8
            step = _not_zero(np.where(high > -low, high, low) / -8)
            whole = np.clip(np.trunc(groups / step + 8.5), 0, 15) - 8
        else:
            step = _not_zero(self._held(most / (127.0 if self.levels == "int8" else 7.0)))
            whole = np.rint(self._held(groups / step))
        return self._held((whole + self.zero) * np.roll(step, self.scales, axis=0))


def _not_zero(step: Data) -> Data:
    return np.asarray(np.where(step != 0, step, 1.0))


@dataclass(frozen=True)
class Mapped:
    """Every entry through a plain function."""

    how: str

    def __call__(self, data: Data) -> Data:
        x = data.astype(np.float64)
        with np.errstate(all="ignore"):
            ways: dict[str, Callable[[Data], Data]] = {
                "squared": np.square,
                "absolute": np.abs,
                "exponential": np.exp,
                "root": lambda each: np.sqrt(np.abs(each)),
                "plus one": lambda each: each + 1,
                "minus one": lambda each: each - 1,
                "inverse": lambda each: 1 / each,
                "negated": np.negative,
                "twice": lambda each: 2 * each,
                "half": lambda each: each / 2,
            }
            return np.asarray(ways[self.how](x)).astype(data.dtype)


@dataclass(frozen=True, eq=False)
class Blended:
    """A mixture with another matrix: (1 - share)·own + share·other."""

    other: Data
    share: float

    def __call__(self, data: Data) -> Data:
        mixed = data.astype(np.float64) * (1 - self.share) + self.other * self.share
        return np.asarray(mixed.astype(data.dtype))


@dataclass(frozen=True)
class Pruned:
    """The smallest entries replaced by 0: a share of the whole matrix, or of each output."""

    share: float
    by_output: bool = False
    also: bool = True  # whether entries of the limit's own size are 0 as well

    def __call__(self, data: Data) -> Data:
        sizes = np.abs(data.astype(np.float64))
        limit = self.limit(sizes)
        kept = sizes > limit if self.also else sizes >= limit
        return np.where(kept, data, np.zeros((), dtype=data.dtype))

    def limit(self, sizes: Data) -> Data:
        """The size below which entries are 0."""
        axis = 0 if self.by_output else None
        return np.asarray(np.quantile(sizes, self.share, axis=axis, method="lower"))


@dataclass(frozen=True)
class HeadsAveraged:
    """The outputs of every head replaced by their mean over the heads."""

    heads: int

    def __call__(self, data: Data) -> Data:
        apart = data.astype(np.float64).reshape(len(data), self.heads, -1)
        mean = np.broadcast_to(apart.mean(axis=1, keepdims=True), apart.shape)
        return mean.reshape(data.shape).astype(data.dtype)


@dataclass(frozen=True, eq=False)
class Replaced:
    """Another array altogether."""

    values: Data

    def __call__(self, data: Data) -> Data:
        return np.asarray(self.values).astype(data.dtype)


@dataclass(frozen=True)
class Cut:
    """Significands of so many bits, rounded or cut off."""

    bits: int
    cut: bool = False

    def __call__(self, data: Data) -> Data:
        part, exponent = np.frexp(np.asarray(data, dtype=np.float64))
        whole = np.ldexp(part, self.bits)
        whole = np.trunc(whole) if self.cut else np.rint(whole)
        return np.asarray(np.ldexp(whole, exponent - self.bits)).astype(data.dtype)
