"""Entries claimed twice: equal claims count once, others contradict each other."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.checking.claims import Claim
from byhand.errors import InputError
from byhand.language import _

NOBODY = -1


def without_repetitions(
    claims: Iterable[Claim], shapes: dict[str, tuple[int, ...]]
) -> tuple[Claim, ...]:
    """The claims without mere repetitions; an InputError where two contradict each other.

    `shapes` are those of the steps and weights.
    """
    groups: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        groups.setdefault((claim.address, claim.kind), []).append(claim)
    kept: list[Claim] = []
    for (address, _kind), same in groups.items():
        kept += same if len(same) == 1 else _merged(same, shapes[address])
    return tuple(kept)


def _merged(same: list[Claim], shape: tuple[int, ...]) -> list[Claim]:
    kept = [same[0]]
    for claim in same[1:]:
        if not any(_repeats(claim, other) for other in kept):
            kept.append(claim)
    return _agreeing(kept, shape) if len(kept) > 1 else kept


def _repeats(claim: Claim, other: Claim) -> bool:
    """Whether two arrays are equal number by number: a fast test for the usual case."""
    return (
        claim.index == other.index
        and claim.claimed is None
        and other.claimed is None
        and claim.values.dtype == other.values.dtype
        and np.array_equal(claim.slack, other.slack)
        and _equal(claim.values, other.values)
    )


def _equal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    return bool(np.all((one == other) | ((one != one) & (other != other))))


def _agreeing(claims: list[Claim], shape: tuple[int, ...]) -> list[Claim]:
    """The claims on one step without those that add no entry; an InputError where two disagree."""
    owner = np.full(shape, NOBODY, dtype=np.int64)
    values, slack = np.zeros(shape), np.zeros(shape)
    kept: list[Claim] = []
    for number, claim in enumerate(claims):
        mine = (
            np.ones(owner[claim.index].shape, np.bool_) if claim.claimed is None else claim.claimed
        )
        theirs = owner[claim.index]
        own, own_slack = np.asarray(claim.values, np.float64), np.broadcast_to(
            np.asarray(claim.slack, np.float64), mine.shape
        )  # fmt: skip
        both = mine & (theirs != NOBODY)
        with np.errstate(invalid="ignore"):
            apart = np.abs(own - values[claim.index]) > own_slack + slack[claim.index]
        apart |= np.isnan(own) != np.isnan(values[claim.index])
        apart |= np.isinf(own) & (own != values[claim.index])
        if np.any(both & apart):
            _contradiction(claims, claim, theirs, both & apart, values)
        new = mine & (theirs == NOBODY)
        differs = (own != values[claim.index]) & ~np.isnan(own)
        differs |= own_slack < slack[claim.index]
        if new.any() or not mine.any() or np.any(both & differs):
            kept.append(claim)
            owner[claim.index] = np.where(new, number, theirs)
            values[claim.index] = np.where(new, own, values[claim.index])
            slack[claim.index] = np.where(new, own_slack, slack[claim.index])
    return kept


def _contradiction(
    claims: list[Claim],
    claim: Claim,
    theirs: npt.NDArray[np.int64],
    where: npt.NDArray[np.bool_],
    values: npt.NDArray[np.float64],
) -> None:
    place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(where)))
    inner = place if where.ndim else ()
    other = claims[int(theirs[inner])]
    whole = np.arange(prod(values.shape)).reshape(values.shape)
    index = tuple(map(int, np.unravel_index(int(whole[claim.index][inner]), values.shape)))
    raise InputError(
        _("{address} is claimed twice, with different values").format(
            address=claim.address + write_index(index)
        ),
        where=claim.source,
        expected=_("{value}, as {name} says ({source})").format(
            value=repr(float(values[index])), name=other.name, source=other.source
        ),
        found=_("{value}, as {name} says").format(
            value=repr(float(claim.values[inner])), name=claim.name
        ),
        hint=_("they are two names of one step") if other.name != claim.name else None,
    )
