"""Tensors as colours on paper: heat strips, and where each head looks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from byhand.document.media.typst.quoting import array, call, content, string, words
from byhand.document.numerals import localised
from byhand.document.palette import HEAT, LIGHT
from byhand.document.parts import (
    AttentionPattern,
    Floats,
    HeadPattern,
    HeatStrip,
)
from byhand.document.words import axes_text
from byhand.language import _

EDGES = (0.04, 0.2, 0.4, 0.65)  # of the reach: where a deeper colour begins
MASKED = len(HEAT)
COLOURS = (*(LIGHT[name] for name in HEAT), LIGHT["card"])  # by level, the last for what is masked
MOST_LABELS = 24


def heat_strip(strip: HeatStrip) -> str:
    """The strip (one a head), what it is, and what its colours mean."""
    values = np.atleast_2d(strip.values)
    high = values.shape[0] // strip.blocks
    panels = [
        _panel(strip, values[block * high : (block + 1) * high], block)
        for block in range(strip.blocks)
    ]
    named = {} if not strip.left_out else {"left_out": left_out(strip.left_out)}
    return call(
        "heat-strip",
        words(strip.title) if strip.title else "none",
        f"address({string(strip.address)})",
        f"small({string(axes_text(strip.axes, strip.shape))})",
        array(panels),
        string(short_number(strip.reach)),
        **named,
    )


def left_out(text: str, command: str = "") -> str:
    """What is not shown here, and how to see it."""
    said = content(words(_("left out: {what}").format(what=text)))
    named = {"command": string(command)} if command else {}
    return call("left-out", said, **named)


def _panel(strip: HeatStrip, values: Floats, block: int) -> str:
    high, wide = values.shape
    labelled = len(strip.labels) == high <= MOST_LABELS
    head = _("head {head}").format(head=block) if strip.blocks > 1 else ""
    return array(
        [
            words(head) if head else "none",
            array(map(words, strip.labels if labelled else ())),
            string(picture(values, strip.reach)),
            str(wide),
            str(high),
            words(_told(strip, values, head)),
        ]
    )


def _told(strip: HeatStrip, values: Floats, head: str) -> str:
    """What the strip shows, for those who hear the page."""
    known = values[~np.isnan(values)]
    name = " ".join(filter(None, (strip.title or strip.address, head)))
    if not known.size:
        return name
    return _("{what}: from {least} to {greatest}").format(
        what=name, least=short_number(float(known.min())), greatest=short_number(float(known.max()))
    )


def picture(values: Floats, reach: float) -> str:
    """The cells as a drawing: one path a colour, since thousands of squares are slow to print."""
    high, wide = values.shape
    shares = np.abs(np.nan_to_num(values.astype(np.float64))) / (reach or 1.0)
    depth = np.searchsorted(EDGES, shares, side="right") * np.sign(np.nan_to_num(values))
    levels = np.where(np.isnan(values), MASKED, depth + 4).astype(int)
    paths: dict[int, list[str]] = {}
    for row, across in enumerate(levels.tolist()):
        column = 0
        for level, run in groupby(across):
            length = len(list(run))
            paths.setdefault(level, []).append(f"M{column} {row}h{length}v1h-{length}z")
            column += length
    drawn = "".join(
        f'<path fill="{COLOURS[level]}" d="{"".join(pieces)}"/>'
        for level, pieces in sorted(paths.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}"'
        f' preserveAspectRatio="none" shape-rendering="crispEdges">{drawn}</svg>'
    )


def attention_pattern(part: AttentionPattern) -> str:
    """A square a head: the deeper its colours, the larger the shares."""
    heads = array(
        array([words(_("head {head}").format(head=head.head)), array(_rows(head))])
        for head in part.patterns
    )
    named = {"several": "true" if len(part.patterns) > 1 else "false"}
    if part.left_out:
        named["left_out"] = left_out(part.left_out)
    return call("pattern", array(map(words, part.labels)), heads, **named)


def _rows(head: HeadPattern) -> Iterator[str]:
    for row in head.values.tolist():
        yield array(
            "none" if value != value else f"({value:.4f}, {string(localised(f'{value:.2f}'))})"
            for value in row
        )


def short_number(value: float) -> str:
    """Three digits, as the language writes them."""
    return localised(f"{value:.3g}")
