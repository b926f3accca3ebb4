"""Findings: what is odd about a log, each with its evidence.  Nothing is repaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Finding:
    """One thing that a log shows.

    A fact can be read off the log.  A suggestion explains the numbers, and its evidence says how
    much better it fits them; it remains a suggestion.
    """

    kind: str  # a short name in English, the same in every language
    says: str  # a sentence
    evidence: str = ""
    where: str = ""  # the text, or the place in the file
    position: int | None = None  # the first token concerned, counted in the text
    fact: bool = True

    def later(self, count: int) -> Finding:
        """The same, where so many tokens stand before those that it counts."""
        return self if self.position is None else replace(self, position=self.position + count)

    def __str__(self) -> str:
        first = f"{self.where}: {self.says}" if self.where else self.says
        return f"{first} ({self.evidence})" if self.evidence else first


def gathered(findings: Iterable[Finding]) -> Iterator[tuple[Finding, int]]:
    """Each kind of finding once, with how many texts it was found in; the first one stands."""
    places: dict[tuple[str, bool], set[str]] = {}
    first: dict[tuple[str, bool], Finding] = {}
    for finding in findings:
        key = (finding.kind, finding.fact)
        first.setdefault(key, finding)
        places.setdefault(key, set()).add(finding.where)
    for key, finding in first.items():
        yield finding, len(places[key])
