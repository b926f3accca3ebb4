"""Buckets of distances: which row of a table of relative positions a query and a key share.

Half of the buckets are for one distance each; the others widen, as the logarithm of the distance
grows, up to the largest distance.  The bounds between them are decided in whole numbers.

Models work with logarithms in float32.  Where a distance lies exactly on a bound, these may fall
below it, and on which side depends on the processor.  With 32 buckets up to 128, which all T5
models have, they agree with the whole numbers; so they do in all but a few unusual settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from byhand.spec import RelativeSpec


def buckets(
    relative: RelativeSpec, queries: Sequence[int], keys: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """The bucket of each query and key, by their positions."""
    return tuple(tuple(_bucket(relative, key - query) for key in keys) for query in queries)


@lru_cache(maxsize=4096)
def _bucket(relative: RelativeSpec, ahead: int) -> int:
    """The bucket of a key that is `ahead` of its query by so many positions."""
    count, first = relative.buckets, 0
    if relative.both:
        count //= 2
        first, distance = (count if ahead > 0 else 0), abs(ahead)
    else:
        distance = max(-ahead, 0)
    exact = count // 2
    if distance < exact:
        return first + distance
    # the largest j with (distance/exact)^(count - exact) at least (largest/exact)^j
    wide, j = count - exact, 0
    while j + 1 < wide and _reaches(distance, exact, relative.distance, wide, j + 1):
        j += 1
    return first + exact + j


def _reaches(distance: int, exact: int, largest: int, wide: int, j: int) -> bool:
    """Whether ln(distance/exact)/ln(largest/exact)·wide is at least j."""
    return bool(distance**wide * exact**j >= largest**j * exact**wide)
