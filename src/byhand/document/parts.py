"""The parts of a document: numbers with their addresses, the pass, colours, tables, claims.

    Cell · Number · NumberRow · NumberTable    a number: forms, address, place in a table
    WorkingLine · Definitions · Formula        how it comes about, and the law of its step
    Title · Stage · StepPart · … · Loss        the pass, step by step
    HeatStrip · AttentionPattern · …           larger tensors as colours
    Column · Grid · Finding · Drawing          a table to be read, sentences, a picture
    Terms · LensTable                          a logit as a sum, and what leads after every step
    Remark · Facts · LeftOut · …               what is said beside them; `Part` is any of these
    Section                                    parts under a heading

A composer makes parts, a medium draws them.  What holds the parts of a book together (passages,
pages, the figure) is in `book`.  Everything is data: expression trees, words in the reader's
language, and plain arrays of floats.  Nothing computes, nothing is escaped, and no width is known.

How to read the trees (`byhand.expression`): in a formula, `Name("W_q")` is W with the index q,
`Name("Eᵀ")` is E transposed, a longer name such as `scores` stands upright as a word, and
`Entry("q", (0, 1, 0))` is q with its index.  `Call` may have any function's name (softmax, mean,
argmax); `Call("Σ", x)` is a sum without brackets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from byhand.document.verdict_parts import ClassTable, VerdictLine, VerdictReport, VerdictTable
from byhand.expression import Expression, write

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry
    from byhand.explaining.planes import Plane

Floats = npt.NDArray[np.float32]
LONGEST_FRACTION = 9  # characters of an exact number in a table of decimals


# ------------------------------------------------------------------ numbers with their addresses


@dataclass(frozen=True, slots=True)
class Cell:
    """One number in the forms it can be shown in.  A masked entry has no register and no form.

    `worked` is the form before simplifying, where it differs; `decimal` is proven to its last
    place; with a `radius`, the true value lies within it of `decimal`.  A form in letters that
    would need definitions is left to the parts that define them.

    `cut` says that `decimal` is not all of an exact or rounded number: 0.3333 for 1/3, or four
    decimals of a float.  An exact number without a form that is not cut is what its decimal says.
    """

    register: str | None
    form: Expression | None = None
    worked: Expression | None = None
    decimal: str | None = None
    radius: str | None = None
    cut: bool = field(default=False, compare=False)

    @property
    def masked(self) -> bool:
        return self.register is None

    @property
    def plain(self) -> bool:
        """Whether a table of decimals shows an exact number in full."""
        if self.register != "exact" or self.form is None:
            return False
        text = write(self.form)
        whole = text.removeprefix("-").isdigit() and len(text) <= len(self.decimal or "")
        return whole or len(text) <= LONGEST_FRACTION  # the decimals of 10**12 are zeros alone


MASKED = Cell(None)


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter and what it stands for, told where it is first used."""

    name: str
    definition: Expression
    decimal: str | None


@dataclass(frozen=True, slots=True)
class Number:
    """One number: where it is, what it is, and how it comes about.

    A masked entry has no register (`cell.masked`).  `working` is there where the whole working
    fits into the book; of a weight or an id there is none.  `claim` says what a document prints
    here, where that does not follow.  `short` is the number in a few characters, with its sign
    where its table compares: a terminal shows that.
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


@dataclass(frozen=True, slots=True)
class WorkingLine:
    """How one number comes about: in short names, with the values in, and what it is."""

    address: str
    cell: Cell
    symbols: Expression | None = None
    values: Expression | None = None
    decimals: bool = False  # some of the values are shown by their decimals
    sources: tuple[tuple[str, str], ...] = ()  # short name, address
    letters: tuple[Letter, ...] = ()
    remarks: tuple[Remark, ...] = ()
    missing: bool = False  # the number could not be worked out; a remark says why


@dataclass(frozen=True, slots=True)
class Definitions:
    """A number whose form has letters in it that stand for long values, and what these are."""

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


# ------------------------------------------------------------------ the pass


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence at a step or below a table: leaves, returns, stops, limit, open, more, "closing"
    (how a sum closes); "claim" where a printed number does not follow, "carried" where it follows
    from an error."""

    kind: str
    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Title:
    """What is worked out: model, text, numbers; and how the signs are read.

    `digits`: so many significant digits of every number are shown, proven.
    """

    name: str
    about: str
    facts: tuple[tuple[str, str], ...]
    registers: tuple[str, ...] = ()
    masked: bool = False
    notes: tuple[str, ...] = ()
    digits: int | None = None
    only_later: bool = True  # all that is masked comes later; else a window or a table masks too
    aside: str = ""  # at the end of the line of the name


@dataclass(frozen=True, slots=True)
class Stage:
    """A heading along the spine, with a sentence on what happens here."""

    title: str
    about: str


