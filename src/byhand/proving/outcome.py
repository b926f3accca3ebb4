"""Outcomes: what the search for a proof found, as a tree of cases for each goal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from byhand import display
from byhand.display import Shown, one_line, quoted
from byhand.proving.domain import Region, Values

if TYPE_CHECKING:  # an outcome is shown by what opens no models
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


def share_decided(trees: Iterable[Tree]) -> float:
    """The share of the assignments that is decided, from 0 to 1; every goal counts by its size."""
    done = total = 0.0
    for tree in trees:
        todo = [(tree, float(_size(tree)))]
        total += todo[0][1]
        while todo:
            one, size = todo.pop()
            if isinstance(one, Leaf):
                done += size * (one.by != "open")
                continue
            sizes = [_size(part) for part in one.parts]
            for part, own in zip(one.parts, sizes, strict=True):
                todo.append((part, size * own / (sum(sizes) or 1)))
    return done / total if total else 1.0


def _size(tree: Tree) -> int:
    return 0 if tree.region is None else tree.region.box


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
class Outcome(Shown):
    """The answer to a property, with everything that a report or a certificate needs.

    `answer` is "proven", "refuted" (with a `counterexample`) or "open" (`why`, and the regions that
    are left in `open`).  `save` writes the certificate of a proof.

    >>> import byhand
    >>> outcome = byhand.prove("tiny", texts="a .", next="a")
    >>> outcome.answer, outcome.texts, outcome.cases, outcome.decided
    ('proven', 3, 1, 1.0)
    >>> byhand.prove("tiny", texts="a .", next="b").text in ("a a", "a b", "a c")
    True
    """

    property: Property
    answer: str  # PROVEN, REFUTED or OPEN
    trees: tuple[Tree, ...]  # one for each goal
    seconds: float
    passes: int  # passes of regions and of single texts
    counterexample: Counterexample | None = None
    why: str = ""  # where it is open: out of time, interrupted, undecidable ties, …
    called: str = ""  # the reader's name of the model, or its path

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

    @cached_property
    def decided(self) -> float:
        """The share of the domain that is decided, from 0 to 1."""
        return share_decided(self.trees)

    @cached_property
    def text(self) -> str | None:
        """The text of the counterexample."""
        found = self.counterexample
        return None if found is None else self.property.own.vocabulary.decode(found.tokens)

    @cached_property
    def trace_command(self) -> str | None:
        """The command that shows the whole working of the counterexample."""
        if self.text is None:
            return None
        name, text = quote(self.called or self.property.own.name), quote(self.text)
        return f"byhand trace {name} {'-- ' * text.startswith('-')}{text}"

    def save(self, path: str | Path) -> None:
        """Writes the certificate of a proven property, which `byhand.verify` checks."""
        display.save(self, Path(path))

    def __repr__(self) -> str:
        told = self.answer
        if self.text is not None:
            told += f" by {quoted(self.text, 50)}"
        elif self.answer == PROVEN:
            texts = "" if self.texts is None else f" for {_count(self.texts, 'text')}"
            told += f"{texts} in {_count(self.cases, 'case')}"
        elif self.answer == OPEN:
            told += f", {100 * self.decided:.3g}% decided"
        return f"<Outcome of {one_line(self.property.own.name)}: {told}>"


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"
