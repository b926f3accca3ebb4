"""Chosen experts as engines dump them: their ids, turned into 1 and 0 for each expert."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byhand.checking.claims import Entry
from byhand.checking.matches.layouts import Part


def marked_ids(entry: Entry, part: Part, count: int) -> Entry:
    """The entry with 1 at the ids of each row, where it holds ids instead of 1 and 0.

    Ids in any order are the same choice; one that no expert has marks nothing.  A row of as many
    numbers as there are experts holds ids only where all are chosen, and each is there once.
    """
    if not part.axes or part.axes[-1] != "expert" or entry.values.ndim == 0:
        return entry
    experts = part.shape[-1]
    ids = entry.values
    whole = ids.shape[-1] == experts
    if ids.shape[-1] > experts or (whole and not (count == experts and _each_once(ids, experts))):
        return entry
    marks = (ids[..., None] == np.arange(experts)).any(axis=-2)
    claimed = None if entry.claimed is None else _rows(entry.claimed, experts)
    return replace(entry, values=marks.astype(np.float64), slack=0.0, claimed=claimed)


def _each_once(ids: np.ndarray[tuple[int, ...], np.dtype[np.float64]], experts: int) -> bool:
    """Whether every row names every expert; a row of 1 and 0 does not, but for a single expert."""
    return bool((np.sort(ids, axis=-1) == np.arange(experts)).all())


def _rows(
    claimed: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], experts: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The rows in which all ids are claimed, for every expert."""
    whole = claimed.all(axis=-1, keepdims=True)
    return np.broadcast_to(whole, (*claimed.shape[:-1], experts)).copy()
