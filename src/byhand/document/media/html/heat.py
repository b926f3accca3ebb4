"""Heat maps of a marked line: which entries use how much of the allowed error, as inline SVG.

Positions stand below each other and the width side by side; heads are small maps of their own.
What is too large for a map is drawn in cells of several entries, each with the largest share in
it, and the map says so.  Colours are classes of the page's style; an inline script may read the
shares that a map carries, and nothing needs it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from byhand.checking.verdicts import Marked
from byhand.document.compose.marked import part_starts, share_text
from byhand.document.words import whole
from byhand.language import _

Shares = npt.NDArray[np.float64]

EDGES = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)  # of the levels; the first four are within the bound
WITHIN = 4  # levels up to the bound
MOST_ROWS, MOST_COLUMNS = 48, 96  # cells of a map that stands alone
MOST_IN_PANEL = 32  # rows and columns of one map among several
MOST_PANELS = 12
WIDEST, WIDEST_PANEL, LARGEST_CELL = 720, 200, 26  # pixels
LOWEST_ROW, FEW_ROWS = 12, 20  # pixels of a row where there are few, however many columns
LEAST, STEPS = 1e-4, 5000  # of the logarithmic scale that shares are carried in: steps a decade

_HEADED = {"scores": ("head", "query", "key"), "weights": ("head", "query", "key")} | dict.fromkeys(
    ("q", "k", "v", "q_norm", "k_norm", "q_rotated", "k_rotated", "mixed"),
    ("head", "pos", "d_head"),
)
_FEW = dict.fromkeys(("mean", "variance", "std", "rms", "mean_square"), ("pos",))
_WIDE = {
    "hidden": ("pos", "d_ff"),
    "act": ("pos", "d_ff"),
    "gate": ("pos", "d_ff"),
    "gated": ("pos", "d_ff"),
    "logits": ("pos", "vocab"),
    "probs": ("pos", "vocab"),
    "head_out": ("head", "pos", "d"),
    "tokens": ("pos",),
    "next": ("pos",),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a map: what it counts, from where, and how many entries a cell holds."""

    name: str
    start: int
    size: int
    entries: int = 1

    @property
    def last(self) -> int:
        return self.start + self.size - 1


@dataclass(frozen=True)
class Panel:
    """One map: cells with the largest share of their entries; NaN where nothing is claimed."""

    address: str  # of its entries: block.0.attn.scores[1,{row},{column}]
    title: str
    rows: Axis | None  # None: there is one row, and it needs no name
    columns: Axis
    cells: Shares
    largest: float


# ------------------------------------------------------------------ from a line to its maps


def panels(line: Marked) -> tuple[list[Panel], int]:
    """The maps of a line, and how many more there would be; none of a single number."""
    if line.shares is None or line.shares.size < 2:
        return [], 0
    shares = np.array(line.shares, dtype=np.float64)
    if line.claim.claimed is not None and line.claim.claimed.shape == shares.shape:
        shares[~line.claim.claimed] = np.nan
    if np.isnan(shares).all():
        return [], 0
    axes, fixed = part_axes(line, shares.shape)
    if shares.ndim == 1:
        return [_panel(line, "", fixed, shares[None], None, axes[0], MOST_ROWS, MOST_COLUMNS)], 0
    outer = shares.shape[:-2]
    many = prod(outer) > 1
    room = (MOST_IN_PANEL, MOST_IN_PANEL) if many else (MOST_ROWS, MOST_COLUMNS)
    found = []
    for place in np.ndindex(*outer):
        where = [axis.start + i for axis, i in zip(axes, place, strict=False)]
        title = ", ".join(f"{axis.name} {i}" for axis, i in zip(axes, where, strict=False))
        index = _filled(fixed, where)
        found.append(_panel(line, title, index, shares[place], axes[-2], axes[-1], *room))
    if len(found) <= MOST_PANELS:
        return found, 0
    kept = sorted(found, key=lambda panel: -panel.largest)[:MOST_PANELS]
    return [panel for panel in found if panel in kept], len(found) - MOST_PANELS


