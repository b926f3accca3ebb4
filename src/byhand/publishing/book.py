"""What a book is made of: pages of passages, each with its words, formula, numbers and figure.

    Book ─ Spine                    the figure of the whole pass, the same on every page
      └ Page ─ Passage              a sentence or two, what is computed here, and
                 ├ Formula          the law, this model's numbers in it, one entry written out
                 ├ Part …           tables, heat strips, patterns, counts
                 └ Remark …         boundaries, returns, what does not follow

`pages` makes these from an `Edition`; HTML, Typst and worksheets show them.  Everything here is
data: expression trees, words in the language of the book, and plain arrays of floats.  Nothing
computes, nothing is escaped, and no width is known.

How to read the words: a sentence is plain text; what stands between backticks is an address or a
word of the text, as it is.  Numbers inside sentences are already written as the language writes
them; `Cell.decimal` and every other number outside sentences has a decimal point
(`numerals.localised` turns it into what the language writes).

How to read the trees (`byhand.expression`): in a formula, `Name("W_q")` is W with the index q,
`Name("Eᵀ")` is E transposed, a longer name such as `scores` stands upright as a word, and
`Entry("q", (0, 1, 0))` is q with its index.  `Call` may have any function's name (softmax, mean,
argmax); `Call("Σ", x)` is a sum without brackets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from byhand.expression import Expression
from byhand.render.parts import Cell, Letter, WorkingLine

Floats = npt.NDArray[np.float32]

MOST_EMBEDDED = 1_500_000  # bytes of one page, which whoever writes pages keeps to


# ------------------------------------------------------------------ numbers with their addresses


@dataclass(frozen=True, slots=True)
class Number:
    """One number: where it is, what it is, and how it comes about.

    A masked entry has no register (`cell.masked`).  `working` is there where the whole working
    fits into the book; of a weight or an id there is none.  `claim` says what a document prints
    here, where that does not follow.
    """

    address: str  # block.0.attn.scores[0,1,1]
    cell: Cell
    working: WorkingLine | None = None
    claim: Checked | None = None


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A row of a table; `place` is its index, `register` the weakest of the whole row."""

    place: int
    label: str
    register: str | None
    numbers: tuple[Number, ...]


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


# ------------------------------------------------------------------ other parts


@dataclass(frozen=True, slots=True)
class Predicted:
    """What comes next after one position."""

    position: int
    label: str
    token: str | None  # None: undecided
    margin: Cell | None
    proven: bool
    sentence: str  # the whole of it in words, ties and candidates included


@dataclass(frozen=True, slots=True)
class Predictions:
    """The next token after each position (or after the positions shown)."""

    address: str
    predictions: tuple[Predicted, ...]
    left_out: str = ""


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


