"""Ranges that can also do what is wrong on purpose: edited plans are worked out with them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.dropping import kept_keys, nearer, plausible
from byhand.checking.suspects.operations import Move, Rounding, WrongOperations
from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.allowed import Allowed, Range
from byhand.numbers.allowed.ranges import Origin, wide

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

    # ------------------------------------------------------------------- dropped

    def dropped(self, x: Range, *, values: Data, rate: Fraction) -> Range:
        """x as a dropout left it, which claimed these values."""
        larger = wide(x.mid) / float(1 - rate)
        return self._kept(x, nearer(values, np.zeros(x.shape), larger), larger != 0, rate)

    def dropped_add(self, x: Range, y: Range, *, values: Data, rate: Fraction) -> Range:
        """x + y, where a dropout had left some of y."""
        larger, off = wide(y.mid) / float(1 - rate), self.add(x, y).radius()
        kept = nearer(values, wide(x.mid), wide(x.mid) + larger)
        tells = np.abs(larger) > 4 * (0.0 if off is None else off)
        return self.add(x, self._kept(y, kept, tells, rate))

    def dropped_mix(self, weights: Range, v: Range, *, values: Data, rate: Fraction) -> Range:
        """What is mixed of the shares that a dropout had left."""
        factor = float(1 / (1 - rate))
        off = self.mix(weights, v).radius()
        assert off is not None
        shares, rows = wide(weights.mid), wide(v.mid)
        # the shares are stored once more before they are mixed, and the result may be larger
        sizes = self.mix(Range(shares), Range(np.abs(rows))).mid
        off = off + sizes * (2 * self.precision.store.half)
        kept = kept_keys(shares, rows, values, factor * off, factor)
        lengths = np.repeat(np.linalg.norm(rows, axis=-1), len(shares) // len(rows), axis=0)
        tells = shares * lengths[:, None] > 4 * np.linalg.norm(off, axis=-1)[..., None]
        return self.mix(self._kept(weights, kept, tells, rate), v)

    def _kept(self, x: Range, kept: Data, tells: Data, rate: Fraction) -> Range:
        """What is left of x; entries so small that nothing tells are not counted."""
        if not plausible(kept, tells, float(rate)):
            raise InputError(_("no dropout explains it"))
        # the factor is a float32 number whatever the format
        left = Range(np.where(kept, float(1 / (1 - rate)), 0.0), relative=2.0**-24)
        return self.hidden_like(self.multiply(x, left), x)


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
