"""Tensors as colours: heat strips, and the attention of each head.

Colours are symmetric about 0, in few levels, so that a strip needs few shapes.  Each strip carries
its values as 16-bit numbers, which the script shows under the pointer and for the arrow keys.
Screen readers get a sentence.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence

import numpy as np

from byhand.document.media.colours import EDGES, MASKED, MOST_LABELS, panels, runs, told
from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.prose import address
from byhand.document.media.wording import left_out_words
from byhand.document.numerals import localised, short_number
from byhand.document.parts import AttentionPattern, Floats, HeadPattern, HeatStrip
from byhand.document.step_names import captioned
from byhand.document.words import axes_text
from byhand.language import _

STEPS = 32767  # carried values as shares of the reach; one below the least means masked
LARGEST_CELL, WIDEST, TALLEST = 22, 640, 420  # pixels
MOST_BESIDE, ALL_BESIDE = 4, 560  # heads side by side, and pixels for all of them
LOWEST_LABELLED = 14.0  # pixels of a row with a label
MOST_NUMBERED = 8  # positions of a pattern whose cells show numbers
SQUARE, SMALL_SQUARE = 42, 31  # pixels of a pattern's cell: of one head, of several
LETTER = 6.9  # pixels of a letter above a column
SHARES = (0.1, 0.3, 0.55, 0.8)  # weights at which deeper colours begin


def heat_strip(strip: HeatStrip) -> Markup:
    """A figure: the strip (one for each head), its caption, and the meaning of its colours."""
    drawn = (_panel(strip, block, *panel) for block, panel in enumerate(panels(strip)))
    axes = element("span", axes_text(strip.axes, strip.shape), class_="quiet")
    readout = element("p", class_="readout", aria_live="polite")
    return element(
        "figure",
        _caption(captioned(strip.title, strip.address, strip.kind), strip.address, " ", axes),
        element("div", *drawn, class_="strips several" if strip.blocks > 1 else "strips"),
        element("div", *_scale(strip), readout, class_="under"),
        class_="strip",
    )


def _caption(name: str, where: str, *more: str) -> Markup:
    named = element("span", name, class_="name")
    return element("figcaption", named, " ", address(where), *more)


def _panel(
    strip: HeatStrip, block: int, title: str, values: Floats, labels: Sequence[str]
) -> Markup:
    high, wide = values.shape
    room = ALL_BESIDE / min(strip.blocks, MOST_BESIDE) if strip.blocks > 1 else WIDEST
    cell = max(min(LARGEST_CELL, room / wide, TALLEST / high), 1.0)
    cell_high = max(cell, LOWEST_LABELLED) if labels or high <= 3 else cell
    inside = [element("p", title, class_="title")] if title else []
    if labels and not block:  # the other heads have the same rows
        rows = f"grid-auto-rows:{cell_high:.1f}px"
        marks = (element("span", label) for label in labels)
        inside.append(element("div", *marks, class_="labels", aria_hidden="true", style=rows))
    heat = element(
        "svg",
        *_cells(values, strip.reach),
        class_="heat",
        role="img",
        aria_label=told(strip, values, title),
        viewBox=f"0 0 {wide} {high}",
        preserveAspectRatio="none",
        style=f"width:{cell * wide:.0f}px;height:{cell_high * high:.0f}px",
        **_carried(strip, values, block),
    )
    return element("div", *inside, heat, class_="panel")


def _cells(values: Floats, reach: float) -> Iterator[Markup]:
    """One path for each level: a stroke as high as a row through each run of its cells."""
    paths: dict[int, list[str]] = {}
    ends: dict[int, tuple[int, int]] = {}  # the end of each level's stroke
    for level, row, column, length in runs(values, reach):
        if level in ends:
            x, y = ends[level]
            paths[level].append(f"m{column - x} {row - y}h{length}")
        else:
            paths[level] = [f"M{column} {row}.5h{length}"]
        ends[level] = column + length, row
    for level in sorted(paths):
        yield element("path", class_=_level_class(level), d="".join(paths[level]))


def _level_class(level: int) -> str:
    if level == MASKED:
        return "none"
    return f"{'n' if level < 0 else 'p'}{abs(level)}" if level else "z"


def _carried(strip: HeatStrip, values: Floats, block: int) -> dict[str, str]:
    """The data for the script: the strip's place in its tensor, and its values."""
    scaled = np.nan_to_num(values.astype(np.float64)) / (strip.reach or 1.0) * STEPS
    steps = np.where(np.isnan(values), -STEPS - 1, np.clip(np.round(scaled), -STEPS, STEPS))
    lead = f"{block}," if strip.blocks > 1 else ""
    rows = "{row}," if len(strip.shape) > 1 else ""
    sizes = (*strip.shape[-2:],) if len(strip.shape) > 1 else (1, *strip.shape[-1:])
    return {
        "data_address": f"{strip.address}[{lead}{rows}{{column}}]",
        "data_reach": f"{strip.reach:.9g}",
        "data_pooled": f"{strip.pooled[0]} {strip.pooled[1]}",
        "data_sizes": " ".join(map(str, sizes)),
        "data_values": b64encode((steps + 32768).astype("<u2").tobytes()).decode(),
    }


