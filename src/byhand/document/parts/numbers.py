"""Numbers as parts: a number's forms, its address, its table, its working, the law of its step.

How to read the trees (`byhand.expression`): in a formula, `Name("W_q")` is W with the index q,
`Name("Eᵀ")` is E transposed, a longer name such as `scores` stands upright as a word, and
`Entry("q", (0, 1, 0))` is q with its index.  `Call` may have any function's name (softmax, mean,
argmax); `Call("Σ", x)` is a sum without brackets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from byhand.document.parts.words import Remark
from byhand.document.short_forms import short_form
from byhand.expression import Expression, write

if TYPE_CHECKING:
    from byhand.document.parts.verdicts import VerdictLine


@dataclass(frozen=True, slots=True)
class Cell:
    """One number in the forms it can be shown in.  A masked entry has no register and no form.

    `worked` is the form before simplifying, where it differs; `decimal` is proven to its last
    place; with a `radius`, the true value lies within it of `decimal`.  A form in letters is only
    in parts that define the letters.

    `cut` says that `decimal` is not all of an exact or rounded number: 0.3333 for 1/3, or four
    decimals of a float.  An exact number that has no form and is not cut equals its decimal.
    """

    register: str | None
    form: Expression | None = None
    worked: Expression | None = None
    decimal: str | None = None
    radius: str | None = None
    cut: bool = field(default=False, compare=False)

    @property
    def masked(self) -> bool:
        """Whether the entry is masked."""
        return self.register is None

    @property
    def plain(self) -> bool:
        """Whether a table of decimals shows an exact number in full."""
        if self.register != "exact" or self.form is None:
            return False
        text = write(self.form)
        whole = text.removeprefix("-").isdigit() and len(text) <= len(self.decimal or "")
        return whole or short_form(self.form)  # the decimals of 10**12 are zeros alone


MASKED = Cell(None)


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter and its definition, given at its first use."""

    name: str
    definition: Expression
    decimal: str | None


@dataclass(frozen=True, slots=True)
class Number:
    """One number: its address, its forms, and its working.

    A masked entry has no register (`cell.masked`).  `working` is set if the whole working fits into
    the book; weights and ids have none.  `claim` is a document's printed number, if it does not
    follow.  `short` is the number in a few characters, with its sign where its table compares: a
    terminal shows that.
    """

    address: str  # block.0.attn.scores[0,1,1]; empty where it has none of its own
    cell: Cell
    working: WorkingLine | None = None
    claim: VerdictLine | None = None
    short: str = ""


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A row of a table; `place` is its index, `register` the weakest of the whole row."""

    place: int
    label: str
    register: str | None
    numbers: tuple[Number, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of the row."""
        return tuple(number.cell for number in self.numbers)


@dataclass(frozen=True, slots=True)
class NumberTable:
    """Numbers in rows and columns: a step, one head of it, a weight, or a window of these.

    `columns` are the indices shown and `heads` the words above them (none: the indices say
    enough).  `shape` and `axes` are those of the whole; `left_out` says what is not shown.
    `word` stands instead of rows: identity, zeros, unknown.
    """

    address: str  # block.0.attn.scores; of one head block.0.attn.scores[1]
    title: str  # "head 1"; of a weight the short name it has in the formula, W_q
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    columns: tuple[int, ...]
    heads: tuple[str, ...]
    rows: tuple[NumberRow, ...]
    left_out: str = ""
    word: str = ""
    kind: str = "step"  # "step", "weight"
    asked: bool = False  # whether the reader has asked for these numbers

    @property
    def gaps(self) -> tuple[int, ...]:
        """Which of its rows have others before them that are not shown."""
        pairs = enumerate(pairwise(self.rows), 1)
        return tuple(at for at, (before, row) in pairs if row.place > before.place + 1)


@dataclass(frozen=True, slots=True)
class WorkingLine:
    """The working of one number: in short names, with the values, and the result.

    `brief` are the values with decimals in place of long forms, where the line has such.
    """

    address: str
    cell: Cell
    symbols: Expression | None = None
    values: Expression | None = None
    decimals: bool = False  # some of the values are shown by their decimals
    sources: tuple[tuple[str, str], ...] = ()  # short name, address
    letters: tuple[Letter, ...] = ()
    remarks: tuple[Remark, ...] = ()
    missing: bool = False  # the number could not be worked out; a remark says why
    brief: Expression | None = None


@dataclass(frozen=True, slots=True)
class Definitions:
    """A number whose form has letters for long values, and their definitions."""

    name: str
    form: Expression
    letters: tuple[Letter, ...]


# ------------------------------------------------------------------ formulas


@dataclass(frozen=True, slots=True)
class Sign:
    """A sign between the pieces of a line: =, ·, +, →."""

    text: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix or a row in brackets, entry by entry; `address` is what it is a part of."""

    rows: tuple[tuple[Cell, ...], ...]
    address: str


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the vocabulary in a line."""

    text: str


Piece = Expression | Matrix | Sign | Word
Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """The law of a step, the same with this model's numbers, and one entry written out.

    `symbols` is the law: q = x·W_q.  `numbers` is the same line of one position with its rows and
    matrices written out, as far as they are small enough; `earlier` are such lines of positions
    before it, each with its label, and `label` is then that of `numbers`.  `worked` is one entry,
    from its short names over its numbers to its value: the dot product as a person writes it.
    """

    address: str  # of the step
    symbols: Line
    numbers: Line = ()
    worked: WorkingLine | None = None
    earlier: tuple[tuple[str, Line], ...] = ()
    label: str = ""

    @property
    def lines(self) -> Iterator[tuple[str, Line]]:
        """The lines with numbers, each with the position that it is of."""
        return (each for each in (*self.earlier, (self.label, self.numbers)) if each[1])
