"""Known zeros: which entries of a result are exactly 0, because those that it reads are.

Rounding keeps a zero, so the midpoint of such an entry is 0 as well, and its radius is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from byhand.numbers.enclosed.limbs.engine import Array
from byhand.numbers.enclosed.limbs.values import Enclosed

Zeros = Callable[[], Array] | None


def same(x: Enclosed) -> Zeros:
    """Of entries that go on one by one."""
    return (lambda: x.zeros) if x.has_zeros else None


def every(x: Enclosed, axis: int = -1) -> Zeros:
    """Of sums along an axis."""
    return (lambda: x.zeros.all(axis)) if x.has_zeros else None


def rows(x: Enclosed, width: int) -> Zeros:
    """Of rows of another width, each of which depends on a whole row."""
    if not x.has_zeros:
        return None
    return lambda: x.digits.engine.broadcast(x.zeros.all(-1)[..., None], (*x.shape[:-1], width))


def one_of(x: Enclosed, y: Enclosed) -> Zeros:
    """Of products of two entries."""
    if not (x.has_zeros or y.has_zeros):
        return None
    return lambda: zeros_of(x) | zeros_of(y)


def all_of(terms: Sequence[Enclosed]) -> Zeros:
    """Of sums of entries of several arrays."""
    if not all(term.has_zeros for term in terms):
        return None

    def found() -> Any:
        result = terms[0].zeros
        for term in terms[1:]:
            result = result & term.zeros
        return result

    return found


def zeros_of(x: Enclosed) -> Array:
    """True where an entry is known to be 0, as an array in any case."""
    return x.zeros if x.has_zeros else x.approx != x.approx
