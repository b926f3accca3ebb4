"""The parts of a marking: lines with their verdicts, maps of shares, tables and whole reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from byhand.document.parts.words import Facts, Grid

UNUSUAL = "!"  # beside a sign: within the worst case, but beyond the usual rounding error


@dataclass(frozen=True, slots=True)
class Signed:
    """Words beside the sign of a verdict: a result, a count, a line of a legend.

    `verdict` is a word of `Verdict` by its name: RIGHT, CARRIED, UNSUPPORTED, ERROR, UNJUDGED.
    """

    verdict: str
    sign: str  # ✓ → ~ ✗ ?
    text: str


@dataclass(frozen=True, slots=True)
class ShareAxis:
    """One side of a map: its axis, its first place, and the entries in a cell."""

    name: str
    start: int
    size: int
    entries: int = 1

    @property
    def last(self) -> int:
        """The last place along the axis."""
        return self.start + self.size - 1


@dataclass(frozen=True)
class SharePanel:
    """One map: each cell has the largest share of its entries; NaN where nothing is claimed."""

    address: str  # of its entries: block.0.attn.scores[1,{row},{column}]
    title: str
    rows: ShareAxis | None  # None: there is one row, and it needs no name
    columns: ShareAxis
    cells: npt.NDArray[np.float64]
    largest: float


@dataclass(frozen=True, slots=True)
class ShareMap:
    """How much of the allowed error each entry of a line uses; `caption` says how to read it."""

    panels: tuple[SharePanel, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """A line or a number of somebody's working, with its verdict.

    `verdict` is named as in `Signed`; `word` says it in two or three words.  `told` are further
    sentences, each with its kind: reason, verdict, worst, usual, suspect, change, share.  A book
    has what was `claimed` and what is `expected`; a marking how much of the allowed error is used.
    """

    address: str
    verdict: str
    sign: str
    word: str
    told: tuple[tuple[str, str], ...] = ()
    source: str = ""  # place of the claim
    claimed: str = ""  # as it is printed
    expected: str = ""  # the value that follows from the lines above; empty if unknown
    unusual: bool = False  # within the worst case, but far beyond what rounding usually does
    stage: str = ""  # of the spine
    share: float = 0.0  # of the allowed error; above 1: excess
    used: str = ""  # the same for a column; empty where it could not be judged
    about: str = ""  # the same in words
    times: str = ""  # error in units of the usual rounding error
    worst: str = ""  # the index of the worst entry
    uses: tuple[str, ...] = ()  # the claimed steps that it was judged from
    entries: Grid | None = None  # the worst ones, with their numbers
    shares: ShareMap | None = None

    @property
    def signs(self) -> str:
        """The sign of the verdict, and the mark of an unusual line."""
        return self.sign + UNUSUAL * self.unusual

    @property
    def tone(self) -> str:
        """The verdict that colours the line; an unusual line that follows gets a warning."""
        return "UNSUPPORTED" if self.unusual else self.verdict

    @property
    def follows(self) -> bool:
        """Whether the line is not known to be wrong."""
        return self.verdict not in ("ERROR", "UNSUPPORTED")

    @property
    def notable(self) -> bool:
        """Whether there is more to say than the verdict."""
        return self.unusual or not self.follows


@dataclass(frozen=True, slots=True)
class VerdictRun:
    """A run of lines with one verdict, and their summary."""

    result: Signed
    lines: tuple[VerdictLine, ...]


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """Lines with their verdicts, in spine order."""

    title: str
    rows: tuple[VerdictLine | VerdictRun, ...]

    @property
    def lines(self) -> tuple[VerdictLine, ...]:
        """Every line, those of the runs too."""
        runs = (row.lines if isinstance(row, VerdictRun) else (row,) for row in self.rows)
        return tuple(line for run in runs for line in run)


@dataclass(frozen=True, slots=True)
class VerdictSheet:
    """The marking of one text, or of one person's working."""

    name: str  # which of several; empty where there is one
    heading: str  # the same with its text and its precision
    result: Signed  # the verdict that stands for all of it, beside the text
    facts: Facts
    tally: tuple[Signed, ...]  # how many lines have each verdict
    table: VerdictTable
    unmatched: tuple[tuple[str, str], ...] = ()  # unknown names, and why
    readings: tuple[tuple[str, str], ...] = ()  # names of a dump, and how they were read


@dataclass(frozen=True, slots=True)
class VerdictReport:
    """A whole marking: the result in a line, then the sheets."""

    title: str  # the model
    result: Signed
    facts: Facts
    sheets: tuple[VerdictSheet, ...]
    legend: tuple[Signed, ...]
    about: str  # how to read it


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One student's sheet: the marks, and the sign of every line."""

    student: str
    marks: str
    percent: str  # 93
    signs: tuple[str, ...]
    share: str = ""  # 93%


@dataclass(frozen=True, slots=True)
class ClassTable:
    """The results of a class: a row for each student, a legend, and the commonest mistakes."""

    title: str
    rows: tuple[ClassRow, ...]
    legend: tuple[str, ...]
    lines: tuple[str, ...]  # the names of the lines, in the order of the signs
    mistakes: tuple[tuple[str, str], ...]
    left_out: str = ""
    called: tuple[str, ...] = ()  # the lines in words
    right: tuple[int, ...] = ()  # how many students have each line right
