"""Books: pages of passages, and the figure of the whole pass on every page.

    Book ─ Spine                    the figure of the whole pass, the same on every page
      └ Page ─ Passage              a sentence or two, what is computed here, and
                 ├ Formula          the law, this model's numbers in it, one entry written out
                 ├ Part …           tables, heat strips, patterns, counts
                 └ Remark …         boundaries, returns, what does not follow

Formulas and parts are in `parts`.  `compose.book` makes a book from an `Edition`; HTML, Typst and
worksheets show it.  A book holds no computation, no markup and no widths.

A sentence is plain text; between backticks stands an address or a word of the text.  Numbers in
sentences are written as in the book's language.  `Cell.decimal` and all numbers outside sentences
have a decimal point (`numerals.localised` translates it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from byhand.document.parts import Formula, NumberRow, NumberTable, Part, Predictions, Remark
from byhand.document.parts.verdicts import VerdictLine

MOST_EMBEDDED = 1_500_000  # bytes of one page
LEARNED = ("grad.", "update.", "losses", "mean_loss")  # addresses of a training step begin so


def shown_by(command: str, address: str) -> str:
    """The command that shows a number of a book: of its pass, or of its training step."""
    if address.startswith("update."):
        return f"byhand step {command} --loss mean --at '{address}'"
    if address.startswith(LEARNED):
        return f"byhand trace {command} --losses --backward --at '{address}'"
    return f"byhand trace {command} --at '{address}'"


# ------------------------------------------------------------------ the figure of the whole pass


@dataclass(frozen=True, slots=True)
class Node:
    """A station of the pass: on the stream, or on a side-trip that leaves it and comes back.

    `steps` are the addresses computed here; a passage highlights the nodes of its steps
    (`Spine.lit`).  `rows` are its result, position by position, where the model is small enough for
    the figure to hold its numbers; `said` is what stands there where a row has none or too many:
    the next token as a word, the likeliest one with its logit or probability.
    """

    id: str  # an id for HTML: block-0-attn-scores
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
        """The ids of the nodes that compute some of these steps."""
        wanted = set(steps)
        return tuple(node.id for node in self.nodes if wanted.intersection(node.steps))


# ------------------------------------------------------------------ passages and pages


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage: one part of the computation in words, formulas and numbers.

    `lit` are the addresses of its steps, highlighted in the figure.  In a passage that looks back,
    they are the steps that it mentions.  `letters` defines the letters in its formulas and numbers.
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
    backward: bool = False  # on the way back from the loss
    brief: bool = False  # its tensors are too large to show, and statistics stand for them

    @property
    def told_once(self) -> tuple[Part, ...]:
        """Its parts, without the ids of the next tokens where words tell them."""
        told = {part.address for part in self.show if isinstance(part, Predictions)}
        return tuple(
            part
            for part in self.show
            if not (isinstance(part, NumberTable) and not part.asked and part.address in told)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """A chapter; `slug` is the name of its file.

    Slugs: whole, tokens, attention, block, next, losses, backward, step, training, explained,
    exact, parameters.
    """

    slug: str
    title: str
    intro: str
    passages: tuple[Passage, ...]
    kicker: str = ""  # above its title; without one, which page it is
    aside: str = ""  # beside it in the contents: the models that it shows
    first: int = 1  # the number of its first passage; 0 where that is not a section


@dataclass(frozen=True)
class Book:
    """Everything shown of one model and one text."""

    model: str
    text: str
    title: str
    about: str
    pages: tuple[Page, ...]
    spine: Spine
    language: str  # en, es
    numbers: str  # the number system, in words
    scale: str  # "pencil": every number; "toy": every tensor; "large": a selection
    tokens: tuple[str, ...] = ()  # labels of the positions: "0 the", "1 cat"
    facts: tuple[tuple[str, str], ...] = ()  # text, numbers, target, parameters, in words
    notes: tuple[str, ...] = ()  # the model's own notes
    registers: tuple[tuple[str, str], ...] = ()  # those that occur, with what they promise
    claims_checked: str = ""  # the document whose numbers were checked; empty: none
    claims: tuple[VerdictLine, ...] = field(default=())  # all of them, in spine order
    decimals: bool = False  # whether fractions that end are written as decimals, 0.2 for 1/5
    command: str = ""  # the reader's arguments to byhand for the same: tiny, or tiny 'b a'

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
