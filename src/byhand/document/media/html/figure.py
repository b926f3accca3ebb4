"""The figure of the whole pass: the residual stream as the central line, with its side-trips.

Attention leaves it to the left and returns, the MLP to the right.  A passage marks its own
stations.

The figure is drawn once on a page (`Figures.drawn`).  Every passage shows it with its own marks, so
no script is needed.  Layers that a passage does not enter are folded into one station.  On a narrow
screen a strip of dots replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from byhand.document.book import Spine
from byhand.document.media.html.markup import Markup, element
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
from byhand.language import _

PITCH = 23  # row height
CENTRE = 130  # of the stream
LANES = {"attn": 65, "cross": 65, "mlp": 195}  # of the side-trips
EDGE = 250  # where the numbers begin
HALF = 9  # half the height of a station
SIGN = 5.8  # width of a character of a number
ROOM = Room(each=18, together=44, alone=40)
MOST_TOLD = 5  # stations named in a caption
TOP = 16
DOT, DOTS_HIGH = 13, 44  # size and height of the strip of dots


@dataclass
class Figures:
    """The figures of one page, each drawn on first use."""

    spine: Spine
    labels: Sequence[str]  # of the positions
    finite: bool = False  # fractions as decimals, where those are exact
    used: dict[Folded, list[Station]] = field(default_factory=dict)
    beside: Beside = field(default_factory=Beside)

    def __post_init__(self) -> None:
        self.beside = beside(self.spine.nodes, self.finite, ROOM)

    @property
    def columns(self) -> tuple[int, ...]:
        """The width of each position's numbers in characters; empty if there is no room."""
        labels = (len(self.labels[place]) for place in self.beside.places)
        return tuple(map(max, self.beside.widths, labels))

    def of(
        self, steps: tuple[str, ...], *, looks_back: bool = False, backward: bool = False
    ) -> Markup:
        """The figure with the stations of these steps marked.

        With `backward`, the stream is lit from its end up to them, as the gradient comes.
        """
        full, rows, marked = self.folded(steps)
        self.used.setdefault(full, rows)
        name, label = figure_name(full), whole_pass(marked)
        dots = (_dot(place, row, True) for place, row in enumerate(rows) if row in marked)
        short = ", ".join(dict.fromkeys(_caption(marked)))
        text = _("spoken of here: {what}") if looks_back else _("worked out here: {what}")
        if backward:
            text = _("back through here: {what}")
        strip = element(
            "svg",
            element("use", href=f"#{name}-dots"),
            *dots,
            class_="dots",
            role="img",
            aria_label=label,
            viewBox=f"0 0 {len(rows) * DOT + DOT} {DOTS_HIGH}",
        )
        caption = text.format(what=short) if short else ""
        whole = [element("use", href=f"#{name}")]
        if backward and marked:
            whole = list(_way_back(rows, rows.index(marked[0]), *whole))
        drawn = self.svg(rows, marked, whole)
        swatch = element("i", class_="swatch")
        return drawn + strip + element("figcaption", swatch, caption)

    def linked(self, links: Mapping[str, str], steps: tuple[str, ...] = ()) -> Markup:
        """The figure with each station a link to its passage; those of `steps` are marked."""
        _full, rows, marked = self.folded(steps)

        def station(place: int, row: Station) -> Markup:
            drawn = self._mark(place, row) if row in marked else _station(place, row)
            found = [links[step] for node in row.nodes for step in node.steps if step in links]
            if not found:
                return drawn
            return element(
                "a",
                drawn,
                href=found[0],
                aria_label=row.told,
                data_station=" ".join(node.id for node in row.nodes),
                aria_current="step" if row in marked else None,
            )

        return self.svg(rows, marked, self._whole(rows, station), links=True)

    def inline(self, steps: tuple[str, ...]) -> Markup:
        """A self-contained figure, which shares nothing with others on its page."""
        _full, rows, marked = self.folded(steps)
        return self.svg(rows, marked, self._whole(rows, _station))

    def folded(self, steps: tuple[str, ...]) -> tuple[Folded, list[Station], list[Station]]:
        """How the figure of some steps is folded, its rows, and those that are marked."""
        return folded(self.spine, steps, self.used)

    def svg(
        self,
        rows: Sequence[Station],
        marked: Sequence[Station],
        drawn: Iterable[Markup],
        *,
        links: bool = False,
    ) -> Markup:
        """A drawing, with bands behind the marked rows and, unless it has links, the marks."""
        bands = (_band(rows.index(row), self.width) for row in marked)
        marks = () if links else (self._mark(rows.index(row), row) for row in marked)
        return element(
            "svg",
            *bands,
            *drawn,
            *marks,
            class_="pass",
            role="group" if links else "img",
            aria_label=whole_pass(marked),
            viewBox=f"0 0 {self.width} {_height(rows)}",
        )

    def drawn(self) -> Markup:
        """The shared drawings of this page's figures, written once."""
        if not self.used:
            return Markup()
        shared = []
        for full, rows in self.used.items():
            whole, line = self._whole(rows, _station), f"M{DOT} {DOTS_HIGH // 2}H{len(rows) * DOT}"
            shared.append(element("g", *whole, class_="fig", id=figure_name(full)))
            dots = (_dot(place, row, False) for place, row in enumerate(rows))
            strip = element("path", class_="line", d=line)
            shared.append(element("g", strip, *dots, id=f"{figure_name(full)}-dots"))
        unseen = {"class_": "drawn", "aria_hidden": "true", "focusable": "false"}
        return element("svg", element("defs", *shared), width=0, height=0, **unseen)

    # ------------------------------------------------------------------ the drawing

    @property
    def width(self) -> int:
        """The width of the drawing, with its columns of numbers."""
        if not self.columns:
            return EDGE
        return round(EDGE + sum(self.columns) * SIGN + 14 * len(self.columns))

    def starts(self) -> list[float]:
        """Where the numbers of each position begin."""
        place, found = EDGE + 8.0, []
        for signs in self.columns:
            found.append(place)
            place += signs * SIGN + 14
        return found

    def _whole(
        self, rows: Sequence[Station], station: Callable[[int, Station], Markup]
    ) -> Iterator[Markup]:
        yield element("path", class_="line", d=f"M{CENTRE} {_y(0)}V{_y(len(rows) - 1)}")
        yield from (element("path", class_="trip", d=line) for line in _trips(rows))
        for start, place in zip(self.starts(), self.beside.places, strict=True):
            yield element("text", self.labels[place], class_="head", x=f"{start:.0f}", y=TOP - 5)
        for place, row in enumerate(rows):
            yield station(place, row)
            yield from self._numbers(place, row)

    def _numbers(self, place: int, row: Station) -> Iterator[Markup]:
        if not self.columns or len(row.nodes) != 1:
            return
        for position, start in zip(self.beside.places, self.starts(), strict=True):
            text, register = self.beside.text(row.nodes[0], position)
            if text:
                x, y = f"{start:.0f}", _y(place) + 4
                yield element("text", text, class_=f"v {register}", x=x, y=y)

    def _mark(self, place: int, row: Station) -> Markup:
        ids = " ".join(node.id for node in row.nodes)
        return element("g", _station(place, row), class_="lit", data_node=ids)


