"""Claims as parts: printed numbers or lines of somebody's working, each with its verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checked:
    """A printed number or line of somebody's working, with its verdict.

    `verdict` is a word of `Verdict` by its name: RIGHT, CARRIED, UNSUPPORTED, ERROR, UNJUDGED;
    `word` says it in the language of the book.  `told` are further sentences: the worst entry,
    the suspect, what to change, where it stands.
    """

    address: str
    verdict: str
    sign: str  # ✓ → ~ ✗ ?
    word: str
    claimed: str  # as it is printed
    expected: str  # what follows from the lines above; empty where nothing is known
    told: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """The claims of a document about the steps of a passage, or all of them."""

    title: str
    lines: tuple[Checked, ...]
