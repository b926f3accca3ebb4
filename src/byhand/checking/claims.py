"""Claims: what somebody else says the numbers are, before anybody judges them.

    Sheet         a claims file as it was read: named arrays, and what it says about itself
    Claim         one line of somebody's working, at an address of byhand's
    ClaimedText   all claims about one text, and the names that match nothing

`readers` make sheets.  `matches` turns their names into addresses and orders their axes.  `judging`
says of each claim whether it follows.  Nothing here computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from byhand.address import Index
from byhand.errors import InputError
from byhand.optimizer import Rule
from byhand.passes import Mask
from byhand.tokens import Source

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

IN_LAYER = re.compile(r"((?:^|[._/\-\[])(?=\d+(?:$|[._/\-\]])))\d+")  # the number of a layer
VALUE, DIRECTION = "value", "direction"  # what a claim is about: numbers, or where they point


@dataclass(frozen=True, slots=True)
class Entry:
    """One named entry of a claims file, before its name has been matched to an address.

    `slack` is how far each number may be from its written form: half a unit of the last decimal
    place, a whole unit after a ~, nothing for floats.  `claimed` is False at blanks; None means
    that every number is claimed.
    """

    name: str
    values: npt.NDArray[Any]
    source: str  # file and line, or file and name: for messages
    slack: Floats | float = 0.0
    claimed: Truths | None = None
    format: str | None = None  # float32, … as the file holds it; None: written by hand
    kind: str = VALUE
    problem: str | None = None  # why its numbers cannot be read; None where they can
    given: bool = False  # printed on the sheet: lines are judged from it, not it
    beside: tuple[npt.NDArray[Any], ...] = ()  # what stood behind it in a tuple
    made_by: str = ""  # the operation that gave it, where a dump says so
    made_of: str = ""  # the first thing that this operation read
    said: str = ""  # its name in the dump, where `name` is how that was read
    read: str = ""  # how it was read: cut, turned, scaled
    unread: str = ""  # why a student's answer cannot be read: it is wrong, the sheet is not
    style: str = ""  # whose order of axes it has, where its name does not tell


@dataclass(frozen=True, slots=True)
class Sheet:
    """A claims file as it was read."""

    source: str
    entries: tuple[Entry, ...]
    text: str | None = None
    target: str | None = None
    tokens: npt.NDArray[np.int64] | None = None  # (batch, pos) or (pos): token ids, if given
    mask: npt.NDArray[np.bool_] | None = None  # the same shape: False at padding
    positions: npt.NDArray[np.int64] | None = None  # the tokens' positions, if the file gives them
    segments: npt.NDArray[np.int64] | None = None  # packed texts: the text of each position
    pairs: Truths | None = None  # (batch, query, key): which pairs may attend, if given
    targets: npt.NDArray[np.int64] | None = None  # the next id after each position; below 0: none
    labels: npt.NDArray[np.int64] | None = None  # the ids themselves; below 0: not predicted
    optimizer: str | None = None  # with its settings, as `optimizers` reads them
    precision: str | None = None
    label: str | None = None  # the student's name, or another label of the sheet
    marks: Mapping[str, Fraction] = field(default_factory=dict)  # marks for a right line, by name
    kinds: npt.NDArray[np.int64] | None = None  # (batch, pos): the segment of each token
    read_text: str | None = None  # what an encoder reads: its text,
    read_tokens: npt.NDArray[np.int64] | None = None  # its ids, (batch, source) or (source),
    read_mask: npt.NDArray[np.bool_] | None = None  # and its mask, False at padding
    exact: bool = False  # whether a decimal is meant exactly: 0.33 is not 1/3
    working: tuple[Entry, ...] = ()  # a printed working with one wrong line, to be corrected

    def wrong(
        self,
        message: str,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> InputError:
        """The error for a mistake in the claims file."""
        return InputError(message, where=self.source, expected=expected, found=found, hint=hint)


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of somebody's working: what it says about a step, a weight or a count.

    `values` has the shape of the part that `index` cuts out of the step (all of it where the index
    is empty); axes are in byhand's order, and places are counted from the start.
    """

    address: str  # a step of the plan, "weight." and a name, or "count." and a name
    index: Index
    values: Floats
    name: str  # as the claims file spells it
    source: str
    slack: Floats | float = 0.0
    claimed: Truths | None = None
    format: str | None = None
    kind: str = VALUE
    given: bool = False  # printed on the sheet, not written by the student
    read: str = ""  # how it was read out of a dump, where that is more than its name
    unread: str = ""  # why it cannot be read, on a worksheet

    @property
    def by_hand(self) -> bool:
        """Whether it was written as decimals rather than dumped as floats."""
        return self.format is None

    def in_whole(self, place: Sequence[int]) -> tuple[int, ...]:
        """The index, in the whole step, of an entry of the part that is claimed."""
        left = iter(place)
        cut = [
            (each.start or 0) + next(left) if isinstance(each, slice) else each
            for each in self.index
        ]
        return (*cut, *left)


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A name in the claims that is unknown here, or whose array has another shape."""

    name: str
    source: str
    reason: str
    hint: str | None = None  # the nearest known names
    misfit: bool = False  # the name is known, but its array does not fit and was not judged


@dataclass(frozen=True, slots=True)
class Reading:
    """How the arrays of some names were read: those of a module in all layers count as one."""

    name: str  # with L for the number of the layer
    how: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class ClaimedText:
    """Every claim about one text: a sheet, or one row of a batch without its padding."""

    text: str
    tokens: tuple[int, ...]
    claims: tuple[Claim, ...]
    unmatched: tuple[Unmatched, ...] = ()
    target: int | None = None
    precision: str | None = None
    label: str | None = None
    positions: tuple[int, ...] | None = None  # given where they are not 0, 1, 2, …
    masks: tuple[Mask, ...] | None = None  # one for each block, where the claims give masks
    padding: tuple[int, int] = (0, 0)  # padding positions removed before and after the text
    marks: Mapping[str, Fraction] = field(default_factory=dict)
    learning: bool = False  # whether claims are about losses of the text, gradients or an update
    targets: tuple[int, ...] | None = None  # of the losses whose mean the gradients are of
    rule: Rule | None = None  # of the update
    lengths: tuple[int, ...] = ()  # of the texts of a batch, where they stand side by side
    source: Source | None = None  # what the encoder reads, where there is one
    segments: tuple[int, ...] | None = None  # the kind of each token, where one was given

    @property
    def readings(self) -> tuple[Reading, ...]:
        """How the claims were read where that is more than their names say, in spine order."""
        found: dict[tuple[str, str], set[str]] = {}
        for claim in self.claims:
            if claim.read:
                kind = IN_LAYER.sub(r"\1L", claim.name, count=1)
                found.setdefault((kind, claim.read), set()).add(claim.name)
        return tuple(Reading(name, how, len(names)) for (name, how), names in found.items())
