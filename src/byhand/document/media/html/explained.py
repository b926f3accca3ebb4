"""The parts of the chapter on what the numbers say as HTML: sums with bars, the lens, drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from byhand.document.explained_parts import (
    ExplainedPart,
    Finding,
    LensLine,
    LensTable,
    Picture,
    TermLine,
    Terms,
    TextTable,
)
from byhand.document.media.html.numbers import Inscriber, register_mark
from byhand.document.media.html.prose import left_out, prose, sentence
from byhand.document.parts import Cell, Number
from byhand.language import _

SETTLED = "◂"


def explained_part(part: ExplainedPart, pen: Inscriber) -> Iterator[str]:
    """One of these parts."""
    match part:
        case Terms():
            yield from terms(part, pen)
        case LensTable():
            yield from lens_table(part, pen)
        case Finding():
            yield from finding(part)
        case TextTable():
            yield from text_table(part)
        case Picture():
            yield f'<figure class="drawing">{part.svg}</figure>'


# ------------------------------------------------------------------ sums


def terms(part: Terms, pen: Inscriber) -> Iterator[str]:
    """A row a term: its numbers, and a bar to the side of its sign."""
    sizes = [line.size for line in part.lines if line.kind != "sum"]
    low, high = max(0.0, -min(sizes, default=0.0)), max(0.0, max(sizes, default=0.0))
    span = low + high or 1.0
    heads = [_("term"), *part.tokens, *([part.compared] if part.compared else [])]
    yield from _head("terms", part.title, heads, [False, *[True] * (len(heads) - 1)], drawn=True)
    for line in part.lines:
        yield _term(line, low / span, span, pen)
    yield "</tbody></table></div>"
    for text in part.remarks:
        yield f'<p class="closes open"><span>{prose(sentence(text))}</span></p>'
    sign = '<span class="sign" aria-hidden="true">=</span>'
    text = prose(sentence(part.closing))
    yield f'<p class="closes {part.closes}">{sign}<span>{text}</span></p>'


def _term(line: TermLine, axis: float, span: float, pen: Inscriber) -> str:
    name = escape(line.name)
    label = f'<code class="address">{name}</code>' if line.kind == "term" else name
    about = f'<span class="about-it">{escape(line.about)}</span>' if line.about else ""
    cells = "".join(_number(number, pen) for number in line.numbers)
    if line.difference is not None:
        cells += _cell(line.difference, pen, "difference")
    drawn = ""
    if line.kind != "sum":
        length = abs(line.size) / span
        start = axis - length if line.size < 0 else axis
        sign = "minus" if line.size < 0 else "plus"
        drawn = f'<i class="{sign}" style="--start:{start:.4f};--length:{length:.4f}"></i>'
    kind = line.kind + " largest" * line.largest
    return (
        f'<tr class="{kind}"><th scope="row">{about}{label}</th>{cells}'
        f'<td class="signed" aria-hidden="true" style="--axis:{axis:.4f}">{drawn}</td></tr>'
    )


def _number(number: Number | Cell, pen: Inscriber) -> str:
    return _cell(number, pen) if isinstance(number, Cell) else pen.number(number)


def _cell(cell: Cell, pen: Inscriber, kind: str = "") -> str:
    """A number that has no address of its own."""
    shown = f'<span class="face">{pen.face(cell)}</span>{register_mark(cell.register)}'
    return f'<td class="n {cell.register} {kind}"><span class="plain">{shown}</span></td>'


# ------------------------------------------------------------------ the lens


def lens_table(part: LensTable, pen: Inscriber) -> Iterator[str]:
    """A row a step: who leads, how likely, and the logits that are compared."""
    placed = any(line.place for line in part.lines)
    heads = [_("after"), _("leads"), _("probability"), "", *part.tokens]
    heads += [_("place of {token}").format(token=part.tokens[0])] * placed
    right = [False, False, True, False, *[True] * (len(heads) - 4)]
    yield from _head("lens", part.title, heads, right)
    for line in part.lines:
        yield _lens_line(line, placed, len(heads), pen)
    yield "</tbody></table></div>"
    if part.note:
        sign = f'<span aria-hidden="true">{SETTLED}</span>'
        yield f'<p class="small quiet">{sign} {prose(part.note)}</p>'


def _lens_line(line: LensLine, placed: bool, columns: int, pen: Inscriber) -> str:
    step = f'<th scope="row"><code class="address">{escape(line.step)}</code></th>'
    if line.missing:
        told = prose(sentence(line.missing))
        return f'<tr>{step}<td colspan="{columns - 1}">{told}</td></tr>'
    mark = f'<span class="settled" aria-hidden="true">{SETTLED}</span>' if line.settled else ""
    chance = "<td></td>" if line.probability is None else _cell(line.probability, pen)
    bar = f'<td class="bar" aria-hidden="true"><i style="--share:{line.share:.4f}"></i></td>'
    cells = "".join(map(pen.number, line.logits))
    place = f'<td class="count">{escape(line.place)}</td>' if placed else ""
    kind = ' class="from-here"' if line.settled else ""
    return (
        f'<tr{kind}>{step}<td class="token">{escape(line.leader)}{mark}</td>'
        f"{chance}{bar}{cells}{place}</tr>"
    )


# ------------------------------------------------------------------ words, tables, drawings


def finding(part: Finding) -> Iterator[str]:
    """What is found, and below it what is known about it."""
    yield f'<div class="finding{" open" * part.open}">'
    if part.lead:
        yield f'<p class="lead">{prose(sentence(part.lead))}</p>'
    if part.told:
        items = "".join(f"<li>{prose(sentence(text))}</li>" for text in part.told)
        yield f"<ul>{items}</ul>"
    yield "</div>"


def text_table(part: TextTable) -> Iterator[str]:
    """A table to be read."""
    yield from _head("texts", part.title, part.heads, part.right)
    for at, row in enumerate(part.rows):
        first, *others = row
        cells = "".join(
            f'<td class="{_kind(part, at, column)}">{prose(text)}</td>'
            for column, text in enumerate(others, 1)
        )
        yield f'<tr><th scope="row">{_labelled(first)}</th>{cells}</tr>'
    yield "</tbody></table></div>"
    if part.note and part.strong:
        yield f'<p class="small quiet">{prose(part.note)}</p>'
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


def _kind(part: TextTable, row: int, column: int) -> str:
    kind = "count" if part.right[column] else "words"
    return f"{kind} strong" if (row, column) in part.strong else kind


def _labelled(text: str) -> str:
    """The name of a row; an address looks like one."""
    if " " not in text and ("." in text.rstrip(".") or "[" in text):
        return f'<code class="address">{escape(text)}</code>'
    return escape(text)


def _head(
    kind: str, title: str, heads: Sequence[str], right: Sequence[bool], *, drawn: bool = False
) -> Iterator[str]:
    label = f'tabindex="0" role="group" aria-label="{escape(title)}"'
    yield f'<div class="table {kind}" {label}><table>'
    yield f"<caption>{prose(sentence(title))}</caption><thead><tr>"
    for head, to_right in zip(heads, right, strict=True):
        side = "" if to_right else ' class="words"'
        yield f'<th scope="col"{side}>{escape(head)}</th>' if head else "<td></td>"
    yield "<td></td></tr></thead><tbody>" if drawn else "</tr></thead><tbody>"
