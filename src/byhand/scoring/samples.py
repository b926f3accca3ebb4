"""Samples: the texts to score, as token ids, each with its prompt apart from what is scored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """A text to score.

    Tokens before `first` are the prompt: they are read and not scored.  The first token of a text
    has nothing before it, so `first` is at least 1.
    """

    name: str
    ids: tuple[int, ...]
    first: int = 1
    text: str | None = None

    @property
    def scored(self) -> tuple[int, ...]:
        """The tokens that are scored."""
        return self.ids[self.first :]