def part_axes(line: Marked, shape: Sequence[int]) -> tuple[list[Axis], list[int | None]]:
    """The axes of the claimed part; and the index as far as it is fixed, None for the others."""
    names = axes_of(line.claim.address)
    index = list(line.claim.index)
    fixed: list[int | None] = [i if isinstance(i, int) else None for i in index]
    fixed += [None] * (len(shape) - fixed.count(None))
    free = [names[i] if i < len(names) else "" for i, place in enumerate(fixed) if place is None]
    if len(names) != len(fixed):  # not the step this room knows: only the places are told
        free = [""] * len(shape)
    axes = [
        Axis(name, start, size)
        for name, start, size in zip(free, part_starts(line, len(shape)), shape, strict=True)
    ]
    return axes, fixed


def axes_of(address: str) -> tuple[str, ...]:
    """The names of a step's axes, as addresses have them."""
    if address.startswith("weight."):
        return ("row", "column")
    if address.startswith(("count.", "loss")):
        return ("",)
    last = address.rpartition(".")[2]
    return {**_HEADED, **_FEW, **_WIDE}.get(last, ("pos", "d"))


def _filled(fixed: Sequence[int | None], outer: Sequence[int]) -> list[int | None]:
    rest = iter(outer)
    return [next(rest, None) if place is None else place for place in fixed]


def _panel(
    line: Marked,
    title: str,
    index: Sequence[int | None],
    shares: Shares,
    rows: Axis | None,
    columns: Axis,
    most_rows: int,
    most_columns: int,
) -> Panel:
    high, wide = ceil(shares.shape[0] / most_rows), ceil(shares.shape[1] / most_columns)
    return Panel(
        address=f"{line.claim.address}[{_template(index)}]",
        title=title,
        rows=None if rows is None else Axis(rows.name, rows.start, rows.size, high),
        columns=Axis(columns.name, columns.start, columns.size, wide),
        cells=_largest(_largest(shares, 0, high), 1, wide),
        largest=float(np.nanmax(shares)) if not np.isnan(shares).all() else -1.0,
    )


def _template(index: Sequence[int | None]) -> str:
    """1,{row},{column}: the last of the free places is the column."""
    places, free = [], ["{row}", "{column}"][-list(index).count(None) :]
    for place in index:
        places.append(free.pop(0) if place is None else str(place))
    return ",".join(places)


def _largest(shares: Shares, axis: int, entries: int) -> Shares:
    """Every so many entries along an axis made one: the largest of them."""
    if entries == 1:
        return shares
    largest: Shares = np.fmax.reduceat(shares, range(0, shares.shape[axis], entries), axis=axis)
    return largest


# ------------------------------------------------------------------ from maps to SVG


def figure(line: Marked) -> Iterator[str]:
    """The maps of a line with what they show, or nothing where there is nothing to draw."""
    found, more = panels(line)
    if not found:
        return
    widest = WIDEST if len(found) == 1 else WIDEST_PANEL
    yield "<figure class='heat'>"
    yield f"<div class='panels{'' if len(found) == 1 else ' many'}'>"
    largest = max(panel.largest for panel in found)
    for panel in found:
        yield from _drawn(panel, widest, panel.largest == largest)
    yield "</div>"
    yield "<p class='readout' aria-live='polite'></p>"
    yield f"<figcaption>{escape(caption(found, more))}</figcaption>"
    yield "</figure>"


def caption(found: Sequence[Panel], more: int) -> str:
    """What the sides of the maps are, and what a cell holds."""
    first = found[0]
    sides = [first.columns] if first.rows is None else [first.rows, first.columns]
    names = " × ".join(f"{axis.name} {axis.start}–{axis.last}".strip() for axis in sides)
    text = _("The share of the allowed error that each entry uses: {axes}.").format(axes=names)
    if (each := prod(axis.entries for axis in sides)) > 1:
        shape = " × ".join(str(axis.entries) for axis in sides)
        text += " " + _(
            "A cell holds up to {count} entries ({shape}) and shows the largest share among them."
        ).format(count=whole(each), shape=shape)
    if more:
        text += " " + _("{count} further maps are left out: these are the worst.").format(
            count=whole(more)
        )
    return text + " " + _("The ring is the worst entry.")


