"""Weights and the constants of a plan, as ranges."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from byhand.expression import Expression
from byhand.numbers.allowed.precisions import OWN, Precision
from byhand.numbers.allowed.ranges import Data, Range
from byhand.numbers.base import ABSENT, Printed
from byhand.numbers.floats import nearest
from byhand.numbers.floats.formats import FLOAT64, FORMATS, find_format, narrowed

KNOWN = {form.dtype: form for form in FORMATS.values()}


def admitted(data: Any, p: Precision | None) -> Range:
    """The numbers as a range; without a precision, rounded to float64 only."""
    if isinstance(data, np.ma.MaskedArray):
        inner = admitted(data.data, p)
        inner.absent = np.ma.getmaskarray(data)
        return inner
    values = np.asarray(data)
    if values.dtype not in KNOWN:
        return _of_objects(values.astype(object), p)
    if p is None or p.store.half == 0:
        return Range(values)
    if p.cast_weights is not None:
        return Range(narrowed(values, p.cast_weights), least=p.flushed)
    finer = values.dtype == FLOAT64 and p.store.half > OWN
    return Range(values, relative=p.store.half if finer else 0.0, least=p.flushed)


def _of_objects(values: Data, p: Precision | None) -> Range:
    """Fractions, expressions or rounded decimals as the nearest floats, with their errors."""
    flat = values.ravel()
    absent = np.fromiter((x is ABSENT for x in flat), dtype=bool, count=flat.size)
    absent = absent.reshape(values.shape)
    narrow = p is not None and p.cast_weights is not None
    name = str(p.cast_weights) if p is not None and narrow else "float64"
    near = np.ma.getdata(nearest.nearest_entries(values, find_format(name)))
    rad = np.zeros(flat.size)
    mids = near.astype(np.float64).ravel()
    for place, entry in enumerate(flat):
        if isinstance(entry, Printed):
            rad[place] = float(Fraction(1, 2 * 10**entry.places)) * (1 + 4 * OWN)
            rad[place] += abs(mids[place]) * (2 * OWN)
        elif not narrow and entry is not ABSENT and not _is(entry, mids[place]):
            rad[place] = abs(mids[place]) * OWN + 2.0**-1074
    relative = 0.0 if p is None or narrow else p.store.half
    return Range(
        near if narrow else mids.reshape(values.shape),
        rad.reshape(values.shape) if rad.any() else None,
        absent=absent if absent.any() else None,
        relative=relative,
        least=0.0 if p is None else p.flushed,
    )


def _is(entry: Any, number: float) -> bool:
    return isinstance(entry, Fraction | int) and Fraction(number) == entry


@lru_cache(maxsize=256)
def constant(value: Expression | Fraction) -> tuple[float, float]:
    """A constant of the plan in float64, and its relative error: 0 where it is exact."""
    near = float(nearest.constant(value, FORMATS["float64"]))
    if isinstance(value, Fraction):
        return near, 0.0 if Fraction(near) == value else 2 * OWN
    from byhand.numbers.exact import Exact

    exact = Exact().scalar(value).fraction
    return near, 0.0 if exact is not None and Fraction(near) == exact else 2 * OWN
