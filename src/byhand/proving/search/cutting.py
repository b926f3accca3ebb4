"""Cuts: where a region is taken apart, and which of its texts is most likely to fail.

A region whose answer varies is cut where the answer changes.  One whose lead is undecided is cut
by the variable on which the lead depends most; values that are decided by the lead's own line are
put on one side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byhand.proving.domain import Region, Shape, Values, Whole
from byhand.proving.reading.wholes import Varies
from byhand.proving.search.hulls import Embedding, numbers_at
from byhand.proving.search.region_forms import NUMBER, variables_of
from byhand.proving.search.region_passes import Findings

Cut = tuple[str, Values]


def halves(region: Region, name: str) -> Cut:
    """A variable's values, cut in the middle."""
    values = region.allowed[name]
    return name, values[: (len(values) + 1) // 2]


def where_it_varies(region: Region, names: Sequence[str], ask: Callable[[Region], Any]) -> Cut:
    """The cut for an answer that is not the same throughout: by its most important variable, behind
    the first values that have one answer, or before the last ones, whichever are more."""
    name = next((name for name in names if name in region.free), region.free[0])
    values = region.allowed[name]
    answers: dict[int, Any] = {}

    def answer(place: int) -> Any:
        if place not in answers:
            answers[place] = _answer(region, name, values[place], ask)
        return answers[place]

    changes = [_run(answer, 0, len(values) - 1) + 1, _run(answer, len(values) - 1, 0)]
    best = min(changes, key=lambda place: abs(2 * place - len(values)))
    if 4 * min(best, len(values) - best) < len(values) and None not in answers.values():
        return halves(region, name)  # many answers: a chain of single values would be long
    return (name, values[:best]) if 0 < best < len(values) else halves(region, name)


def _run(answer: Callable[[int], Any], first: int, last: int) -> int:
    """The last place, going from the first one, with the answer of the first one, found by halving:
    the answers are taken to change once.  The place before the first where that is unknown."""
    found = answer(first)
    step = 1 if last > first else -1
    if found is None:
        return first - step
    same, other = first, last + step
    while abs(other - same) > 1:
        middle = (same + other) // 2
        if answer(middle) == found:
            same = middle
        else:
            other = middle
    return same


def _answer(region: Region, name: str, value: int, ask: Callable[[Region], Any]) -> Any:
    """The answer for one value of a variable; None where it varies, or where there is no text."""
    part = Region(region.shape, {**region.allowed, name: (value,)}).narrowed()
    try:
        return None if part is None else ask(part)
    except Varies:
        return None


class Undecided:
    """A region that a pass left open: what its least lead depends on."""

    def __init__(self, region: Region, findings: Findings, case: int) -> None:
        self.region = region
        self.terms = findings.terms[1:, case]
        self.errors = findings.errors[:, case]
        self.middle = float(findings.terms[0, case])
        self.keys = findings.keys

    def influences(self) -> dict[str, float]:
        """How much of the lead's width comes from each free variable."""
        found = dict.fromkeys(self.region.free, 0.0)
        for place, key in enumerate(self.keys):
            if key is None:
                continue
            size = abs(float(self.terms[place])) if place < len(self.terms) else 0.0
            if place + 1 < len(self.errors):
                size += float(self.errors[place + 1])
            for name in variables_of(key, self.region.shape):
                if name in found:
                    found[name] += size
        return found

    def cut(self) -> Cut:
        """By the variable with the most influence; every variable where none has any."""
        found = self.influences()
        name = max(found, key=lambda one: (found[one], len(self.region.allowed[one])))
        if not np.isfinite(found[name]) or found[name] == 0:
            name = max(found, key=lambda one: len(self.region.allowed[one]))
        decided = self._decided(name)
        return (name, decided) if decided else halves(self.region, name)

    def _decided(self, name: str) -> Values:
        """The values, at one end, for which the lead's line is positive whatever the others are."""
        values = self.region.allowed[name]
        if name not in self.keys or not np.isfinite(self.errors).all():
            return ()
        own = self.keys.index(name)
        if own >= len(self.terms):
            return ()
        others = np.abs(self.terms).sum() - abs(self.terms[own]) + self.errors.sum()
        low, high = values[0], values[-1]
        fine = [
            self.middle - others + self.terms[own] * (2 * value - low - high) / (high - low) > 0
            for value in values
        ]
        if all(fine) or not any(fine):
            return ()
        first = tuple(value for value, good in zip(values, fine, strict=True) if good)
        rest = tuple(value for value in values if value not in first)
        return first if first[0] == low else rest

    def lowest(self, embedding: Embedding) -> dict[str, int] | None:
        """The text for which the lead's line is lowest, variable after variable; None where the
        values so chosen have no text."""
        found = self.influences()
        region: Region | None = self.region
        scores = self._scores(embedding)
        for name in sorted(found, key=lambda one: -found[one]):
            if region is None:
                return None
            values = region.allowed[name]
            score = scores.get(name, {})
            best = min(values, key=lambda value: score.get(value, 0.0))
            region = Region(region.shape, {**region.allowed, name: (best,)}).narrowed()
        if region is None:
            return None
        assigned = {name: values[0] for name, values in region.allowed.items()}
        return assigned if region.holds(assigned) else None

    def _scores(self, embedding: Embedding) -> dict[str, dict[int, float]]:
        """Variable → value → what it adds to the lead, as far as the lead is linear in it."""
        shape: Shape = self.region.shape
        found: dict[str, dict[int, float]] = {}
        for place, key in enumerate(self.keys[: len(self.terms)]):
            term = float(self.terms[place])
            if key is None or term == 0:
                continue
            if isinstance(key, str):
                values = self.region.allowed[key]
                low, high = values[0], values[-1]
                for value in values:
                    score = found.setdefault(key, {})
                    part = term * (2 * value - low - high) / (high - low)
                    score[value] = score.get(value, 0.0) + part
                continue
            position, which = key
            held = shape.places[position]
            if which == NUMBER or not isinstance(held.value, Whole) or len(held.value.names) != 1:
                continue
            ((name, factor),) = held.value.factors
            numbers = numbers_at(held, self.region)
            hull = embedding.of(held, numbers)
            least, most = map(float, hull.ends[which])
            for number, weights in zip(numbers, hull.weights, strict=True):
                value = (number - held.value.constant) // factor
                score = found.setdefault(name, {})
                part = term * (2 * float(weights[which]) - least - most) / (most - least)
                score[value] = score.get(value, 0.0) + part
        return found
