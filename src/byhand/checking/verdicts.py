"""Verdicts: what the judge says of each claim, and of all of them together.

                               the true value    another value
    follows from what is above    right             carried forward
    does not follow               unsupported       error here

The fifth is *cannot be judged*, with the reason; it is never a pass.  `judging` makes verdicts,
`document` shows them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.checking.claims import DIRECTION, Claim, Reading, Unmatched
from byhand.display import Shown, one_line, quoted
from byhand.errors import AddressError, nearest
from byhand.language import _
from byhand.tokens import Source

IN_BLOCK = re.compile(r"(?<![^.])block\.(\d+)\.")


class Verdict(Enum):
    """The verdict on one claim."""

    RIGHT = "right"
    CARRIED = "carried forward"  # right, given an earlier error
    UNSUPPORTED = "right, but not from the lines above"
    ERROR = "error here"
    UNJUDGED = "cannot be judged"

    @property
    def follows(self) -> bool | None:
        """Whether the line follows from the lines above; None if it cannot be judged."""
        if self is Verdict.UNJUDGED:
            return None
        return self in (Verdict.RIGHT, Verdict.CARRIED)


@dataclass(frozen=True, slots=True)
class Evidence:
    """How much an explanation explains, and at what price."""

    entries: int = 0  # wrong entries that follow with it
    lines: int = 1  # lines that it explains, this one included
    without: int = 0  # lines of the same step, in other blocks, that follow without it
    fitted: int = 0  # numbers that were read off the claim
    left: float | None = None  # root mean square of what is left, in usual rounding errors
    alike: int = 0  # other explanations that fit as well


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cause: a mistake that makes the claim follow, confirmed by working the edited plan out."""

    kind: str  # a word of the catalogue of suspects: "gelu-kind", "scale-missing", …
    sentence: str  # "it follows if GELU is erf; the model says tanh"
    change: str  # advice to the author of the port
    share: float  # share of the allowed rounding error that is left if this is the mistake
    times: float | None = None  # the same in units of the usual rounding error
    evidence: Evidence = Evidence()


@dataclass(frozen=True, slots=True)
class Worst:
    """The entry that is furthest beyond the allowed error, or uses most of it."""

    index: tuple[int, ...]  # within the step
    claimed: float
    expected: float
    allowed: float  # how far the claim may be from the expected value
    difference: float


@dataclass(frozen=True)
class Marked(Shown):
    """One claim with its verdict.

    >>> import byhand
    >>> [line] = byhand.check("tiny", {"logits[1]": ["1", "-1", "1/2"]}, text="a b")
    >>> line.verdict.value, line.worst_address, line.worst.expected
    ('error here', 'logits[1,2]', 0.0)
    """

    claim: Claim
    verdict: Verdict
    share: float = 0.0  # largest share of the allowed error that an entry uses; above 1: too far
    times: float | None = None  # largest error in units of the usual rounding error; None: unknown
    worst: Worst | None = None
    reason: str = ""  # why it cannot be judged
    suspects: tuple[Suspect, ...] = ()
    described: tuple[str, ...] = ()  # how it differs, in sentences: true, but not yet a cause
    ask: str | None = None  # the unclaimed step that would tell most, if it were dumped as well
    shares: npt.NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
    outside: int = 0  # entries beyond the allowed error
    entries: int = 0  # entries judged
    unusual: bool = False  # within the worst case, but far beyond the usual rounding error
    near: bool = (
        True  # as near to what is expected as rounding usually leaves it, where it is known
    )
    among: tuple[Worst, ...] = ()  # the worst entries of a wrong or unusual line
    uses: tuple[str, ...] = ()  # the claimed steps that it was judged from; empty: the text
    like: str | None = None  # the line of an earlier block with the same mistake
    blocks: tuple[int, ...] = ()  # the blocks with the same mistake, told at the first of them
    blank: bool = False  # an empty line, left to be filled in
    tied: str = ""  # experts with equal scores among which it chooses, in words

    @property
    def address(self) -> str:
        """The address and index that the claim is about; a direction is marked as one."""
        about = f"{DIRECTION}." if self.claim.kind == DIRECTION else ""
        return about + self.claim.address + write_index(self.claim.index)

    def __repr__(self) -> str:
        return f"<{self.address}: {self.verdict.value}>"

    @property
    def block(self) -> int | None:
        """The block that the line belongs to."""
        found = IN_BLOCK.search(self.claim.address)
        return int(found[1]) if found else None

    @property
    def step(self) -> str:
        """The step that the line is about, whatever its block: `mlp.act`."""
        return IN_BLOCK.sub("", self.claim.address)

    @property
    def worst_address(self) -> str:
        """The address of the worst entry."""
        return self.claim.address + (write_index(self.worst.index) if self.worst else "")


def _counted(lines: tuple[Marked, ...]) -> str:
    """How many lines there are, and how many of each verdict."""
    counts = Counter(line.verdict for line in lines)
    told = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    return ", ".join([f"{len(lines)} line{'s' * (len(lines) != 1)}", *told])


