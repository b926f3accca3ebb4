"""How cases were decided, in words; and the names of several goals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from byhand.document import words
from byhand.document.compose.proof.trees import case_at
from byhand.document.compose.proof.wording import Speller
from byhand.document.parts import Decision
from byhand.language import _
from byhand.proving.domain import Region
from byhand.proving.outcome import Leaf, Outcome, leaves

KINDS = ("letters", "each", "none", "refuted", "open")


def refuted_case(outcome: Outcome) -> Leaf | None:
    """The case that the counterexample belongs to."""
    found = outcome.counterexample
    return None if found is None else case_at(outcome.trees[found.goal], found.assigned)


def decisions(outcome: Outcome) -> Iterator[Decision]:
    """How the cases were decided, with their numbers."""
    refuted = refuted_case(outcome)
    kinds = Counter(
        "refuted" if leaf is refuted else leaf.by for tree in outcome.trees for leaf in leaves(tree)
    )
    for kind in KINDS:
        if kinds[kind]:
            yield Decision(kind, decision_words(kind), words.whole(kinds[kind]))


def decision_words(kind: str) -> str:
    """How a case was decided."""
    return {
        "letters": _("proven in one pass for all its texts"),
        "each": _("proven text by text"),
        "none": _("has no text"),
        "refuted": _("has a counterexample"),
        "open": _("open"),
        "several": _("several cases, all proven"),
    }[kind]


def case_words(outcome: Outcome, at: int, region: Region, names: Collection[str]) -> str:
    """A case by the values that tell it from the others; a whole goal by its own name."""
    goal = goal_name(outcome, at) if len(outcome.trees) > 1 else ""
    speller = Speller(region.shape, outcome.property.model)
    told = speller.region(region, [name for name in region.allowed if name in names])
    return "; ".join(filter(None, (goal, told))) or _("all texts")


def goal_name(outcome: Outcome, at: int) -> str:
    """Which of several goals: by the length of its texts, or by the token of a continuation."""
    shape = outcome.property.goals[at].shape
    if _continued(outcome):
        return _("token {number} of the answer").format(number=shape.after + 1)
    length = len(shape.places)
    if length == 1:
        return _("texts of one token")
    return _("texts of {count} tokens").format(count=length)


def goal_label(outcome: Outcome, at: int) -> tuple[str, str]:
    """The same in few characters, as a name and a number."""
    shape = outcome.property.goals[at].shape
    if _continued(outcome):
        return _("token"), str(shape.after + 1)
    return _("length"), str(len(shape.places))


def _continued(outcome: Outcome) -> bool:
    return any(goal.shape.after for goal in outcome.property.goals)
