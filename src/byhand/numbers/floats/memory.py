"""Room for results: many middle-sized arrays laid side by side in a few large blocks.

A trace keeps hundreds of arrays of some 100 kB.  Asked for one by one, the system hands over their
memory in pages of 4 kB, which takes a tenth of the time of a pass; blocks of 4 MB and more NumPy
asks for in large pages.  A block is given back when the last array in it is.
"""

from __future__ import annotations

from math import prod

import numpy as np

from byhand.numbers.floats.formats import Data, Kind

BLOCK = 1 << 23
SMALL, LARGE = 1 << 13, 1 << 20  # bytes; arrays outside this range are on their own
LINE = 64  # bytes of a cache line, at which arrays begin


class Memory:
    """Hands out arrays that nothing has been written to yet."""

    def __init__(self) -> None:
        self._block: Data = np.empty(0, dtype=np.uint8)
        self._used = 0

    def room(self, shape: tuple[int, ...], kind: Kind) -> Data:
        """A new array, C-contiguous, with arbitrary contents."""
        size = prod(shape) * kind.itemsize
        if not SMALL <= size <= LARGE:
            return np.empty(shape, dtype=kind)
        if self._used + size > self._block.size:
            self._block = np.empty(BLOCK, dtype=np.uint8)
            self._used = -self._block.ctypes.data % LINE
        start = self._used
        self._used += size + -size % LINE
        return self._block[start : start + size].view(kind).reshape(shape)
