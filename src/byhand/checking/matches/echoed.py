"""Log-probabilities beside the tokens that they are of, as APIs echo them; the first has none.

Here a step's row p is about the token that comes after position p.  APIs write ln p of token p at
place p, and null at the first, which nothing comes before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byhand.checking.claims import Entry
from byhand.language import _
from byhand.numbers.base import Array

ECHOED = "token_logprobs"


def at_their_positions(entry: Entry, length: int) -> Entry:
    """The entry one place earlier, where it is as APIs have it; else the entry itself.

    For claims that name no target: then nothing is said of what comes after the last position, and
    a number in the last place is that of the last token.
    """
    if entry.name.strip() != ECHOED or np.shape(entry.values) != (length,) or length < 2:
        return entry
    known = _known(entry)
    if known[0] or not known[-1]:
        return entry
    slack = entry.slack if np.ndim(entry.slack) == 0 else np.roll(entry.slack, -1)
    return replace(
        entry,
        values=np.roll(np.where(known, entry.values, 0.0), -1),
        slack=slack,
        claimed=np.roll(known, -1),
        read=_(
            "the first is empty, so each number is that of its own token: moved by one position"
        ),
    )


def _known(entry: Entry) -> Array:
    """Which numbers are claimed; no number (NaN) at the first place claims nothing."""
    known = np.ones(len(entry.values), dtype=np.bool_)
    if entry.claimed is not None:
        known &= entry.claimed
    if entry.values.dtype.kind == "f":
        known[0] &= not np.isnan(entry.values[0])
    return known
