"""Memory for results: arrays side by side in a few large blocks, which are reused.

A trace keeps hundreds of arrays of some 100 kB.  If each were allocated, the system would clear new
pages of 4 kB, which takes a tenth of the time of a pass.  So middle-sized arrays share blocks.  A
block whose last array is gone waits for the next trace; the waiting memory is bounded.
"""

from __future__ import annotations

from math import prod
from weakref import finalize

import numpy as np

from byhand.numbers.floats.formats import Data, Kind

BLOCK = 1 << 23
SMALL, LARGE = 1 << 13, 1 << 20  # bytes; arrays between them share blocks
IDLE = 1 << 26  # bytes of blocks that may wait to be used again
LINE = 64  # bytes of a cache line, at which arrays begin

_idle: dict[int, Data] = {}  # by identity


class Memory:
    """Hands out arrays with arbitrary contents."""

    def __init__(self) -> None:
        self._block: Data = np.empty(0, dtype=np.uint8)
        self._used = 0

    def room(self, shape: tuple[int, ...], kind: Kind) -> Data:
        """A new array, C-contiguous, with arbitrary contents."""
        size = prod(shape) * kind.itemsize
        if size < SMALL:
            return np.empty(shape, dtype=kind)
        if size > LARGE:
            return _borrowed(size)[:size].view(kind).reshape(shape)
        if self._used + size > self._block.size:
            self._block = _borrowed(BLOCK)
            self._used = -self._block.ctypes.data % LINE
        start = self._used
        self._used += size + -size % LINE
        return self._block[start : start + size].view(kind).reshape(shape)


def _borrowed(size: int) -> Data:
    """A block of at least so many bytes, which becomes idle when its last array is gone."""
    block = _waiting(size)
    if block is None:
        block = np.empty(size, dtype=np.uint8)
    lent = np.frombuffer(block.data, dtype=np.uint8)  # views refer to this, not to the block
    finalize(lent, _give_back, block).atexit = False
    return lent


def _waiting(size: int) -> Data | None:
    """The smallest idle block of `size` to twice `size` bytes; None where there is none."""
    fitting = [block for block in tuple(_idle.values()) if size <= block.size <= 2 * size]
    for block in sorted(fitting, key=len):
        if _idle.pop(id(block), None) is not None:  # another thread may be faster
            return block
    return None


def _give_back(block: Data) -> None:
    if block.size + sum(map(len, tuple(_idle.values()))) <= IDLE:
        _idle[id(block)] = block
