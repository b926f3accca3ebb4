"""Room for results: arrays laid side by side in a few large blocks, which are used again.

A trace keeps hundreds of arrays of some 100 kB.  Asked for one by one, and anew for each trace,
the system hands over their memory in pages of 4 kB that it clears first, which takes a tenth of
the time of a pass.  So middle-sized arrays share blocks, and a block whose last array is gone
waits for the next trace; what waits is bounded.
"""

from __future__ import annotations

from math import prod
from weakref import finalize

import numpy as np

from byhand.numbers.floats.formats import Data, Kind

BLOCK = 1 << 23
SMALL, LARGE = 1 << 13, 1 << 20  # bytes; smaller arrays are on their own, larger ones in a block
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
    """A block of at least so many bytes, which comes back when no array lies in it any more."""
    block = _waiting(size)
    if block is None:
        block = np.empty(size, dtype=np.uint8)
    lent = np.frombuffer(block.data, dtype=np.uint8)  # its views hold it, not the block
    finalize(lent, _give_back, block).atexit = False
    return lent


def _waiting(size: int) -> Data | None:
    """The smallest idle block that holds so many bytes and wastes no more than as many."""
    fitting = [block for block in tuple(_idle.values()) if size <= block.size <= 2 * size]
    for block in sorted(fitting, key=len):
        if _idle.pop(id(block), None) is not None:  # unless another thread was faster
            return block
    return None


def _give_back(block: Data) -> None:
    if block.size + sum(map(len, tuple(_idle.values()))) <= IDLE:
        _idle[id(block)] = block
