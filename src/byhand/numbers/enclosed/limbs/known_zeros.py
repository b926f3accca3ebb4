"""Known zeros: which entries of a result are exactly 0, because those that it reads are.

Rounding keeps a zero, so the midpoint of such an entry is 0 as well, and its radius is 0.

Some gradients vanish for a reason that no single entry shows.  A position that sees one key has the
share 1 whatever its score.  And attention does not change where one vector is added to all keys,
so the gradients of keys cancel: their sum over the positions, which is the gradient of a bias, is
0.  `Origin` remembers where that holds.
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


def sums_to_zero(weights: Enclosed, grad: Enclosed, dot: Enclosed) -> bool:
    """Whether weights·(grad - dot) adds up to 0 in each row: shares of 1, and their own dot."""
    shares, source = weights.origin, dot.origin
    if shares is None or source is None or shares.kind != "softmax":
        return False
    return source.kind == "row_dots" and source.source is weights and source.more is grad


def cancelling(x: Enclosed) -> Sequence[int]:
    """The columns, heads side by side, whose sums over all positions are known to be 0."""
    if x.origin is None or x.origin.kind != "cancelling":
        return ()
    found: Sequence[int] = x.origin.more
    return found


def zeros_of(x: Enclosed) -> Array:
    """True where an entry is known to be 0, as an array in any case."""
    return x.zeros if x.has_zeros else x.approx != x.approx
