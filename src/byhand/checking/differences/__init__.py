"""The structure of a difference: which entries differ and how, read before any list is tried."""

from __future__ import annotations

from collections.abc import Iterator

from byhand.checking.differences.difference import (
    Description,
    Difference,
    Reader,
    Reading,
)
from byhand.checking.differences.factors import factor_readings
from byhand.checking.differences.places import place_readings
from byhand.checking.differences.products import product_readings
from byhand.checking.differences.slopes import slope_readings
from byhand.checking.differences.turning import turning_readings

__all__ = ["Description", "Difference", "Reading", "readings"]

READERS: tuple[Reader, ...] = (
    place_readings,
    factor_readings,
    product_readings,
    slope_readings,
    turning_readings,
)


def readings(difference: Difference) -> Iterator[Reading]:
    """What all readers see in a difference: edits to try, and descriptions."""
    for reader in READERS:
        yield from reader(difference)
