"""The scope of a section: the explanation, how much of it is shown, its numbers and words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from byhand.document.compose.explanation.numerals import Numerals
from byhand.document.parts import Column
from byhand.document.words import together, token_label
from byhand.numbers.base import Prediction

if TYPE_CHECKING:
    from byhand.explaining import Explanation


@dataclass(frozen=True)
class Scope:
    """An explanation, and how much of it is to be shown.

    With `full`, a section shows all that can be read; with `every`, nothing is folded.  `terms`
    limits the listed terms of a sum; with `workings`, sums are written out.
    """

    found: Explanation
    full: bool = False
    every: bool = False
    terms: int | None = None
    workings: bool = False

    @cached_property
    def numerals(self) -> Numerals:
        """The writer of its numbers."""
        return Numerals.of(self.found.trace)

    def token(self, id: int) -> str:
        """A token as one word."""
        return together(token_label(self.found.trace.token(id)))

    def answer(self, id: int) -> str:
        """The word of an output's id, as one word."""
        return together(token_label(self.found.trace.answer(id)))

    def place(self, position: int) -> str:
        """A position with its token: 2 C."""
        return f"{position} {self.token(self.found.trace.tokens[position])}"

    def where(self, position: int) -> str:
        """A position in a sentence: 2 (C)."""
        return f"{position} ({self.token(self.found.trace.tokens[position])})"

    def leader(self, found: Prediction | None) -> str:
        """The leader for a cell: ? if undecided, A = B in a tie."""
        if found is None or found.id is None:
            return "?"
        if found.tied:
            shown = [self.answer(id) for id in found.tied[:3]]
            return " = ".join(shown) + ("…" if len(found.tied) > 3 else "")
        return self.answer(found.id)

    def number(self, entry: Any) -> str:
        """An entry as short text."""
        return self.numerals.text(entry)


def numbers(first: Column, heads: Iterable[str]) -> tuple[Column, ...]:
    """A column that names the rows, and columns of numbers."""
    return (first, *(Column(head, "number") for head in heads))
