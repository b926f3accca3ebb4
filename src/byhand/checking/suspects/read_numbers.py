"""Operations of edited plans whose constants were read off a claim.

A weight rewritten, a sum with other factors, a curve in place of an activation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.checking.suspects.casts import rounded_to
from byhand.checking.suspects.pieces import Pieces
from byhand.checking.suspects.rewritings import Replaced, Rewriting
from byhand.errors import InputError
from byhand.language import _
from byhand.numbers.allowed import Range
from byhand.numbers.allowed.precisions import ROW
from byhand.numbers.allowed.ranges import Origin, quadrature, wide
from byhand.numbers.allowed.rounding import quiet

Data = npt.NDArray[Any]
NEAR = 2.0**-16  # of a number: the step at which the slope of a curve is taken


class ReadOff(Pieces):
    """Ranges with operations whose constants are floats, cheap for large matrices."""

    @quiet(all="ignore")
    def rewritten(self, x: Any, *, rewriting: Rewriting, turned: bool = False) -> Range:
        """A weight as a port made it; `turned`: its file has the outputs first."""
        if isinstance(rewriting, Replaced) and rewriting.values.dtype == np.dtype(object):
            new: Range = self.admit(rewriting.values.T if turned else rewriting.values)
            return new
        own: Range = self.admit(x)
        if own.rad is not None and own.stored is None:
            raise InputError(_("this weight is not a float"))
        data = own.mid.T if turned else own.mid
        made = rewriting(data)
        found = Range(made.T if turned else made, own.rad, relative=own.relative, least=own.least)
        found.stored = own.stored
        return found

    @quiet(all="ignore")
    def weighted_sum(self, *, factors: Sequence[float], **terms: Any) -> Range:
        """Σ factor·term, in any order."""
        store = self.precision.store
        mid, rad, usual, size = (np.zeros(()) for _part in range(4))
        for factor, term in zip(factors, terms.values(), strict=True):
            x = self._read(term)
            part = wide(x.mid) * factor
            own = 0.0 if factor in (0.0, 1.0, -1.0) else store.half
            mid, size = mid + part, size + np.abs(part)
            radius = x.radius()
            rad = rad + np.abs(part) * own
            rad = rad if radius is None else rad + radius * abs(factor)
            usual = usual + np.square(0.4 * own * part)
            usual = usual if x.usual is None else usual + np.square(x.usual * factor)
        # in any order: every sum on the way may be stored
        rad = rad + len(terms) * store.half * size
        usual = usual + (len(terms) - 1) * np.square(0.3 * store.half * size)
        return self._stored(mid, rad, np.sqrt(usual))

    @quiet(all="ignore")
    def bent(self, x: Any, *, curve: Callable[[Data], Data]) -> Range:
        """A curve, entry by entry.

        Its rounding is taken as that of an activation: a few units relative to x and to the result.
        """
        x = self._read(x)
        p = self.precision
        data, radius = wide(x.mid), x.radius()
        mid = np.asarray(curve(data), dtype=np.float64)
        off = (np.abs(data) + np.abs(mid)) * (2 * p.function + 4 * p.work.half)
        usual = (np.abs(data) + np.abs(mid)) * (0.25 * p.work.half)
        if radius is not None or x.usual is not None:
            step = NEAR * (1 + np.abs(data))
            slope = np.abs(np.asarray(curve(data + step)) - np.asarray(curve(data - step)))
            slope = slope / (2 * step)
            off = off if radius is None else off + 1.5 * slope * radius
            usual = np.asarray(quadrature(usual, None if x.usual is None else slope * x.usual))
        return self._stored(mid, off, usual, absent=x.absent)

    @quiet(all="ignore")
    def statistic(self, x: Any, *, how: Callable[[Data], Data], centred: bool = False) -> Range:
        """One number for each row, as a part of a norm; how far it moves is tried, not proven."""
        x = self._read(x)
        p = self._norm_precision(centred)
        data, radius = wide(x.mid), x.radius()
        mid = np.array(how(data))
        sizes = np.array(how(np.abs(data)))
        largest = np.maximum(np.abs(mid), np.abs(sizes))
        off = largest * (2 * (data.shape[-1] + 4) * p.rows.half)
        along, _across = p.usual_sum(data.shape[-1], ROW)
        usual = largest * (1.5 * along + p.rows.half)
        if radius is not None:
            off = off + np.maximum(*(np.abs(how(data + side * radius) - mid) for side in (1, -1)))
        if x.usual is not None:
            moved = np.maximum(*(np.abs(how(data + side * x.usual) - mid) for side in (1, -1)))
            usual = np.hypot(usual, moved / np.sqrt(data.shape[-1]))
        return self._part(p, mid, off, usual, Origin(centred=centred))

    @quiet(all="ignore")
    def rooted(self, x: Any, *, eps: float, power: float, after: float = 0.0) -> Range:
        """(x + eps)^power + after: the divisor of a norm."""
        centred = x.origin is not None and x.origin.centred
        p = self._norm_precision(centred)
        under = np.maximum(wide(x.mid) + eps, 0.0)
        mid = under**power
        radius, usual = x.radius(), mid * (0.5 * p.work.half)
        off = mid * (4 * p.function + 4 * p.work.half)
        slope = abs(power) * mid / under
        off = off if radius is None else off + 1.1 * slope * radius
        usual = usual if x.usual is None else np.hypot(usual, slope * x.usual)
        return self._part(
            p, mid + after, np.asarray(off), np.asarray(usual), Origin(centred=centred)
        )

    def rounded_as(self, x: Any, *, how: Callable[[Data], Data]) -> Range:
        """The value rounded in a way of its own, row by row."""
        x = self._read(x)
        rows = self.merge_heads(x) if x.ndim == 3 else x
        return self.rounded(rows, how)

    def weighed_rows(self, x: Any, *, factors: Data) -> Range:
        """Rows, heads side by side, with a factor for each entry."""
        x = self._read(x)
        rows = self.merge_heads(x) if x.ndim == 3 else x
        return self.weighed(rows, factors=factors, relative=2.0**-24)

    @quiet(all="ignore")
    def linear_in_chunks(
        self, x: Any, weight: Any, *, layout: str, size: int, format: str, what: str,
        bias: Any = None, heads: int | None = None,
    ) -> Range:  # fmt: skip
        """A product summed up in chunks of input channels, each sum rounded to a format.

        `what` is rounded: the "total" after each chunk, the "chunks", or "both".
        """
        x = self._read(x)
        rows = self.merge_heads(x) if x.ndim == 3 else x
        matrix = self.admit(weight)

        def cast(data: Data) -> Data:
            return rounded_to(format, data)

        total: Range | None = None
        for start in range(0, rows.shape[1], size):
            here = slice(start, start + size)
            part = matrix[here] if layout == "in_out" else matrix[:, here]
            chunk = self._times_matrix(rows[:, here], part, layout, None)
            chunk = chunk if what == "total" else self.rounded(chunk, cast)
            total = chunk if total is None else self.add(total, chunk)
            total = total if what == "chunks" else self.rounded(total, cast)
        assert total is not None
        if bias is not None:
            total = self.affine(total, bias=bias)
        if heads is None:
            return total
        width = total.shape[1] // heads
        return self.split_heads(total, start=0, heads=heads, width=width, stride=width)
