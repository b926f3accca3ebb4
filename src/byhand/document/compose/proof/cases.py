"""The cases of a proof as a picture, and how often the domain was cut by which variable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from byhand.document import words
from byhand.document.compose.proof import boxes, squares
from byhand.document.compose.proof.decisions import decisions
from byhand.document.compose.proof.trees import cuts
from byhand.document.parts import Column, Grid, Part
from byhand.language import _
from byhand.proving.outcome import Outcome

MOST_TABLES = 4
MANY_CUTS = 12  # from which on the cuts are counted by variable


def parts(outcome: Outcome) -> Iterator[Part]:
    """Tables where every text has one or two variables, else a tree; and the cuts."""
    goals = outcome.property.goals
    told = tuple(decisions(outcome))
    model = outcome.property.model
    axes = [squares.axes(goal, model) for goal in goals[:MOST_TABLES]]
    known = [found for found in axes if found is not None]
    if len(known) == len(goals):
        for at, found in enumerate(known):
            yield squares.table(outcome, at, found, told if at == len(goals) - 1 else ())
    else:
        yield boxes.tree(outcome, told)
    yield from _cuts(outcome)


def _cuts(outcome: Outcome) -> Iterator[Grid]:
    """By which variables the domain was cut, and how often."""
    found = [cut for tree in outcome.trees for cut in cuts(tree)]
    if len(found) < MANY_CUTS:
        return
    counts = Counter(name for name, _depth in found)
    first = dict(sorted(found, key=lambda cut: -cut[1]))
    most = max(counts.values())
    yield Grid(
        _("the cuts by variable"),
        (
            Column(_("variable")),
            Column(_("cuts"), "number"),
            Column(_("first at depth"), "number"),
            Column("", "share"),
        ),
        tuple(
            (name, words.whole(count), str(first[name]), f"{count / most:.4f}")
            for name, count in sorted(counts.items(), key=lambda one: (first[one[0]], one[0]))
        ),
    )