def level_of(share: float) -> int:
    """The level of a share: up to WITHIN - 1 it is within the bound."""
    return int(np.searchsorted(EDGES, share))


def legend() -> Iterator[str]:
    """The levels and what they stand for."""
    name, beyond = escape(_("colours of the maps")), escape(_("beyond:"))
    yield f"<p class='levels' role='group' aria-label='{name}'>"
    for level in range(len(EDGES) + 1):
        if level == len(EDGES):
            text = "> " + share_text(EDGES[-1])
        else:
            text = "≤ " + share_text(EDGES[level])
        if level == WITHIN:
            yield f"<span class='bound'>{beyond}</span>"
        yield f"<span><i class='h{level}'></i>{escape(text)}</span>"
    yield "</p>"


def _drawn(panel: Panel, widest: int, worst: bool) -> Iterator[str]:
    high, wide = panel.cells.shape
    pixels = min(LARGEST_CELL, widest / wide)
    low = high * LOWEST_ROW if high <= FEW_ROWS else 0
    name = panel.title or _("heat map")
    told = _("{what}: at most {share} of the allowed error").format(
        what=name, share=share_text(max(panel.largest, 0.0))
    )
    yield f"<div class='panel' style='max-width:{ceil(pixels * wide) + 40}px'>"
    if panel.title:
        yield f"<p class='title'>{escape(panel.title)}</p>"
    name, first, last = panel.columns.name, panel.columns.start, panel.columns.last
    yield f"<div class='across' aria-hidden='true'><span>{escape(name)} {first}</span>"
    yield f"<span>{last if last > first else ''}</span></div>"
    if panel.rows is not None:
        top, bottom = panel.rows.start, panel.rows.last
        yield f"<div class='down' aria-hidden='true'><span>{top}</span>"
        yield f"<span>{bottom if bottom > top else ''}</span></div>"
    yield (
        f"<svg viewBox='0 0 {wide} {high}' role='img' aria-label='{escape(told)}'"
        f" preserveAspectRatio='none' style='aspect-ratio:{wide}/{high};min-height:{low}px'"
        f" {_carried(panel)}>"
    )
    yield from _cells(panel.cells)
    if worst:
        row, column = np.unravel_index(np.nanargmax(panel.cells), panel.cells.shape)
        for kind in ("halo", "ring"):  # dark on light on the colour, whatever it is
            yield f"<rect class='{kind}' x='{column}' y='{row}' width='1' height='1'/>"
    yield "</svg></div>"


def _cells(cells: Shares) -> Iterator[str]:
    """One path a level, of the runs of cells that have it."""
    levels = np.where(np.isnan(cells), -1, np.searchsorted(EDGES, cells))
    paths: dict[int, list[str]] = {}
    for row, across in enumerate(levels.tolist()):
        column = 0
        for level, run in groupby(across):
            length = len(list(run))
            if level >= 0:
                paths.setdefault(level, []).append(f"M{column} {row}h{length}v1h-{length}z")
            column += length
    for level in sorted(paths):
        yield f"<path class='h{level}' d='{''.join(paths[level])}'/>"


def _carried(panel: Panel) -> str:
    """What the script of the page reads: where the map lies in its step, and its shares."""
    with np.errstate(divide="ignore"):
        steps = np.log10(np.maximum(panel.cells, LEAST) / LEAST) * STEPS + 1
    steps = np.where(np.isnan(panel.cells), 0, np.minimum(steps, 65535))
    shares = b64encode(steps.round().astype("<u2").tobytes()).decode()
    rows = panel.rows or Axis("", 0, 1)
    numbers = (rows.start, rows.size, rows.entries)
    across = (panel.columns.start, panel.columns.size, panel.columns.entries)
    return (
        f"data-address='{escape(panel.address)}' data-rows='{_joined(numbers)}'"
        f" data-columns='{_joined(across)}' data-shares='{shares}'"
    )


def _joined(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))