# ------------------------------------------------------------------ geometry


def _y(place: int) -> int:
    return TOP + PITCH // 2 + place * PITCH


def _height(rows: Sequence[Station]) -> int:
    return _y(len(rows) - 1) + PITCH // 2 + 4


def _lane(row: Station) -> int:
    if row.feeds:
        return LANES["mlp"]
    return LANES[row.trip] if row.kind == "trip" and row.trip in LANES else CENTRE


def _trips(rows: Sequence[Station]) -> Iterator[str]:
    """The lines of the side-trips: away from the stream, through their stations, and back."""
    for (kind, trip, _layers), group in groupby(
        enumerate(rows), key=lambda pair: (pair[1].kind, pair[1].trip, pair[1].layers)
    ):
        places = [place for place, _row in group]
        for place in places:
            y = _y(place)
            if kind == "folded":  # a folded layer: both side-trips in small
                for x in (CENTRE - 15, CENTRE + 15):
                    yield f"M{CENTRE} {y - 9}Q{x} {y - 7} {x} {y}T{CENTRE} {y + 9}"
            if rows[place].feeds:
                lane, to = LANES["mlp"], f"{CENTRE} {y + PITCH}"
                yield f"M{lane} {y}C{lane} {y + PITCH - 6} {CENTRE} {y + PITCH - 16} {to}"
        if kind != "trip" or trip not in LANES:
            continue
        lane, first, last = LANES[trip], places[0], places[-1]
        leaves, back = _y(first) - PITCH + 7, _y(last) + PITCH  # it leaves below the name there
        yield (
            f"M{CENTRE} {leaves}C{CENTRE} {leaves + 9} {lane} {leaves + 4} {lane} {_y(first)}"
            f"V{_y(last)}C{lane} {back - 6} {CENTRE} {back - 16} {CENTRE} {back}"
        )


