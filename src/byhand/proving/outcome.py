"""Outcomes: what the search for a proof found, as a tree of cases for each goal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from byhand.proving.domain import Region, Values

if TYPE_CHECKING:
    from byhand.proving.properties import Property

PROVEN, REFUTED, OPEN = "proven", "refuted", "open"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A case: a region that was decided, or is open.

    `by` is "letters" (one pass for all its texts), "each" (every text in a pass of its own), "none"
    (there is no text) or "open".
    """

    region: Region | None  # None: no text
    by: str
    lead: Fraction | None = None  # at least this; of "each" the least.  None: nothing was asked
    next: tuple[int, ...] = ()  # by letters: the tokens that lead everywhere in the region
    where: tuple[int, ...] = ()  # each: the text with the least lead, as token ids
    texts: int | None = None  # each: how many there are


@dataclass(frozen=True, slots=True)
class Split:
    """A region cut in two: a variable has one of the values `first`, or another one."""

    region: Region
    cut: str
    first: Values
    parts: tuple[Tree, Tree]


Tree = Leaf | Split


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The cases of a tree, in order; no recursion, since trees may be deep."""
    todo: list[Tree] = [tree]
    while todo:
        one = todo.pop()
        if isinstance(one, Leaf):
            yield one
        else:
            todo.extend(reversed(one.parts))


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A text for which a claim does not hold, checked by a trace of its own."""

    goal: int
    tokens: tuple[int, ...]
    assigned: Mapping[str, int]
    expected: tuple[int, ...]  # ids that would have been right; () where a number was asked for
    found: int | None  # the id that comes next
    address: str  # the number that goes wrong: 'logits[3,7]'
    value: Any  # that number, as the trace has it
    bound: Any = None  # what it must be larger than: the other logit, or the bound
    weights: Mapping[str, Any] | None = None  # numbers within their ranges for which it fails


@dataclass(frozen=True)
class Outcome:
    """The answer to a property, with everything that a report or a certificate needs."""

    property: Property
    answer: str  # PROVEN, REFUTED or OPEN
    trees: tuple[Tree, ...]  # one for each goal
    seconds: float
    passes: int  # passes of regions and of single texts
    counterexample: Counterexample | None = None
    why: str = ""  # where it is open: out of time, interrupted, undecidable ties, …

    @cached_property
    def cases(self) -> int:
        """How many cases were decided."""
        return sum(leaf.by in ("letters", "each") for tree in self.trees for leaf in leaves(tree))

    @cached_property
    def open(self) -> tuple[Leaf, ...]:
        """The regions that are left."""
        return tuple(leaf for tree in self.trees for leaf in leaves(tree) if leaf.by == "open")

    @cached_property
    def texts(self) -> int | None:
        """How many texts the domain has, all goals together; None where nobody can count them."""
        counts = [
            0 if (whole := goal.shape.whole) is None else whole.texts
            for goal in self.property.goals
            if goal.shape.after == 0
        ]
        return None if None in counts else sum(count or 0 for count in counts)

    @cached_property
    def least(self) -> Leaf | None:
        """The case with the least lead, the first of several."""
        decided = [leaf for tree in self.trees for leaf in leaves(tree) if leaf.lead is not None]
        return min(decided, key=lambda leaf: leaf.lead or Fraction(0), default=None)
