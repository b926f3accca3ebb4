"""In which float format numbers were worked out that are kept in a wider one.

NumPy has no bfloat16, so such values are saved as float32; and lists of Python are float64.  What
an array is kept in then says nothing: the numbers themselves do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.floats.formats import FORMATS, Format

NARROWER = ("bfloat16", "float16", "float32")  # by the bits of their numbers, the fewest first
ENOUGH = 32  # numbers that use the last bit of the format: fewer may be chance, or round numbers
SHARE = 8  # one in so many of the numbers uses it, where they are not round: it should be half


def narrowest_format(arrays: Iterable[npt.NDArray[Any]], kept_in: str) -> str:
    """The narrowest format that holds all numbers of all arrays; `kept_in` where none does.

    Numbers that a format holds by chance (0, 1, a half) are no evidence: enough of them must need
    its last bit.
    """
    all_of_them = [np.asarray(array) for array in arrays]
    for name in NARROWER:
        if FORMATS[name].bits < FORMATS[kept_in].bits and _holds(FORMATS[name], all_of_them):
            return name
    return kept_in


def cast_on_the_way(array: npt.NDArray[Any], kept_in: str, others: str) -> bool:
    """Whether it is kept, and needed, in a wider format than `others`, which is one of 16 bits."""
    narrow = FORMATS[others]
    if narrow.bits >= FORMATS["float32"].bits or FORMATS[kept_in].bits <= narrow.bits:
        return False
    return not _fits(narrow, np.asarray(array))


def _fits(form: Format, array: npt.NDArray[Any]) -> bool:
    """Whether the format holds every number."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = array.astype(form.dtype).astype(np.float64)
        return np.array_equal(rounded, array.astype(np.float64), True)


def _holds(form: Format, arrays: list[npt.NDArray[Any]]) -> bool:
    count = using = 0
    for array in arrays:
        if not _fits(form, array):
            return False
        rounded = array.astype(form.dtype)
        bits = rounded.view(f"u{form.dtype.itemsize}")
        count += int(np.count_nonzero(rounded))
        using += int(np.count_nonzero(bits & 1))
    return using >= max(ENOUGH, count / SHARE)
