"""The cells of a table on a sheet, and how a formula refers to them.

Every table is laid out flat: one axis runs down (the positions of the text, or the first axis of a
matrix), all others run to the right, heads side by side.  So a row of a table is in the order of
`merge_heads`, and an operation reads neighbouring cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # of a sheet


class Cell(NamedTuple):
    """One cell; rows and columns count from 0."""

    sheet: str
    row: int
    column: int

    def beside(self, down: int, right: int) -> Cell:
        """The cell so many rows down and columns to the right."""
        return Cell(self.sheet, self.row + down, self.column + right)


@dataclass(frozen=True)
class Table:
    """The table of a step, a weight or a line of working; its first cell is (row, column)."""

    address: str
    sheet: str
    row: int
    column: int
    shape: tuple[int, ...]
    down: int | None  # the axis that runs down; None: a single row

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return 1 if self.down is None else self.shape[self.down]

    @property
    def columns(self) -> int:
        """How many columns the table has."""
        return prod(self.shape) // self.rows

    @property
    def groups(self) -> int:
        """The number of tables side by side, mostly heads."""
        return prod(self._across[:-1])

    @property
    def _across(self) -> tuple[int, ...]:
        return tuple(side for axis, side in enumerate(self.shape) if axis != self.down)

    @cached_property
    def _strides(self) -> tuple[tuple[int, int], ...]:
        """The rows and columns between neighbouring entries of each axis."""
        strides, right = [], 1
        for axis in reversed(range(len(self.shape))):
            strides.append((1, 0) if axis == self.down else (0, right))
            right *= 1 if axis == self.down else self.shape[axis]
        return tuple(reversed(strides))

    def cell(self, index: tuple[int, ...]) -> Cell:
        """The cell of one entry."""
        row, column = self.row, self.column
        for place, (down, right) in zip(index, self._strides, strict=True):
            row += place * down
            column += place * right
        return Cell(self.sheet, row, column)

    def indices(self) -> Iterator[tuple[int, ...]]:
        """The index of every entry."""
        return product(*map(range, self.shape))

    @property
    def first(self) -> Cell:
        """The cell at the top left."""
        return Cell(self.sheet, self.row, self.column)

    @property
    def last(self) -> Cell:
        """The cell at the bottom right."""
        return self.first.beside(self.rows - 1, self.columns - 1)


def column_letters(column: int) -> str:
    """A, B, …, Z, AA, …

    >>> column_letters(0), column_letters(25), column_letters(26), column_letters(16_383)
    ('A', 'Z', 'AA', 'XFD')
    """
    letters = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def refer(first: Cell, last: Cell | None = None, *, sheet: str = "", fixed: bool = False) -> str:
    """The reference to a cell or a range, in a formula on a sheet.

    >>> refer(Cell("Text", 4, 2), sheet="Text"), refer(Cell("Text", 4, 2), Cell("Text", 6, 2))
    ('C5', "'Text'!C5:C7")
    >>> refer(Cell("L'été", 0, 0), fixed=True)
    "'L''été'!$A$1"
    """
    sign = "$" if fixed else ""
    ends = [first] if last is None else [first, last]
    text = ":".join(f"{sign}{column_letters(end.column)}{sign}{end.row + 1}" for end in ends)
    if first.sheet == sheet:
        return text
    return "'" + first.sheet.replace("'", "''") + "'!" + text