def _scale(strip: HeatStrip) -> Iterator[Markup]:
    """The colour scale, and what is left out."""
    reach, ends = short_number(strip.reach), len(EDGES)
    squares = (element("i", class_=_level_class(level)) for level in range(-ends, ends + 1))
    yield element(
        "p",
        element("span", f"−{reach}"),
        element("span", *squares, class_="colours", aria_hidden="true"),
        element("span", reach),
        class_="scale",
    )
    if strip.pooled != (1, 1):
        text = _("A cell stands for {shape} entries and shows the one furthest from 0.")
        shape = f"{strip.pooled[0]} × {strip.pooled[1]}"
        yield element("p", text.format(shape=shape), class_="left-out")
    yield _left_out(strip.left_out)


def _left_out(what: str) -> Markup:
    return element("p", left_out_words(what), class_="left-out") if what else Markup()


# ------------------------------------------------------------------ where the heads look


def attention_pattern(pattern: AttentionPattern) -> Markup:
    """One square of cells for each head: rows are queries, columns are keys."""
    several = len(pattern.patterns) > 1
    text = _(
        "A row is a position that looks, a column one that it looks at; the deeper the "
        "colour, the larger the attention weight."
    )
    keys = pattern.keys or pattern.labels
    heads = (_head(head, pattern.labels, keys, several) for head in pattern.patterns)
    return element(
        "figure",
        _caption(_("Who looks at whom"), pattern.address),
        element("div", *heads, class_="heads"),
        element("p", text, class_="quiet small"),
        _left_out(pattern.left_out),
        class_="pattern",
    )


def _head(head: HeadPattern, labels: Sequence[str], across: Sequence[str], several: bool) -> Markup:
    count, keys = head.values.shape
    named = len(labels) == count <= MOST_LABELS and len(across) == keys <= MOST_LABELS
    numbered = keys <= MOST_NUMBERED
    square = SMALL_SQUARE if several else SQUARE
    size = square if numbered else max(6, min(square // 2, 360 // keys))
    side = max((len(label) for label in labels), default=0) * 6.6 + 14 if named else 8
    high = 20 if named and numbered else 4
    drawn: list[Markup] = []
    for row in range(count):
        y = high + row * size
        if named and row < len(labels):
            at = {"x": f"{side - 7:.0f}", "y": f"{y + size / 2 + 4:.0f}"}
            drawn.append(element("text", labels[row], class_="side", **at))
        for column in range(keys):
            share = float(head.values[row, column])
            drawn += _look(share, side + column * size, y, size, numbered)
    if named and numbered:
        for column, label in enumerate(across):
            x = f"{side + (column + 0.5) * size:.0f}"
            word = label.split(" ", 1)[-1]
            if len(word) * LETTER > size:
                word = word[: int(size / LETTER) - 1] + "…"
            drawn.append(element("text", word, class_="top", x=x, y=13))
    title = _("head {head}").format(head=head.head)
    wide, tall = f"{side + keys * size + 2:.0f}", f"{high + count * size + 2:.0f}"
    label = f"{title}: {_looks(head.values, labels, across)}"
    box = {"width": wide, "height": tall, "viewBox": f"0 0 {wide} {tall}"}
    looks = element("svg", *drawn, class_="looks", role="img", aria_label=label, **box)
    above = element("p", title, class_="title") if several else ""
    return element("div", above, looks, class_="head")


def _look(share: float, x: float, y: float, size: float, numbered: bool) -> Iterator[Markup]:
    """A cell: a deeper colour for a larger weight."""
    side = f"{size:g}"
    frame = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": side, "height": side}
    if np.isnan(share):
        yield element("rect", class_="frame", **frame)
        line = f"M{x + 2:.1f} {y + size - 2:.1f}l{size - 4} -{size - 4}"
        yield element("path", class_="mask", d=line)
        return
    level = int(np.searchsorted(SHARES, share, side="right"))
    yield element("rect", class_=f"s{level}", **frame)
    if numbered:
        middle = {"x": f"{x + size / 2:.0f}", "y": f"{y + size / 2 + 4:.0f}"}
        yield element("text", localised(f"{share:.2f}"), class_=f"number on{level}", **middle)


def _looks(values: Floats, labels: Sequence[str], across: Sequence[str]) -> str:
    """Where each position looks most, for screen readers."""
    said = []
    for row in range(min(values.shape[0], MOST_LABELS)):
        if np.isnan(values[row]).all():
            continue
        most = int(np.nanargmax(values[row]))
        sides = ((labels, row), (across, most))
        names = [some[i] if i < len(some) else str(i) for some, i in sides]
        share = round(float(values[row, most]) * 100)
        said.append(
            _("{query} gives {key} {share} % of its attention").format(
                query=names[0], key=names[1], share=share
            )
        )
    return "; ".join(said)
