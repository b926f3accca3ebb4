"""The section on geometry: the stream as a path among the directions of the tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.numerals import measure
from byhand.document.compose.explanation.plane import drawings
from byhand.document.compose.explanation.scope import Scope, numbers
from byhand.document.parts import Column, Grid, Part, Remark
from byhand.document.words import why_missing
from byhand.language import _, amount, later

if TYPE_CHECKING:
    from byhand.explaining.geometry import Geometry, Path

SMALL = 4  # largest dimension whose positions are all told
MOST_TOKENS = 5  # directions whose angles stand side by side


def parts(scope: Scope) -> Iterator[Part]:
    """The stream in the plane, and its lengths and angles."""
    geometry = scope.found.geometry
    yield from drawings(geometry, small=not scope.full)
    paths = [path for path in geometry.paths if path.position == scope.found.position]
    if scope.every or (scope.full and geometry.width <= SMALL):
        paths = list(geometry.paths)
    for path in paths:
        yield _path(scope, geometry, path)
        if path.ended is not None:
            yield Remark("open", why_missing(path.ended))


def _path(scope: Scope, geometry: Geometry, path: Path) -> Grid:
    """For each stop its length, its turn, and its angle to each token's direction."""
    chosen = list(geometry.directions)
    if len(chosen) > MOST_TOKENS and not scope.every:
        first = scope.found.compared
        chosen.sort(key=lambda each: each.id not in first)
        chosen = chosen[:MOST_TOKENS]
    places = [geometry.directions.index(each) for each in chosen]
    turned = [None, *(move.turned for move in path.moves)]
    rows = []
    for stop, turn in zip(path.stops, turned, strict=False):
        cells = [stop.address, measure(stop.length), _degrees(turn)]
        cells += [_degrees(stop.angles[at]) for at in places]
        cells.append("" if stop.leads is None else scope.leader(stop.leads))
        rows.append(tuple(cells))
    hidden = len(geometry.directions) + geometry.left_out - len(chosen)
    heads = (_("length"), _("turned"), *(scope.answer(each.id) for each in chosen))
    return Grid(
        _("position {place}: length, turn, and the angle to each token's direction").format(
            place=scope.where(path.position)
        ),
        (*numbers(Column(_("stream"), "address"), heads), Column(_("leads"))),
        tuple(rows),
        left_out=amount(hidden, later("1 more token"), later("{count} more tokens"))
        if hidden
        else "",
    )


def _degrees(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}°"
