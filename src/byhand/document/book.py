"""What a book is: pages of passages, and the figure of the whole pass that every page has.

    Book ─ Spine                    the figure of the whole pass, the same on every page
      └ Page ─ Passage              a sentence or two, what is computed here, and
                 ├ Formula          the law, this model's numbers in it, one entry written out
                 ├ Part …           tables, heat strips, patterns, counts
                 └ Remark …         boundaries, returns, what does not follow

Formulas and parts are in `parts`.  `pages` makes all of it from an `Edition`; HTML, Typst and
worksheets show it.  Nothing computes, nothing is escaped, and no width is known.

How to read the words: a sentence is plain text; what stands between backticks is an address or a
word of the text, as it is.  Numbers inside sentences are already written as the language writes
them; `Cell.decimal` and every other number outside sentences has a decimal point
(`numerals.localised` turns it into what the language writes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from byhand.document.parts import Formula, NumberRow, NumberTable, Part, Predictions, Remark
from byhand.document.parts.verdicts import VerdictLine

MOST_EMBEDDED = 1_500_000  # bytes of one page, which whoever writes pages keeps to


# ------------------------------------------------------------------ the figure of the whole pass


@dataclass(frozen=True, slots=True)
class Node:
    """A station of the pass: on the stream, or on a side-trip that leaves it and comes back.

    `steps` are the addresses computed here; a passage highlights the nodes whose steps it lights
    (`Spine.lit`).  `rows` are its result, position by position, where the model is small enough
    for the figure to hold its numbers; `said` is what stands there where a row has none or
    too many: the next token as a word, the likeliest one with its logit or probability.
    """

    id: str  # a word that may stand in HTML: block-0-attn-scores
    label: str
    kind: str  # "end" (text, next token, loss), "stream" (on the line), "trip" (beside it)
    layer: int | None
    trip: str  # "attn", "mlp" or "": which side-trip of its layer
    steps: tuple[str, ...]
    rows: tuple[NumberRow, ...] = ()
    said: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spine:
    """The figure of the whole pass, in the order of the pass."""

    nodes: tuple[Node, ...]
    layers: int

    def lit(self, steps: tuple[str, ...]) -> tuple[str, ...]:
        """The ids of the nodes in which some of these steps are computed."""
        wanted = set(steps)
        return tuple(node.id for node in self.nodes if wanted.intersection(node.steps))


# ------------------------------------------------------------------ passages and pages


@dataclass(frozen=True, slots=True)
class Passage:
    """One thought: what is computed here, in words, in a formula and in numbers.

    `lit` are the addresses of the steps that are computed here, highlighted in the figure; of a
    passage that looks back, those it speaks of.
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
    looks_back: bool = False
    brief: bool = False  # its tensors are too large to be shown, and told by their statistics

    @property
    def told_once(self) -> tuple[Part, ...]:
        """What it shows, without the ids of the next tokens where they are told in words."""
        told = {part.address for part in self.show if isinstance(part, Predictions)}
        return tuple(
            part
            for part in self.show
            if not (isinstance(part, NumberTable) and not part.asked and part.address in told)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """A chapter.  `slug` is its file's name: whole, tokens, attention, block, next,
    explained, exact, parameters."""

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
    claims: tuple[VerdictLine, ...] = field(default=())  # all of them, in spine order
    command: str = ""  # how the reader calls byhand on the same: tiny, or tiny 'b a'

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
