"""Slips in copying a few numbers, each undone: a sign, a decimal point, two entries swapped.

Each slip undoes one copying mistake and gives the corrected numbers.  The caller checks whether
those are right.  Mistakes in the working are `suspects`, not slips.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from byhand.address import write_index
from byhand.checking.claims import Floats
from byhand.language import _

MOST_ENTRIES = 32  # with more entries there are too many pairs to try


@dataclass(frozen=True)
class Slip:
    """One copying mistake, and the numbers with it undone."""

    kind: str
    sentence: str
    values: Floats


def slips(values: Floats) -> Iterator[Slip]:
    """The slips that may have given these numbers, each undone; the commonest first."""
    if np.size(values) > MOST_ENTRIES:
        yield _all_signs(values)
        return
    places = list(np.ndindex(values.shape))
    for place in places:
        if values[place] != 0:
            meant = -float(values[place])
            yield _one_entry(values, place, meant, "slip-sign", _("the sign of {entry}"))
    if len(places) > 1:
        yield _all_signs(values)
    for one, other in combinations(places, 2):
        if values[one] != values[other]:
            yield _swapped(values, one, other)
    for place in places:
        for factor in (10.0, 0.1):
            moved = float(values[place]) * factor
            if moved:
                sentence = _("the decimal point of {entry}")
                yield _one_entry(values, place, moved, "slip-point", sentence)


def _all_signs(values: Floats) -> Slip:
    return Slip("slip-signs", _("every sign is the other way round"), -values)


def _one_entry(values: Floats, place: tuple[int, ...], meant: float, kind: str, what: str) -> Slip:
    entry = _("entry {index}").format(index=write_index(place)) if place else _("the number")
    sentence = _("it is right with {meant} for {said}: {what}").format(
        meant=shown(meant), said=shown(values[place]), what=what.format(entry=entry)
    )
    return Slip(kind, sentence, _with(values, place, meant))


def _swapped(values: Floats, one: tuple[int, ...], other: tuple[int, ...]) -> Slip:
    sentence = _("it is right with entries {one} and {other} swapped").format(
        one=write_index(one), other=write_index(other)
    )
    return Slip("slip-swap", sentence, _with(_with(values, one, values[other]), other, values[one]))


def _with(values: Floats, place: tuple[int, ...], entry: float) -> Floats:
    changed = values.copy()
    changed[place] = entry
    return changed


def shown(number: float) -> str:
    """A number as short as it was written: 1.75, not 1.7500000000000002."""
    return f"{number:.10g}".replace("-", "−")
