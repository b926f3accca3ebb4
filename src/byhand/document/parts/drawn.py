"""Drawn parts: tensors as colours, the path along the stream, sums as bars, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from byhand.document.parts.numbers import Number

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry
    from byhand.explaining.planes import Plane

Floats = npt.NDArray[np.float32]


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
    """The attention of one head: a weight for each query (row) and key (column), NaN if masked."""

    address: str  # block.0.attn.weights[1]
    head: int
    values: Floats
    numbers: tuple[tuple[Number, ...], ...] = ()  # the same with their forms, pencil-sized only


@dataclass(frozen=True, slots=True)
class AttentionPattern:
    """Which position attends to which, head by head."""

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
    """One position's path along the residual stream, with each side-trip's addition."""

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
    """The registers of the whole pass: a row for each step, a column for each position."""

    labels: tuple[str, ...]  # of the positions
    lines: tuple[RegisterLine, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class TermLine:
    """The contribution of one part of the model to some logits.

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
        """The contribution to the explained quantity: the lead, or the single logit."""
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
        """The reach of the bars to the left and to the right of their axis."""
        sizes = [line.size for line in self.lines if line.kind != "sum"]
        return max(0.0, -min(sizes, default=0.0)), max(0.0, max(sizes, default=0.0))


@dataclass(frozen=True, slots=True)
class LensLine:
    """The prediction if the model ended after a step."""

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
    """One position's stream after every step, read by the model's own head."""

    title: str
    tokens: tuple[str, ...]  # above the logits
    lines: tuple[LensLine, ...]
    placed: bool = False  # whether the place of the first token is told
    note: str = ""  # what the mark beside a settled line means


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plane of the stream: winning regions, token directions, and each position's path.

    `geometry` and `plane` are its numbers (see `explaining.geometry`), the rest is words.
    """

    geometry: Geometry
    plane: Plane
    name: str  # unique on a page
    title: str
    about: str  # a full description for screen readers
    notes: tuple[str, ...]
    axes: tuple[str, str]  # their names
    stops: Mapping[str, str]  # what each kind of stop on a way is called
    ends: tuple[str, ...]  # what is predicted at the end of each way
    small: bool = False
    instead: str = ""  # words where nothing can be drawn
