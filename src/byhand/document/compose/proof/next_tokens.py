"""What comes next after every text of some length: a table of two tokens, or a list of texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.proof.decisions import decision_words
from byhand.document.compose.proof.squares import MOST_VALUES, TWO
from byhand.document.compose.proof.wording import text_of
from byhand.document.parts import CaseSquare, CaseTable, Column, Decision, Grid, Part
from byhand.language import _, amount, later
from byhand.model import Model

if TYPE_CHECKING:
    from byhand.proving.search.next_tokens import Followed

MOST_ROWS = 400


def squared(model: Model, lengths: Collection[int]) -> bool:
    """Whether texts of these lengths have a table of squares, which needs all of them."""
    return set(lengths) == {TWO} and len(model.vocabulary) <= MOST_VALUES


def next_tokens(model: Model, shown: Sequence[Followed], count: int) -> Part:
    """Texts with their next tokens, as squares or as lines; there are `count` of them in all."""
    if squared(model, {len(one.tokens) for one in shown}):
        return _squares(model, shown)
    hidden = count - len(shown)
    return Grid(
        "",
        (Column(_("text")), Column(_("next"))),
        tuple((text_of(model, one.tokens), _token(model, one.next) or "?") for one in shown),
        left_out=amount(hidden, later("1 more text"), later("{count} more texts"))
        if hidden
        else "",
    )


def _squares(model: Model, found: Sequence[Followed]) -> CaseTable:
    size = len(model.vocabulary)
    labels = tuple(map(words.token_label, model.vocabulary.tokens))
    squares = [
        CaseSquare("open" if one.next is None else "each", _token(model, one.next), at)
        for at, one in enumerate(found)
    ]
    told = tuple(
        Decision(kind, decision_words(kind), words.whole(count))
        for kind in ("each", "open")
        if (count := sum(square.kind == kind for square in squares))
    )
    return CaseTable(
        _("what comes next after every text of two tokens"),
        _("first"),
        _("second"),
        labels,
        labels,
        tuple(tuple(squares[at : at + size]) for at in range(0, len(squares), size)),
        told,
    )


def _token(model: Model, id: int | None) -> str:
    return "" if id is None else words.token_label(model.outputs.tokens[id])
