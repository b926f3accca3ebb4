"""The section on the lens: which token would lead if the model ended after each step."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.attribution import missing_told
from byhand.document.compose.explanation.scope import Scope
from byhand.document.parts import Column, Grid, LensLine, LensTable, Part
from byhand.document.words import joined, whole, why_missing
from byhand.explaining.approximations import near_entry
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining.lens import Lens, LensRow

MOST_POSITIONS = 10  # positions of a text, side by side in a table
FEW_TOKENS = 3  # vocabularies up to this size: a rank tells nothing


def parts(scope: Scope) -> Iterator[Part]:
    """The leader after each step at the explained position; in full, at every position."""
    found = scope.found
    rows = found.lens.of_position(found.position)
    if all(row.missing is not None for row in rows):
        yield missing_told(scope)
        return
    yield _followed(scope, rows)
    if scope.full:
        yield _everywhere(scope, found.whole_lens)


def _followed(scope: Scope, rows: tuple[LensRow, ...]) -> LensTable:
    """One position: the leader after each step, and the two tokens that are compared."""
    found = scope.found
    named = [scope.answer(id) for id in found.compared]
    ranked = bool(named) and found.model.spec.answers > FEW_TOKENS
    title = _("after position {place}: who leads")
    if named:
        title = _("after position {place}: who leads, and the logits of {tokens}")
    if ranked:
        title = _(
            "after position {place}: who leads, the logits of {tokens}, and the place of {token}"
        )
    settled = _settled(rows)
    note = _("* from here on {token} leads for good").format(token=scope.leader(rows[-1].leader))
    return LensTable(
        title.format(
            place=scope.where(found.position), tokens=joined(named), token="".join(named[:1])
        ),
        tuple(named),
        tuple(_line(scope, row, ranked, at == settled) for at, row in enumerate(rows)),
        ranked,
        "" if settled is None else note.removeprefix("* "),
    )


def _line(scope: Scope, row: LensRow, ranked: bool, settled: bool) -> LensLine:
    if row.missing is not None or row.leader is None:
        missing = "" if row.missing is None else why_missing(row.missing)
        return LensLine(row.step, "?", missing=missing)
    numerals, tokens = scope.numerals, scope.found.compared
    probability, share = None, 0.0
    if row.leader.id is not None:
        probability = numerals.number(row.probs[row.leader.id])
        share = near_entry(row.probs[row.leader.id])
    place = next((rank for rank in row.ranks if rank.token == tokens[0]), None) if ranked else None
    at = row.address.removesuffix("]")
    return LensLine(
        row.step,
        scope.leader(row.leader),
        probability,
        share if isfinite(share) else 0.0,
        tuple(numerals.number(row.logits[id], f"{at},{id}]") for id in tokens),
        "" if place is None else _place(place.least, place.most),
        settled,
    )


def _place(least: int | None, most: int | None) -> str:
    if least is None or most is None:
        return "?"
    return whole(least) if least == most else f"{whole(least)}–{whole(most)}"


def _settled(rows: tuple[LensRow, ...]) -> int | None:
    """The row from which the final leader leads; None if the end is undecided."""
    last = rows[-1].leader
    if last is None or last.id is None:
        return None
    place = len(rows) - 1
    while place and (before := rows[place - 1].leader) is not None and before.id == last.id:
        place -= 1
    return place


def _everywhere(scope: Scope, lens: Lens) -> Grid:
    """The leader after each step, at every position."""
    shown = lens.positions
    if len(shown) > MOST_POSITIONS and not scope.every:
        shown = shown[-MOST_POSITIONS:]
    hidden = len(scope.found.trace.tokens) - len(shown)
    rows = [
        (stop.address, *(scope.leader(lens[stop.address, place].leader) for place in shown))
        for stop in lens.stops
    ]
    return Grid(
        _("who leads after each position"),
        (Column(_("after"), "address"), *(Column(scope.place(at)) for at in shown)),
        tuple(rows),
        left_out=amount(hidden, later("1 earlier position"), later("{count} earlier positions"))
        if hidden
        else "",
    )
