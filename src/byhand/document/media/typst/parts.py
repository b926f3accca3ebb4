"""The parts of a passage as calls of the design: tables of numbers, counts, predictions, claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from byhand.document.media.html.plane import figure
from byhand.document.media.html.prose import defined_words, sentence, told
from byhand.document.media.typst import explained, strips
from byhand.document.media.typst.numbers import Inscriber
from byhand.document.media.typst.quoting import (
    array,
    call,
    code,
    content,
    prose,
    spans,
    string,
    words,
)
from byhand.document.media.typst.strips import left_out, short_number
from byhand.document.numerals import localised
from byhand.document.parts import (
    AttentionPattern,
    Candidates,
    Definitions,
    Drawing,
    Facts,
    Finding,
    Grid,
    HeatStrip,
    LeftOut,
    LensTable,
    NumberTable,
    ParameterTable,
    Part,
    Predictions,
    RegisterMap,
    Remark,
    ShapeTable,
    StatisticsTable,
    Stop,
    StreamLine,
    Terms,
)
from byhand.document.verdict_parts import VerdictLine, VerdictTable
from byhand.document.words import axes_text, formula_text, whole
from byhand.expression import Name
from byhand.language import _


def part_value(part: Part, pen: Inscriber) -> str:
    """One part of a passage, as a value."""
    match part:
        case NumberTable():
            return number_table(part, pen)
        case HeatStrip():
            return strips.heat_strip(part)
        case AttentionPattern():
            return strips.attention_pattern(part)
        case StreamLine():
            return stream_line(part, pen)
        case Predictions():
            return predictions(part)
        case Candidates():
            return candidates(part, pen)
        case ParameterTable():
            return parameter_table(part)
        case ShapeTable():
            return shape_table(part)
        case StatisticsTable():
            return statistics_table(part)
        case RegisterMap():
            return register_map(part)
        case Definitions():
            lead = f"par(small({words(defined_words())}))"
            form = f"par({pen.maths.formula(Name(part.name), '=', part.form)})"
            return content(lead, form, *(f"par({pen.letter(letter)})" for letter in part.letters))
        case VerdictTable():
            return checked_table(part)
        case Facts():
            return facts(part.facts)
        case LeftOut():
            named = {"command": string(part.command)} if part.command else {}
            return call("left-out", prose(sentence(part.text)), **named)
        case Remark():
            return remark(replace(part, text=told(part.text)))
        case Finding():
            return explained.finding(part)
        case Grid():
            return explained.grid(part)
        case Drawing():
            return call("picture", string(explained.on_paper(figure(part))), words(part.about))
        case Terms():
            return explained.terms(part, pen)
        case LensTable():
            return explained.lens_table(part, pen)
        case _:
            raise TypeError(f"a page has no {type(part).__name__}")


# ------------------------------------------------------------------ numbers


def number_table(table: NumberTable, pen: Inscriber) -> str:
    """Numbers in rows and columns; or a word that says them all."""
    title = "none"
    if table.title:
        weight = table.kind == "weight" and "." not in table.title
        title = pen.maths.formula(Name(table.title)) if weight else words(table.title)
    address = f"address({string(table.address)})"
    axes = f"small({string(pen.axes(table))})"
    if table.word:
        return call("given", title, words(table.word), address, axes)
    rows = array(
        array([words(row.label) if row.label else "none", *map(pen.number, row.numbers)])
        for row in table.rows
    )
    gaps = [str(k) for k, gap in enumerate(spans(row.place for row in table.rows)) if gap]
    named = {
        "aligned": array(_alignments(table, pen)),
        "gaps": array(gaps),
        "weight": "true" if table.kind == "weight" else "false",
    }
    if table.left_out:
        named["left_out"] = left_out(table.left_out)
    heads = array(map(words, table.heads))
    return call("numbers-table", title, address, axes, heads, rows, **named)


def _alignments(table: NumberTable, pen: Inscriber) -> Iterator[str]:
    """Plain decimals of one length stand with their points below each other."""
    for k in range(max((len(row.numbers) for row in table.rows), default=0)):
        cells = [row.numbers[k].cell for row in table.rows if k < len(row.numbers)]
        plain = not any(map(pen.tells_a_form, cells))
        places = {len((c.decimal or "").partition(".")[2]) for c in cells if not c.masked}
        yield "right" if plain and len(places) <= 1 else "center"


def stream_line(line: StreamLine, pen: Inscriber) -> str:
    """One position's way: the stream down the side, what each side-trip adds indented."""
    longest = max((stop.size for stop in line.stops), default=1.0) or 1.0
    title = words(_("The way of position {label}").format(label=line.label))
    named = {"left_out": left_out(line.left_out)} if line.left_out else {}
    return call(
        "stream-line", title, array(_stop(stop, longest, pen) for stop in line.stops), **named
    )


