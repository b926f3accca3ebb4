"""The shortfall of an attempt at a proof, and how many more bits the next attempt needs.

`proving` works a job out with more and more bits.  Here one attempt is measured: which numbers lack
digits, which next tokens are not proven, and how many bits are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf, isfinite
from typing import Any

import numpy as np

from byhand.numbers.base import Prediction
from byhand.numbers.enclosed.enclosure import (
    EVERYTHING,
    Enclosing,
    Enclosure,
    binary_size,
    bits_missing,
)
from byhand.plan import Step
from byhand.proof import Unproven
from byhand.tracing import Trace
from byhand.worked import Worked

GUARD = 6  # bits added to the missing ones, so that the next attempt is the last
LEAST_STEP = 32  # bits added where it is unclear how many are missing
MOST_REPORTED = 20  # undecided things that are reported
MOST_CANDIDATES = 1_000  # tokens that are searched for the two largest logits


@dataclass
class Shortfall:
    """What an attempt left unproven."""

    entries: dict[str, Any] = field(default_factory=dict)  # address → mask of unproven entries
    positions: list[int] = field(default_factory=list)  # whose next token is not proven
    choices: list[tuple[str, int]] = field(default_factory=list)  # of experts: address, position
    count: int = 0
    bits: float = 0  # the number of missing bits, as far as it is known
    radius: float = -inf  # log2 of the largest radius
    near_zero: bool = False  # a number may be zero, or two tied: `bits` is a guess

    def add_token(self, position: int, distance: Enclosure) -> None:
        """Adds a next token that is not proven; `distance` is that of the two largest logits."""
        self.positions.append(position)
        self._add_distance(distance)

    def add_choice(self, address: str, position: int, distance: Enclosure) -> None:
        """Adds a choice of experts that is not proven; `distance` is that of their scores."""
        self.choices.append((address, position))
        self._add_distance(distance)

    def _add_distance(self, distance: Enclosure) -> None:
        self.count += 1
        self.near_zero = True
        radius = binary_size(distance.rad)
        self.radius = max(self.radius, radius)
        if not isfinite(radius):
            self.bits = inf
        elif distance.mid != 0:
            self.bits = max(self.bits, radius - binary_size(abs(distance.mid)) + 1)

    def add_number(self, number: Enclosure, digits: int) -> None:
        """Adds a number whose digits are not proven."""
        middle, radius = binary_size(abs(number.mid)), binary_size(number.rad)
        self.count += 1
        self.near_zero = self.near_zero or middle <= radius < inf
        self.radius = max(self.radius, radius)
        missing = float(bits_missing(np.array(middle), np.array(radius), digits))
        self.bits = max(self.bits, missing if isfinite(middle) else 0)

    def add_guess(self) -> None:
        """Adds something else that is not proven: how many bits it needs is unknown."""
        self.count += 1
        self.near_zero = True

    def stalled(self, before: Shortfall | None) -> bool:
        """Whether more precision did not help: the weights themselves are not known better."""
        if before is None or not self.count or self.count != before.count:
            return False
        return -inf < before.radius - 1 < self.radius < inf

    def next_bits(self, bits: int, before: Shortfall | None) -> int:
        """The precision to try next."""
        if not isfinite(self.bits):
            return 2 * bits
        more = ceil(self.bits) + GUARD
        if self.near_zero:  # a guess: if it fails, the next one is larger
            more = max(more, bits // 4 if before is None else bits // 2, LEAST_STEP)
        return bits + more

    def reported(self, trace: Trace) -> Iterator[Unproven]:
        """The first MOST_REPORTED unproven things: choices of experts, next tokens, numbers."""
        for address, position in self.choices[:MOST_REPORTED]:
            worked = trace.steps[address]
            experts = open_rows(worked)[position]
            distance = _distance_of_scores(trace.steps, worked.step, position, experts)
            yield Unproven(f"{address}[{position}]", "experts", distance, experts)
        room = max(MOST_REPORTED - len(self.choices), 0)
        for position in self.positions[:room]:
            found: Prediction = trace.steps["next"].value[position]
            distance = distance_of_foremost(trace.steps, position, found.candidates)
            yield Unproven(f"next[{position}]", "next", distance, found.candidates)
        room -= len(self.positions)
        for address, mask in self.entries.items():
            for place in np.argwhere(mask)[: max(room, 0)]:
                index = tuple(map(int, place))
                told = ",".join(map(str, index))
                yield Unproven(f"{address}[{told}]", "digits", trace.steps[address].at(index))
                room -= 1


def shortfall(trace: Trace, asked: Sequence[str], digits: int) -> Shortfall:
    """What is not proven of the asked steps, and how many bits are missing."""
    short = Shortfall()
    for address in asked:
        worked = trace.steps[address]
        if worked.missing is not None:
            continue  # an unknown weight: no precision helps
        if worked.step.op == "argmax":
            _add_tokens(short, trace, worked)
        elif worked.step.op == "choose":
            _add_choices(short, trace, worked)
        else:
            _add_numbers(short, worked, digits)
    return short


def _add_numbers(short: Shortfall, worked: Worked, digits: int) -> None:
    numbers: Enclosing = worked.numbers  # type: ignore[assignment]
    missing = numbers.missing(worked.value, digits)
    mask = missing > 0
    if not mask.any():
        return
    middles, radii = numbers.magnitudes(worked.value)
    short.entries[worked.address] = mask
    short.count += int(mask.sum())
    short.radius = max(short.radius, float(radii[mask].max()))
    unclear = mask & (radii >= middles) & np.isfinite(radii)
    short.near_zero = short.near_zero or bool(unclear.any())
    known = missing[mask & ~unclear]
    guessed = missing[unclear & np.isfinite(middles)]
    short.bits = max(short.bits, known.max(initial=0), guessed.max(initial=0))


def _add_tokens(short: Shortfall, trace: Trace, worked: Worked) -> None:
    for position, found in enumerate(worked.value):
        if not found.proven:
            distance = distance_of_foremost(trace.steps, position, found.candidates)
            short.add_token(position, distance)


def _add_choices(short: Shortfall, trace: Trace, worked: Worked) -> None:
    for position, experts in open_rows(worked).items():
        distance = _distance_of_scores(trace.steps, worked.step, position, experts)
        short.add_choice(worked.address, position, distance)


def open_rows(worked: Worked) -> dict[int, tuple[int, ...]]:
    """The positions whose choice of experts is open, with those that may be chosen or not."""
    found: dict[int, tuple[int, ...]] = {}
    for position, expert in np.ndindex(*worked.step.shape):
        if worked.at((position, expert)).rad:
            found[position] = (*found.get(position, ()), expert)
    return found


def _distance_of_scores(
    steps: Mapping[str, Worked], choice: Step, position: int, experts: Sequence[int]
) -> Enclosure:
    """The distance of two scores at the edge of a choice; infinite where it is not known."""
    scores = steps.get(choice.inputs["x"])
    if scores is None or scores.missing is not None or len(experts) < 2:
        return EVERYTHING
    return _apart([scores.at((position, expert)) for expert in experts])


def distance_of_foremost(
    steps: Mapping[str, Worked], position: int, candidates: Sequence[int]
) -> Enclosure:
    """The distance of the two largest logits; an infinite enclosure where it is not known."""
    logits = steps.get("logits")
    if logits is None or logits.missing is not None:
        return EVERYTHING
    return _apart([logits.at((position, id)) for id in candidates[:MOST_CANDIDATES]])


def _apart(rivals: Sequence[Enclosure]) -> Enclosure:
    """The distance of the two largest numbers; an infinite enclosure where it is not known."""
    if len(rivals) < 2 or any(rival.rad == inf for rival in rivals):
        return EVERYTHING
    first, second = sorted(rivals, key=lambda rival: rival.mid)[:-3:-1]
    return Enclosure(first.mid - second.mid, first.rad + second.rad)
