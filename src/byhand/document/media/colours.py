"""Heat strips for every medium: levels of colour, runs of equal cells, a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from byhand.document.numerals import short_number
from byhand.document.parts import Floats, HeatStrip
from byhand.language import _

EDGES = (0.04, 0.2, 0.4, 0.65)  # shares of the reach at which deeper colours begin
MASKED = 99  # the level of a masked entry
MOST_LABELS = 24  # rows with labels


def panels(strip: HeatStrip) -> Iterator[tuple[str, Floats, tuple[str, ...]]]:
    """The title, values and labels of each head of a strip, or of the whole strip."""
    values = np.atleast_2d(strip.values)
    high = values.shape[0] // strip.blocks
    labels = strip.labels if len(strip.labels) == high <= MOST_LABELS else ()
    for block in range(strip.blocks):
        title = _("head {head}").format(head=block) if strip.blocks > 1 else ""
        yield title, values[block * high : (block + 1) * high], labels


def told(strip: HeatStrip, values: Floats, head: str) -> str:
    """A description of a panel for screen readers."""
    known = values[~np.isnan(values)]
    name = " ".join(filter(None, (strip.title or strip.address, head)))
    if not known.size:
        return name
    return _("{what}: from {least} to {greatest}").format(
        what=name, least=short_number(float(known.min())), greatest=short_number(float(known.max()))
    )


def runs(values: Floats, reach: float) -> Iterator[tuple[int, int, int, int]]:
    """(level, row, column, length) of each run of cells of one colour; levels go from −4 to 4."""
    shares = np.abs(np.nan_to_num(values.astype(np.float64))) / (reach or 1.0)
    levels = np.searchsorted(EDGES, shares, side="right") * np.sign(np.nan_to_num(values))
    known: npt.NDArray[np.int64] = np.where(np.isnan(values), MASKED, levels).astype(np.int64)
    begins = np.ones(known.shape, dtype=bool)
    begins[:, 1:] = known[:, 1:] != known[:, :-1]
    rows, columns = np.nonzero(begins)
    lengths = np.diff(rows * known.shape[1] + columns, append=known.size)
    found = (known[begins], rows, columns, lengths)
    return zip(*(each.tolist() for each in found), strict=True)
