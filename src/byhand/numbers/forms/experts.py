"""A choice among experts, for all letters and all cases, and what they answer together.

An expert is chosen where fewer than `count` others may come before it.  Two scores are compared as
the form of their difference, so that what they share cancels.  Of equal numbers that are exactly
known, the first counts.  Where the order stays open, the choice is any number from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from byhand.numbers.forms import products
from byhand.numbers.forms.arithmetic import Arithmetic, arithmetic_of
from byhand.numbers.forms.form import Form, differences, ends
from byhand.numbers.forms.rounding import Data, Truths


@dataclass(frozen=True, slots=True)
class Choice:
    """How many of a row are chosen, and of which groups of neighbours."""

    count: int
    groups: int | None = None
    groups_chosen: int | None = None
    group_rule: str | None = None


def chosen_rows(x: Form, choice: Choice) -> tuple[Truths, Truths, list[int]]:
    """(surely chosen, possibly chosen), both (case, pos, expert), and the rows with a tie."""
    found = [_chosen(_at(x, (..., place, slice(None))), choice) for place in range(len(x))]
    tied = [place for place, (_sure, _possible, tie) in enumerate(found) if tie]
    return (
        np.stack([sure for sure, _possible, _tie in found], axis=1),
        np.stack([possible for _sure, possible, _tie in found], axis=1),
        tied,
    )


def _at(x: Form, index: Any) -> Form:
    return x.each(lambda part: part[index])


def _chosen(row: Form, choice: Choice) -> tuple[Truths, Truths, bool]:
    """The same of one row of scores, (case, expert)."""
    before, same = _order(row)
    everything = np.ones(before.shape[:2], dtype=bool)
    if choice.groups is None or choice.groups_chosen is None:
        return _ranked(before, same, everything, everything, choice.count)
    kept, open_groups, tied = _best_groups(row, before, choice)
    each = row.shape[-1] // choice.groups
    inside, maybe = (np.repeat(which, each, axis=-1) for which in (kept, open_groups))
    sure, possible, also_tied = _ranked(before, same, inside, maybe, choice.count)
    return sure, possible, tied or also_tied


def _order(row: Form) -> tuple[Truths, Truths]:
    """(case, j, k): whether j surely comes before k, and whether they are known to be equal."""
    width, cases = row.shape[-1], row.cases
    before, same = (np.zeros((cases, width, width), dtype=bool) for _part in range(2))
    arithmetic = arithmetic_of(row.terms)
    some: Truths = np.asarray(arithmetic.nonzero(row.errors).any(axis=0))
    if len(row.terms) > 1:
        some = some | np.asarray(arithmetic.nonzero(row.terms[1:]).any(axis=0))
    for j in range(width):
        low, high = ends(differences(row, np.full(cases, j)))
        before[:, j] = low > 0
        if arithmetic.exact(row.terms[0]):
            same[:, j] = ~some[:, [j]] & ~some & (low == 0) & (high == 0)
        same[:, j, j] = False
    return before | (same & np.triu(np.ones((width, width), dtype=bool))), same


def _ranked(
    before: Truths, same: Truths, inside: Truths, maybe: Truths, count: int
) -> tuple[Truths, Truths, bool]:
    """Those of `inside` with fewer than `count` rivals, and those of `maybe` that may be chosen."""
    width = before.shape[-1]
    others = ~np.eye(width, dtype=bool)
    ahead = (before & inside[:, :, None] & others).sum(axis=1)  # (case, k): surely before k
    rivals = (~before.swapaxes(1, 2) & maybe[:, :, None] & others).sum(axis=1)
    sure, possible = inside & (rivals < count), maybe & (ahead < count)
    full = sure.sum(axis=-1, keepdims=True) == count
    possible &= sure | ~full
    tied = same & sure[:, :, None] & (maybe & ~sure)[:, None, :] & full[..., None]
    return sure, possible, bool(tied.any())


def _best_groups(row: Form, before: Truths, choice: Choice) -> tuple[Truths, Truths, bool]:
    """The groups that surely count, those that may, (case, group), and whether a tie decided.

    A group's largest entry, or its two largest, are taken where the order of the group is known;
    else only the ends of its entries are.
    """
    assert choice.groups is not None
    assert choice.groups_chosen is not None
    each, taken = row.shape[-1] // choice.groups, 2 if choice.group_rule == "top2" else 1
    low, high = ends(row)
    parts = [end.reshape(len(end), choice.groups, each) for end in (low, high)]
    least, most = (np.sort(part, axis=-1)[..., -taken:].sum(axis=-1) for part in parts)
    if taken > 1:  # a sum of two floats, rounded once
        least, most = np.nextafter(least, -np.inf), np.nextafter(most, np.inf)
    worth = Form(*_from_ends(least, most, arithmetic_of(row.terms)))
    leads = [_leaders(before[:, g : g + each, g : g + each], taken)
             for g in range(0, row.shape[-1], each)]  # fmt: skip
    if all(lead is not None for lead in leads):
        worth = _summed(row, leads, each, taken)
    order, same = _order(worth)
    everything = np.ones(order.shape[:2], dtype=bool)
    return _ranked(order, same, everything, everything, choice.groups_chosen)


def _leaders(before: Truths, taken: int) -> list[int] | None:
    """The places of a group's largest entries, where these are the same in every case."""
    ahead = before.sum(axis=1)  # how many surely come before each
    behind = before.sum(axis=2)
    size = before.shape[-1]
    sure = (ahead + behind == size - 1) & (ahead < taken)
    places = np.flatnonzero(sure.all(axis=0))
    return places.tolist() if len(places) == taken else None


