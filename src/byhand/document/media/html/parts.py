"""The parts of a passage as HTML: tables of numbers, the stream, formulas.

Tables that only tell (counts, shapes, claims) are in `tables`, colours in `strips`, sentences in
`prose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape

from byhand.document import words
from byhand.document.mathematics import cell_tree, rounded_line, too_wide
from byhand.document.media.html import explained, strips, tables
from byhand.document.media.html.markup import element
from byhand.document.media.html.numbers import Inscriber, register_mark
from byhand.document.media.html.plane import figure
from byhand.document.media.html.prose import defined_words, left_out, remark, told
from byhand.document.parts import (
    AttentionPattern,
    Candidates,
    Definitions,
    Drawing,
    Facts,
    Finding,
    Formula,
    Grid,
    HeatStrip,
    LeftOut,
    LensTable,
    Line,
    Matrix,
    NumberTable,
    ParameterTable,
    Part,
    Predictions,
    RegisterMap,
    Remark,
    ShapeTable,
    Sign,
    StatisticsTable,
    Stop,
    StreamLine,
    Terms,
    Word,
)
from byhand.document.verdict_parts import VerdictTable
from byhand.expression import Name
from byhand.language import _

BREAKS = ("=", "≈", "→", "+", "−", "·", "⊙")  # signs before which a line of matrices may end


def part_lines(part: Part, pen: Inscriber) -> Iterator[str]:
    """One part of a passage."""
    match part:
        case NumberTable():
            yield from number_table(part, pen)
        case HeatStrip():
            yield from strips.heat_strip(part)
        case AttentionPattern():
            yield from strips.attention_pattern(part)
        case StreamLine():
            yield from stream_line(part, pen)
        case Predictions():
            yield from tables.predictions(part, pen)
        case Candidates():
            yield from tables.candidates(part, pen)
        case ParameterTable():
            yield from tables.parameter_table(part)
        case ShapeTable():
            yield from tables.shape_table(part)
        case StatisticsTable():
            yield from tables.statistics_table(part)
        case RegisterMap():
            yield from tables.register_map(part)
        case Definitions():
            yield f'<div class="letters"><p>{escape(defined_words())}</p>'
            drawn = pen.maths.formula(part.name, "=", part.form)
            label = f'tabindex="0" role="group" aria-label="{escape(part.name)}"'
            yield f'<div class="stands-in" {label}>{drawn}</div>'
            yield "".join(pen.letter(letter) for letter in part.letters)
            yield "</div>"
        case VerdictTable():
            yield from tables.checked_table(part)
        case Facts():
            yield from tables.facts(part.facts)
        case LeftOut():
            yield left_out(part.text, part.command)
        case Remark():
            yield remark(replace(part, text=told(part.text)))
        case Finding():
            yield explained.finding(part)
        case Grid():
            yield from explained.grid(part)
        case Drawing():
            yield element("figure", figure(part), class_="drawing")
        case Terms():
            yield from explained.terms(part, pen)
        case LensTable():
            yield from explained.lens_table(part, pen)
        case _:
            raise TypeError(f"a page has no {type(part).__name__}")


# ------------------------------------------------------------------ numbers


def number_table(table: NumberTable, pen: Inscriber) -> Iterator[str]:
    """Numbers in rows and columns, each with its working; or a word that says them all."""
    name = pen.maths.formula(Name(table.title)) if table.kind == "weight" and table.title else ""
    title = name or f'<span class="name">{escape(table.title)}</span>' * bool(table.title)
    address = f'<code class="address">{escape(table.address)}</code>'
    axes = f'<span class="quiet">{escape(pen.axes(table))}</span>'
    if table.word:
        given = f"<span>{title} = {escape(table.word)}</span>"
        yield f'<p class="given">{given} {address} {axes}</p>'
        return
    yield f'<div class="table {table.kind}" tabindex="0" role="group"'
    yield f' aria-label="{escape(table.address)}"><table>'
    rounded = _rounded(table)
    how = ' <span class="quiet">{mark} {word}</span>'.format(
        mark=register_mark("rounded", hidden=True), word=escape(words.register_word("rounded"))
    )
    yield f"<caption>{title} {address} {axes}{how if rounded else ''}</caption>"
    heads = table.heads
    labelled = any(row.label for row in table.rows)
    if heads:
        corner = "<td></td>" if labelled else ""
        cells = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
        yield f"<thead><tr>{corner}{cells}</tr></thead>"
    yield "<tbody>"
    before: int | None = None
    for row in table.rows:
        if before is not None and row.place > before + 1:
            span = len(row.numbers) + labelled
            yield f'<tr class="gap" aria-hidden="true"><td colspan="{span}">⋮</td></tr>'
        before = row.place
        label = f'<th scope="row">{escape(row.label)}</th>' if labelled else ""
        numbers = (pen.number(number, marked=not rounded) for number in row.numbers)
        yield f"<tr>{label}{''.join(numbers)}</tr>"
    yield "</tbody></table>"
    if table.left_out:
        yield left_out(_("left out: {what}").format(what=table.left_out))
    yield "</div>"


def _rounded(table: NumberTable) -> bool:
    """Whether every number is rounded: then the table says so once."""
    registers = {n.cell.register for row in table.rows for n in row.numbers if not n.cell.masked}
    return registers == {"rounded"}


def stream_line(line: StreamLine, pen: Inscriber) -> Iterator[str]:
    """One position's way: the stream down the middle, what each side-trip adds beside it."""
    longest = max((stop.size for stop in line.stops), default=1.0) or 1.0
    title = _("The way of position {label}").format(label=line.label)
    yield f'<figure class="stream"><figcaption>{escape(title)}</figcaption><ol>'
    for stop in line.stops:
        yield from _stop(stop, longest, pen)
    yield "</ol>"
    if line.left_out:
        yield left_out(_("left out: {what}").format(what=line.left_out))
    yield "</figure>"


