"""Words and tables to be read as parts: remarks, findings, facts, grids, what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from byhand.document.parts import Part


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence at a step or below a table: leaves, returns, stops, limit, open, more, "closing"
    (how a sum closes), "value" (what a number stands for, or what floats make of it); "claim" where
    a printed number does not follow, "carried" where it follows from an error."""

    kind: str
    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Sentences that belong together: a finding, and the facts about it."""

    lead: str
    told: tuple[str, ...] = ()
    open: bool = False  # something is unknown


@dataclass(frozen=True, slots=True)
class Facts:
    """Short facts, each with its name; `title` is their subject."""

    facts: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not shown here, why, and how to see it."""

    text: str
    command: str = ""  # byhand trace … --at …


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table to be read.

    `kind` says what its cells are: "words", a "number", an "address", a "formula", or a "share",
    which is a number from 0 to 1 that is drawn as a bar.
    """

    head: str
    kind: str = "words"

    @property
    def right(self) -> bool:
        """Whether its cells are right-aligned, as numbers are."""
        return self.kind == "number"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to be read; its first column names the rows.

    A row of one cell is a heading over the rows below it.  A last column of shares without a head
    repeats a number as a bar.  `totals` are rows below a line, `strong` the (row, column) of the
    most important cells and `note` their meaning.  `addresses` are those of the rows, if any.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    totals: tuple[tuple[str, ...], ...] = ()
    strong: frozenset[tuple[int, int]] = frozenset()
    note: str = ""
    left_out: str = ""
    addresses: tuple[str, ...] = ()

    @property
    def heads(self) -> tuple[str, ...]:
        """The words above the columns."""
        return tuple(column.head for column in self.columns)

    @property
    def grouped(self) -> bool:
        """Whether its rows have headings."""
        return any(len(row) == 1 for row in self.rows)

    @property
    def barred(self) -> bool:
        """Whether its last column repeats a number as a bar."""
        return self.columns[-1].kind == "share" and not self.columns[-1].head


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading, with a sentence on what they are."""

    name: str
    title: str
    about: str
    parts: tuple[Part, ...]
