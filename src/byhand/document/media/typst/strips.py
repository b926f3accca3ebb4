"""Tensors as colours on paper: heat strips, and the attention of each head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.colours import MASKED, panels, runs, told
from byhand.document.media.typst.quoting import array, call, content, string, words
from byhand.document.media.wording import left_out_words
from byhand.document.numerals import localised, short_number
from byhand.document.palette import HEAT, LIGHT
from byhand.document.parts import AttentionPattern, Floats, HeadPattern, HeatStrip
from byhand.document.words import axes_text
from byhand.language import _

COLOURS = {level - 4: LIGHT[name] for level, name in enumerate(HEAT)} | {MASKED: LIGHT["card"]}


def heat_strip(strip: HeatStrip) -> str:
    """The strip (one for each head), its caption, and the meaning of its colours."""
    named = {} if not strip.left_out else {"left_out": left_out(strip.left_out)}
    return call(
        "heat-strip",
        words(strip.title) if strip.title else "none",
        f"address({string(strip.address)})",
        f"small({string(axes_text(strip.axes, strip.shape))})",
        array(_panel(strip, *panel) for panel in panels(strip)),
        string(short_number(strip.reach)),
        **named,
    )


def _panel(strip: HeatStrip, title: str, values: Floats, labels: Sequence[str]) -> str:
    high, wide = values.shape
    return array(
        [
            words(title) if title else "none",
            array(map(words, labels)),
            string(picture(values, strip.reach)),
            str(wide),
            str(high),
            words(told(strip, values, title)),
        ]
    )


def left_out(text: str, command: str = "") -> str:
    """What is not shown here, and how to see it."""
    said = content(words(left_out_words(text)))
    named = {"command": string(command)} if command else {}
    return call("left-out", said, **named)


def picture(values: Floats, reach: float) -> str:
    """The cells as a drawing: one path for each colour, since many squares print slowly."""
    high, wide = values.shape
    paths: dict[int, list[str]] = {}
    for level, row, column, length in runs(values, reach):
        paths.setdefault(level, []).append(f"M{column} {row}h{length}v1h-{length}z")
    drawn = "".join(
        f'<path fill="{COLOURS[level]}" d="{"".join(pieces)}"/>'
        for level, pieces in sorted(paths.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}"'
        f' preserveAspectRatio="none" shape-rendering="crispEdges">{drawn}</svg>'
    )


def attention_pattern(part: AttentionPattern) -> str:
    """A square for each head, with deeper colours for larger weights."""
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
