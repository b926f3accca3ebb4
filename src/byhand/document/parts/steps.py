"""The pass as parts: its title, its stages and steps, the next tokens and the loss."""

from __future__ import annotations

from dataclasses import dataclass

from byhand.document.parts.numbers import Cell, Letter, Number, NumberTable
from byhand.document.parts.words import Remark


@dataclass(frozen=True, slots=True)
class Title:
    """What is worked out: model, text, numbers; and how the signs are read.

    `digits` is the number of proven significant digits shown.
    """

    name: str
    about: str
    facts: tuple[tuple[str, str], ...]
    registers: tuple[str, ...] = ()
    masked: bool = False
    notes: tuple[str, ...] = ()
    digits: int | None = None
    only_later: bool = True  # only later positions are masked, not by a window or a table
    aside: str = ""  # at the end of the title line


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
    """Steps without values, and their common reason if it is to be shown."""

    reason: str
    steps: tuple[StepPart, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The next token after one position; `sentence` words it for a book, with ties."""

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
        """The address of the step."""
        return self.step.address


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
class Loss:
    """The step `loss`: the model's surprise at the target."""

    step: StepPart
    target: str
    after: str
    cell: Cell
    letters: tuple[Letter, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One more token of a text, its probability, and whether the choice is proven."""

    position: str
    token: str
    cell: Cell
    known: str
    proven: bool
    room: int  # digits of the last possible position
