"""Proofs as parts: the answer, the domain as cells, the cases as a table or as a tree.

A case is shown by how it was decided: "letters" (one pass for all its texts), "each" (a pass for
every text), "none" (it has no text), "open" (undecided) or "refuted" (a counterexample is in it).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search for a proof found: "proven", "refuted" or "open"; a sentence, and facts."""

    kind: str
    word: str
    sentence: str
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlaceCell:
    """One position of a text of the domain.

    `kind` is "fixed" (one token), "free" (a variable), "bound" (what other variables give),
    "added" (a token of the continuation) or "more" (positions that are not shown).
    """

    kind: str
    text: str  # the token, the variable or the relation
    values: str = ""  # the tokens that it may be
    example: str = ""  # the token of the example


@dataclass(frozen=True, slots=True)
class TextShape:
    """Texts of one length, position by position; `about` says how many there are."""

    cells: tuple[PlaceCell, ...]
    about: str
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DomainPicture:
    """The texts of a domain as rows of cells; `example` says which text stands below the cells."""

    about: str  # a full description for screen readers
    shapes: tuple[TextShape, ...]
    example: str = ""
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """How some cases were decided, in words, and how many they are."""

    kind: str
    words: str
    count: str = ""


@dataclass(frozen=True, slots=True)
class CaseSquare:
    """One text of two variables: how it was decided, and what comes next.

    Neighbours with the same number belong to one case.
    """

    kind: str
    text: str = ""
    case: int = 0


@dataclass(frozen=True, slots=True)
class CaseTable:
    """The cases of a domain of two variables: a square for each pair of values."""

    about: str
    down: str  # the name of the variable whose values stand at the side
    across: str
    sides: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[CaseSquare, ...], ...]
    decisions: tuple[Decision, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class CaseBox:
    """A box of the tree: a case, or a region that is cut below ("cut").

    Boxes that are too narrow are drawn as one ("several" where they were decided in several ways).
    `start` and `width` are shares of the domain.
    """

    start: float
    width: float
    kind: str
    name: str = ""  # of the variable that was cut
    label: str = ""  # in few characters: its values, 5…9
    about: str = ""


@dataclass(frozen=True, slots=True)
class CaseTree:
    """The cases as a tree, from the whole domain down; each level has the name of what is cut."""

    about: str
    levels: tuple[tuple[CaseBox, ...], ...]
    decisions: tuple[Decision, ...]
    left_out: str = ""
