"""What an explanation is made of when it is shown: words and numbers as text, no widths, no tags.

A section is a heading, a sentence and blocks.  Blocks say what they are (a sentence, bars, a grid,
a drawing); how that looks is up to `terminal` and `page`.
"""

from __future__ import annotations

from dataclasses import dataclass

USUAL = ("facts", "attribution", "lens", "attention", "geometry", "health")
FURTHER = ("stream", "norms", "inputs")  # which are shown where they are asked for
SECTIONS = (*USUAL, *FURTHER)

STRONG = "*"  # beside a cell that matters most
HARD_SPACE = "\u00a0"  # where a line is not to be broken


def together(text: str) -> str:
    """The text as one word, which no line breaks."""
    return text.replace(" ", HARD_SPACE)


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence.  `kind`: lead (the first of several facts), fact, open (not known), remark,
    closing (how a sum closes)."""

    text: str
    kind: str = "remark"


@dataclass(frozen=True, slots=True)
class Bar:
    """A number with its sign and how long its bar is: `size` is a share of the longest, -1 to 1.

    `kind`: term, rest (several terms summed), sum.
    """

    label: str
    value: str
    size: float
    kind: str = "term"
    address: str = ""
    about: str = ""  # further words, where there is room for them
    largest: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Terms of a sum, their sum, and how it closes."""

    title: str
    bars: tuple[Bar, ...]
    closing: tuple[Told, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts; `right` says which columns are numbers and stand to the right.

    `strong` are the (row, column) of cells that matter most: a sign beside them says so.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    left_out: str = ""
    addresses: tuple[str, ...] = ()  # of the rows, where they have any
    strong: frozenset[tuple[int, int]] = frozenset()
    note: str = ""  # what the sign beside strong cells means


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture: SVG for a page, lines of characters for a terminal."""

    characters: tuple[str, ...] = ()
    svg: str = ""
    about: str = ""


Block = Told | Bars | Grid | Drawing


@dataclass(frozen=True, slots=True)
class Section:
    """One of SECTIONS."""

    name: str
    title: str
    about: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """What is explained: model, text, numbers, position."""

    name: str
    summary: str
    facts: tuple[tuple[str, str], ...]
