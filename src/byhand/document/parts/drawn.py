"""Drawn parts: tensors as colours, the path along the stream, sums as bars, pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from byhand.document.parts.numbers import Number

Floats = npt.NDArray[np.float32]
Spot = tuple[float, float]


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
    labels: tuple[str, ...]  # of the positions that ask
    patterns: tuple[HeadPattern, ...]
    left_out: str = ""
    keys: tuple[str, ...] = ()  # of those that are looked at, where they are others


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

    @property
    def longest(self) -> float:
        """The largest length along the way, of which the others are shares."""
        return max((stop.size for stop in self.stops), default=1.0) or 1.0


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

    def bar(self, line: TermLine) -> tuple[float, float, float]:
        """Where the axis is, where the bar of a line starts, and how long it is: shares of the
        room for bars."""
        low, high = self.reach
        span = low + high or 1.0
        axis, length = low / span, 0.0 if line.kind == "sum" else abs(line.size) / span
        return axis, axis - length if line.size < 0 else axis, length


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
class CurveLine:
    """One line of a curve: "line" through its points, "marks" at them, or a "level" across."""

    name: str
    points: tuple[Spot, ...]  # of a level: one, whose height counts
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Curve:
    """Numbers over the steps of a run; `logarithmic`: equal ratios are equally far apart."""

    title: str
    about: str  # a full description for screen readers
    lines: tuple[CurveLine, ...]
    across: str  # the name of the horizontal axis
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class ScatterSeries:
    """Points of one colour and shape, with a name."""

    name: str
    points: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points in a plane: "linear" axes, "log" ones for numbers above 0, "signed" ones for both.

    On a signed axis numbers far from 0 are as far apart as their logarithms, on both sides of 0.
    `diagonal` is the line on which both numbers are the same.  `levels` are numbers of the
    horizontal axis at which a line stands, each with its name.
    """

    title: str
    about: str  # a full description for screen readers
    series: tuple[ScatterSeries, ...]
    across: str  # the name of the horizontal axis
    along: str  # and of the vertical one
    scales: tuple[str, str] = ("linear", "signed")
    diagonal: bool = False
    levels: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class WonRegion:
    """Where in a plane a token wins, or several with it; an outline may be a hole in another."""

    name: str  # the token, or those that tie
    colour: int  # a place in the palette
    outlines: tuple[tuple[Spot, ...], ...]


@dataclass(frozen=True, slots=True)
class TokenArrow:
    """The direction in which a token's logit grows, as a vector of the plane."""

    token: str
    colour: int
    along: Spot


@dataclass(frozen=True, slots=True)
class Way:
    """One position's way: where it is after each step, and which kind of step that was."""

    position: int
    token: str
    stops: tuple[tuple[str, Spot], ...]
    whole: bool  # whether it reaches the end of the stream
    end: str = ""  # what is predicted there: → B
    colour: int | None = None  # of that token


@dataclass(frozen=True, slots=True)
class Drawing:
    """A plane of the stream: who wins where, the tokens' directions, and each position's way."""

    name: str  # which is its own on a page
    title: str
    about: str  # a full description for screen readers
    notes: tuple[str, ...]
    axes: tuple[str, str]  # their names
    dimensions: int  # of the stream: in more than three, the arrows are not to scale
    lower: Spot  # the corner of the frame at the lower left
    upper: Spot  # and the one at the upper right
    origin: Spot  # where the zero vector lies
    regions: tuple[WonRegion, ...]
    arrows: tuple[TokenArrow, ...]
    ways: tuple[Way, ...]
    kinds: Mapping[str, str]  # what each kind of stop on a way is called
    small: bool = False
    instead: str = ""  # what is said where nothing can be drawn

    @property
    def size(self) -> Spot:
        """How wide and how high the frame is."""
        return self.upper[0] - self.lower[0], self.upper[1] - self.lower[1]
