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
    """Weights in few levels: by output, by input or in groups of inputs, each with its scale."""

    levels: str  # "int8", "int4", "int4 with a zero point", "nf4"
    by: int | str  # the size of a group of input channels, "output", "input" or "matrix"

    def __call__(self, data: Data) -> Data:
        wide = np.where(np.isfinite(data), data, 0.0).astype(np.float64)
        inputs, outputs = wide.shape
        if self.by == "matrix":
            grouped = wide.reshape(1, -1, 1)
        elif self.by == "input":
            grouped = wide[:, :, None]
        else:
            size = inputs if self.by == "output" else int(self.by)
            grouped = wide.reshape(inputs // size, size, outputs)
        return _levelled(self.levels, grouped).reshape(data.shape).astype(data.dtype)


def _levelled(levels: str, groups: Data) -> Data:
    """Each group, along its middle axis, rounded to its levels."""
    low = groups.min(axis=1, keepdims=True)
    high = groups.max(axis=1, keepdims=True)
    most = np.maximum(np.abs(low), np.abs(high))
    if levels == "int4 with a zero point":
        low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        step = _not_zero((high - low) / 15)
        zero = np.rint(-low / step)
        return np.asarray((np.clip(np.rint(groups / step) + zero, 0, 15) - zero) * step)
    if levels == "nf4":
        scale = _not_zero(most)
        marks = np.asarray(NF4)
        between = (marks[1:] + marks[:-1]) / 2
        return np.asarray(marks[np.searchsorted(between, groups / scale)] * scale)
    if levels == "int4 as llama.cpp has it":  # the entry of the largest size becomes -8
        largest = np.where(high > -low, high, low)
        step = _not_zero(largest / -8)
        return np.asarray(np.clip(np.trunc(groups / step + 8.5), 0, 15) * step - 8 * step)
    top = 127.0 if levels == "int8" else 7.0
    step = _not_zero(most / top)
    return np.asarray(np.rint(groups / step) * step)


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
