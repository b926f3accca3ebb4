"""The parts of feedback on a worksheet: a student's lines with their marks, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FeedbackLine:
    """One line of a student's sheet: what was written, its marks, and what is to be said of it.

    `verdict` is a word of `Verdict` by its name, or BLANK.
    """

    number: int
    address: str
    named: str  # what its numbers are, in words
    verdict: str
    sign: str
    word: str
    marks: str  # "1 of 1"
    wrote: str = ""
    expected: str = ""  # what follows from the student's own lines above; only of a wrong line
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feedback:
    """One student's sheet, marked: the result in a sentence or two, and the lines."""

    student: str
    about: str  # the model and the text
    marks: str
    percent: str
    said: tuple[str, ...]
    lines: tuple[FeedbackLine, ...]

    @property
    def wrong(self) -> tuple[FeedbackLine, ...]:
        """The lines with a mistake of their own."""
        return tuple(line for line in self.lines if line.verdict == "ERROR")