def _band(place: int, wide: int) -> Markup:
    y = _y(place) - PITCH / 2
    half = PITCH / 2 - 6
    band = element("rect", class_="band", x=0, y=y, width=wide, height=PITCH, rx=4)
    return band + element("path", class_="pointer", d=f"M0 {y + 6}l7 {half}l-7 {half}z")


def _way_back(rows: Sequence[Station], place: int, *whole: Markup) -> Iterator[Markup]:
    """The whole figure, with the part of the stream that a gradient has come back along."""
    tip, foot = _y(place), _y(len(rows) - 1)
    yield element("path", class_="way-back", d=f"M{CENTRE} {foot}V{tip}")
    yield from whole
    yield element("path", class_="pointer", d=f"M{CENTRE - 9} {tip - 5}l9 -11l9 11z")


def _station(place: int, row: Station) -> Markup:
    x, y = _lane(row), _y(place)
    if row.adds or (row.kind in ("stream", "folded") and not row.feeds):
        size = 7 if row.adds else 5 if row.kind == "stream" else 4
        drawn = element("circle", class_="node", cx=x, cy=y, r=size)
        if row.adds:
            drawn += element("path", class_="plus", d=f"M{x - 4} {y}h8M{x} {y - 4}v8")
        beside = x + (24 if row.kind == "folded" else 14)
        return drawn + element("text", row.label, class_="beside", x=beside, y=y + 4)
    half = min(max(len(row.label) * 3.1 + 9, 26), 56)
    box = element(
        "rect",
        class_=f"node {row.kind}",
        x=f"{x - half:.1f}",
        y=y - HALF,
        width=f"{2 * half:.1f}",
        height=2 * HALF,
        rx=4 if row.kind == "end" else HALF,
    )
    return box + element("text", row.label, x=x, y=y + 4)


def _dot(place: int, row: Station, lit: bool) -> Markup:
    away = {"attn": -13, "mlp": 13}.get(row.trip, 0) if row.kind == "trip" else 13 * row.feeds
    at = {"cx": (place + 1) * DOT, "cy": DOTS_HIGH // 2 + away}
    drawn = element("circle", class_="node", r=5 if lit else 3, **at)
    return element("g", drawn, class_="lit") if lit else drawn


# ------------------------------------------------------------------ words and numbers


def _caption(marked: Sequence[Station]) -> Iterator[str]:
    """The marked stations; of many, the first and the last."""
    if len(marked) <= MOST_TOLD:
        yield from (row.label for row in marked)
    else:
        yield from (marked[0].label, "…", marked[-1].label)
