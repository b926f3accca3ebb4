"""The cases of texts with one or two variables: a table with a square for each text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.proof.decisions import KINDS, decision_words, goal_name
from byhand.document.compose.proof.trees import case_at
from byhand.document.compose.proof.wording import Speller
from byhand.document.parts import CaseSquare, CaseTable, Decision
from byhand.language import _
from byhand.model import Model
from byhand.proving.claims import Next
from byhand.proving.domain import Region
from byhand.proving.outcome import Leaf, Outcome

if TYPE_CHECKING:
    from byhand.proving.properties import Goal

MOST_VALUES = 40  # of each variable
TWO = 2  # variables that a table can have


def axes(goal: Goal, model: Model) -> tuple[str, str] | None:
    """The variables at the side and above, where a table can have their values.

    A single one stands above; at the side where its values are texts.
    """
    whole = goal.shape.whole
    if whole is None or not 1 <= len(whole.free) <= TWO:
        return None
    if any(len(whole.allowed[name]) > MOST_VALUES for name in whole.free):
        return None
    if len(whole.free) == TWO:
        return whole.free[0], whole.free[1]
    return (whole.free[0], "") if Speller(goal.shape, model).lines else ("", whole.free[0])


def table(
    outcome: Outcome, at: int, axes: tuple[str, str], told: tuple[Decision, ...]
) -> CaseTable:
    """A square for each pair of values; of one variable, a row."""
    goal = outcome.property.goals[at]
    whole = goal.shape.whole
    assert whole is not None
    down, across = axes
    speller = Speller(goal.shape, outcome.property.model)
    fixed = {name: values[0] for name, values in whole.allowed.items()}
    cases: dict[int, int] = {}
    rows = tuple(
        tuple(
            _square(outcome, at, whole, fixed | side | head, cases)
            for head in _along(whole, across)
        )
        for side in _along(whole, down)
    )
    return CaseTable(
        _about(rows, [name for name in axes if name]),
        down,
        across,
        _labels(speller, whole, down),
        _labels(speller, whole, across),
        rows,
        _complete(told, rows),
        goal_name(outcome, at) if len(outcome.property.goals) > 1 else "",
    )


def _complete(
    told: tuple[Decision, ...], rows: Sequence[Sequence[CaseSquare]]
) -> tuple[Decision, ...]:
    """The decisions, also of squares that are open because a counterexample ended the search."""
    known = {one.kind for one in told}
    shown = {square.kind for row in rows for square in row} - known if told else set()
    return (*told, *(Decision(kind, decision_words(kind)) for kind in KINDS if kind in shown))


def _along(whole: Region, name: str) -> list[dict[str, int]]:
    """The values of a variable, each as an assignment; without one, a single empty assignment."""
    return [{name: one} for one in whole.allowed[name]] if name else [{}]


def _labels(speller: Speller, whole: Region, name: str) -> tuple[str, ...]:
    return tuple(speller.value(name, one) for one in whole.allowed[name]) if name else ("",)


def _square(
    outcome: Outcome, at: int, whole: Region, assigned: Mapping[str, int], cases: dict[int, int]
) -> CaseSquare:
    """One text: how it was decided, and where it is known what comes next."""
    leaf = case_at(outcome.trees[at], assigned)
    number = cases.setdefault(id(leaf), len(cases))
    if not whole.holds(assigned):
        return CaseSquare("none", case=number)
    token = Speller(whole.shape, outcome.property.model).answer
    found = outcome.counterexample
    if found is not None and found.goal == at and dict(found.assigned) == assigned:
        return CaseSquare("refuted", "" if found.found is None else token(found.found), number)
    ids = _next(outcome.property.goals[at], leaf, assigned)
    return CaseSquare(leaf.by, token(ids[0]) if len(ids) == 1 else "", number)


def _next(goal: Goal, leaf: Leaf, assigned: Mapping[str, int]) -> Sequence[int]:
    """The tokens that are proven to come next."""
    if leaf.by not in ("letters", "each"):
        return ()
    if isinstance(goal.claim, Next):
        return tuple(goal.claim.answers.at(assigned))
    return leaf.next


def _about(rows: Sequence[Sequence[CaseSquare]], names: Sequence[str]) -> str:
    """A table for screen readers: how many squares of each kind."""
    kinds = Counter(square.kind for row in rows for square in row)
    told = (f"{decision_words(kind)}: {kinds[kind]}" for kind in KINDS if kinds[kind])
    return _("texts by {names}; {told}").format(names=words.joined(names), told=", ".join(told))
