"""Lower bounds of the distances of floats from enclosed numbers of any size.

Each bound is a float64 times its own power of two.  So the distance of a float 0 from a true 1e-695
is neither 0 nor the smallest float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Exponents = npt.NDArray[np.int64]
FARTHEST = 2_200  # a power of two beyond which every float64 is 0 or infinite


@dataclass(frozen=True, slots=True)
class Apart:
    """Floats beside sets of numbers, entry by entry.

    Every x of a set has |float - x| ≥ least · 2^exponents and |x| ≤ sizes · 2^tops.  2^tops is more
    than the largest |x|, but not more than twice it.  A size of 0 means that the number is exactly
    0.  Masked entries are such zeros, at distance 0.
    """

    least: Floats  # infinite where the float is not finite
    exponents: Exponents
    sizes: Floats
    tops: Exponents

    def ulps(self, bits: int, smallest: int) -> Floats:
        """The distances in units of the last place, at the size of the largest |x|.  They are lower
        bounds up to the rounding of float64, and above 0 where the distance is.

        The format has so many `bits`, and its smallest normal number is 2^smallest.
        """
        units = np.maximum(self.tops - 1, smallest) - (bits - 1)
        return scaled(self.least, self.exponents - units)

    def digits(self) -> Floats:
        """Upper bounds of the number of right decimal digits; infinite where all may be right."""
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = (self.tops - self.exponents) + np.log2(self.sizes) - np.log2(self.least)
        found: Floats = np.where(self.least > 0, np.maximum(powers * np.log10(2), 0.0), np.inf)
        return found


def scaled(mantissas: Any, exponents: Any) -> Floats:
    """mantissa · 2^exponent; a nonzero finite number does not become 0 or infinite."""
    powers = np.clip(exponents, -FARTHEST, FARTHEST).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        found: Floats = np.ldexp(mantissas, powers)
    among = (mantissas > 0) & np.isfinite(mantissas)
    return np.where(among, np.clip(found, np.nextafter(0.0, 1.0), np.finfo(np.float64).max), found)
