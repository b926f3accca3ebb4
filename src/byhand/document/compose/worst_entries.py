"""The worst entries of a marked line, in words: where they are, claimed, expected, allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from byhand.address import write_index
from byhand.checking.verdicts import Marked
from byhand.document.compose.marked import claimed_text, part_starts, share_text, worst_texts

MOST_ENTRIES = 8  # of a line that are told with their numbers


@dataclass(frozen=True)
class Entry:
    """One entry of a line, in words; what is not known of it is empty."""

    place: str  # its index, or the address of a line that is one number
    claimed: str
    expected: str
    allowed: str
    share: str


def worst_entries(line: Marked, most: int = MOST_ENTRIES) -> list[Entry]:
    """The entries that use most of what is allowed, the worst first."""
    if line.shares is None or line.shares.size == 0:
        return []
    shares = np.nan_to_num(np.asarray(line.shares, np.float64), nan=-1.0, posinf=inf)
    flat_shares = shares.ravel()
    order = np.arange(shares.size)
    if shares.size > most:  # sorting a row of logits takes long, finding its largest does not
        least = np.partition(flat_shares, -most)[-most]
        order = np.flatnonzero(flat_shares >= least)
    order = order[np.argsort(-flat_shares[order], kind="stable")][:most]
    found: list[Entry] = []
    for flat in order:
        inside = tuple(int(i) for i in np.unravel_index(flat, shares.shape))
        share = float(shares[inside])
        if share < 0 or (found and share <= 1 and line.verdict.follows is False):
            break
        found.append(_entry(line, inside, share))
    return found


def _entry(line: Marked, inside: tuple[int, ...], share: float) -> Entry:
    claim = line.claim
    index = _in_step(line, inside)
    place = write_index(index) or claim.address
    claimed = claimed_text(claim, index, float(np.asarray(claim.values)[inside]))
    for known in (line.worst, *line.among):
        if known is not None and index == tuple(known.index):
            claimed, expected, allowed = worst_texts(line, known)
            return Entry(place, claimed, expected, f"± {allowed}", share_text(share))
    return Entry(place, claimed, "", "", share_text(share))


def _in_step(line: Marked, inside: Sequence[int]) -> tuple[int, ...]:
    """The index in the whole step of a place in the claimed part."""
    starts = part_starts(line, len(inside))
    rest = iter([start + place for start, place in zip(starts, inside, strict=True)])
    cut = [place if isinstance(place, int) else next(rest) for place in line.claim.index]
    return (*cut, *rest)
