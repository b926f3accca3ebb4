"""The structure of a difference: which entries differ and how, read before any list is tried."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from byhand.checking.differences.attending import score_readings
from byhand.checking.differences.copies import copy_readings
from byhand.checking.differences.difference import (
    Description,
    Difference,
    Reader,
    Reading,
)
from byhand.checking.differences.factors import factor_readings
from byhand.checking.differences.formats import format_readings
from byhand.checking.differences.functions import function_readings
from byhand.checking.differences.grouping import group_readings
from byhand.checking.differences.mixing import mix_readings, out_readings
from byhand.checking.differences.moves import move_readings
from byhand.checking.differences.places import place_readings
from byhand.checking.differences.products import product_readings
from byhand.checking.differences.sharing import share_readings
from byhand.checking.differences.tables import table_readings
from byhand.checking.differences.turning import turning_readings

__all__ = ["Description", "Difference", "Reading", "readings"]

READERS: tuple[Reader, ...] = (
    place_readings,
    factor_readings,
    product_readings,
    function_readings,
    turning_readings,
    score_readings,
    share_readings,
    mix_readings,
    out_readings,
    group_readings,
    copy_readings,
    move_readings,
    format_readings,
    table_readings,
)
STUMBLES: tuple[type[Exception], ...] = (ArithmeticError, ValueError, IndexError)  # tests: none


def readings(difference: Difference) -> Iterator[Reading]:
    """What all readers see in a difference: edits to try, and descriptions.

    A check must not end because a reader stumbles over numbers that nobody thought of: it then
    sees nothing.  The tests do not forgive that.
    """
    for reader in READERS:
        try:
            with np.errstate(all="ignore" if STUMBLES else None):
                found = list(reader(difference))
        except STUMBLES:
            continue
        yield from found
