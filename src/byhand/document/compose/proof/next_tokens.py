"""What comes next after every text of some length: a table of two tokens, or a list of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.proof.decisions import decision_words
from byhand.document.compose.proof.squares import MOST_VALUES, TWO
from byhand.document.compose.proof.wording import text_of
from byhand.document.parts import CaseSquare, CaseTable, Column, Decision, Grid, Part
from byhand.language import _
from byhand.model import Model

if TYPE_CHECKING:
    from byhand.proving.next_tokens import Followed

MOST_ROWS = 400


def next_tokens(model: Model, found: Sequence[Followed]) -> tuple[Part, Sequence[Followed]]:
    """A picture of all texts with their next tokens, and the text of each square or line in it."""
    size = len(model.vocabulary)
    if {len(one.tokens) for one in found} == {TWO} and size <= MOST_VALUES:
        return _squares(model, found, size), found
    shown = found[:MOST_ROWS]
    hidden = len(found) - len(shown)
    listed = Grid(
        "",
        (Column(_("text")), Column(_("next"))),
        tuple((text_of(model, one.tokens), _token(model, one.next) or "?") for one in shown),
        left_out=_("{count} more texts").format(count=words.whole(hidden)) if hidden else "",
    )
    return listed, shown


def _squares(model: Model, found: Sequence[Followed], size: int) -> CaseTable:
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