@dataclass(frozen=True, slots=True)
class StepPart:
    """One line of working with its numbers."""

    address: str
    also: tuple[str, ...]
    formula: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    register: str | None
    given: tuple[NumberTable, ...] = ()  # the weights it reads
    tables: tuple[NumberTable, ...] = ()
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class NotWorked:
    """Steps without values, and the one reason they share, where it is to be said."""

    reason: str
    steps: tuple[StepPart, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The next token after one position; `sentence` tells it in a book, ties and all."""

    position: int
    label: str
    token: str | None  # None: undecided
    margin: Cell | None
    proven: bool
    tied: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The next token after each position (or after the positions shown); `step` is `next`."""

    step: StepPart
    predictions: tuple[Prediction, ...]
    left_out: str = ""

    @property
    def address(self) -> str:
        return self.step.address


@dataclass(frozen=True, slots=True)
class Choice:
    """One more token of a text, its probability, and what is known of the choice."""

    position: str
    token: str
    cell: Cell
    known: str
    proven: bool
    room: int  # digits of the last position there may be


@dataclass(frozen=True, slots=True)
class Loss:
    """The step `loss`: how surprised the model is by the target."""

    step: StepPart
    target: str
    after: str
    cell: Cell
    letters: tuple[Letter, ...] = ()


# ------------------------------------------------------------------ colours


@dataclass(frozen=True, slots=True)
class HeatStrip:
    """A larger tensor as colours: every entry, or where it is too large a coarser picture.

    `values` are rows of floats (two axes; heads stand one below the other, `blocks` of them), NaN
    where an entry is masked.  With `pooled` = (r, c) each value is the entry furthest from 0 of r
    rows and c columns.  `reach` is the largest size of an entry: the end of the colours, which
    are symmetric about 0.
    """

    address: str
    title: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    values: Floats
    reach: float
    labels: tuple[str, ...] = ()  # beside the rows of each block
    heads: tuple[str, ...] = ()  # above the columns, where they have words
    blocks: int = 1
    pooled: tuple[int, int] = (1, 1)
    left_out: str = ""
    kind: str = "step"  # "step", "weight"


@dataclass(frozen=True, slots=True)
class HeadPattern:
    """Where one head looks: a share for each query (row) and key (column), NaN where masked."""

    address: str  # block.0.attn.weights[1]
    head: int
    values: Floats
    numbers: tuple[tuple[Number, ...], ...] = ()  # the same with their forms, pencil-sized only


@dataclass(frozen=True, slots=True)
class AttentionPattern:
    """Which position looks at which, head by head."""

    address: str
    labels: tuple[str, ...]  # of the positions
    patterns: tuple[HeadPattern, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """A place on the residual stream, or the side-trip that adds to it between two of them.

    `size` is the length of the vector, `numbers` its entries (or the first of them).
    """

    address: str
    label: str
    kind: str  # "stream": the stream itself; "trip": what attention or the MLP adds
    layer: int | None
    size: float
    register: str | None
    numbers: tuple[Number, ...]
    trip: str = ""  # "attn" or "mlp" where it is a side-trip


@dataclass(frozen=True, slots=True)
class StreamLine:
    """One position's way along the residual stream, with what each side-trip adds to it."""

    position: int
    label: str
    stops: tuple[Stop, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class RegisterLine:
    """The registers of a step, position by position; `crossings` are "leaves", "returns" or ""."""

    address: str
    registers: tuple[str | None, ...]
    crossings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegisterMap:
    """The whole pass as registers: a row a step, a column a position."""

    labels: tuple[str, ...]  # of the positions
    lines: tuple[RegisterLine, ...]
    left_out: str = ""


# ------------------------------------------------------------------ words and tables


@dataclass(frozen=True, slots=True)
class Facts:
    """Short facts, each a word and what it is; `title` says what they are about."""

    facts: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not shown here, why, and how to see it."""

    text: str
    command: str = ""  # byhand trace … --at …


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word with its logit and its probability."""

    token: str
    id: int
    logit: Number
    probability: Number
    target: bool = False
    share: float = 0.0  # the probability as a float, for a bar


@dataclass(frozen=True, slots=True)
class Candidates:
    """The words that may come next after one position, the likeliest first."""

    position: int
    label: str
    candidates: tuple[Candidate, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """One component of the model: 4·d² = 4·64² = 16,384, in 2 layers."""

    address: str  # count.block.0.attention
    part: str  # in words: attention, biases of the MLP
    layers: tuple[int, ...]  # empty outside the blocks
    tensors: tuple[str, ...]  # addresses of the weights, of the first of the layers
    formula: str
    numbers: str
    count: int  # of one layer
    total: int  # of all of them
    share: float  # of all parameters


@dataclass(frozen=True, slots=True)
class ParameterTable:
    """The inventory of a model, to the digit."""

    lines: tuple[ParameterLine, ...]
    totals: tuple[tuple[str, str, int], ...]  # address, in words, count
    symbols: tuple[tuple[str, int, str], ...]  # d, 64, "width of the residual stream"


@dataclass(frozen=True, slots=True)
class ShapeLine:
    """A step without its numbers."""

    address: str
    formula: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    entries: int


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """Steps and their shapes; equal layers once, `times` of them."""

    lines: tuple[ShapeLine, ...]
    times: tuple[int, ...]  # beside each line: in how many layers it occurs
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a tensor that is too large to be shown is like."""

    address: str
    shape: tuple[int, ...]
    least: float
    greatest: float
    mean: float
    deviation: float
    zeros: int  # entries that are 0
    largest: str  # the address of the entry furthest from 0


@dataclass(frozen=True, slots=True)
class StatisticsTable:
    """The statistics of several tensors."""

    lines: tuple[Statistics, ...]


# ------------------------------------------------------------------ claims


# ------------------------------------------------------------------ sentences, tables, pictures


@dataclass(frozen=True, slots=True)
class Finding:
    """Sentences that belong together: what is found, and what is known about it."""

    lead: str
    told: tuple[str, ...] = ()
    open: bool = False  # something is not known


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

    A row of one cell is a heading over the rows below it.  A last column of shares without a head
    repeats a number as a bar.  `totals` are rows below a line, `strong` the (row, column) of cells
    that matter most and `note` what that means; `addresses` are those of the rows, where they have
    any.
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
        """Whether its rows stand under headings."""
        return any(len(row) == 1 for row in self.rows)

    @property
    def barred(self) -> bool:
        """Whether its last column repeats a number as a bar."""
        return self.columns[-1].kind == "share" and not self.columns[-1].head


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plane of the stream: who wins where, the tokens' directions, and each position's way.

    `geometry` and `plane` are its numbers (see `explaining.geometry`), the rest is words.
    """

    geometry: Geometry
    plane: Plane
    name: str  # which is its own on a page
    title: str
    about: str  # the whole of it said, for those who do not see it
    notes: tuple[str, ...]
    axes: tuple[str, str]  # their names
    stops: Mapping[str, str]  # what each kind of stop on a way is called
    ends: tuple[str, ...]  # what is predicted at the end of each way
    small: bool = False
    instead: str = ""  # what is said where nothing can be drawn


# ------------------------------------------------------------------ sums, and the lens


@dataclass(frozen=True, slots=True)
class TermLine:
    """What one part of the model adds to some logits.

    `numbers` has one for each token; `difference` is what tells the first token from the second,
    and `size` the length of the bar: a share of the longest, from -1 to 1.
    """

    name: str  # of the source: block.0.attn.head_out[2]; else words
    about: str  # the same in words
    token: str  # the token behind the source, where there is one
    numbers: tuple[Number, ...]
    difference: Number | None
    size: float
    kind: str = "term"  # "term", "rest" (several terms put together), "sum"
    largest: bool = False

    @property
    def added(self) -> Number:
        """What the line adds to what is explained: to the lead, or to the logit alone."""
        return self.numbers[0] if self.difference is None else self.difference


@dataclass(frozen=True, slots=True)
class Terms:
    """A logit, or the lead of one over another, as a sum; `closing` says how it closes."""

    title: str
    tokens: tuple[str, ...]  # above the numbers
    compared: str  # above the differences: A − B; empty where a logit stands alone
    lines: tuple[TermLine, ...]
    closes: str  # "exact", "proven", "rounded", "open"
    closing: str
    unknown: str = ""  # which terms are not known, in words

    @property
    def reach(self) -> tuple[float, float]:
        """How far the bars go to the left and to the right of their axis."""
        sizes = [line.size for line in self.lines if line.kind != "sum"]
        return max(0.0, -min(sizes, default=0.0)), max(0.0, max(sizes, default=0.0))


@dataclass(frozen=True, slots=True)
class LensLine:
    """What the model would say if it ended after a step."""

    step: str  # its address
    leader: str  # the token; ? where it is undecided, A = B where they tie
    probability: Number | None = None
    share: float = 0.0  # the same as a float, for a bar
    logits: tuple[Number, ...] = ()
    place: str = ""  # of the first token among all, where there are more than a few
    settled: bool = False  # from here on the last leader leads
    missing: str = ""  # why nothing is known here


@dataclass(frozen=True, slots=True)
class LensTable:
    """One position's stream after every step, read by the model's own end."""

    title: str
    tokens: tuple[str, ...]  # above the logits
    lines: tuple[LensLine, ...]
    placed: bool = False  # whether the place of the first token is told
    note: str = ""  # what the mark beside a settled line means


Part = (
    NumberTable | WorkingLine | Definitions
    | Title | Stage | StepPart | NotWorked | Predictions | Choice | Loss | Remark
    | HeatStrip | AttentionPattern | StreamLine | RegisterMap
    | Facts | LeftOut | Candidates | ParameterTable | ShapeTable | StatisticsTable
    | VerdictTable | VerdictReport | ClassTable
    | Finding | Grid | Drawing | Terms | LensTable
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading, with a sentence on what they are."""

    name: str
    title: str
    about: str
    parts: tuple[Part, ...]
