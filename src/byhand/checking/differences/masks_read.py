"""Masks as the claim shows them: which key a query sees, recognised as a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byhand.checking.differences.positions_read import listed
from byhand.language import _

Truths = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int_]
MOST_PAIRS = 3  # single pairs of query and key that are named
MOST_STEPS = 65  # sizes of blocks and steps that are tried
MOST_SINKS = 16  # first keys that a window may keep


@dataclass(frozen=True)
class Pattern:
    """A mask in words, and how many numbers it takes to say it."""

    said: str
    mask: Truths  # (query, key)
    fitted: int = 1


def told_mask(
    seen: Truths, known: Truths, own: Truths, queries: Ints, keys: Ints
) -> Pattern | None:
    """The pattern of what is seen, where that is known; None: the model's mask, or no pattern.

    All are (query, key); the simplest pattern that fits is taken.
    """
    if not ((seen != own) & known).any():
        return None
    ahead = keys[None, :] - queries[:, None]
    for pattern in _patterns(seen & known, own, ahead, queries, keys):
        if pattern is not None and not ((pattern.mask != seen) & known).any():
            return pattern
    return None


def _patterns(
    seen: Truths, own: Truths, ahead: Ints, queries: Ints, keys: Ints
) -> Iterator[Pattern | None]:
    back = -ahead
    every = np.ones(own.shape, dtype=bool)
    yield Pattern(_("no key is masked"), every, 0)
    yield Pattern(_("the keys after the query are masked"), ahead <= 0, 0)
    yield Pattern(_("a query sees what comes after it, and not what comes before"), ahead >= 0, 0)
    yield Pattern(_("a query does not see itself"), own & (ahead != 0), 0)
    most = int(ahead[seen].max(initial=-len(keys)))
    if most > 0:
        yield Pattern(_("a query sees {count} ahead").format(count=most), own | (
            (ahead > 0) & (ahead <= most)))  # fmt: skip
    elif most < 0:
        yield Pattern(_("the last {count} keys, its own included, are masked").format(
            count=-most), ahead <= most)  # fmt: skip
    yield from _windows(seen, own, back, keys)
    yield from _lengths(seen, own, queries, keys)
    yield from _second_part(seen, own, queries)
    yield _single_pairs(seen, own, queries, keys)


def _windows(seen: Truths, own: Truths, back: Ints, keys: Ints) -> Iterator[Pattern]:
    """Windows, windows that keep the first keys, steps, and distances that are missing."""
    width = int(back[seen].max(initial=-1)) + 1
    causal = back >= 0
    for base in (own, causal):
        if width > 0:
            yield Pattern(_("a query sees back {width} keys").format(width=width),
                          base & (back < width))  # fmt: skip
    for count in range(1, min(MOST_SINKS, len(keys)) + 1):
        first = keys < keys.min() + count
        near = seen & ~first[None, :]
        width = int(back[near].max(initial=-1)) + 1
        if width:
            yield Pattern(
                _("a query sees back {width} keys and the first {count}").format(
                    width=width, count=count),
                own & ((back < width) | first[None, :]), 2)  # fmt: skip
            yield Pattern(_("no query sees the first {count} keys").format(count=count),
                          own & ~first[None, :])  # fmt: skip
    for step in range(2, min(MOST_STEPS, len(keys))):
        yield Pattern(_("a query sees only each {step}th key back").format(step=step),
                      own & (back % step == 0))  # fmt: skip
        yield Pattern(_("a query sees only its own block of {step} keys").format(step=step),
                      own & _same_block(back, keys, step))  # fmt: skip
    gaps = np.unique(back[own & ~seen])
    if len(gaps) == 1:
        yield Pattern(_("a query does not see the key {gap} back").format(gap=int(gaps[0])),
                      own & (back != gaps[0]))  # fmt: skip


def _same_block(back: Ints, keys: Ints, size: int) -> Truths:
    queries = back + keys[None, :]
    same: Truths = queries // size == keys[None, :] // size
    return same


def _lengths(seen: Truths, own: Truths, queries: Ints, keys: Ints) -> Iterator[Pattern]:
    """Prefixes that see each other, and keys or queries that are left out."""
    more = np.flatnonzero((seen & ~own).any(axis=0))
    if len(more):
        count = int(more[-1]) + 1
        early = np.arange(len(keys)) < count
        asked = queries <= keys[count - 1]
        yield Pattern(_("the first {count} positions see each other").format(count=count),
                      own | (early[None, :] & asked[:, None]))  # fmt: skip
        yield Pattern(_("every query sees the first {count} keys").format(count=count),
                      own | early[None, :])  # fmt: skip
    missing = np.flatnonzero(~seen.any(axis=0) & own.any(axis=0))
    if 0 < len(missing) < len(keys):
        away = np.isin(np.arange(len(keys)), missing)
        names = listed([int(keys[each]) for each in missing])
        run = bool((np.diff(missing) == 1).all())
        said = _("no query sees key {names}").format(names=names)
        yield Pattern(said, own & ~away[None, :], 1 if run else len(missing))
    # the same, but a query still sees itself
    itself = queries[:, None] == keys[None, :]
    away = ~(seen & ~itself).any(axis=0) & (own & ~itself).any(axis=0)
    if away.any() and not away.all():
        names = listed([int(keys[each]) for each in np.flatnonzero(away)])
        yield Pattern(_("no later query sees key {names}").format(names=names),
                      own & (~away[None, :] | itself), int(away.sum()))  # fmt: skip


def _second_part(seen: Truths, own: Truths, queries: Ints) -> Iterator[Pattern]:
    """Masks of texts that share a row, or of one that is worked out in two parts."""
    start = int(np.flatnonzero((seen != own).any(axis=1))[0])
    later = np.arange(own.shape[0])[:, None] - start  # queries of the second part from 0 on
    keys = np.arange(own.shape[1])[None, :]
    first = int(queries[start])
    if own.shape[0] == own.shape[1] and (np.diff(queries) != 1).any():
        yield Pattern(
            _("the texts that are packed into the row see each other"),
            np.tril(np.ones_like(own)),
            0,
        )
    yield Pattern(
        _("from query {first} on the mask begins anew at its upper left corner: that query sees "
          "one key, the next two").format(first=first),
        np.where(later >= 0, keys <= later, own))  # fmt: skip
    yield Pattern(
        _("from query {first} on no query sees the keys before {first}").format(first=first),
        np.where(later >= 0, own & (keys >= start), own))  # fmt: skip


def _single_pairs(seen: Truths, own: Truths, queries: Ints, keys: Ints) -> Pattern | None:
    other = np.argwhere(seen != own)
    if not 0 < len(other) <= MOST_PAIRS:
        return None
    said = [
        (_("query {query} sees key {key}") if seen[at, to] else
         _("query {query} does not see key {key}")).format(
            query=int(queries[at]), key=int(keys[to]))
        for at, to in other
    ]  # fmt: skip
    return Pattern(", ".join(said), seen.copy(), len(other))
