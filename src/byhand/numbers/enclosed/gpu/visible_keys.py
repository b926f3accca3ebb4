"""The keys that each query sees in causal attention, and the layout of their rows in memory.

Queries are taken in steps of STEP; the products of a step reach to the last key that any of its
queries sees.  This module knows where rows lie in memory and how far they are walked; the
arithmetic is in `causal_scores` and `causal_attention`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.numbers.enclosed.gpu import kernels
from byhand.numbers.enclosed.gpu.row_kernels import RowLayout, Walk
from byhand.numbers.enclosed.limbs.engine import Array, engine_of
from byhand.numbers.enclosed.limbs.radii import Bound, slack

STEP = 256  # queries whose products are made together
FEWEST = 128  # queries for which this is worth it
MOST_LIMBS = 41


@dataclass(frozen=True, slots=True)
class Block:
    """Queries from `first` to `last`, and how many keys they see at most."""

    first: int
    last: int
    reach: int
    start: int  # of its entries among those of all blocks, for one head's share


class VisibleKeys:
    """Which keys each query sees, and where rows lie."""

    def __init__(self, seen: Any, heads: int, keys: int, like: Array) -> None:
        queries = len(seen)
        self.shape = heads, queries, keys
        rows = heads * queries
        self.blocks: list[Block] = []
        stop = np.zeros(queries, np.int64)
        starts = np.zeros((heads, queries), np.int64)
        size = 0
        for first in range(0, queries, STEP):
            last = min(first + STEP, queries)
            reach = int(seen[first:last].max())
            stop[first:last] = reach
            place = np.arange(heads * (last - first)).reshape(heads, last - first)
            starts[:, first:last] = size + place * reach
            self.blocks.append(Block(first, last, reach, size))
            size += heads * (last - first) * reach
        self.size = size

        def put(numbers: Any) -> Array:
            from_numpy = engine_of(like).module.from_numpy
            return from_numpy(np.ascontiguousarray(numbers)).to(like.device)

        every = [np.tile(one, heads) for one in (seen, stop)]
        self.seen, self.stop = (put(one.astype(np.int32)) for one in every)
        self.seen_floats = put(every[0].astype(np.float64))[None]
        self._ends = put(seen.astype(np.int64) - 1)
        self._dense = put(np.arange(rows, dtype=np.int64) * keys)
        self._dense_step = put(np.full(rows, rows * keys, np.int64))
        self._folded = put(starts.ravel())
        self._folded_step = put(every[1].astype(np.int64))
        # made now: a repeated pass copies nothing to the device
        self._starts = {n: self._folded * n for n in range(1, MOST_LIMBS + 1)}

    def walk(self, whole: bool = False) -> Walk:
        """The walk along the keys seen; with `whole`, along all keys that have products."""
        heads, queries, keys = self.shape
        seen = self.stop if whole else self.seen
        return Walk(seen, self.stop, heads * queries, keys, queries)

    def dense(self, array: Array) -> RowLayout:
        """The layout of rows in an array (n, head, query, key)."""
        return RowLayout(array, int(array.shape[0]), self._dense, self._dense_step)

    def folded(self, array: Array, n: int) -> RowLayout:
        """The layout of rows in blocks of (head, query, limb, key)."""
        return RowLayout(array, n, self._starts[n], self._folded_step)

    def block_of(self, array: Array, n: int, block: Block) -> Array:
        """(head, query, n, key) of a block."""
        heads, count = self.shape[0], block.last - block.first
        part = array[block.start * n : (block.start + heads * count * block.reach) * n]
        return part.view(heads, count, n, block.reach)

    def at_end(self, running: Array) -> Array:
        """The running values at the last key seen: (head, key) → (head, query)."""
        return running.index_select(1, self._ends)

    def sum(self, bounds: Bound) -> Bound:
        """A bound of the sum over the keys seen, in any order of summation."""
        if bounds is None:
            return None
        return self.at_end(bounds.cumsum(1)) * slack(self.shape[2])

    def most(self, bounds: Bound) -> Bound:
        """The largest bound among the keys seen."""
        return None if bounds is None else self.at_end(bounds.cummax(1).values)


_known: OrderedDict[Any, tuple[Any, VisibleKeys | None]] = OrderedDict()
REMEMBERED = 8


def visible_keys_of(mask: Sequence[Sequence[bool]], heads: int, like: Array) -> VisibleKeys | None:
    """The visible keys; None if they are no prefix, queries are few, or kernels are missing."""
    if len(mask) < FEWEST or not kernels.usable(like) or kernels.patient():
        return None
    key = id(mask), heads, str(like.device)
    if key not in _known:
        visible = np.asarray(mask, dtype=bool)
        seen = visible.sum(1)
        found = None
        if seen.min() > 0 and (visible == (np.arange(visible.shape[1]) < seen[:, None])).all():
            found = VisibleKeys(seen, heads, visible.shape[1], like)
        _known[key] = mask, found  # the mask is kept, so that its id is no other's
        if len(_known) > REMEMBERED:
            _known.popitem(last=False)
    return _known[key][1]
