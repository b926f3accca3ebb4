"""The parts of a passage as HTML: tables of numbers, counts, predictions, claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from byhand.expression import Name, write
from byhand.language import _
from byhand.publishing.book import (
    AttentionPattern,
    Candidates,
    Checked,
    CheckedTable,
    Definitions,
    Facts,
    Formula,
    HeatStrip,
    LeftOut,
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
)
from byhand.publishing.html import strips
from byhand.publishing.html.numbers import Inscriber, cell_tree, register_mark
from byhand.publishing.numerals import localised
from byhand.render import words
from byhand.render.parts import Cell
from byhand.render.words import whole

MARKS = {"leaves": "↗", "returns": "↙", "stops": "■", "limit": "!", "open": "?", "claim": "✗"}
WIDEST_LINE = 64  # signs of a line of matrices


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
            yield from predictions(part)
        case Candidates():
            yield from candidates(part, pen)
        case ParameterTable():
            yield from parameter_table(part)
        case ShapeTable():
            yield from shape_table(part)
        case StatisticsTable():
            yield from statistics_table(part)
        case RegisterMap():
            yield from register_map(part)
        case Definitions():
            yield "".join(pen.letter(letter) for letter in part.letters)
        case CheckedTable():
            yield from checked_table(part)
        case Facts():
            yield from facts(part.facts)
        case LeftOut():
            yield left_out(part.text, part.command)


# ------------------------------------------------------------------ numbers


def number_table(table: NumberTable, pen: Inscriber) -> Iterator[str]:
    """Numbers in rows and columns, each with its working; or a word that says them all."""
    name = pen.maths.formula(Name(table.title)) if table.kind == "weight" and table.title else ""
    title = name or f'<span class="name">{escape(table.title)}</span>' * bool(table.title)
    address = f'<code class="address">{escape(table.address)}</code>'
    axes = f'<span class="quiet">{escape(words.axes_text(table.axes, table.shape))}</span>'
    if table.word:
        yield f'<p class="given">{title} = {escape(table.word)} {address} {axes}</p>'
        return
    yield f'<div class="table {table.kind}" tabindex="0" role="group"'
    yield f' aria-label="{escape(table.address)}"><table>'
    yield f"<caption>{title} {address} {axes}</caption>"
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
        yield f"<tr>{label}{''.join(map(pen.number, row.numbers))}</tr>"
    yield "</tbody></table></div>"
    if table.left_out:
        yield left_out(_("left out: {what}").format(what=table.left_out))


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


# ------------------------------------------------------------------ formulas and remarks


def formula(law: Formula, pen: Inscriber) -> Iterator[str]:
    """The law, the same with this model's numbers, and one entry written out."""
    yield f'<div class="formula" tabindex="0" role="group" aria-label="{escape(law.address)}">'
    yield '<div class="statement">'
    yield f'<div class="law">{pen.maths.line(list(_pieces(law.symbols, pen)))}</div>'
    if law.numbers:
        yield f'<div class="numbers">{pen.maths.line(list(_pieces(law.numbers, pen)))}</div>'
    yield "</div>"
    if law.worked is not None:
        address = escape(law.worked.address)
        yield f'<div class="worked" data-a="{address}">'
        yield f'<p class="where"><code class="address">{address}</code></p>'
        yield from pen.working(law.worked)
        yield "</div>"
    yield "</div>"


def _pieces(line: Line, pen: Inscriber) -> Iterator[str]:
    """The line; where it would be too wide, what is named is shown by its decimals."""
    brief = _width(line) > WIDEST_LINE
    rounded = brief and any(
        cell.register == "named" and cell.decimal is not None
        for piece in line
        if isinstance(piece, Matrix)
        for row in piece.rows
        for cell in row
    )
    for piece in line:
        match piece:
            case Sign(text=text):
                text = "≈" if text == "=" and rounded else {"·": "⋅"}.get(text, text)
                yield f"<mo>{escape(text)}</mo>"
            case Matrix(rows=rows):
                yield pen.maths.matrix([[cell_tree(cell, brief) for cell in row] for row in rows])
            case _:
                yield pen.maths.draw(piece)


def _width(line: Line) -> int:
    """About how many signs stand side by side."""
    wide = 0
    for piece in line:
        if isinstance(piece, Matrix):
            columns = zip(*piece.rows, strict=True)
            wide += sum(max(_signs(cell) for cell in column) + 2 for column in columns) + 2
    return wide


