"""The tightest cases of a proof: where the least is to spare, each with one of its texts."""

from __future__ import annotations

from fractions import Fraction

from byhand.document import words
from byhand.document.compose.proof.answers import least_words
from byhand.document.compose.proof.decisions import case_words
from byhand.document.compose.proof.trees import cases
from byhand.document.compose.proof.wording import Speller, at_least, example, text_of
from byhand.document.parts import Column, Grid
from byhand.language import _, amount, later
from byhand.proving.outcome import Leaf, Outcome

MOST_CASES = 8


def tightest(outcome: Outcome) -> Grid | None:
    """The cases with the least leads, in order; None where nothing was asked of a number."""
    known = [
        (leaf.lead, at, leaf, names)
        for at, tree in enumerate(outcome.trees)
        for leaf, names in cases(tree)
        if leaf.lead is not None
    ]
    if not known:
        return None
    found = sorted(known, key=lambda case: case[0])[:MOST_CASES]
    told = any(leaf.next for _lead, _at, leaf, _names in found)
    hidden = len(known) - len(found)
    return Grid(
        "",
        (
            Column(least_words(outcome)),
            Column(_("case")),
            Column(_("a text of it")),
            *[Column(_("next"))] * told,
        ),
        tuple(_row(outcome, *case)[: 3 + told] for case in found),
        left_out=amount(hidden, later("1 more case"), later("{count} more cases"))
        if hidden
        else "",
    )


def _row(
    outcome: Outcome, lead: Fraction, at: int, leaf: Leaf, names: frozenset[str]
) -> tuple[str, ...]:
    region, model = leaf.region, outcome.property.model
    assert region is not None
    ids = leaf.where or example(region)
    token = Speller(region.shape, model).answer
    return (
        words.together(f"≥ {at_least(lead)}"),
        case_words(outcome, at, region, names),
        text_of(model, ids) if ids else "",
        words.some_of([token(id) for id in leaf.next]),
    )
