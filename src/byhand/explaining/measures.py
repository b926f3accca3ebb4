"""What is measured of a pattern of attention and of the units of an MLP, in float64.

A pattern's entropy is -Σ p·ln p over the keys a query sees, in nats.  Its effective rank is e to
the entropy of its singular values, divided by their sum: 1 where every query looks alike, the
number of queries where each looks at a key of its own.  What is measured of queries (the share on
the first key, on their own, on a single one) is measured of those that see more than one key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from byhand.explaining.approximations import Flags, Floats

QUIET = 1e-3  # of the layer's largest: a unit that stays below it at every position is dead
SATURATED = 0.99  # of a row of attention, on a single key
BENT = 0.01  # how near act(x)/x is to 0 (flat) or to 1 (linear)
LONGEST = 256  # positions up to which the ranks of a pattern are worked out


@dataclass(frozen=True, slots=True)
class Pattern:
    """One head's pattern of attention."""

    head: int
    entropy: tuple[float | None, ...]  # nats, for each query
    share_of_most: tuple[float | None, ...]  # entropy / ln(number of keys); None: a single key
    mean_entropy: float | None
    mean_share_of_most: float | None
    effective_rank: float | None  # None: a text of more than LONGEST positions, or not finite
    numerical_rank: int | None
    first: float | None  # the mean share on the first key, of the queries that have a choice
    own: float | None  # the mean share on the query's own position, of these
    saturated: float | None  # the share of these queries with more than SATURATED on one key


@dataclass(frozen=True, slots=True)
class Units:
    """The units of one MLP: the entries of act, or of gated where the MLP is gated."""

    address: str
    count: int
    exact_zero: bool  # dead is: 0 at every position (relu); else: below QUIET of the largest
    dead: tuple[int, ...]
    flat: float | None  # of all units and positions, the share with |act(x)| <= BENT·|x|
    linear: float | None  # … with |act(x) - x| <= BENT·|x|


def measure_pattern(head: int, weights: Floats, hidden: Flags) -> Pattern:
    """One head's weights (query, key), of which the hidden ones are absent."""
    shares = np.where(hidden, 0.0, weights)
    keys = np.count_nonzero(~hidden, axis=1)
    entropy = tuple(_entropy(row) for row in shares)
    most = tuple(
        None if found is None or count < 2 else found / float(np.log(count))
        for found, count in zip(entropy, keys, strict=True)
    )
    choosing = (keys > 1) & np.isfinite(shares).all(axis=1)
    own = np.diagonal(shares)
    effective, numerical = _ranks(shares)
    return Pattern(
        head,
        entropy,
        most,
        mean_of_known(entropy),
        mean_of_known(most),
        effective,
        numerical,
        mean_of_known(shares[choosing, 0].tolist()),
        mean_of_known(own[choosing[: len(own)]].tolist()),
        mean_of_known((shares[choosing].max(axis=1, initial=0.0) > SATURATED).tolist()),
    )


def _entropy(shares: Floats) -> float | None:
    if not np.isfinite(shares).all():
        return None
    present = shares[shares > 0]
    return abs(float(-(present * np.log(present)).sum()))  # not -0.0


def _ranks(shares: Floats) -> tuple[float | None, int | None]:
    """The effective and the numerical rank."""
    if max(shares.shape) > LONGEST or not np.isfinite(shares).all():
        return None, None
    sizes = np.linalg.svd(shares, compute_uv=False)
    if not sizes.any():
        return None, 0
    least = sizes.max() * max(shares.shape) * np.finfo(np.float64).eps
    found = _entropy(sizes / sizes.sum())
    return None if found is None else float(np.exp(found)), int(np.count_nonzero(sizes > least))


def measure_units(
    address: str, activation: str, entering: Floats, bent: Floats, units: Floats
) -> Units:
    """Units (pos, d_ff) whose activation made `bent` of what was entering."""
    sizes = np.abs(units)
    zero = activation == "relu"
    largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
    dead = (sizes == 0 if zero or not largest else sizes < QUIET * largest).all(axis=0)
    known = np.isfinite(entering) & np.isfinite(bent)
    x, y = entering[known], bent[known]
    flat = np.abs(y) <= BENT * np.abs(x)
    linear = (np.abs(y - x) <= BENT * np.abs(x)) & ~flat
    return Units(
        address,
        units.shape[1],
        zero,
        tuple(np.flatnonzero(dead).tolist()),
        mean_of_known(flat.tolist()),
        mean_of_known(linear.tolist()),
    )


def mean_of_known(found: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [x for x in found if x is not None]
    return float(np.mean(known)) if known else None
