"""The proof of a trace: the digits asked for, the precision it took, and what remained open."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.numbers.enclosed.enclosure import Enclosure


@dataclass(frozen=True, slots=True)
class Unproven:
    """One thing that was asked for and is not proven, with how close it is."""

    address: str  # "logits[3,17]": digits of this number; "next[3]": the token after a position
    asked: str  # "digits", "next", or "experts": who is chosen at a position
    enclosure: Enclosure  # of the number; else of the distance of the two largest logits or scores
    candidates: tuple[int, ...] = ()  # the ids that may be the largest, the experts that may answer


@dataclass(frozen=True, slots=True)
class Proof:
    """What was asked, the precision that proved it, and what remained open."""

    digits: int
    bits: int  # the working precision it took
    undecided: tuple[Unproven, ...] = ()  # the first unproven things
    count: int = 0  # how many unproven things there are
    by_exact: tuple[str, ...] = ()  # addresses that exact arithmetic settled: zeros and ties

    @property
    def complete(self) -> bool:
        """Whether everything that was asked is proven."""
        return self.count == 0
