"""An explanation as one HTML page that needs nothing else: no network, no library, no script.

The same sections as on the terminal, in full, with the plane drawn.  The look is that of the
report of a marking: its style stands beside `render.report`, what bars and planes need is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from byhand.document.compose.explanation.parts import (
    STRONG,
    Bar,
    Bars,
    Block,
    Drawing,
    Grid,
    Head,
    Section,
    Told,
)
from byhand.document.compose.explanation.sections import head, sections
from byhand.document.media.html.style import style
from byhand.language import _

if TYPE_CHECKING:
    from byhand.explaining import Explanation

KINDS = {"fact": "fact", "open": "boxed unsupported", "closing": "boxed carried"}
SIGNS = {"fact": "•", "open": "?", "closing": "="}


def page(found: Explanation, only: Sequence[str] = (), *, every: bool = False) -> str:
    """The whole page."""
    shown = tuple(sections(found, only, every=every, full=True, pictures=True))
    return "\n".join(_lines(head(found, only), shown)) + "\n"


def _lines(head: Head, sections: Sequence[Section]) -> Iterator[str]:
    title = _("{model}: what the numbers say").format(model=head.name)
    skip = escape(_("to the first section"))
    yield "<!doctype html>"
    yield f'<html lang="{_("en")}">'
    yield '<head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>"
    yield f"<style>{style('report.css', 'explanation_page.css')}</style></head><body>"
    if sections:
        yield f'<a class="skip" href="#{sections[0].name}">{skip}</a>'
    yield f"<header><h1><small>byhand explain</small>{escape(head.name)}</h1>"
    if head.summary:
        yield f'<div class="banner right"><p>{escape(head.summary)}</p></div>'
    yield '<dl class="facts">'
    for name, fact in head.facts:
        yield f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>"
    yield "</dl>"
    label = escape(_("sections"))
    yield f'<nav aria-label="{label}"><ul class="texts">'
    for section in sections:
        yield f'<li><a class="carried" href="#{section.name}">{escape(section.title)}</a></li>'
    yield "</ul></nav></header><main>"
    for section in sections:
        yield from _section(section)
    yield "</main></body></html>"


def _section(section: Section) -> Iterator[str]:
    yield f'<section id="{section.name}"><h2>{escape(section.title)}</h2>'
    if section.about:
        yield f'<p class="quiet">{escape(section.about)}</p>'
    told: list[Told] = []
    for block in section.blocks:
        if isinstance(block, Told):
            told.append(block)
            continue
        yield from _sentences(told)
        told.clear()
        yield from _block(block)
    yield from _sentences(told)
    yield "</section>"


def _sentences(sentences: Sequence[Told]) -> Iterator[str]:
    """Leads and remarks are paragraphs; the facts between them are lists."""
    for listed, group in groupby(sentences, key=lambda told: told.kind in SIGNS):
        if not listed:
            for told in group:
                kind = "lead" if told.kind == "lead" else "quiet small"
                yield f'<p class="{kind}">{escape(told.text)}</p>'
            continue
        yield '<ul class="told">'
        for told in group:
            sign = f'<span class="sign" aria-hidden="true">{SIGNS[told.kind]}</span>'
            yield f'<li class="{KINDS[told.kind]}">{sign} {escape(told.text)}</li>'
        yield "</ul>"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Bars():
            yield from _bars(block)
        case Grid():
            yield from _grid(block)
        case Drawing():
            yield f"<figure>{block.svg}"
            if block.about:
                yield f"<figcaption>{escape(block.about)}</figcaption>"
            yield "</figure>"


def _bars(found: Bars) -> Iterator[str]:
    sizes = [bar.size for bar in found.bars if bar.kind != "sum"]
    low = max(0.0, -min(sizes, default=0.0))
    high = max(0.0, max(sizes, default=0.0))
    axis = low / (low + high) if low + high else 0.0
    yield '<div class="wide" tabindex="0" role="region"'
    yield f' aria-label="{escape(found.title or _("terms"))}"><table class="bars">'
    if found.title:
        yield f"<caption>{escape(found.title)}</caption>"
    yield "<thead><tr>"
    for name, kind in ((_("term"), ""), (_("adds"), "number")):
        yield f'<th scope="col" class="{kind}">{escape(name)}</th>'
    yield '<td class="drawn"></td></tr></thead><tbody>'
    for bar in found.bars:
        yield _bar(bar, axis, low + high)
    yield "</tbody></table></div>"
    yield from _sentences(found.closing)


def _bar(bar: Bar, axis: float, span: float) -> str:
    """A row; the bar is a box from the axis to the left or to the right, in per cent."""
    length = abs(bar.size) / span if span else 0.0
    start = axis - length if bar.size < 0 else axis
    sign = "minus" if bar.size < 0 else "plus"
    drawn = ""
    if bar.kind != "sum":
        style = f"--start:{start:.4f};--length:{length:.4f}"
        drawn = f'<i class="{sign}" style="{style}"></i>'
    about = f' <span class="quiet">{escape(bar.about)}</span>' if bar.about else ""
    title = f' title="{escape(bar.address)}"' if bar.address else ""
    kind = bar.kind + (" largest" if bar.largest else "")
    return (
        f'<tr class="{kind}"><td{title}>'
        f'<span class="address">{escape(bar.label)}</span>{about}</td>'
        f'<td class="number">{escape(bar.value)}</td>'
        f'<td class="drawn" style="--axis:{axis:.4f}">{drawn}</td></tr>'
    )


def _grid(grid: Grid) -> Iterator[str]:
    label = escape(grid.title or ", ".join(filter(None, grid.heads)))
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
    yield '<table class="entries">'
    if grid.title:
        yield f"<caption>{escape(grid.title)}</caption>"
    if any(grid.heads):
        yield "<thead><tr>"
        for text, right in zip(grid.heads, grid.right, strict=True):
            kind = "number" if right else ""
            yield f'<th scope="col" class="{kind}">{escape(text)}</th>' if text else "<td></td>"
        yield "</tr></thead>"
    yield "<tbody>"
    for row, texts in enumerate(grid.rows):
        title = f' title="{escape(grid.addresses[row])}"' if grid.addresses else ""
        cells = []
        for column, (text, right) in enumerate(zip(texts, grid.right, strict=True)):
            kind = " ".join(
                name
                for name, there in (("number", right), ("strong", (row, column) in grid.strong))
                if there
            )
            sign = STRONG if (row, column) in grid.strong else ""
            cells.append(f'<td class="{kind}">{escape(text)}{sign}</td>')
        yield f"<tr{title}>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if grid.note:
        yield f'<p class="quiet small">{escape(grid.note)}</p>'
    if grid.left_out:
        text = _("left out: {what}").format(what=grid.left_out)
        yield f'<p class="quiet small">… {escape(text)}</p>'
