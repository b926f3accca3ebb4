"""The structure of a difference: which entries differ and how, read before any list is tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
from byhand.checking.differences.overflows import overflow_readings
from byhand.checking.differences.pairs_read import pair_readings
from byhand.checking.differences.places import place_readings
from byhand.checking.differences.products import product_readings
from byhand.checking.differences.row_rules import rule_readings
from byhand.checking.differences.sharing import share_readings
from byhand.checking.differences.slopes import slope_readings
from byhand.checking.differences.stale import stale_readings
from byhand.checking.differences.statistics import statistic_readings
from byhand.checking.differences.sums import sum_readings
from byhand.checking.differences.tables import id_readings, table_readings
from byhand.checking.differences.turning import turning_readings
from byhand.checking.differences.updates import update_readings

__all__ = ["Description", "Difference", "Reading", "readings"]

READERS: tuple[Reader, ...] = (
    place_readings,
    overflow_readings,
    factor_readings,
    product_readings,
    function_readings,
    statistic_readings,
    sum_readings,
    update_readings,
    slope_readings,
    turning_readings,
    score_readings,
    share_readings,
    mix_readings,
    out_readings,
    group_readings,
    copy_readings,
    move_readings,
    stale_readings,
    format_readings,
    table_readings,
    rule_readings,
    pair_readings,
)
STUMBLES: tuple[type[Exception], ...] = (Exception,)  # in tests none: there it is a bug


@contextmanager
def forgiving() -> Iterator[None]:
    """Goes on where a reader stumbles over numbers that nobody thought of: it then sees nothing.

    A check must not end because of its diagnosis.  The tests do not forgive that.
    """
    try:
        with np.errstate(all="ignore" if STUMBLES else None):
            yield
    except STUMBLES:
        pass


def readings(difference: Difference) -> Iterator[Reading]:
    """What all readers see in a difference: edits to try, and descriptions."""
    for reader in (id_readings,) if difference.target.op == "argmax" else READERS:
        found: list[Reading] = []
        with forgiving():
            found = list(reader(difference))
        yield from found