def _signs(cell: Cell) -> int:
    text = write(cell_tree(cell)).replace("√(", "√").strip("()")
    return max(map(len, text.split("/")))


def remark(mark: Remark) -> str:
    """A boundary, a return, or what does not follow."""
    sign = MARKS.get(mark.kind, "")
    shown = f'<span class="sign" aria-hidden="true">{sign}</span>' if sign else ""
    text = prose(sentence(mark.text))
    return f'<p class="remark {escape(mark.kind)}">{shown}<span>{text}</span></p>'


def left_out(text: str, command: str = "") -> str:
    """What is not shown, and how to see it."""
    how = f" <code>{escape(command)}</code>" if command else ""
    return f'<p class="left-out">{prose(sentence(text))}{how}</p>'


# ------------------------------------------------------------------ what comes next


def predictions(part: Predictions) -> Iterator[str]:
    """After each position, the next token."""
    heads = (_("after"), _("next token"), "")
    yield from _table_head("predictions", heads, part.address)
    for found in part.predictions:
        token = escape(found.token or "?")
        sign = "✓" if found.proven else ""
        yield (
            f'<tr><th scope="row">{escape(found.label)}</th><td class="token">{token}</td>'
            f'<td><span class="proven" aria-hidden="true">{sign}</span>'
            f" {prose(sentence(found.sentence))}</td></tr>"
        )
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


def candidates(part: Candidates, pen: Inscriber) -> Iterator[str]:
    """The words that may come next, with a bar for how likely they are."""
    heads = (_("word"), _("logit"), _("probability"), "")
    title = _("after {label}").format(label=part.label)
    yield from _table_head("candidates", heads, title)
    for found in part.candidates:
        kind = ' class="target"' if found.target else ""
        aim = f' <span class="aim">{escape(_("target"))}</span>' if found.target else ""
        bar = f'<i style="--share:{found.share:.4f}"></i>'
        yield (
            f'<tr{kind}><th scope="row">{escape(found.token)}{aim}</th>{pen.number(found.logit)}'
            f'{pen.number(found.probability)}<td class="bar" aria-hidden="true">{bar}</td></tr>'
        )
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


# ------------------------------------------------------------------ counts and shapes


def parameter_table(part: ParameterTable) -> Iterator[str]:
    """Every component with its formula, this model's numbers in it, and its count."""
    if part.symbols:
        yield from facts(
            (f"{symbol} = {whole(value)}", meaning) for symbol, value, meaning in part.symbols
        )
    heads = (_("component"), _("formula"), _("with numbers"), _("count"), _("share"))
    yield from _table_head("parameters", heads, _("the parameters"))
    for line in part.lines:
        layers = ""
        if len(line.layers) > 1:
            text = _("in {count} layers: {total}").format(
                count=len(line.layers), total=whole(line.total)
            )
            layers = f'<span class="quiet"> {escape(text)}</span>'
        names = "".join(f"<code>{escape(name)}</code>" for name in line.tensors)
        yield (
            f'<tr><th scope="row">{escape(line.part)}<span class="tensors">{names}</span></th>'
            f'<td class="maths">{escape(line.formula)}</td>'
            f'<td class="maths">{escape(line.numbers)}</td>'
            f'<td class="count">{whole(line.count)}{layers}</td>'
            f'<td class="bar"><i style="--share:{line.share:.4f}"></i>'
            f'<span class="sr">{round(line.share * 100)} %</span></td></tr>'
        )
    yield "</tbody><tfoot>"
    for address, text, count in part.totals:
        yield (
            f'<tr data-a="{escape(address)}"><th scope="row" colspan="3">{escape(text)}</th>'
            f'<td class="count">{whole(count)}</td><td></td></tr>'
        )
    yield "</tfoot></table></div>"


def shape_table(part: ShapeTable) -> Iterator[str]:
    """Steps without their numbers."""
    heads = (_("step"), _("formula"), _("shape"), _("entries"))
    yield from _table_head("shapes", heads, _("shapes"))
    for line, times in zip(part.lines, part.times, strict=True):
        often = f" × {times}" if times > 1 else ""
        formula = words.formula_text(line.formula)
        yield (
            f'<tr><th scope="row"><code class="address">{escape(line.address)}</code>{often}</th>'
            f"<td>{escape(formula)}</td><td>{escape(words.axes_text(line.axes, line.shape))}</td>"
            f'<td class="count">{whole(line.entries)}</td></tr>'
        )
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