def _summed(row: Form, leads: Sequence[list[int] | None], each: int, taken: int) -> Form:
    """The form of what each group counts by."""
    found = None
    for rank in range(taken):
        places = [g * each + lead[rank] for g, lead in enumerate(leads) if lead is not None]
        part = _at(row, (..., places))
        found = part if found is None else products.added(found, part)
    assert found is not None
    return found


def _from_ends(low: Data, high: Data, arithmetic: Arithmetic) -> tuple[Data, Data]:
    """Terms and errors of numbers between two floats."""
    known = np.isfinite(low) & np.isfinite(high)
    middle = np.where(known, low * 0.5 + high * 0.5, 0.0)
    far = np.where(known, np.maximum(high - middle, middle - low) * (1 + 2.0**-50), np.inf)
    return arithmetic.of_floats(middle)[None], arithmetic.of_floats(far)[None]


def marks(sure: Truths, possible: Truths, arithmetic: Arithmetic) -> Form:
    """1 for the chosen, 0 for the others, and 1/2 ± 1/2 for what stays open."""
    open_entries = possible & ~sure
    halves = np.where(sure, 1.0, np.where(open_entries, 0.5, 0.0))
    unsure = np.where(open_entries, 0.5, 0.0)
    return Form(arithmetic.of_floats(halves)[None], arithmetic.of_floats(unsure)[None])


def away(chosen: Form) -> Truths:
    """Where an expert is surely not chosen: (case, pos, expert)."""
    some = arithmetic_of(chosen.terms).nonzero
    found: Truths = ~(some(chosen.terms[0]) | some(chosen.errors[0]))
    return found


def open_rows(chosen: Form) -> Truths:
    """The rows in which the choice is not decided: (case, pos)."""
    unsure = arithmetic_of(chosen.terms).nonzero(chosen.errors[0])
    return np.asarray(unsure.any(axis=-1))


def seen(x: Form, chosen: Form) -> Form:
    """The scores, those that are surely not chosen absent."""
    return Form(x.terms, x.errors, away(chosen))


def any_share(found: Form, chosen: Form, rows: Truths) -> Form:
    """The shares; in these rows any number from 0 to 1 for what may be chosen."""
    arithmetic = arithmetic_of(found.terms)
    out = away(chosen)
    free = rows[..., None] & ~out
    cases = max(found.cases, len(out))
    terms, errors = (
        np.array(np.broadcast_to(part, (len(part), cases, *found.shape)))
        for part in (found.terms, found.errors)
    )
    nothing, half = (arithmetic.of_floats(np.array([number]))[0] for number in (0.0, 0.5))
    for part in (terms, errors):
        np.copyto(part, nothing, where=free | out)
        np.copyto(part[0], half, where=free)
    return Form(terms, errors)


def combined(x: Form, shares: Form) -> Form:
    """Σ_expert shares[pos, expert]·x[expert, pos]."""
    found = None
    for expert in range(x.shape[0]):
        answer = _at(x, (..., expert, slice(None), slice(None)))
        share = _at(shares, (..., slice(expert, expert + 1)))
        term = products.product(answer, share)
        found = term if found is None else products.added(found, term)
    assert found is not None
    return found


def stacked(parts: Sequence[Form]) -> Form:
    """The parts along a new first axis of the plan's."""

    def together(arrays: Sequence[Data]) -> Data:
        letters = max(len(array) for array in arrays)
        cases = max(array.shape[1] for array in arrays)
        shape = (letters, cases, len(arrays), *arrays[0].shape[2:])
        whole = arithmetic_of(arrays[0]).zeros(shape)
        for place, array in enumerate(arrays):
            whole[: len(array), :, place] = array
        return whole

    return Form(together([p.terms for p in parts]), together([p.errors for p in parts]))
