"""Words and tables to be read as parts: remarks, findings, facts, grids, what is left out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence at a step or below a table.

    `kind`: leaves, returns, stops, limit, open (not known), more, closing (how a sum closes);
    "claim" where a printed number does not follow, "carried" where it follows from an error.
    """

    kind: str
    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Sentences that belong together: what is found, and what is known about it."""

    lead: str
    told: tuple[str, ...] = ()
    open: bool = False  # something is not known


@dataclass(frozen=True, slots=True)
class Facts:
    """Short facts side by side: a word and what it is."""

    facts: tuple[tuple[str, str], ...]


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
        """Whether its cells stand to the right: numbers do."""
        return self.kind == "number"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to be read; its first column names the rows.

    `totals` are rows below a line, `strong` the (row, column) of cells that matter most and `note`
    what that means; `addresses` are those of the rows, where they have any.
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