def statistics_table(part: StatisticsTable) -> Iterator[str]:
    """What large tensors are like."""
    heads = (
        _("tensor"),
        _("shape"),
        _("least"),
        _("greatest"),
        _("mean"),
        _("deviation"),
        _("zeros"),
        _("furthest from 0"),
    )
    yield from _table_head("statistics", heads, _("statistics"))
    for line in part.lines:
        shape = " × ".join(map(whole, line.shape))
        numbers = (line.least, line.greatest, line.mean, line.deviation)
        cells = "".join(
            f'<td class="count">{escape(strips.short_number(number))}</td>' for number in numbers
        )
        yield (
            f'<tr><th scope="row"><code class="address">{escape(line.address)}</code></th>'
            f'<td>{escape(shape)}</td>{cells}<td class="count">{whole(line.zeros)}</td>'
            f'<td><code class="address">{escape(line.largest)}</code></td></tr>'
        )
    yield "</tbody></table></div>"


def register_map(part: RegisterMap) -> Iterator[str]:
    """The whole pass as registers: a row a step, a column a position."""
    yield from _table_head("registers", (_("step"), *part.labels), _("registers"))
    crossed = {"leaves": _("leaves the exact numbers"), "returns": _("is exact again")}
    for line in part.lines:
        cells = ""
        for register, crossing in zip(line.registers, line.crossings, strict=True):
            if register is None:
                cells += "<td></td>"
                continue
            sign = MARKS.get(crossing, "")
            told = f'<span class="sr"> {escape(crossed[crossing])}</span>' if crossing else ""
            arrow = f'<span class="crossing" aria-hidden="true">{sign}</span>' if crossing else ""
            square = '<span class="square" aria-hidden="true">■</span>'
            mark = square * (register == "exact") + register_mark(register)
            cells += f'<td class="{register} {crossing}">{mark}{arrow}{told}</td>'
        address = escape(line.address)
        yield f'<tr><th scope="row"><code class="address">{address}</code></th>{cells}</tr>'
    yield "</tbody></table></div>"
    if part.left_out:
        yield left_out(_("left out: {what}").format(what=part.left_out))


# ------------------------------------------------------------------ claims and facts


def checked_table(part: CheckedTable) -> Iterator[str]:
    """What a document prints, line by line, with the verdict."""
    heads = (_("verdict"), _("where"), _("printed"), _("follows"))
    yield from _table_head("claims", heads, part.title)
    for line in part.lines:
        yield _checked(line)
    yield "</tbody></table></div>"


def _checked(line: Checked) -> str:
    told = "".join(f"<p>{prose(sentence(text))}</p>" for text in line.told)
    source = f'<p class="quiet">{escape(line.source)}</p>' if line.source else ""
    more = f'<tr class="told"><td></td><td colspan="3">{told}{source}</td></tr>' if told else ""
    return (
        f'<tr class="{line.verdict.lower()}"><td class="verdict"><span class="sign">'
        f"{escape(line.sign)}</span> {escape(line.word)}</td>"
        f'<th scope="row"><code class="address">{escape(line.address)}</code></th>'
        f"<td>{escape(localised(line.claimed))}</td><td>{escape(localised(line.expected))}</td></tr>"
        f"{more}"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A word and what it is."""
    yield '<dl class="facts">'
    for name, fact in pairs:
        yield f"<div><dt>{escape(name)}</dt><dd>{prose(fact)}</dd></div>"
    yield "</dl>"


def _table_head(kind: str, heads: Iterable[str], caption: str) -> Iterator[str]:
    label = escape(caption)
    yield f'<div class="table {kind}" tabindex="0" role="group" aria-label="{label}"><table>'
    yield f'<caption class="sr">{label}</caption><thead><tr>'
    for head in heads:
        yield f'<th scope="col">{escape(head)}</th>' if head else "<td></td>"
    yield "</tr></thead><tbody>"


# ------------------------------------------------------------------ words


def prose(text: str) -> str:
    """A sentence; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def sentence(text: str) -> str:
    """With a capital letter, as sentences on a page begin; addresses stay as they are."""
    first = text.split(" ", 1)[0]
    return text if set(".[`") & set(first.rstrip(".")) else text[:1].upper() + text[1:]
