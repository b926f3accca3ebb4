"""The inside of a passage: its sentences, formulas, remarks and parts, in the order of reading.

Of a model whose tensors are shown as colours a passage would be long: the lines that lead to its
last one, lines of one kind but the first, and tables that nobody asked for are folded away.
Nothing is left out; paper shows all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from byhand.document.book import Passage
from byhand.document.media.html import parts
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.prose import prose, remark
from byhand.document.parts import (
    AttentionPattern,
    Formula,
    HeatStrip,
    NumberTable,
    Part,
    StatisticsTable,
)
from byhand.language import _

FEW = 3  # formulas of one kind, which do not lead to each other
Laws = tuple[Formula, ...]
_CLASSES = {
    "tables": "beside-each-other",
    "strips": "beside-each-other",
    "asked": "beside-each-other",
    "words": "givens",
}


def passage_body(passage: Passage, pen: Inscriber) -> Iterator[str]:
    """What a passage says and shows, without its heading and its figure."""
    if passage.sentences:
        yield f"<p>{' '.join(map(prose, passage.sentences))}</p>"
    before, formulas, after = _split(passage)
    shown = passage.told_once
    if before:
        addresses = {law.address for law in before}
        strips = [p for p in shown if isinstance(p, HeatStrip) and p.address in addresses]
        shown = tuple(part for part in shown if part not in strips)
        yield from _lines_before(before, strips, pen)
    for law in formulas:
        yield from parts.formula(law, pen)
    if after:
        yield from _summary(_("the other lines: {names}").format(names=_names(after)))
        for law in after:
            yield from parts.formula(law, pen)
        yield "</details>"
    yield from map(remark, passage.remarks)
    brief = any(map(_coloured, passage.show))
    for kind, group in groupby(shown, _beside):
        together = list(group)
        if brief and kind == "tables":
            yield from _folded_tables(together, pen)
            continue
        yield f'<div class="{_CLASSES[kind]}">' if kind else ""
        for part in together:
            yield from parts.part_lines(part, pen)
        yield "</div>" if kind else ""


def _beside(part: Part) -> str:
    """What stands beside its like."""
    if isinstance(part, NumberTable):
        return "words" if part.word else "asked" if part.asked else "tables"
    return "strips" if isinstance(part, HeatStrip) else ""


def _coloured(part: Part) -> bool:
    """Whether a part shows a tensor that is too large for a table."""
    if isinstance(part, AttentionPattern):
        return not any(pattern.numbers for pattern in part.patterns)
    return isinstance(part, HeatStrip | StatisticsTable)


def _split(passage: Passage) -> tuple[Laws, Laws, Laws]:
    """The formulas that are folded away, those that stand open, and those folded behind them.

    Many lead to the last one; a few are of one kind, of which the first tells all.
    """
    laws = passage.formulas
    if not any(map(_coloured, passage.show)):
        return (), laws, ()
    return (laws[:-1], laws[-1:], ()) if len(laws) > FEW else ((), laws[:1], laws[1:])


def _names(laws: Laws) -> str:
    return ", ".join(law.address.rpartition(".")[2] for law in laws)


def _lines_before(formulas: Laws, strips: Sequence[HeatStrip], pen: Inscriber) -> Iterator[str]:
    yield from _summary(_("the lines before: {names}").format(names=_names(formulas)))
    for law in formulas:
        yield from parts.formula(law, pen)
        for strip in strips:
            if strip.address == law.address:
                yield from parts.part_lines(strip, pen)
    yield "</details>"


def _folded_tables(tables: Sequence[Part], pen: Inscriber) -> Iterator[str]:
    known = [table for table in tables if isinstance(table, NumberTable)]
    names = ", ".join(dict.fromkeys(table.title or table.address for table in known))
    yield from _summary(_("numbers of {names}").format(names=names))
    yield '<div class="beside-each-other">'
    for table in tables:
        yield from parts.part_lines(table, pen)
    yield "</div></details>"


def _summary(text: str) -> Iterator[str]:
    yield f'<details class="folded"><summary>{escape(text)}</summary>'
