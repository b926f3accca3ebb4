"""The float formats, and the conversion of arrays between them.

Widening never changes a number.  Narrowing rounds each entry once, to the nearest number of the
format, ties to even; what is too large becomes infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ldexp
from typing import Any

import numpy as np
import numpy.typing as npt
from ml_dtypes import bfloat16

from byhand.errors import InputError, nearest
from byhand.language import _

Data = npt.NDArray[Any]
Kind = np.dtype[Any]

FLOAT64, FLOAT32, FLOAT16 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16)
BFLOAT16 = np.dtype(bfloat16)


@dataclass(frozen=True, slots=True)
class Format:
    """A binary float format: `bits` in the significand, exponents from `least` to `most`."""

    name: str
    dtype: Kind
    bits: int
    least: int  # of the smallest normal number, 2^least
    most: int  # of the largest number, which is below 2^(most + 1)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return ldexp(2**self.bits - 1, self.most - self.bits + 1)

    @property
    def working(self) -> Format:
        """The format operations are done in: itself, or float32 for the narrow ones."""
        return FORMATS["float32"] if self.bits < 24 else self


FORMATS = {
    form.name: form
    for form in (
        Format("float64", FLOAT64, 53, -1022, 1023),
        Format("float32", FLOAT32, 24, -126, 127),
        Format("bfloat16", BFLOAT16, 8, -126, 127),
        Format("float16", FLOAT16, 11, -14, 15),
    )
}
NARROWER = {  # the formats whose numbers a format holds exactly
    FLOAT64: (FLOAT32, FLOAT16, BFLOAT16),
    FLOAT32: (FLOAT16, BFLOAT16),
    FLOAT16: (),
    BFLOAT16: (),
}


def find_format(name: str) -> Format:
    """The format of this name; an InputError with the known ones."""
    if name not in FORMATS:
        raise InputError(
            _("there is no float format {name}").format(name=repr(name)),
            expected=", ".join(FORMATS),
            found=str(name),
            hint=nearest(str(name), FORMATS),
        )
    return FORMATS[name]


def widened(x: Data, to: Kind) -> Data:
    """The same numbers in a format that holds them; the array itself where it is in it already."""
    if x.dtype == to:
        return x
    if x.dtype == BFLOAT16:  # the upper half of a float32
        wide = x.view(np.uint16).astype(np.uint32)
        wide <<= 16
        x = wide.view(np.float32)
    return x.astype(to, copy=False)


def narrowed(x: Data, to: Kind) -> Data:
    """Each entry rounded once to a format that may be narrower; the array itself where it is not.

    The caller must silence overflow warnings (`np.errstate`).
    """
    if x.dtype == to:
        return x
    if x.dtype == FLOAT64 and to == BFLOAT16:
        x = _rounded_to_odd(x)
    elif BFLOAT16 in (x.dtype, to):
        x = widened(x, FLOAT32)
    return x.astype(to, copy=False)


def _rounded_to_odd(x: Data) -> Data:
    """The numbers as float32, cut off towards zero, with the last bit set if anything was lost.

    ml_dtypes goes from float64 to bfloat16 through float32 and rounds twice: 1 + 2^-8 + 2^-40
    becomes 1 instead of 1 + 2^-7.  The last bit, as a mark of the rest, makes the second rounding
    right.
    """
    near = x.astype(FLOAT32)
    back = near.astype(FLOAT64)
    bits = near.view(np.uint32)
    bits -= np.abs(back) > np.abs(x)  # towards zero
    bits |= back != x
    return near
