"""Ranges that can also do what is wrong on purpose: edited plans are worked out with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.operations import Move, Rounding, WrongOperations
from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.ranges import Origin

Data = npt.NDArray[Any]


class Mistaken(WrongOperations, Allowed):
    """Allowed numbers; of a wrong operation, too, all that its mistaken author may get."""

    def moved(self, move: Move, *values: Range) -> Range:
        read = tuple(map(self._read, values))
        result = (read[0] if len(read) == 1 else _end_to_end(read)).each(move)
        result.origin = _shares(read[0])
        return result

    @np.errstate(invalid="ignore")
    def rounded(self, x: Range, rounding: Rounding) -> Range:
        """Rounding is monotonic: what is between two numbers comes between them again."""
        x = self._read(x)
        rad = x.radius()
        mid = np.asarray(x.mid, dtype=np.float64)
        if rad is None:
            return Range(rounding(mid), None, x.usual, x.absent)
        finite = np.isfinite(rad)
        near = np.where(finite, rad, 0.0)
        low, high = rounding(mid - near), rounding(mid + near)
        half = np.where(finite, np.abs(high - low) * 0.5, np.inf)
        # where both neighbours are possible, either is usual
        usual = half if x.usual is None else np.maximum(half, x.usual)
        return Range((low + high) * 0.5, half, usual, x.absent)

    def hiding(self, x: Range, absent: Data) -> Range:
        x = self._read(x)
        away = np.array(absent if x.absent is None else absent | x.absent)
        mid, rad, usual = _zero(away, x)
        return Range(mid, rad, usual, away, origin=_shares(x))

    def hidden_like(self, x: Range, other: Range) -> Range:
        return x if other.absent is None else self.hiding(x, other.absent)

    def present(self, x: Range) -> Range:
        return x if x.absent is None else Range(*_zero(x.absent, x))

    def shape_of(self, x: Range) -> tuple[int, ...]:
        return x.shape


def _shares(x: Range) -> Origin | None:
    """That masked entries are 0 stays true wherever they go."""
    return Origin(shares=True) if x.origin is not None and x.origin.shares else None


def _zero(away: Data, x: Range) -> tuple[Data, Data | None, Data | None]:
    """The arrays of a range with 0 in these places."""
    rad, usual = x.radius(), x.usual
    return (
        np.where(away, 0.0, x.mid),
        None if rad is None else np.where(away, 0.0, rad),
        None if usual is None else np.where(away, 0.0, usual),
    )


def _end_to_end(values: tuple[Range, ...]) -> Range:
    """The values one after the other along the first axis; None stands for zeros."""

    def joined(parts: list[Data | None], dtype: Any) -> Data | None:
        if all(part is None for part in parts):
            return None
        there = [np.zeros(value.shape, dtype) if part is None else part
                 for value, part in zip(values, parts, strict=True)]  # fmt: skip
        return np.concatenate(there, axis=0)

    mid = np.concatenate([np.asarray(value.mid, dtype=np.float64) for value in values], axis=0)
    return Range(
        mid,
        joined([value.radius() for value in values], np.float64),
        joined([value.usual for value in values], np.float64),
        joined([value.absent for value in values], np.bool_),
    )