@dataclass(frozen=True, slots=True)
class Definitions:
    """Letters that stand for long values, and what they stand for."""

    letters: tuple[Letter, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """A printed number or line of somebody's working, with its verdict.

    `verdict` is a word of `Verdict` by its name: RIGHT, CARRIED, UNSUPPORTED, ERROR, UNJUDGED;
    `word` says it in the language of the book.  `told` are further sentences: the worst entry,
    the suspect, what to change, where it stands.
    """

    address: str
    verdict: str
    sign: str  # ✓ → ~ ✗ ?
    word: str
    claimed: str  # as it is printed
    expected: str  # what follows from the lines above; empty where nothing is known
    told: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The claims of a document about the steps of a passage, or all of them."""

    title: str
    lines: tuple[Checked, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Short facts side by side: a word and what it is."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is not shown here, why, and how to see it."""

    text: str
    command: str = ""  # byhand trace … --at …


Part = (
    NumberTable
    | HeatStrip
    | AttentionPattern
    | StreamLine
    | Predictions
    | Candidates
    | ParameterTable
    | ShapeTable
    | StatisticsTable
    | RegisterMap
    | Definitions
    | CheckedTable
    | Facts
    | LeftOut
)


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


Piece = Expression | Matrix | Sign
Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """The law of a step, the same with this model's numbers, and one entry written out.

    `symbols` is the law: q = x·W_q.  `numbers` is the same line of one position with its matrices
    written out, where they are small enough; else empty.  `worked` is one entry, from its short
    names over its numbers to its value: the dot product as a person writes it.
    """

    address: str  # of the step
    symbols: Line
    numbers: Line = ()
    worked: WorkingLine | None = None


# ------------------------------------------------------------------ the figure of the whole pass


@dataclass(frozen=True, slots=True)
class Node:
    """A station of the pass: on the stream, or on a side-trip that leaves it and comes back.

    `steps` are the addresses computed here; a passage highlights the nodes whose steps it lights
    (`Spine.lit`).  `rows` are its result, position by position, where the model is small enough
    for the figure to hold its numbers.
    """

    id: str  # a word that may stand in HTML: block-0-attn-scores
    label: str
    kind: str  # "end" (text, next token, loss), "stream" (on the line), "trip" (beside it)
    layer: int | None
    trip: str  # "attn", "mlp" or "": which side-trip of its layer
    steps: tuple[str, ...]
    shows: str = ""  # the address of the step in `rows`
    rows: tuple[NumberRow, ...] = ()
    register: str | None = None  # the weakest of its steps


@dataclass(frozen=True, slots=True)
class Edge:
    """From node to node; `kind` is "stream" along the line, "trip" otherwise."""

    source: str
    target: str
    kind: str


@dataclass(frozen=True, slots=True)
class Spine:
    """The figure of the whole pass, in the order of the pass."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    layers: int

    def lit(self, steps: tuple[str, ...]) -> tuple[str, ...]:
        """The ids of the nodes in which some of these steps are computed."""
        wanted = set(steps)
        return tuple(node.id for node in self.nodes if wanted.intersection(node.steps))


# ------------------------------------------------------------------ passages and pages


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence at a step: leaves, returns, stops, limit, open, more (as `render.parts.Mark`),
    or "claim" where a printed number does not follow."""

    kind: str
    text: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """One thought: what is computed here, in words, in a formula and in numbers.

    `lit` are the addresses of the steps that are computed here, highlighted in the figure.
    `letters` define what the formulas and numbers of the passage use.
    """

    id: str  # unique in the book: attention-0-scores
    title: str
    sentences: tuple[str, ...]
    lit: tuple[str, ...] = ()
    formulas: tuple[Formula, ...] = ()
    show: tuple[Part, ...] = ()
    remarks: tuple[Remark, ...] = ()
    layer: int | None = None

    @property
    def formula(self) -> Formula | None:
        """The first formula, where there is one."""
        return self.formulas[0] if self.formulas else None


@dataclass(frozen=True, slots=True)
class Page:
    """A chapter.  `slug` is its file's name: whole, tokens, attention, block, next, exact,
    parameters."""

    slug: str
    title: str
    intro: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Book:
    """Everything that is shown of one model and one text."""

    model: str
    text: str
    title: str
    about: str
    pages: tuple[Page, ...]
    spine: Spine
    language: str  # en, es
    numbers: str  # the number system, in words
    scale: str  # "pencil": everything is here; "toy": every tensor; "large": selected
    tokens: tuple[str, ...] = ()  # labels of the positions: "0 the", "1 cat"
    facts: tuple[tuple[str, str], ...] = ()  # text, numbers, target, parameters, in words
    notes: tuple[str, ...] = ()  # what the model says of itself
    registers: tuple[tuple[str, str], ...] = ()  # those that occur, with what they promise
    claims_checked: str = ""  # which document's numbers were checked; empty: none
    claims: tuple[Checked, ...] = field(default=())  # all of them, in spine order

    def __iter__(self) -> Iterator[Page]:
        return iter(self.pages)

    @property
    def passages(self) -> Iterator[Passage]:
        """Every passage in order."""
        for page in self.pages:
            yield from page.passages

    def page(self, slug: str) -> Page:
        """The page of a name."""
        return next(page for page in self.pages if page.slug == slug)