def _stop(stop: Stop, longest: float, pen: Inscriber) -> str:
    return call(
        "stop",
        string(stop.kind),
        string(stop.trip),
        words(stop.label),
        string(stop.address),
        array(f"box({pen.number(number)})" for number in stop.numbers),
        words(_("length {size}").format(size=short_number(stop.size))),
        f"{stop.size / longest:.3f}",
    )


# ------------------------------------------------------------------ remarks


def remark(mark: Remark) -> str:
    """A boundary, a return, or what does not follow."""
    return call("remark", string(mark.kind), prose(sentence(mark.text)))


# ------------------------------------------------------------------ what comes next


def predictions(part: Predictions) -> str:
    """After each position, the next token."""
    rows = []
    for found in part.predictions:
        sign = "✓ " if found.proven else ""
        rows.append(
            array(
                [
                    words(found.label),
                    f"strong({words(found.token or '?')})",
                    content(
                        f"text(fill: colours.right, {string(sign)})",
                        prose(sentence(found.sentence)),
                    ),
                ]
            )
        )
    table = _table((_("after"), _("next token"), ""), rows, columns=("auto", "auto", "1fr"))
    return _with_left_out(table, part.left_out)


def candidates(part: Candidates, pen: Inscriber) -> str:
    """The words that may come next, with a bar for how likely they are."""
    rows = []
    for found in part.candidates:
        token = words(found.token)
        if found.target:
            token = content(f"strong({token})", f"small({string(' ← ' + _('target'))})")
        rows.append(
            array(
                [
                    token,
                    pen.number(found.logit),
                    pen.number(found.probability),
                    f"bar({found.share:.4f})",
                ]
            )
        )
    heads = (_("after {label}").format(label=part.label), _("logit"), _("probability"), "")
    table = _table(
        heads, rows, align=("left + horizon", *("center + horizon",) * 2, "left + horizon")
    )
    return _with_left_out(table, part.left_out)


def _with_left_out(table: str, what: str) -> str:
    return content(table, left_out(what)) if what else table


# ------------------------------------------------------------------ counts and shapes


def parameter_table(part: ParameterTable) -> str:
    """Every component with its formula, this model's numbers in it, and its count."""
    rows = []
    for line in part.lines:
        names = content(*(f"linebreak(); #address({string(name)})" for name in line.tensors))
        count = string(whole(line.count))
        if len(line.layers) > 1:
            text = _("in {count} layers: {total}").format(
                count=len(line.layers), total=whole(line.total)
            )
            count = content(count, "linebreak()", f"small({words(text)})")
        rows.append(
            array(
                [
                    content(words(line.part), names),
                    words(line.formula),
                    words(line.numbers),
                    count,
                    f"bar({line.share:.4f}, width: 12mm)",
                ]
            )
        )
    foot = [
        array([f"table.cell(colspan: 3, {words(text)})", string(whole(count)), "[]"])
        for _address, text, count in part.totals
    ]
    heads = (_("component"), _("formula"), _("with numbers"), _("count"), _("share"))
    table = _table(
        heads,
        rows,
        columns=("1.4fr", "auto", "auto", "auto", "auto"),
        align=("left", "left", "left", "right", "left"),
        foot=foot,
    )
    symbols = [(f"{s} = {whole(value)}", meaning) for s, value, meaning in part.symbols]
    return content(facts(symbols), table) if symbols else table


