"""The figure of the whole pass as values for the design: stations, side-trips, numbers.

`stations` decides the places of stations and which layers are folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from byhand.document.book import Spine
from byhand.document.media.stations import (
    Beside,
    Folded,
    Room,
    Station,
    beside,
    figure_name,
    folded,
    whole_pass,
)
from byhand.document.media.typst.quoting import array, call, string, words, yes

ROOM = Room(each=22, together=50, alone=44, marked=False)
LANES = {"attn": "attn", "cross": "attn", "mlp": "mlp"}


@dataclass
class Figures:
    """The figures of a book; each folding is defined once, on first use."""

    spine: Spine
    finite: bool = False
    used: dict[Folded, list[Station]] = field(default_factory=dict)

    def where(self, steps: Sequence[str]) -> tuple[str, str, str]:
        """The name of the figure to draw, the places that are lit in it, and the same in words."""
        full, rows, marked = folded(self.spine, tuple(steps), self.used)
        self.used.setdefault(full, rows)
        places = array(str(place) for place, row in enumerate(rows) if row in marked)
        return figure_name(full), places, words(whole_pass(marked))

    def definitions(self) -> Iterator[str]:
        """The definitions of the figures used, to stand before the pages."""
        for full, rows in self.used.items():
            listed = array(self._station(row, self.beside) for row in rows)
            yield f"#let {figure_name(full)} = (stations: {listed}, trips: {array(_trips(rows))})"

    @cached_property
    def beside(self) -> Beside:
        """The positions whose numbers stand in the figure, and these."""
        return beside(self.spine.nodes, self.finite, ROOM)

    def _station(self, row: Station, columns: Beside) -> str:
        numbers = []
        for place in columns.places:
            text, register = columns.text(row.nodes[0], place) if len(row.nodes) == 1 else ("", "")
            numbers.append(f"({string(text)}, {string(register)})" if text else "none")
        return call(
            "",
            kind=string(row.kind),
            lane=string(_lane(row)),
            label=words(row.label),
            beside=words(row.label),
            adds=yes(row.adds),
            feeds=yes(row.feeds),
            numbers=array(numbers),
        )


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