@dataclass(frozen=True)
class MarkedText:
    """Every claim about one text, in spine order."""

    text: str
    tokens: tuple[int, ...]
    precision: str
    lines: tuple[Marked, ...]
    unmatched: tuple[Unmatched, ...] = ()
    label: str | None = None
    marks: Mapping[str, Fraction] = field(default_factory=dict)  # what a line is worth
    readings: tuple[Reading, ...] = ()  # how a dump was read, where names alone do not tell
    source: Source | None = None  # what the encoder reads, where there is one
    segments: tuple[int, ...] | None = None  # the kind of each token, where one was given

    def __repr__(self) -> str:
        return f"<{quoted(self.text)} in {self.precision}: {_counted(self.lines)}>"

    @property
    def first_error(self) -> Marked | None:
        """The first line, in spine order, with an error of its own."""
        return next((line for line in self.lines if line.verdict is Verdict.ERROR), None)

    @property
    def causes(self) -> tuple[Suspect, ...]:
        """The causes that were found, line by line."""
        return tuple(suspect for line in self.lines for suspect in line.suspects)

    @property
    def empty(self) -> bool:
        """Whether there are lines to fill in, and none of them is filled in."""
        return bool(self.lines) and all(line.blank for line in self.lines)

    @property
    def follows(self) -> bool:
        """Whether no line was found that does not follow."""
        wrong = (Verdict.ERROR, Verdict.UNSUPPORTED)
        return not any(line.verdict in wrong for line in self.lines)

    @property
    def unjudged(self) -> tuple[Marked, ...]:
        """The lines that claim something and cannot be judged."""
        return tuple(
            line for line in self.lines if line.verdict is Verdict.UNJUDGED and not line.blank
        )

    @property
    def passed(self) -> bool:
        """Whether something was judged, everything could be judged, and all of it follows.

        A line that cannot be judged has not passed, nor has a known step with another shape.  Blank
        lines do not count.
        """
        judged = any(line.verdict is not Verdict.UNJUDGED for line in self.lines)
        misfits = any(each.misfit for each in self.unmatched)
        return judged and self.follows and not self.unjudged and not misfits


@dataclass(frozen=True)
class Marking(Shown):
    """The result of `byhand.check`: the marked texts, one for each row of a batch.

    >>> import byhand
    >>> marking = byhand.check("tiny", {"logits[1]": ["1", "-1", "1/2"]}, text="a b")
    >>> marking
    <Marking of tiny: 1 line, 1 error here; first error at logits[1]>
    >>> list(marking)
    [<logits[1]: error here>]
    """

    model: str
    texts: tuple[MarkedText, ...]

    def __repr__(self) -> str:
        first = f"; first error at {self.first_error.address}" if self.first_error else ""
        return f"<Marking of {one_line(self.model)}: {_counted(tuple(self))}{first}>"

    def __iter__(self) -> Iterator[Marked]:
        for text in self.texts:
            yield from text.lines

    @property
    def first_error(self) -> Marked | None:
        """The first error of the first text that has one."""
        return next((text.first_error for text in self.texts if text.first_error), None)

    @property
    def follows(self) -> bool:
        """Whether no claim was found that does not follow."""
        return all(text.follows for text in self.texts)

    @property
    def passed(self) -> bool:
        """Whether every text passed: all its claims were judged, and all of them follow."""
        return all(text.passed for text in self.texts)

    def passes(self, *, allow_unjudged: bool) -> bool:
        """Whether every text passed; if allowed, with unjudged lines near what is expected."""
        if self.passed or not allow_unjudged:
            return self.passed
        misfits = any(each.misfit for each in self.unmatched)
        return self.follows and not misfits and all(line.near for line in self.unjudged)

    @property
    def empty(self) -> bool:
        """Whether there are lines to fill in, and none of them is filled in."""
        return bool(self.texts) and all(text.empty for text in self.texts)

    @property
    def unjudged(self) -> tuple[Marked, ...]:
        """The lines that claim something and cannot be judged."""
        return tuple(line for text in self.texts for line in text.unjudged)

    @property
    def unmatched(self) -> tuple[Unmatched, ...]:
        """The unknown names, each once."""
        found = {each.name: each for text in self.texts for each in text.unmatched}
        return tuple(found.values())

    def only(self, patterns: Sequence[str]) -> Marking:
        """The marking of some lines alone, each judged as before.

        A pattern is a step, a group such as block.0.attn, or has a *.  An AddressError if nothing
        matches.
        """
        claimed = {line.claim.address for line in self}
        for pattern in patterns:
            if not any(_matches(address, pattern) for address in claimed):
                raise AddressError(
                    _("no claim is about {name}").format(name=repr(pattern)),
                    hint=nearest(pattern, claimed),
                )

        def kept(line: Marked) -> bool:
            return any(_matches(line.claim.address, pattern) for pattern in patterns)

        texts = (replace(text, lines=tuple(filter(kept, text.lines))) for text in self.texts)
        return replace(self, texts=tuple(texts))


def _matches(address: str, pattern: str) -> bool:
    return fnmatchcase(address, pattern) or address.startswith(pattern + ".")