def shape_table(part: ShapeTable) -> str:
    """Steps without their numbers."""
    rows = []
    for line, times in zip(part.lines, part.times, strict=True):
        often = f" × {times}" if times > 1 else ""
        rows.append(
            array(
                [
                    content(code(line.address), string(often)),
                    words(formula_text(line.formula)),
                    string(axes_text(line.axes, line.shape)),
                    string(whole(line.entries)),
                ]
            )
        )
    heads = (_("step"), _("formula"), _("shape"), _("entries"))
    table = _table(
        heads,
        rows,
        columns=("1.5fr", "1.2fr", "1.2fr", "auto"),
        align=("left", "left", "left", "right"),
    )
    return _with_left_out(table, part.left_out)


def statistics_table(part: StatisticsTable) -> str:
    """What large tensors are like."""
    rows = []
    for line in part.lines:
        numbers = (line.least, line.greatest, line.mean, line.deviation)
        rows.append(
            array(
                [
                    code(line.address),
                    string(" × ".join(map(whole, line.shape))),
                    *(string(short_number(number)) for number in numbers),
                    string(whole(line.zeros)),
                ]
            )
        )
    heads = (
        _("tensor"), _("shape"), _("least"), _("greatest"), _("mean"), _("deviation"), _("zeros"),
    )  # fmt: skip
    align = ("left", "left", *("right",) * 5)
    return _table(heads, rows, columns=("1fr", *("auto",) * 6), align=align)


def register_map(part: RegisterMap) -> str:
    """The whole pass as registers: a row a step, a column a position."""
    rows = []
    for line in part.lines:
        cells = [
            "[?]"
            if register is None
            else f"register-square({string(register)}, {string(crossing)})"
            for register, crossing in zip(line.registers, line.crossings, strict=True)
        ]
        rows.append(array([code(line.address), *cells]))
    table = _table((_("step"), *part.labels), rows, align=("left", *("center",) * len(part.labels)))
    return _with_left_out(f"fit({table})", part.left_out)


# ------------------------------------------------------------------ claims and facts


def checked_table(part: VerdictTable) -> str:
    """What a document prints, line by line, with the verdict."""
    rows = [row for line in part.lines for row in _checked(line)]
    heads = (_("verdict"), _("where"), _("printed"), _("follows"))
    return _table(heads, rows, columns=("auto", "1fr", "auto", "auto"))


def _checked(line: VerdictLine) -> Iterator[str]:
    colour = {"RIGHT": "colours.right", "CARRIED": "colours.right", "ERROR": "colours.error"}.get(
        line.verdict, "colours.warn"
    )
    yield array(
        [
            f"text(fill: {colour}, {words(f'{line.sign} {line.word}')})",
            code(line.address),
            words(localised(line.claimed)),
            words(localised(line.expected)),
        ]
    )
    told = [f"par({prose(sentence(text))})" for _kind, text in line.told]
    if line.source and told:
        told.append(f"par({words(line.source)})")
    if told:
        yield array([f"table.cell(colspan: 4, inset: (left: 16pt), small({content(*told)}))"])


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A word and what it is."""
    return call("facts", array(array([words(name), prose(fact)]) for name, fact in pairs))


def _table(
    heads: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str] = (),
    align: Sequence[str] = (),
    foot: Sequence[str] = (),
) -> str:
    named = {}
    if columns:
        named["columns"] = array(columns)
    if align:
        named["align"] = array(align)
    if foot:
        named["foot"] = array(foot)
    return call("plain-table", array(map(words, heads)), array(rows), **named)
