"""Any part as a call of the design (`draw`): tables of numbers, predictions, registers, claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from byhand.document import parts
from byhand.document.media.html.curves import curve_on_paper
from byhand.document.media.html.plane import figure
from byhand.document.media.html.scatter import scatter_on_paper
from byhand.document.media.typst import explained, proofs, strips
from byhand.document.media.typst.numbers import Inscriber
from byhand.document.media.typst.quoting import (
    array,
    call,
    code,
    content,
    prose,
    string,
    words,
    yes,
)
from byhand.document.media.typst.strips import left_out
from byhand.document.media.wording import (
    claim_heads,
    defined_words,
    exact_forms,
    field_facts,
    length_words,
    prediction_heads,
    sentence,
    sheets_grid,
    told,
    way_title,
)
from byhand.document.numerals import localised
from byhand.document.parts.verdicts import VerdictLine, VerdictTable
from byhand.document.step_names import captioned
from byhand.expression import Name
from byhand.language import _


def draw(part: parts.Part, pen: Inscriber) -> str:
    """Any part of a book, as a Typst value."""
    return _DRAWN[type(part)](part, pen)


# ------------------------------------------------------------------ numbers


def number_table(table: parts.NumberTable, pen: Inscriber) -> str:
    """Numbers in rows and columns; or a word for all of them."""
    title = "none"
    name = captioned(table.title, table.address, table.kind)
    if name:
        weight = table.kind == "weight" and "." not in name
        title = pen.maths.formula(Name(name)) if weight else words(name)
    address = f"address({string(table.address)})"
    axes = f"small({string(pen.axes(table))})"
    if table.word:
        return call("given", title, words(table.word), address, axes)
    rows = array(
        array([words(row.label) if row.label else "none", *map(pen.number, row.numbers)])
        for row in table.rows
    )
    named = {
        "aligned": array(_alignments(table, pen)),
        "gaps": array(map(str, table.gaps)),
        "weight": yes(table.kind == "weight"),
    }
    if table.left_out:
        named["left_out"] = left_out(table.left_out)
    if below := exact_forms(table):
        named["forms"] = words(below)
    heads = array(map(words, table.heads))
    return call("numbers-table", title, address, axes, heads, rows, **named)


def _alignments(table: parts.NumberTable, pen: Inscriber) -> Iterator[str]:
    """The alignment of each column: plain decimals of one length by their points."""
    for k in range(max((len(row.numbers) for row in table.rows), default=0)):
        cells = [row.numbers[k].cell for row in table.rows if k < len(row.numbers)]
        plain = not any(map(pen.tells_a_form, cells))
        places = {len((c.decimal or "").partition(".")[2]) for c in cells if not c.masked}
        yield "right" if plain and len(places) <= 1 else "center"


def stream_line(line: parts.StreamLine, pen: Inscriber) -> str:
    """One position's way: the stream down the side, what each side-trip adds indented."""
    named = {"left_out": left_out(line.left_out)} if line.left_out else {}
    stops = array(_stop(stop, line.longest, pen) for stop in line.stops)
    return call("stream-line", words(way_title(line)), stops, **named)


def _stop(stop: parts.Stop, longest: float, pen: Inscriber) -> str:
    return call(
        "stop",
        string(stop.kind),
        string(stop.trip),
        words(stop.label),
        string(stop.address),
        array(f"box({pen.number(number)})" for number in stop.numbers),
        words(length_words(stop)),
        f"{stop.size / longest:.3f}",
    )


# ------------------------------------------------------------------ remarks


def remark(mark: parts.Remark) -> str:
    """A boundary, a return, or a printed number that does not follow."""
    return call("remark", string(mark.kind), prose(sentence(mark.text)))


# ------------------------------------------------------------------ what comes next


def predictions(part: parts.Predictions, pen: Inscriber) -> str:
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
    table = _table(prediction_heads(), rows, columns=("auto", "auto", "1fr"))
    return _with_left_out(table, part.left_out)


def candidates(part: parts.Candidates, pen: Inscriber) -> str:
    """The candidates for the next word, with bars for their probabilities."""
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


def register_map(part: parts.RegisterMap, pen: Inscriber) -> str:
    """The registers of the whole pass: a row for each step, a column for each position."""
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


def checked_table(part: VerdictTable, pen: Inscriber) -> str:
    """The printed numbers of a document, line by line, with verdicts."""
    rows = [row for line in part.lines for row in _checked(line)]
    return _table(claim_heads(), rows, columns=("auto", "1fr", "auto", "auto"))


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
) -> str:
    named = {}
    if columns:
        named["columns"] = array(columns)
    if align:
        named["align"] = array(align)
    return call("plain-table", array(map(words, heads)), array(rows), **named)


# ------------------------------------------------------------------ every part


def definitions(part: parts.Definitions, pen: Inscriber) -> str:
    """A number with letters, and their definitions."""
    lead = f"par(small({words(defined_words())}))"
    form = f"par({pen.maths.formula(Name(part.name), '=', part.form)})"
    return content(lead, form, *(f"par({pen.letter(letter)})" for letter in part.letters))


def _told_left_out(part: parts.LeftOut, pen: Inscriber) -> str:
    named = {"command": string(part.command)} if part.command else {}
    return call("left-out", prose(sentence(part.text)), **named)


def _picture(part: parts.Drawing, pen: Inscriber) -> str:
    return call("picture", string(explained.on_paper(figure(part))), words(part.about))


def _curve(part: parts.Curve, pen: Inscriber) -> str:
    title = f"par(strong({words(part.title)}))"
    return content(title, call("picture", string(curve_on_paper(part)), words(part.about)))


def _scatter(part: parts.Scatter, pen: Inscriber) -> str:
    title = f"par(strong({words(part.title)}))"
    return content(title, call("picture", string(scatter_on_paper(part)), words(part.about)))


_DRAWN: dict[type, Callable[[Any, Inscriber], str]] = {
    parts.NumberTable: number_table,
    parts.WorkingLine: lambda part, pen: pen.working(part),
    parts.Definitions: definitions,
    parts.Predictions: predictions,
    parts.Candidates: candidates,
    parts.HeatStrip: lambda part, pen: strips.heat_strip(part),
    parts.AttentionPattern: lambda part, pen: strips.attention_pattern(part),
    parts.StreamLine: stream_line,
    parts.RegisterMap: register_map,
    parts.Terms: explained.terms,
    parts.LensTable: explained.lens_table,
    parts.Drawing: _picture,
    parts.Curve: _curve,
    parts.Scatter: _scatter,
    parts.Remark: lambda part, pen: remark(replace(part, text=told(part.text))),
    parts.Finding: lambda part, pen: explained.finding(part),
    parts.Facts: lambda part, pen: facts(part.facts),
    parts.LeftOut: _told_left_out,
    parts.Grid: lambda part, pen: explained.grid(part),
    parts.AnswerField: lambda part, pen: facts(field_facts(part)),
    parts.AnswerSheets: lambda part, pen: explained.grid(sheets_grid(part)),
    VerdictTable: checked_table,
    parts.Answer: lambda part, pen: proofs.answer(part),
    parts.DomainPicture: lambda part, pen: proofs.domain(part),
    parts.CaseTable: lambda part, pen: proofs.case_table(part),
    parts.CaseTree: lambda part, pen: proofs.case_tree(part),
}
