"""Orders of summation: the ways in which a correct program may add the terms of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Data = Any
Rounded = Callable[[Data], Data]
BLOCK = 16  # terms of a block that are added separately
CORES = 4  # products that a tensor core adds at once
KEPT = 23  # bits of every term kept below the first bit of the largest term


def total(terms: Data, order: str, rounded: Rounded) -> Data:
    """The sum over the last axis; `rounded` is the rounding of a partial sum."""
    return ORDERS[order](terms, rounded)


def _one_by_one(terms: Data, places: list[int], rounded: Rounded) -> Data:
    so_far = terms[..., places[0]]
    for place in places[1:]:
        here = terms[..., place]
        both = rounded(so_far + here)
        so_far = np.where(here == 0, so_far, np.where(so_far == 0, here, both))
    return so_far


def _forward(terms: Data, rounded: Rounded) -> Data:
    return _one_by_one(terms, list(range(terms.shape[-1])), rounded)


def _backward(terms: Data, rounded: Rounded) -> Data:
    return _one_by_one(terms, list(reversed(range(terms.shape[-1]))), rounded)


def _shuffled(terms: Data, rounded: Rounded) -> Data:
    n = terms.shape[-1]
    return _one_by_one(terms, np.random.default_rng(n).permutation(n).tolist(), rounded)


def _pairs(terms: Data, rounded: Rounded) -> Data:
    """The sum by halves."""
    while (n := terms.shape[-1]) > 1:
        half = n // 2
        paired = rounded(terms[..., :half] + terms[..., half : 2 * half])
        terms = np.concatenate((paired, terms[..., 2 * half :]), axis=-1)
    return terms[..., 0]


def _blocks(terms: Data, rounded: Rounded) -> Data:
    blocks = [terms[..., i : i + BLOCK] for i in range(0, terms.shape[-1], BLOCK)]
    return _forward(np.stack([_forward(block, rounded) for block in blocks], axis=-1), rounded)


def _compensated(terms: Data, rounded: Rounded) -> Data:
    """Kahan's sum: the error of each addition is subtracted from the next term."""
    so_far, lost = terms[..., 0], np.zeros(terms.shape[:-1])
    for place in range(1, terms.shape[-1]):
        here = rounded(terms[..., place] - lost)
        both = rounded(so_far + here)
        lost = rounded(rounded(both - so_far) - here)
        so_far = both
    return so_far


def _cores(terms: Data, rounded: Rounded) -> Data:
    """The sum of tensor cores: several terms at once, cut off below the largest one."""
    so_far = np.zeros(terms.shape[:-1])
    for start in range(0, terms.shape[-1], CORES):
        each = np.concatenate((so_far[..., None], terms[..., start : start + CORES]), axis=-1)
        so_far = rounded(_cut(_cut(each, np.abs(each).max(axis=-1, keepdims=True)).sum(axis=-1)))
    return so_far


def _cut(x: Data, largest: Data | None = None) -> Data:
    """What is left of x above the last place of the largest, or of itself."""
    unit = np.ldexp(1.0, np.frexp(x if largest is None else largest)[1] - 1 - KEPT)
    return np.trunc(x / unit) * unit


ORDERS: dict[str, Callable[[Data, Rounded], Data]] = {
    "forward": _forward,
    "backward": _backward,
    "shuffled": _shuffled,
    "pairs": _pairs,
    "blocks": _blocks,
    "compensated": _compensated,
    "cores": _cores,
}
