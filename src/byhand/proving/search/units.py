"""Units of work: what a search sends to its workers, and what they report; plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from byhand.proving.domain import Region, Values
from byhand.proving.outcome import Counterexample
from byhand.proving.search.journal import Line

Part = tuple[str, Mapping[str, Values], float]  # a region: path, values, share of the domain
Node = tuple[str, Region, float]  # the same


@dataclass(frozen=True, slots=True)
class Unit:
    """Some regions of a goal."""

    goal: int
    parts: tuple[Part, ...]
    seconds: float  # after which the rest is handed back
    same: int | None = None  # the token that a claim of one prediction for all texts asks for


@dataclass
class Report:
    """What became of a unit."""

    goal: int
    lines: list[Line] = field(default_factory=list)
    left: list[Part] = field(default_factory=list)
    done: float = 0.0  # the share of the domain that was decided
    passes: int = 0
    counterexample: Counterexample | None = None
    interrupted: bool = False  # by Ctrl-C: `left` is not known then