def _stop(stop: Stop, longest: float, pen: Inscriber) -> Iterator[str]:
    side = f" {stop.trip}" if stop.kind == "trip" else ""
    length = _("length {size}").format(size=strips.short_number(stop.size))
    numbers = "".join(pen.number(number, "li") for number in stop.numbers)
    yield (
        f'<li class="{stop.kind}{side}"><span class="label">{escape(stop.label)}</span>'
        f'<code class="address">{escape(stop.address)}</code>'
        f'<ul class="vector">{numbers}</ul>'
        f'<span class="size" style="--size:{stop.size / longest:.3f}"><span>{escape(length)}</span>'
        f"</span></li>"
    )


# ------------------------------------------------------------------ formulas


def formula(law: Formula, pen: Inscriber) -> Iterator[str]:
    """The law, the same with this model's numbers, and one entry written out."""
    yield f'<div class="formula" tabindex="0" role="group" aria-label="{escape(law.address)}">'
    yield '<div class="statement">'
    yield f'<div class="law">{pen.maths.line(list(_pieces(law.symbols, pen)))}</div>'
    for label, line in (*law.earlier, (law.label, law.numbers)):
        if line:
            which = f'<span class="which">{escape(label)}</span>' if label else ""
            yield f'<div class="numbers">{which}{pen.maths.line(list(_pieces(line, pen)))}</div>'
    yield "</div>"
    if law.worked is not None:
        address = escape(law.worked.address)
        yield f'<div class="worked" data-a="{address}">'
        yield f'<p class="where"><code class="address">{address}</code></p>'
        yield from pen.working(law.worked)
        yield "</div>"
    yield "</div>"


def _pieces(line: Line, pen: Inscriber) -> Iterator[str]:
    """The line, taken apart where it may go on below: before its signs.

    Where it would be too wide, what is named is shown by its decimals.
    """
    brief = too_wide(line)
    rounded = rounded_line(line, brief)
    drawn = ""
    for piece in line:
        match piece:
            case Sign(text=text):
                if text in BREAKS and drawn:
                    yield drawn
                    drawn = ""
                text = "≈" if text == "=" and rounded else {"·": "⋅"}.get(text, text)
                drawn += f"<mo>{escape(text)}</mo>"
            case Word(text=text):
                drawn += f"<mtext>{escape(text)}</mtext>"
            case Matrix(rows=rows):
                drawn += pen.maths.matrix(
                    [[cell_tree(cell, brief) for cell in row] for row in rows]
                )
            case _:
                drawn += pen.maths.draw(piece)
    yield drawn
