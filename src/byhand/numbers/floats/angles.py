"""Sines and cosines of positions, computed in float64 for every format."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from byhand.numbers.floats.formats import FLOAT64, Data, Kind, narrowed, widened


def frequencies_of(base: Fraction, width: int) -> Data:
    """base^(-2i/width) for each pair i."""
    exponents = np.arange(0, width, 2, dtype=FLOAT64) / -width
    return np.power(float(base), exponents)


def turns(
    positions: Sequence[int], width: int, base: Fraction, frequencies: Data | None
) -> tuple[Data, Data]:
    """(cos, sin) of position · frequency, each (pos, width/2) in float64."""
    if frequencies is None:
        rates = frequencies_of(base, width)
    else:
        rates = widened(frequencies, FLOAT64)
    angles = np.multiply.outer(np.asarray(positions, dtype=FLOAT64), rates)
    return np.cos(angles), np.sin(angles)


def sinusoids(positions: Sequence[int], width: int, base: Fraction, pairing: str) -> Data:
    """sin and cos of position / base^(2i/width), at entries 2i and 2i + 1, in float64.

    With the pairing "half": all sines, then all cosines.
    """
    cos, sin = turns(positions, width, base, None)
    table = np.empty((len(positions), width), dtype=FLOAT64)
    sines, cosines = slice(0, width, 2), slice(1, width, 2)
    if pairing == "half":
        sines, cosines = slice(0, width - width // 2), slice(width - width // 2, width)
    table[:, sines] = sin
    table[:, cosines] = cos[:, : width // 2]
    return table


@lru_cache(maxsize=16)
def turns_in(
    kind: Kind,
    positions: tuple[int, ...],
    width: int,
    base: Fraction,
    given: tuple[bytes, Kind] | None,
) -> tuple[Data, Data]:
    """(cos, sin) of `turns`, rounded to a format; cached, since all layers share them."""
    frequencies = None if given is None else np.frombuffer(*given)
    cos, sin = turns(positions, width, base, frequencies)
    return narrowed(cos, kind), narrowed(sin, kind)
