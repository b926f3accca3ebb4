"""Rounding float64 arrays to coarser formats, each entry once and to nearest even.

Only what a value becomes: no arithmetic in those formats is done here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Data = npt.NDArray[Any]

# name → bits of the significand, exponent of the smallest step, largest value
FLOATS = {
    "float32": (24, -149, 3.4028234663852886e38),
    "tf32": (11, -136, 3.4028234663852886e38),
    "bfloat16": (8, -133, 3.3895313892515355e38),
    "float16": (11, -24, 65504.0),
    "float8_e4m3": (4, -9, 448.0),
    "float8_e5m2": (3, -16, 57344.0),
}
INT8 = "int8"
INT8_ROWS = "int8 by rows"
COARSER = ("tf32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")
LEVELS = 127.0  # the largest whole number of int8 that is used


def rounded_to(name: str, data: Data) -> Data:
    """The array in a format; beyond the largest value the largest value stands."""
    if name in (INT8, INT8_ROWS):
        return _whole_steps(data, by_rows=name == INT8_ROWS)
    bits, least, largest = FLOATS[name]
    finite = np.isfinite(data)
    safe = np.where(finite, data, 0.0)
    _part, exponent = np.frexp(safe)
    step = np.maximum(exponent - bits, least)
    result = np.ldexp(np.rint(np.ldexp(safe, -step)), step)
    kept: Data = np.where(finite, np.clip(result, -largest, largest), data)
    return kept


def _whole_steps(data: Data, *, by_rows: bool) -> Data:
    """Whole multiples of the largest entry over 127: how weights are packed into bytes."""
    finite = np.where(np.isfinite(data), data, 0.0)
    largest = np.abs(finite).max(axis=-1, keepdims=True) if by_rows else np.abs(finite).max()
    step = largest / LEVELS
    step = np.where(step > 0, step, 1.0)  # the least floats have no smaller step
    result: Data = np.rint(data / step) * step
    return result
