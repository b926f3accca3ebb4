"""Middles: edited plans worked out in plain float64, without ranges, for searches of many edits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from byhand.checking.suspects import Mistaken
from byhand.errors import InputError
from byhand.expression import Expression
from byhand.language import _
from byhand.numbers.allowed import Range
from byhand.numbers.allowed.admitting import constant
from byhand.numbers.allowed.ranges import Data, Origin, Truths, wide
from byhand.numbers.floats import Floats

PLAIN = (
    "embed", "sinusoid", "add", "multiply", "mean", "center", "mean_square", "root", "normalize",
    "affine", "rotate", "scores", "softmax", "mix", "activate",
)  # fmt: skip
SMALL = 1 << 25  # parameters up to which weights are widened to float64 once and for all


class Middles(Mistaken):
    """The middles alone: nothing is rounded, and no value has a radius."""

    def __init__(self, parameters: int = 0) -> None:
        super().__init__("exact")
        self._floats = Floats("float64")
        self._matrices = np.dtype(np.float64 if parameters <= SMALL else np.float32)

    def weight(self, value: Range) -> Range:
        """A weight as products read it: in float64, or in float32 for a large model."""
        kind = self._matrices if value.mid.ndim == 2 else np.dtype(np.float64)
        return Range(value.mid.astype(kind, copy=False), None, None, value.absent)

    @np.errstate(all="ignore")
    def linear(
        self,
        x: Range,
        weight: Range,
        *,
        bias: Range | None = None,
        layout: str,
        heads: int | None = None,
    ) -> Range:
        """Rows times a matrix, in the format that the matrix is kept in."""
        rows = self.merge_heads(x).mid if x.ndim == 3 else x.mid
        matrix = weight.mid if layout == "in_out" else weight.mid.T
        sums = wide(rows.astype(matrix.dtype, copy=False) @ matrix)
        result = Range(sums if bias is None else sums + wide(bias.mid))
        if heads is None:
            return result
        width = result.shape[1] // heads
        return self.split_heads(result, start=0, heads=heads, width=width, stride=width)

    def _stored(self, mid: Data, rad: Data | None, usual: Data | None = None, **ways: Any) -> Range:
        absent: Truths | None = ways.get("absent")
        if absent is not None:
            mid = np.where(absent, 0.0, mid)
        return Range(mid, None, None, absent, origin=ways.get("origin"))

    def _part(self, p: Any, mid: Data, rad: Data, usual: Data | None, made: Origin) -> Range:
        return Range(mid)

    def _filled(self, like: Range, number: Fraction | Expression) -> Range:
        return Range(np.full(like.shape, constant(number)[0]))

    def dropped_mix(self, weights: Range, v: Range, **settings: Any) -> Range:
        """Refused: which attention weights were dropped is told by the line itself alone."""
        raise InputError(_("no dropout explains it"))


def _plainly(operation: str) -> Callable[..., Range]:
    """The operation on plain float64 arrays."""

    def work(self: Middles, *values: Any, **settings: Any) -> Range:
        floats = self._floats
        floats.notes.clear()
        made = getattr(floats, operation)(
            *map(_array, values), **{name: _array(value) for name, value in settings.items()}
        )
        away = np.ma.getmaskarray(made) if isinstance(made, np.ma.MaskedArray) else None
        data = np.ma.getdata(made)
        if away is not None:
            data = np.where(away, 0.0, data)
        origin = Origin(shares=True) if operation == "softmax" else None
        return Range(data, None, None, away, origin=origin)

    work.__name__ = operation
    return work


def _array(value: Any) -> Any:
    if not isinstance(value, Range):
        return value
    return value.mid if value.absent is None else np.ma.MaskedArray(wide(value.mid), value.absent)


for _operation in PLAIN:
    setattr(Middles, _operation, _plainly(_operation))
