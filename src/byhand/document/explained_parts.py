"""What the chapter on what the numbers say shows: sums with bars, the lens, findings, drawings.

These are parts of a passage as those in `parts` are, and as they: everything is data, nothing
computes, nothing is escaped.  Words are in the language of the book, numbers inside them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byhand.document.parts import Cell, Number


@dataclass(frozen=True, slots=True)
class TermLine:
    """What one part of the model adds to some logits.

    `numbers` has one for each token; where they have no address of their own (several terms put
    together), cells.  `difference` is what tells the first token from the second, and `size` the
    length of the bar: a share of the longest, from -1 to 1.
    """

    name: str  # of the source: block.0.attn.head_out[2]; else words
    about: str  # the same in words
    numbers: tuple[Number | Cell, ...]
    difference: Cell | None
    size: float
    kind: str = "term"  # "term", "rest" (several terms put together), "sum"
    largest: bool = False


@dataclass(frozen=True, slots=True)
class Terms:
    """A logit, or the lead of one over another, as a sum; `closing` says how it closes."""

    title: str
    tokens: tuple[str, ...]  # above the numbers
    compared: str  # above the differences: A − B; empty where a logit stands alone
    lines: tuple[TermLine, ...]
    closes: str  # "exact", "proven", "rounded", "open"
    closing: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LensLine:
    """What the model would say if it ended after a step."""

    step: str  # its address
    leader: str  # the token; ? where it is undecided, A = B where they tie
    probability: Cell | None
    share: float  # the same as a float, for a bar
    logits: tuple[Number, ...]
    place: str = ""  # of the first token among all, where there are more than a few
    settled: bool = False  # from here on the last leader leads
    missing: str = ""  # why nothing is known here


@dataclass(frozen=True, slots=True)
class LensTable:
    """One position's stream after every step, read by the model's own end."""

    title: str
    tokens: tuple[str, ...]  # above the logits
    lines: tuple[LensLine, ...]
    note: str = ""  # what the mark beside a settled line means


@dataclass(frozen=True, slots=True)
class Finding:
    """Sentences that belong together: what is found, and what is known about it."""

    lead: str
    told: tuple[str, ...] = ()
    open: bool = False  # something is not known


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table to be read: `right` says which columns are numbers, `strong` which cells matter."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    strong: frozenset[tuple[int, int]] = frozenset()
    note: str = ""
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing as SVG that needs nothing else, and the same in words."""

    svg: str
    about: str


ExplainedPart = Terms | LensTable | Finding | TextTable | Picture
