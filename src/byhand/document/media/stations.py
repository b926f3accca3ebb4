"""The figure of the whole pass for every medium: its stations, and the numbers beside them.

Layers that a passage does not enter are folded into one station.  If the numbers of all positions
do not fit side by side, only the last position's are shown.  Each medium decides the width of a
character and the start of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from byhand.document.book import Node, Spine
from byhand.document.compose.book.spoken_numbers import NEAR, rational_of, together
from byhand.document.numerals import in_full, localised
from byhand.document.parts import Cell, NumberRow
from byhand.document.words import SIGNS
from byhand.expression import write
from byhand.language import _

SHORTEST_FORM = 5  # characters of a form that is not a plain number

Folded = tuple[int, ...]  # the layers drawn in full


# ------------------------------------------------------------------ stations


@dataclass(frozen=True)
class Station:
    """A row of the figure: a node, or several layers folded into one."""

    id: str
    label: str
    kind: str
    trip: str
    layers: tuple[int, ...]
    nodes: tuple[Node, ...]

    @property
    def adds(self) -> bool:
        """Whether something comes back to the stream here."""
        return self.kind == "stream" and self.label.startswith("+")

    @property
    def told(self) -> str:
        """The station for those who hear the page: block 0 attention scores."""
        if self.kind == "folded" or not self.layers:
            return self.label
        where = {
            "attn": _("attention"),
            "cross": _("cross-attention"),
            "mlp": _("MLP"),
        }.get(self.trip, "")
        block = _("block {layer}").format(layer=self.layers[0])
        return " ".join(filter(None, (block, where, self.label)))

    @property
    def feeds(self) -> bool:
        """Whether this is the table of positions, which is added to the stream from outside."""
        return self.nodes[0].steps == ("embed.position",)


def unfolded(spine: Spine, lit: Iterable[str]) -> Folded:
    """The one layer drawn in full; none if the lit nodes lie in several layers."""
    if spine.layers == 1:
        return (0,)
    marked = set(lit)
    layers = {n.layer for n in spine.nodes if n.id in marked and n.layer is not None}
    return tuple(layers) if len(layers) == 1 else ()


def stations(spine: Spine, full: Folded) -> Iterator[Station]:
    """The rows of the figure, with the other layers folded."""

    def kind(node: Node) -> tuple[str, int]:
        if node.layer is None or node.layer in full:
            return "node", 0 if node.layer is None else node.layer + 1
        return "folded", sum(node.layer > layer for layer in full)

    for (drawn, _group), group in groupby(spine.nodes, key=kind):
        nodes = tuple(group)
        if drawn == "node":
            for n in nodes:
                own = () if n.layer is None else (n.layer,)
                yield Station(n.id, n.label, n.kind, n.trip, own, (n,))
            continue
        for layers in _spans(sorted({n.layer for n in nodes if n.layer is not None})):
            inside = tuple(n for n in nodes if n.layer in layers)
            yield Station(f"block-{layers[0]}", _folded(layers), "folded", "", layers, inside)


def _spans(layers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Few layers one by one; of many the first, those between, and the last."""
    if len(layers) <= 4:
        yield from ((layer,) for layer in layers)
        return
    yield (layers[0],)
    yield tuple(layers[1:-1])
    yield (layers[-1],)


def _folded(layers: Sequence[int]) -> str:
    if len(layers) == 1:
        return _("block {layer}").format(layer=layers[0])
    return _("blocks {first}–{last}").format(first=layers[0], last=layers[-1])


def folded(
    spine: Spine, steps: tuple[str, ...], used: Mapping[Folded, list[Station]]
) -> tuple[Folded, list[Station], list[Station]]:
    """How the figure of some steps is folded, its rows, and those that are marked."""
    lit = set(spine.lit(steps))
    full = unfolded(spine, lit)
    rows = used.get(full) or list(stations(spine, full))
    return full, rows, [row for row in rows if any(node.id in lit for node in row.nodes)]


def whole_pass(marked: Sequence[Station]) -> str:
    """The figure for those who hear it."""
    if not marked:
        return _("The whole pass")
    told = ", ".join(row.told for row in marked)
    return _("The whole pass; worked out here: {what}").format(what=told)


def figure_name(full: Folded) -> str:
    """The name of a figure folded in this way."""
    return "-".join(("pass", *map(str, full)))


# ------------------------------------------------------------------ numbers beside them


@dataclass(frozen=True)
class Room:
    """The characters that fit: for one position of several, for all together, for one alone.

    With `marked`, the sign of its register follows a row; otherwise the medium draws it.
    """

    each: int
    together: int
    alone: int
    marked: bool = True


@dataclass(frozen=True)
class Beside:
    """The positions with a column, the column's width, and the room of a row."""

    places: tuple[int, ...] = ()
    widths: tuple[int, ...] = ()
    longest: int = 0
    finite: bool = False  # fractions as decimals, where those are exact
    marked: bool = True

    def text(self, node: Node, place: int) -> tuple[str, str]:
        """The text of a station at a position, with its register; empty if there is no room."""
        for row in node.rows:
            if row.place == place:
                full = self._marked(row_text(row, self.finite), row.register)
                brief = self._marked(node.said.get(place, ""), row.register)
                text = full if 0 < len(full) <= self.longest else brief
                return (text if len(text) <= self.longest else ""), row.register or "exact"
        return "", "exact"

    def even(self, node: Node) -> bool:
        """Whether all rows of a station have room, or none."""
        shown = {bool(self.text(node, row.place)[0]) for row in node.rows if _worth(row)}
        return len(shown) < 2

    def _marked(self, text: str, register: str | None) -> str:
        sign = SIGNS[register] if self.marked and register in ("named", "enclosed") else ""
        return f"{text} {sign}" if text and sign else text


def beside(nodes: Iterable[Node], finite: bool, room: Room) -> Beside:
    """The columns that fit."""
    known = [node for node in nodes if node.rows]
    places = sorted({row.place for node in known for row in node.rows})
    if not places:
        return Beside()
    wanted = Beside(finite=finite, marked=room.marked)
    several = _columns(known, replace(wanted, places=tuple(places), longest=room.each))
    if sum(several.widths) <= room.together and all(several.even(node) for node in known):
        return several
    return _columns(known, replace(wanted, places=(places[-1],), longest=room.alone))


def _columns(nodes: list[Node], wanted: Beside) -> Beside:
    widths = tuple(max(len(wanted.text(node, k)[0]) for node in nodes) for k in wanted.places)
    return replace(wanted, widths=widths) if all(widths) else Beside()


def _worth(row: NumberRow) -> bool:
    return any(not number.cell.masked for number in row.numbers)


def row_text(row: NumberRow, finite: bool) -> str:
    """(1, −1); empty if everything is masked."""
    texts = [_short(number.cell, finite) for number in row.numbers if not number.cell.masked]
    if not texts:
        return ""
    if row.register == "named":  # says that not all is shown
        texts = [text.removeprefix(NEAR) for text in texts]
    return texts[0] if len(texts) == 1 else together(texts)


def _short(cell: Cell, finite: bool) -> str:
    form = cell.form
    value = rational_of(form) if finite else None
    if value is not None and (text := in_full(value)):
        return localised(text)
    if form is not None and (cell.plain or len(write(form)) <= SHORTEST_FORM):
        return localised(write(form))
    sign = NEAR if cell.register == "exact" and cell.cut else ""
    return sign + localised(cell.decimal or "")
