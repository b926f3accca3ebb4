"""How tokens stand among the others of their rows of logits: rank, margin and entropy.

In floats, the lower id of equal logits comes first, as argmax takes it.  Of enclosures, only what
holds for every logit in them is said: which tokens are certainly ahead, and which may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.numbers.base import Array, Numbers
from byhand.numbers.enclosed.enclosure import Enclosing

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
CHUNK = 1 << 17  # logits that are worked on at a time, so that they stay in the cache
ROUNDED = 1 + 2.0**-48  # covers a few roundings of sums of radii
APART = 2.0**-50  # covers the roundings of a comparison, relative to the sizes of both sides


# ------------------------------------------------------------------ floats


def in_floats(logits: npt.NDArray[np.floating[Any]], ids: Ids) -> tuple[Floats, Ids, Ids, Floats,
                                                                       Floats]:  # fmt: skip
    """Of each row: ln p of its id, the id's rank, the likeliest id, its lead, and the entropy.

    The logits are taken as they are, and everything after them is worked out in float64.
    """
    rows, width = logits.shape
    logprobs, margins, entropies = np.empty((3, rows))
    ranks, best = np.empty((2, rows), dtype=np.int64)
    step = max(1, CHUNK // width)
    for start in range(0, rows, step):
        here = slice(start, start + step)
        part, own = np.asarray(logits[here]), ids[here]
        ranks[here] = _ranks(part, own)
        best[here] = part.argmax(axis=-1)
        wide = part.astype(np.float64)  # a copy, which is used up
        margins[here] = _margins(wide, best[here])
        logprobs[here], entropies[here] = _shares(wide, own, best[here])
    return logprobs, ranks, best, margins, entropies


def _ranks(logits: npt.NDArray[Any], ids: Ids) -> Ids:
    every = np.arange(len(ids))
    own = logits[every, ids][:, None]
    ahead = np.count_nonzero(logits > own, axis=-1)
    equal = logits == own
    for row in np.flatnonzero(np.count_nonzero(equal, axis=-1) > 1):
        ahead[row] += np.count_nonzero(equal[row, : ids[row]])
    found: Ids = 1 + ahead
    return found


def _margins(logits: Floats, best: Ids) -> Floats:
    """The lead of the likeliest token over the next one; ∞ where there is no other."""
    every = np.arange(len(best))
    if logits.shape[1] == 1:
        return np.full(len(best), np.inf)
    largest = logits[every, best]
    logits[every, best] = -np.inf
    with np.errstate(invalid="ignore"):
        lead: Floats = largest - logits.max(axis=-1)
    logits[every, best] = largest
    return lead


def _shares(logits: Floats, ids: Ids, best: Ids) -> tuple[Floats, Floats]:
    """ln p of each id, and the entropy of each row; both not a number where a logit is not."""
    every = np.arange(len(ids))
    with np.errstate(all="ignore"):
        logits -= logits[every, best][:, None]
        own = logits[every, ids]
        powers = np.exp(logits)
        total = powers.sum(axis=-1)
        logs = np.log(total)
        np.maximum(logits, -1e300, out=logits)  # 0·∞ counts as 0; what is no number stays
        mean = np.einsum("rv,rv->r", powers, logits) / total
        return own - logs, logs - mean


# ------------------------------------------------------------------ enclosures


def ahead(logits: Floats, off: Floats, ids: Ids) -> tuple[Truths, Truths]:
    """Of each row, which logits are certainly larger than that of the id, and which may be.

    `off` bounds how far the true logits are from these.  The id itself is in neither.
    """
    rows = np.arange(len(ids))
    with np.errstate(invalid="ignore"):
        own, room = logits[rows, ids][:, None], off[rows, ids][:, None]
        high, low = own + room, own - room
        lower, upper = logits - off, logits + off
        certain = lower - high > (np.abs(high) + np.abs(lower)) * APART
        never = low - upper > (np.abs(low) + np.abs(upper)) * APART
    perhaps = ~(certain | never)
    perhaps[rows, ids] = False
    return certain, perhaps


def entropy_parts(numbers: Numbers, logits: Array, shape: tuple[int, int]) -> tuple[Array, Array]:
    """ln Σ e^x and Σ p·x of each row, by the operations of the number system itself.

    The entropy is the first less the second.
    """
    rows, width = shape
    first = np.zeros((rows, width))
    first[:, 0] = 1.0
    shares = numbers.softmax(logits)
    own = numbers.row_dots(numbers.admit(first), logits)
    whole = numbers.add(numbers.losses(shares, (0,) * rows), own)
    return whole, numbers.row_dots(shares, logits)


def enclosed_entropies(
    numbers: Enclosing, logits: Array, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """A float near the entropy of each row, and a bound of its distance from it."""
    if shape[1] == 1:  # one token is certain
        return np.zeros(shape[0]), np.zeros(shape[0])
    whole, mean = entropy_parts(numbers, logits, shape)
    middles, radii = numbers.in_floats(whole)
    less, other = numbers.in_floats(mean)
    found = middles - less
    room = (radii + other + (np.abs(middles) + np.abs(less)) * 2.0**-52) * ROUNDED
    return found, room
