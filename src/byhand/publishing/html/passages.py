"""The inside of a passage: its sentences, formulas, remarks and parts, in the order of reading.

Of a model whose tensors are shown as colours a passage would be long: the lines that lead to its
last one, and all tables but the first, are folded away.  Nothing is left out; paper shows all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from byhand.language import _
from byhand.publishing.book import Passage
from byhand.publishing.html import parts
from byhand.publishing.html.numbers import Inscriber
from byhand.publishing.html.prose import prose, remark
from byhand.publishing.parts import (
    AttentionPattern,
    Formula,
    HeatStrip,
    NumberTable,
    Part,
    StatisticsTable,
)

FEW = 3  # formulas that stand open in any case


def passage_body(passage: Passage, pen: Inscriber) -> Iterator[str]:
    """What a passage says and shows, without its heading and its figure."""
    if passage.sentences:
        yield f"<p>{' '.join(map(prose, passage.sentences))}</p>"
    before, formulas = _split(passage)
    shown = passage.show
    if before:
        addresses = {law.address for law in before}
        strips = [p for p in shown if isinstance(p, HeatStrip) and p.address in addresses]
        shown = tuple(part for part in shown if part not in strips)
        yield from _lines_before(before, strips, pen)
    for law in formulas:
        yield from parts.formula(law, pen)
    yield from map(remark, passage.remarks)
    brief = any(map(_coloured, passage.show))
    for kind, group in groupby(shown, _beside):
        yield '<div class="beside-each-other">' if kind else ""
        together = list(group)
        first = 1 if brief and kind == "tables" else len(together)
        for part in together[:first]:
            yield from parts.part_lines(part, pen)
        yield "</div>" if kind else ""
        if together[first:]:
            yield from _more_tables(together[first:], pen)


def _beside(part: Part) -> str:
    """What stands beside its like."""
    if isinstance(part, NumberTable):
        return "tables"
    return "strips" if isinstance(part, HeatStrip) else ""


def _coloured(part: Part) -> bool:
    """Whether a part shows a tensor that is too large for a table."""
    if isinstance(part, AttentionPattern):
        return not any(pattern.numbers for pattern in part.patterns)
    return isinstance(part, HeatStrip | StatisticsTable)


def _split(passage: Passage) -> tuple[tuple[Formula, ...], tuple[Formula, ...]]:
    """The formulas that are folded away, and those that stand open."""
    long = len(passage.formulas) > FEW and any(map(_coloured, passage.show))
    cut = len(passage.formulas) - 1 if long else 0
    return passage.formulas[:cut], passage.formulas[cut:]


def _lines_before(
    formulas: Sequence[Formula], strips: Sequence[HeatStrip], pen: Inscriber
) -> Iterator[str]:
    names = ", ".join(law.address.rpartition(".")[2] for law in formulas)
    yield from _summary(_("the lines before: {names}").format(names=names))
    for law in formulas:
        yield from parts.formula(law, pen)
        for strip in strips:
            if strip.address == law.address:
                yield from parts.part_lines(strip, pen)
    yield "</details>"


def _more_tables(tables: Sequence[Part], pen: Inscriber) -> Iterator[str]:
    names = [table.title for table in tables if isinstance(table, NumberTable) and table.title]
    text = (
        _("numbers of {names}").format(names=", ".join(names))
        if len(names) == len(tables)
        else _("more numbers")
    )
    yield from _summary(text)
    yield '<div class="beside-each-other">'
    for table in tables:
        yield from parts.part_lines(table, pen)
    yield "</div></details>"


def _summary(text: str) -> Iterator[str]:
    yield f'<details class="folded"><summary>{escape(text)}</summary>'
