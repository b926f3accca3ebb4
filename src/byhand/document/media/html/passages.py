"""The contents of a passage: its sentences, formulas, remarks and parts, in reading order.

With tensors as colours, a passage would be long.  So formulas that lead to the last one, repeated
kinds of formulas, and unrequested tables are folded.  Nothing is left out, and paper shows
everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from byhand.document.book import Passage
from byhand.document.media.html.markup import Markup, element, joined
from byhand.document.media.html.numbers import Inscriber
from byhand.document.media.html.parts import draw, formula
from byhand.document.media.html.prose import prose, remark
from byhand.document.parts import AttentionPattern, Formula, HeatStrip, NumberTable, Part
from byhand.language import _

FEW = 3  # formulas of one kind, which do not lead to each other
BESIDE = "beside-each-other"
Laws = tuple[Formula, ...]


def passage_body(passage: Passage, pen: Inscriber) -> Iterator[Markup]:
    """The contents of a passage, without its heading and its figure."""
    if passage.sentences:
        yield element("p", joined(map(prose, passage.sentences), " "))
    brief = passage.brief or any(map(_coloured, passage.show))
    before, laws, after = _split(passage.formulas) if brief else ((), passage.formulas, ())
    shown = passage.told_once
    if before:
        addresses = {law.address for law in before}
        strips = [p for p in shown if isinstance(p, HeatStrip) and p.address in addresses]
        shown = tuple(part for part in shown if part not in strips)
        title = _("the lines before: {names}").format(names=_names(before))
        yield _folded(title, *_lines_before(before, strips, pen))
    yield from (formula(law, pen) for law in laws)
    if after:
        title = _("the other lines: {names}").format(names=_names(after))
        yield _folded(title, *(formula(law, pen) for law in after))
    yield from map(remark, passage.remarks)
    for kind, group in groupby(shown, _beside):
        together = list(group)
        drawn = joined(piece for part in together for piece in draw(part, pen))
        if brief and kind == "tables":
            known = [part for part in together if isinstance(part, NumberTable)]
            names = ", ".join(dict.fromkeys(table.title or table.address for table in known))
            title = _("numbers of {names}").format(names=names)
            yield _folded(title, element("div", drawn, class_=BESIDE))
        elif kind:
            yield element("div", drawn, class_="givens" if kind == "words" else BESIDE)
        else:
            yield drawn


def _beside(part: Part) -> str:
    """The group of parts that stand side by side with this one."""
    if isinstance(part, NumberTable):
        return "words" if part.word else "asked" if part.asked else "tables"
    return "strips" if isinstance(part, HeatStrip) else ""


def _coloured(part: Part) -> bool:
    """Whether a part shows a tensor that is too large for a table."""
    if isinstance(part, AttentionPattern):
        return not any(pattern.numbers for pattern in part.patterns)
    return isinstance(part, HeatStrip)


def _split(laws: Laws) -> tuple[Laws, Laws, Laws]:
    """The formulas folded before the open ones, the open ones, and those folded after them.

    Many formulas lead to the last one; a few are of one kind, and the first is enough.
    """
    return (laws[:-1], laws[-1:], ()) if len(laws) > FEW else ((), laws[:1], laws[1:])


def _names(laws: Laws) -> str:
    return ", ".join(law.address.rpartition(".")[2] for law in laws)


def _lines_before(laws: Laws, strips: Sequence[HeatStrip], pen: Inscriber) -> Iterator[Markup]:
    for law in laws:
        yield formula(law, pen)
        for strip in strips:
            if strip.address == law.address:
                yield from draw(strip, pen)


def _folded(title: str, *inside: Markup) -> Markup:
    return element("details", element("summary", title), *inside, class_="folded")
