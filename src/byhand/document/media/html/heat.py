"""Maps of shares as inline SVG: colours are classes of the page's style.

A script may read the shares in a map; the page works without it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import groupby
from math import ceil

import numpy as np
import numpy.typing as npt

from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.parts.verdicts import ShareAxis, ShareMap, SharePanel
from byhand.document.sizes import share_text
from byhand.language import _

EDGES = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)  # of the levels; the first four lie within the bound
WITHIN = 4  # levels up to the bound
WIDEST, WIDEST_PANEL, LARGEST_CELL = 720, 200, 26  # pixels
LOWEST_ROW, FEW_ROWS = 12, 20  # pixels of a row if there are few rows, for any number of columns
LEAST, STEPS = 1e-4, 5000  # of the logarithmic scale of the carried shares: steps for each decade


def figure(part: ShareMap) -> Markup:
    """The maps of a line, with captions."""
    many = len(part.panels) > 1
    largest = max(panel.largest for panel in part.panels)
    drawn = (
        _drawn(panel, WIDEST_PANEL if many else WIDEST, panel.largest == largest)
        for panel in part.panels
    )
    return element(
        "figure",
        element("div", *drawn, class_="panels many" if many else "panels"),
        element("p", class_="readout", aria_live="polite"),
        element("figcaption", part.caption),
        class_="heat",
    )


def level_of(share: float) -> int:
    """The level of a share: up to WITHIN - 1 it is within the bound."""
    return int(np.searchsorted(EDGES, share))


def legend() -> Markup:
    """The levels and their meaning."""
    texts = [*(f"≤ {share_text(edge)}" for edge in EDGES), f"> {share_text(EDGES[-1])}"]
    items = [
        element("span", element("i", class_=f"h{level}"), text) for level, text in enumerate(texts)
    ]
    items.insert(WITHIN, element("span", _("beyond:"), class_="bound"))
    return element("p", *items, class_="levels", role="group", aria_label=_("colours of the maps"))


def _drawn(panel: SharePanel, widest: int, worst: bool) -> Markup:
    """One map with its title and its axes."""
    high, wide = panel.cells.shape
    pixels = min(LARGEST_CELL, widest / wide)
    low = high * LOWEST_ROW if high <= FEW_ROWS else 0
    told = _("{what}: at most {share} of the allowed error").format(
        what=panel.title or _("heat map"), share=share_text(max(panel.largest, 0.0))
    )
    inside = list(_cells(panel.cells))
    if worst:
        row, column = map(int, np.unravel_index(np.nanargmax(panel.cells), panel.cells.shape))
        for kind in ("halo", "ring"):  # dark on light, visible on any colour
            inside.append(element("rect", class_=kind, x=column, y=row, width=1, height=1))
    svg = element(
        "svg",
        *inside,
        viewBox=f"0 0 {wide} {high}",
        role="img",
        aria_label=told,
        preserveAspectRatio="none",
        style=f"aspect-ratio:{wide}/{high};min-height:{low}px",
        **_carried(panel),
    )
    sides = [_ends("across", panel.columns, f"{panel.columns.name} ")]
    if panel.rows is not None:
        sides.append(_ends("down", panel.rows))
    title = [element("p", panel.title, class_="title")] * bool(panel.title)
    width = f"max-width:{ceil(pixels * wide) + 40}px"
    return element("div", *title, *sides, svg, class_="panel", style=width)


def _ends(kind: str, axis: ShareAxis, name: str = "") -> Markup:
    """The first and the last place of a side."""
    last = str(axis.last) if axis.size > 1 else ""
    ends = element("span", f"{name}{axis.start}") + element("span", last)
    return element("div", ends, class_=kind, aria_hidden="true")


def _cells(cells: npt.NDArray[np.float64]) -> Iterator[Markup]:
    """One path for each level, through the runs of its cells."""
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
        yield element("path", class_=f"h{level}", d=joined(paths[level]))


def _carried(panel: SharePanel) -> dict[str, str]:
    """The data for the page's script: the map's place in its step, and its shares."""
    with np.errstate(divide="ignore"):
        steps = np.log10(np.maximum(panel.cells, LEAST) / LEAST) * STEPS + 1
    steps = np.where(np.isnan(panel.cells), 0, np.minimum(steps, 65535))
    rows, columns = (
        f"{axis.start} {axis.size} {axis.entries}"
        for axis in (panel.rows or ShareAxis("", 0, 1), panel.columns)
    )
    return {
        "data_address": panel.address,
        "data_rows": rows,
        "data_columns": columns,
        "data_shares": b64encode(steps.round().astype("<u2").tobytes()).decode(),
    }
