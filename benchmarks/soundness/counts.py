"""Counts of samples: how many were held, and how near the nearest came to its bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isinf, isnan

from flint import arb

MOST_TOLD = 5  # samples that are told of, of those that were missed


@dataclass
class Count:
    """The samples of one rule."""

    rule: str
    samples: int = 0
    missed: int = 0  # certainly beyond their bound
    open: int = 0  # the truth was not known well enough to tell
    endless: int = 0  # whose bound was infinite
    nearest: float = 0.0  # the largest part of a bound that was used
    first: list[str] = field(default_factory=list)  # of those that were missed

    def add(self, bound: float, found: Sequence[arb], said: str = "") -> None:
        """Adds true distances that are said to be at most `bound`."""
        self.samples += len(found)
        if isinf(bound):
            self.endless += len(found)
            return
        if isnan(bound):
            self.missed += len(found)
            self.first.append(f"{said} no number for a bound")
            return
        limit = arb(bound)
        for distance in found:
            if distance <= limit:
                if bound > 0:
                    self.nearest = max(self.nearest, float((distance / limit).upper()))
            elif distance > limit:
                self.missed += 1
                self.nearest = inf
                if len(self.first) < MOST_TOLD:
                    self.first.append(f"{said} {distance.str(10)} beyond {bound!r}")
            else:
                self.open += 1
                if len(self.first) < MOST_TOLD:
                    self.first.append(f"open: {said} {distance.str(10)} beside {bound!r}")

    def join(self, other: Count, said: str = "") -> None:
        """Adds the samples of another count."""
        self.samples += other.samples
        self.missed += other.missed
        self.open += other.open
        self.endless += other.endless
        self.nearest = max(self.nearest, other.nearest)
        room = MOST_TOLD - len(self.first)
        if other.missed or other.open:
            self.first += [f"{said}: {each}" for each in other.first[: max(room, 0)]]

    def row(self) -> dict[str, str]:
        """One line of a table: what, how many, and what became of them."""
        return {
            "what": self.rule,
            "samples": f"{self.samples:,}",
            "missed": str(self.missed),
            "open": str(self.open),
            "bound infinite": f"{self.endless:,}",
            "nearest": f"{self.nearest:.3f}" if self.nearest else "",
        }

    def told(self) -> str:
        """The same as text."""
        return "| " + " | ".join(self.row().values()) + " |"


HEAD = "| what | samples | missed | open | bound infinite | nearest |\n|---|---|---|---|---|---|"
