"""What comes next after every text of some length: a table of two tokens, or a list of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byhand.document import words
from byhand.document.compose.proof.decisions import decision_words
from byhand.document.compose.proof.squares import MOST_VALUES
from byhand.document.compose.proof.wording import text_of
from byhand.document.parts import (
    CaseSquare,
    CaseTable,
    Column,
    Decision,
    Grid,
    Part,
)
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining.inputs import Row, Table

MOST_ROWS = 400
TWO = 2  # tokens of a text that a table of squares can show


def next_tokens(table: Table, rows: Sequence[Row]) -> tuple[Part, list[str]]:
    """A picture of some rows of a table, and the text of each of its squares or lines."""
    lengths = {len(row.tokens) for row in rows}
    if lengths == {TWO} and len(table.tokens) <= MOST_VALUES:
        return _squares(table, rows), [table.model.vocabulary.decode(row.tokens) for row in rows]
    shown = rows[:MOST_ROWS]
    hidden = len(rows) - len(shown)
    listed = Grid(
        "",
        (Column(_("text")), Column(_("next")), Column("")),
        tuple((text_of(table.model, row.tokens), _token(table, row), _known(row)) for row in shown),
        left_out=_("{count} more texts").format(count=words.whole(hidden)) if hidden else "",
    )
    return listed, [table.model.vocabulary.decode(row.tokens) for row in shown]


def _squares(table: Table, rows: Sequence[Row]) -> CaseTable:
    labels = tuple(words.token_label(table.model.vocabulary.tokens[id]) for id in table.tokens)
    wide = len(labels)
    squares = [
        CaseSquare("each" if row.prediction.id is not None else "open", _token(table, row), at)
        for at, row in enumerate(rows)
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
        tuple(tuple(squares[at : at + wide]) for at in range(0, len(squares), wide)),
        told,
    )


def _token(table: Table, row: Row) -> str:
    id = row.prediction.id
    return "" if id is None else words.token_label(table.model.vocabulary.tokens[id])


def _known(row: Row) -> str:
    return _("proven") if row.prediction.proven else _("undecided")
