"""The base of the numbers of edited plans: entries moved, rounded, hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.ranges import Origin

Data = npt.NDArray[Any]


class Edited(Allowed):
    """Allowed numbers whose entries can be moved, rounded once more, or hidden."""

    def moved(self, move: Callable[[Data], Data], *values: Range) -> Range:
        """The values with their entries rearranged by `move`; several are first concatenated."""
        read = tuple(map(self._read, values))
        result = (read[0] if len(read) == 1 else _end_to_end(read)).each(move)
        result.origin = _shares(read[0])
        return result

    @np.errstate(invalid="ignore")
    def rounded(self, x: Range, rounding: Callable[[Data], Data]) -> Range:
        """The value with every entry rounded; the rounding is monotonic, so bounds stay bounds."""
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
        """The value with these entries absent."""
        x = self._read(x)
        away = np.array(absent if x.absent is None else absent | x.absent)
        mid, rad, usual = _zero(away, x)
        return Range(mid, rad, usual, away, origin=_shares(x))

    def hidden_like(self, x: Range, other: Range) -> Range:
        """The value with the absent entries of another one."""
        return x if other.absent is None else self.hiding(x, other.absent)

    def present(self, x: Range) -> Range:
        """Scores or attention weights with 0 at masked entries."""
        return x if x.absent is None else Range(*_zero(x.absent, x))


def _shares(x: Range) -> Origin | None:
    """The origin of attention weights, whose masked entries stay 0 when moved; else None."""
    return Origin(shares=True) if x.origin is not None and x.origin.shares else None


def _zero(away: Data, x: Range) -> tuple[Data, Data | None, Data | None]:
    """The arrays of a range with 0 at these places."""
    rad, usual = x.radius(), x.usual
    return (
        np.where(away, 0.0, x.mid),
        None if rad is None else np.where(away, 0.0, rad),
        None if usual is None else np.where(away, 0.0, usual),
    )


def _end_to_end(values: tuple[Range, ...]) -> Range:
    """The values concatenated along the first axis; None stands for zeros."""

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
