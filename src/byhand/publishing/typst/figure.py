"""The figure of the whole pass as values for the design: stations, side-trips, numbers.

Where the stations lie and what of several layers is folded, `html.figure` says; it is the same
figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from byhand.expression import Number, write
from byhand.language import _
from byhand.publishing.book import Spine
from byhand.publishing.html.figure import Station, stations
from byhand.publishing.numerals import in_full, localised
from byhand.publishing.parts import NumberRow
from byhand.publishing.typst.quoting import array, call, string, words, yes
from byhand.render.layout import plain
from byhand.render.parts import Cell

LONGEST_ROW = 22  # signs of one position's numbers at a station
MOST_SIGNS = 50  # of all positions side by side
LANES = {"attn": "attn", "mlp": "mlp"}

Folded = tuple[int, ...]


@dataclass
class Figures:
    """The figures of a book; each way of folding it is defined once, when it is first needed."""

    spine: Spine
    finite: bool = False
    used: dict[Folded, list[Station]] = field(default_factory=dict)

    def where(self, steps: Sequence[str]) -> tuple[str, str, str]:
        """The name of the figure to draw, the places that are lit in it, and the same in words."""
        lit = set(self.spine.lit(tuple(steps)))
        layers = {node.layer for node in self.spine.nodes if node.id in lit} - {None}
        full = tuple(layer for layer in layers if layer is not None) if len(layers) == 1 else ()
        if self.spine.layers == 1:
            full = (0,)
        rows = self.used.setdefault(full, list(stations(self.spine, full)))
        places = [k for k, row in enumerate(rows) if any(node.id in lit for node in row.nodes)]
        told = _("The whole pass")
        if places:
            what = ", ".join(rows[k].label for k in places)
            told = _("The whole pass; worked out here: {what}").format(what=what)
        return _name(full), array(map(str, places)), words(told)

    def definitions(self) -> Iterator[str]:
        """What `where` named, to stand before the pages."""
        for full, rows in self.used.items():
            numbered = self.columns(rows)
            listed = array(self._station(row, numbered) for row in rows)
            yield f"#let {_name(full)} = (stations: {listed}, trips: {array(_trips(rows))})"

    def columns(self, rows: Sequence[Station]) -> int:
        """How many positions have their numbers in the figure; none where there is no room."""
        widest: dict[int, int] = {}
        for row in rows:
            for each in row.nodes[0].rows if len(row.nodes) == 1 else ():
                widest[each.place] = max(widest.get(each.place, 0), len(self._row_text(each)))
        return len(widest) if sum(widest.values()) <= MOST_SIGNS else 0

    def _station(self, row: Station, positions: int) -> str:
        numbers = {}
        if positions and len(row.nodes) == 1:
            for each in row.nodes[0].rows:
                if text := self._row_text(each):
                    register = string(each.register or "exact")
                    numbers[each.place] = f"({string(text)}, {register})"
        return call(
            "",
            kind=string(row.kind),
            lane=string(_lane(row)),
            label=words(row.label),
            beside=words(row.label.removeprefix("+").strip()),
            adds=yes(row.adds),
            feeds=yes(row.feeds),
            numbers=array(numbers.get(place, "none") for place in range(positions)),
        )

    def _row_text(self, row: NumberRow) -> str:
        """(1, −1); empty where there is no room."""
        texts = [self._short(number.cell) for number in row.numbers if not number.cell.masked]
        if not texts:
            return ""
        separator = "; " if _(".") == "," else ", "
        text = texts[0] if len(texts) == 1 else f"({separator.join(texts)})"
        return text if len(text) <= LONGEST_ROW else ""

    def _short(self, cell: Cell) -> str:
        form = cell.form
        if self.finite and isinstance(form, Number) and (text := in_full(form.value)):
            return localised(text)
        if form is not None and (plain(cell) or len(write(form)) <= 5):
            return localised(write(form))
        sign = "≈ " if cell.register == "exact" and cell.cut else ""
        return sign + localised(cell.decimal or "")


def _name(full: Folded) -> str:
    return "-".join(("pass", *map(str, full)))


def _lane(row: Station) -> str:
    if row.feeds:
        return "mlp"
    return LANES.get(row.trip, "centre") if row.kind == "trip" else "centre"


def _trips(rows: Sequence[Station]) -> Iterator[str]:
    """Each side-trip: its lane, and the first and last of its stations."""
    groups = groupby(enumerate(rows), key=lambda pair: (pair[1].kind, pair[1].trip, pair[1].layers))
    for (kind, trip, _layers), group in groups:
        places = [place for place, _row in group]
        if kind == "trip" and trip in LANES:
            yield f"(lane: {string(trip)}, first: {places[0]}, last: {places[-1]})"
