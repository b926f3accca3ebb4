"""Tensors as colours: heat strips, and where each head looks.

Colours run from one end over paper to the other, symmetric about 0, in few levels so that a strip
is few shapes.  Each strip carries its values (a 16-bit number each), which the script reads out
under the pointer and the arrow keys; for those who hear the page there is a sentence.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

import numpy as np
import numpy.typing as npt

from byhand.document.numerals import localised
from byhand.document.parts import (
    AttentionPattern,
    Floats,
    HeadPattern,
    HeatStrip,
)
from byhand.document.words import axes_text
from byhand.language import _

EDGES = (0.04, 0.2, 0.4, 0.65)  # of the reach: where a deeper colour begins
STEPS = 32767  # of the reach, in which values are carried; one less than the least means masked
LARGEST_CELL, WIDEST, TALLEST = 22, 640, 420  # pixels
MOST_BESIDE, ALL_BESIDE = 4, 560  # heads side by side, and pixels for all of them
LOWEST_LABELLED = 14.0  # pixels of a row that has a word beside it
MOST_LABELS = 24  # rows that have their words beside them
MOST_NUMBERED = 8  # positions of a pattern whose cells hold their numbers
SQUARE, SMALL_SQUARE = 42, 31  # pixels of a pattern's cell: of one head, of several
LETTER = 6.9  # pixels of a letter above a column
SHARES = (0.1, 0.3, 0.55, 0.8)  # where a deeper colour begins

Levels = npt.NDArray[np.int64]


def heat_strip(strip: HeatStrip) -> Iterator[str]:
    """A figure: the strip (one a head), what it is, and what its colours mean."""
    yield '<figure class="strip">'
    yield (
        f'<figcaption><span class="name">{escape(strip.title or strip.address)}</span>'
        f' <code class="address">{escape(strip.address)}</code>'
        f' <span class="quiet">{escape(axes_text(strip.axes, strip.shape))}</span></figcaption>'
    )
    values = np.atleast_2d(strip.values)
    high = values.shape[0] // strip.blocks
    yield f'<div class="strips{" several" if strip.blocks > 1 else ""}">'
    for block in range(strip.blocks):
        yield from _block(strip, values[block * high : (block + 1) * high], block)
    yield "</div>"
    yield '<div class="under">'
    yield from _scale(strip)
    yield '<p class="readout" aria-live="polite"></p></div></figure>'


def _block(strip: HeatStrip, values: Floats, block: int) -> Iterator[str]:
    high, wide = values.shape
    room = ALL_BESIDE / min(strip.blocks, MOST_BESIDE) if strip.blocks > 1 else WIDEST
    cell = max(min(LARGEST_CELL, room / wide, TALLEST / high), 1.0)
    labelled = len(strip.labels) == high <= MOST_LABELS
    cell_high = max(cell, LOWEST_LABELLED) if labelled or high <= 3 else cell
    title = ""
    if strip.blocks > 1:
        title = _("head {head}").format(head=block)
        yield f'<div class="panel"><p class="title">{escape(title)}</p>'
    else:
        yield '<div class="panel">'
    if labelled and not block:  # the heads beside it have the same rows
        style = f"grid-auto-rows:{cell_high:.1f}px"
        marks = "".join(f"<span>{escape(label)}</span>" for label in strip.labels)
        yield f'<div class="labels" aria-hidden="true" style="{style}">{marks}</div>'
    told = _sentence(strip, values, title)
    yield (
        f'<svg class="heat" role="img" aria-label="{escape(told)}" viewBox="0 0 {wide} {high}"'
        f' preserveAspectRatio="none" style="width:{cell * wide:.0f}px;'
        f'height:{cell_high * high:.0f}px" {_carried(strip, values, block)}>'
    )
    yield from _cells(_levels(values, strip.reach))
    yield "</svg></div>"


def _sentence(strip: HeatStrip, values: Floats, title: str) -> str:
    """What the strip shows, for those who hear the page."""
    known = values[~np.isnan(values)]
    name = " ".join(filter(None, (strip.title or strip.address, title)))
    if not known.size:
        return name
    return _("{what}: from {least} to {greatest}").format(
        what=name, least=short_number(float(known.min())), greatest=short_number(float(known.max()))
    )


def _levels(values: Floats, reach: float) -> Levels:
    """From −4 to 4; 99 where an entry is masked."""
    shares = np.abs(np.nan_to_num(values.astype(np.float64))) / (reach or 1.0)
    levels = np.searchsorted(EDGES, shares, side="right") * np.sign(np.nan_to_num(values))
    found: Levels = np.where(np.isnan(values), 99, levels).astype(np.int64)
    return found


def _cells(levels: Levels) -> Iterator[str]:
    """One path a level: a stroke as high as a row through each run of cells that have it."""
    paths: dict[int, list[str]] = {}
    ends: dict[int, tuple[int, int]] = {}  # where the stroke of a level stands
    for row, across in enumerate(levels.tolist()):
        column = 0
        for level, run in groupby(across):
            length = len(list(run))
            if level in ends:
                x, y = ends[level]
                paths[level].append(f"m{column - x} {row - y}h{length}")
            else:
                paths[level] = [f"M{column} {row}.5h{length}"]
            column += length
            ends[level] = column, row
    for level in sorted(paths):
        yield f'<path class="{_level_class(level)}" d="{"".join(paths[level])}"/>'


def _level_class(level: int) -> str:
    if level == 99:
        return "none"
    return f"{'n' if level < 0 else 'p'}{abs(level)}" if level else "z"


def _carried(strip: HeatStrip, values: Floats, block: int) -> str:
    """What the script reads: where the strip lies in its tensor, and its values."""
    scaled = np.nan_to_num(values.astype(np.float64)) / (strip.reach or 1.0) * STEPS
    steps = np.where(np.isnan(values), -STEPS - 1, np.clip(np.round(scaled), -STEPS, STEPS))
    data = b64encode((steps + 32768).astype("<u2").tobytes()).decode()
    lead = f"{block}," if strip.blocks > 1 else ""
    rows = "{row}," if len(strip.shape) > 1 else ""
    template = f"{strip.address}[{lead}{rows}{{column}}]"
    sizes = (*strip.shape[-2:],) if len(strip.shape) > 1 else (1, *strip.shape[-1:])
    return (
        f'data-address="{escape(template)}" data-reach="{strip.reach:.9g}"'
        f' data-pooled="{strip.pooled[0]} {strip.pooled[1]}"'
        f' data-sizes="{" ".join(map(str, sizes))}" data-values="{data}"'
    )


def _scale(strip: HeatStrip) -> Iterator[str]:
    """The colours from end to end, and what is not shown."""
    reach = short_number(strip.reach)
    squares = "".join(
        f'<i class="{_level_class(level)}"></i>' for level in range(-len(EDGES), len(EDGES) + 1)
    )
    yield (
        f'<p class="scale"><span>−{escape(reach)}</span><span class="colours" aria-hidden="true">'
        f"{squares}</span><span>{escape(reach)}</span></p>"
    )
    notes = []
    if strip.pooled != (1, 1):
        shape = f"{strip.pooled[0]} × {strip.pooled[1]}"
        notes.append(
            _("A cell stands for {shape} entries and shows the one furthest from 0.").format(
                shape=shape
            )
        )
    if strip.left_out:
        notes.append(_("left out: {what}").format(what=strip.left_out))
    for note in notes:
        yield f'<p class="left-out">{escape(note)}</p>'


# ------------------------------------------------------------------ where the heads look


def attention_pattern(pattern: AttentionPattern) -> Iterator[str]:
    """One square of cells a head: a row asks, a column is asked."""
    title = escape(_("Who looks at whom"))
    address = escape(pattern.address)
    yield f'<figure class="pattern"><figcaption><span class="name">{title}</span>'
    yield f' <code class="address">{address}</code></figcaption><div class="heads">'
    several = len(pattern.patterns) > 1
    for head in pattern.patterns:
        yield from _head(head, pattern.labels, several)
    yield "</div>"
    text = _(
        "A row is a position that asks, a column one that it looks at; the deeper the colour, "
        "the larger its share."
    )
    yield f'<p class="quiet small">{escape(text)}</p>'
    if pattern.left_out:
        told = _("left out: {what}").format(what=pattern.left_out)
        yield f'<p class="left-out">{escape(told)}</p>'
    yield "</figure>"


def _head(head: HeadPattern, labels: Sequence[str], several: bool) -> Iterator[str]:
    count = head.values.shape[0]
    keys = head.values.shape[1]
    named = len(labels) == keys <= MOST_LABELS
    numbered = keys <= MOST_NUMBERED
    square = SMALL_SQUARE if several else SQUARE
    size = square if numbered else max(6, min(square // 2, 360 // keys))
    side = max((len(label) for label in labels), default=0) * 6.6 + 14 if named else 8
    high = 20 if named and numbered else 4
    title = _("head {head}").format(head=head.head)
    told = f"{title}: {_looks(head.values, labels)}"
    yield '<div class="head">'
    if several:
        yield f'<p class="title">{escape(title)}</p>'
    wide, tall = side + keys * size + 2, high + count * size + 2
    yield (
        f'<svg class="looks" role="img" aria-label="{escape(told)}" width="{wide:.0f}"'
        f' height="{tall:.0f}" viewBox="0 0 {wide:.0f} {tall:.0f}">'
    )
    for row in range(count):
        y = high + row * size
        if named and row < len(labels):
            yield (
                f'<text class="side" x="{side - 7:.0f}" y="{y + size / 2 + 4:.0f}">'
                f"{escape(labels[row])}</text>"
            )
        for column in range(keys):
            yield from _look(
                float(head.values[row, column]), side + column * size, y, size, numbered
            )
    if named and numbered:
        for column, label in enumerate(labels):
            x = side + (column + 0.5) * size
            word = label.split(" ", 1)[-1]
            if len(word) * LETTER > size:
                word = word[: int(size / LETTER) - 1] + "…"
            yield f'<text class="top" x="{x:.0f}" y="13">{escape(word)}</text>'
    yield "</svg></div>"


def _look(share: float, x: float, y: float, size: float, numbered: bool) -> Iterator[str]:
    """A cell: the deeper its colour, the larger the share."""
    frame = f'x="{x:.1f}" y="{y:.1f}" width="{size}" height="{size}"'
    if np.isnan(share):
        yield f'<rect class="frame" {frame}/>'
        yield f'<path class="mask" d="M{x + 2:.1f} {y + size - 2:.1f}l{size - 4} -{size - 4}"/>'
        return
    level = int(np.searchsorted(SHARES, share, side="right"))
    yield f'<rect class="s{level}" {frame}/>'
    if numbered:
        text = escape(localised(f"{share:.2f}"))
        middle, line = x + size / 2, y + size / 2 + 4
        yield f'<text class="number on{level}" x="{middle:.0f}" y="{line:.0f}">{text}</text>'


def _looks(values: Floats, labels: Sequence[str]) -> str:
    """Where each position looks most, for those who hear the page."""
    said = []
    for row in range(min(values.shape[0], MOST_LABELS)):
        if np.isnan(values[row]).all():
            continue
        most = int(np.nanargmax(values[row]))
        names = [labels[i] if i < len(labels) else str(i) for i in (row, most)]
        share = round(float(values[row, most]) * 100)
        said.append(
            _("{query} looks at {key} with {share} %").format(
                query=names[0], key=names[1], share=share
            )
        )
    return "; ".join(said)


def short_number(value: float) -> str:
    """Three digits, as the language writes them."""
    return localised(f"{value:.3g}")
