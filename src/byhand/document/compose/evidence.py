"""The evidence for a wrong line: its worst entries, and maps of the shares that entries use.

Positions are the rows of a map and the width its columns; each head has its own small map.  In a
map of a large tensor, a cell covers several entries and shows their largest share; the caption says
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf, prod

import numpy as np
import numpy.typing as npt

from byhand.address import write_index
from byhand.checking.verdicts import Marked
from byhand.document.compose.marked import (
    claimed_text,
    verdict_line,
    worst_texts,
)
from byhand.document.parts import Column, Grid
from byhand.document.parts.verdicts import ShareAxis, ShareMap, SharePanel, VerdictLine
from byhand.document.sizes import share_text
from byhand.document.words import whole
from byhand.language import _

Shares = npt.NDArray[np.float64]

MOST_ENTRIES = 8  # entries of a line listed with their numbers
MOST_ROWS, MOST_COLUMNS = 48, 96  # cells of a single map
MOST_IN_PANEL = 32  # rows and columns of one map among several
MOST_PANELS = 12

_AXES = {
    ("head", "query", "key"): "scores weights",
    ("head", "pos", "d_head"): "q k v q_norm k_norm q_rotated k_rotated mixed",
    ("head", "pos", "d"): "head_out",
    ("pos", "d_ff"): "hidden act gate gated",
    ("pos", "vocab"): "logits probs",
    ("pos",): "mean variance std rms mean_square tokens next",
}
AXES = {name: axes for axes, names in _AXES.items() for name in names.split()}


def with_evidence(line: Marked, mapped: bool = True) -> VerdictLine:
    """The line with its worst entries and, if `mapped`, the map of its shares."""
    shares = share_map(line) if mapped else None
    return replace(verdict_line(line), entries=worst_entries(line), shares=shares)


# ------------------------------------------------------------------ the worst entries


def worst_entries(line: Marked, most: int = MOST_ENTRIES) -> Grid | None:
    """The entries that use most of the allowed error, the worst first; None if none are known."""
    if line.shares is None or line.shares.size == 0:
        return None
    shares = np.nan_to_num(np.asarray(line.shares, np.float64), nan=-1.0, posinf=inf)
    flat_shares = shares.ravel()
    order = np.arange(shares.size)
    if shares.size > most:  # partitioning is faster than sorting a row of logits
        least = np.partition(flat_shares, -most)[-most]
        order = np.flatnonzero(flat_shares >= least)
    order = order[np.argsort(-flat_shares[order], kind="stable")][:most]
    rows: list[tuple[str, ...]] = []
    for flat in order:
        inside = tuple(int(i) for i in np.unravel_index(flat, shares.shape))
        share = float(shares[inside])
        if share < 0 or (rows and share <= 1 and line.verdict.follows is False):
            break
        rows.append(_entry(line, inside, share))
    heads = (_("of allowed"), _("claimed"), _("expected"), _("allowed"))
    columns = (Column(_("entry"), "address"), *(Column(head, "number") for head in heads))
    return Grid("", columns, tuple(rows)) if rows else None


def _entry(line: Marked, inside: tuple[int, ...], share: float) -> tuple[str, ...]:
    """The place of an entry, its share, and its claimed, expected and allowed values, if known."""
    claim = line.claim
    index = claim.in_whole(inside)
    place = write_index(index) or claim.address
    for known in (line.worst, *line.among):
        if known is not None and index == tuple(known.index):
            claimed, expected, allowed = worst_texts(line, known)
            return place, share_text(share), claimed, expected, f"± {allowed}"
    claimed = claimed_text(claim, index, float(np.asarray(claim.values)[inside]))
    return place, share_text(share), claimed, "", ""


# ------------------------------------------------------------------ maps of shares


def share_map(line: Marked) -> ShareMap | None:
    """The maps of a line; None for a single number, or if all is blank."""
    if line.shares is None or line.shares.size < 2:
        return None
    shares = np.array(line.shares, dtype=np.float64)
    if line.claim.claimed is not None and line.claim.claimed.shape == shares.shape:
        shares[~line.claim.claimed] = np.nan
    if np.isnan(shares).all():
        return None
    axes, fixed = _part_axes(line, shares.shape)
    if shares.ndim == 1:
        panels = [_panel(line, "", fixed, shares[None], None, axes[0], (MOST_ROWS, MOST_COLUMNS))]
        return ShareMap(tuple(panels), _caption(panels, 0))
    outer = shares.shape[:-2]
    room = (MOST_IN_PANEL, MOST_IN_PANEL) if prod(outer) > 1 else (MOST_ROWS, MOST_COLUMNS)
    panels = []
    for place in np.ndindex(*outer):
        where = [axis.start + i for axis, i in zip(axes, place, strict=False)]
        title = ", ".join(f"{axis.name} {i}" for axis, i in zip(axes, where, strict=False))
        rest = iter(where)
        index = [next(rest, None) if at is None else at for at in fixed]
        panels.append(_panel(line, title, index, shares[place], axes[-2], axes[-1], room))
    kept = sorted(panels, key=lambda panel: -panel.largest)[:MOST_PANELS]
    shown = [panel for panel in panels if panel in kept]
    return ShareMap(tuple(shown), _caption(shown, len(panels) - len(shown)))


def _part_axes(line: Marked, shape: Sequence[int]) -> tuple[list[ShareAxis], list[int | None]]:
    """The axes of the claimed part, and the index where it is fixed, None elsewhere."""
    names = _axes_of(line.claim.address)
    fixed: list[int | None] = [i if isinstance(i, int) else None for i in line.claim.index]
    fixed += [None] * (len(shape) - fixed.count(None))
    free = [names[i] if i < len(names) else "" for i, place in enumerate(fixed) if place is None]
    if len(names) != len(fixed):  # not a step with these axes: only the places are known
        free = [""] * len(shape)
    first = line.claim.in_whole((0,) * len(shape))
    starts = [at for at, place in zip(first, fixed, strict=True) if place is None]
    return [ShareAxis(*each) for each in zip(free, starts, shape, strict=True)], fixed


def _axes_of(address: str) -> tuple[str, ...]:
    """The names of a step's axes, as in addresses."""
    if address.startswith("weight."):
        return ("row", "column")
    if address.startswith(("count.", "loss")):
        return ("",)
    return AXES.get(address.rpartition(".")[2], ("pos", "d"))


def _panel(
    line: Marked,
    title: str,
    index: Sequence[int | None],
    shares: Shares,
    rows: ShareAxis | None,
    columns: ShareAxis,
    most: tuple[int, int],
) -> SharePanel:
    high, wide = (ceil(size / room) for size, room in zip(shares.shape, most, strict=True))
    free = ["{row}", "{column}"][-list(index).count(None) :]  # the last is the column
    places = ",".join(free.pop(0) if place is None else str(place) for place in index)
    return SharePanel(
        address=f"{line.claim.address}[{places}]",
        title=title,
        rows=None if rows is None else replace(rows, entries=high),
        columns=replace(columns, entries=wide),
        cells=_largest(_largest(shares, 0, high), 1, wide),
        largest=float(np.nanmax(shares)) if not np.isnan(shares).all() else -1.0,
    )


def _largest(shares: Shares, axis: int, entries: int) -> Shares:
    """The largest share of every `entries` neighbours along an axis."""
    if entries == 1:
        return shares
    largest: Shares = np.fmax.reduceat(shares, range(0, shares.shape[axis], entries), axis=axis)
    return largest


def _caption(panels: Sequence[SharePanel], more: int) -> str:
    """The meaning of a map's sides and cells."""
    first = panels[0]
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
