"""Parts of an exercise: a place for its answer, and the sheets that `byhand check` marks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AnswerField", "AnswerSheet", "AnswerSheets"]

NUMBER, FORM, WORD = "number", "form", "word"


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A place to write the answer of an exercise: a number, a row of numbers, or a word.

    `right` and `wrong` are the answer and a typical slip as the key writes them; `slip` says what
    the slip was.  `kind` is `number`, `form` (written exactly) or `word`.
    """

    address: str
    kind: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    slip: str
    sheet: str  # the file of its answer sheet
    places: int | None = None  # decimals that are asked for


@dataclass(frozen=True, slots=True)
class AnswerSheet:
    """A file of answers: its name, the command that marks it, and its text with blanks."""

    file: str
    command: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerSheets:
    """The answer sheets of a chapter."""

    sheets: tuple[AnswerSheet, ...]
