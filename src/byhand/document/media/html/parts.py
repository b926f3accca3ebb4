"""Any part as HTML (`draw`), and parts with numbers: tables, steps, the stream, formulas.

`tables` has predictions, registers and claims, `explained` grids and sums, `strips` colours,
`prose` sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from byhand.document import parts, words
from byhand.document.mathematics import cell_tree, form_lines, settled
from byhand.document.media.html import exercises, explained, proofs, strips, tables
from byhand.document.media.html.curves import curve
from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.mathml import token
from byhand.document.media.html.numbers import Inscriber, focusable, register_mark
from byhand.document.media.html.plane import figure
from byhand.document.media.html.prose import address, also_left_out, left_out, prose, remark
from byhand.document.media.html.scatter import scatter
from byhand.document.media.wording import (
    defined_words,
    exact_forms,
    length_words,
    told,
    way_title,
)
from byhand.document.parts.verdicts import VerdictTable
from byhand.document.step_names import captioned, step_name
from byhand.expression import Name

BREAKS = ("=", "≈", "→", "+", "−", "·", "⊙")  # signs before which a line of matrices may break


def draw(part: parts.Part | parts.Section, pen: Inscriber) -> Iterable[Markup]:
    """Any part, in pieces."""
    return _DRAWN[type(part)](part, pen)


# ------------------------------------------------------------------ numbers


def number_table(table: parts.NumberTable, pen: Inscriber) -> Iterator[Markup]:
    """Numbers in rows and columns, each with its working; or a word for all of them."""
    name = captioned(table.title, table.address, table.kind)
    title: str = element("span", name, class_="name") if name else ""
    if table.kind == "weight" and table.title:
        title = pen.maths.formula(Name(table.title))
    where = address(table.address)
    axes = element("span", pen.axes(table), class_="quiet")
    if table.word:
        given = element("span", title, " = ", table.word)
        yield element("p", given, " ", where, " ", axes, class_="given")
        return
    how: list[str] = []
    if _rounded(table):
        mark, word = register_mark("rounded", hidden=True), words.register_word("rounded")
        how = [" ", element("span", mark, " ", word, class_="quiet")]
    labelled = any(row.label for row in table.rows)
    heads = ""
    if table.heads:
        cells = [element("th", head, scope="col") for head in table.heads]
        heads = element("thead", element("tr", *[element("td")] * labelled, *cells))
    yield element(
        "div",
        element(
            "table",
            element("caption", title, " ", where, " ", axes, *how),
            heads,
            element("tbody", *_rows(table, pen, labelled)),
        ),
        _on_paper(table),
        also_left_out(table.left_out),
        **focusable(f"table {table.kind}", table.address),
    )


def _rows(table: parts.NumberTable, pen: Inscriber, labelled: bool) -> Iterator[Markup]:
    marked = not _rounded(table)
    gaps = table.gaps
    for at, row in enumerate(table.rows):
        if at in gaps:
            gap = element("td", "⋮", colspan=len(row.numbers) + labelled)
            yield element("tr", gap, class_="gap", aria_hidden="true")
        label = [element("th", row.label, scope="row")] * labelled
        yield element("tr", *label, *(pen.number(n, marked=marked) for n in row.numbers))


def _on_paper(table: parts.NumberTable) -> Markup:
    """The forms behind a table's decimals, which no click opens on paper."""
    told = exact_forms(table)
    return element("p", told, class_="on-paper") if told else Markup()


def _rounded(table: parts.NumberTable) -> bool:
    """Whether every number is rounded, so that the table says so once."""
    return {c.register for row in table.rows for c in row.cells if not c.masked} == {"rounded"}


def stream_line(line: parts.StreamLine, pen: Inscriber) -> Iterator[Markup]:
    """One position's way: the stream down the middle, what each side-trip adds beside it."""
    stops = element("ol", *(_stop(stop, line.longest, pen) for stop in line.stops))
    caption, rest = element("figcaption", way_title(line)), also_left_out(line.left_out)
    yield element("figure", caption, stops, rest, class_="stream")


def _stop(stop: parts.Stop, longest: float, pen: Inscriber) -> Markup:
    share = f"--size:{stop.size / longest:.3f}"
    return element(
        "li",
        element("span", stop.label, class_="label"),
        address(stop.address),
        element("ul", *(pen.number(number, "li") for number in stop.numbers), class_="vector"),
        element("span", element("span", length_words(stop)), class_="size", style=share),
        class_=f"{stop.kind} {stop.trip}".strip() if stop.kind == "trip" else stop.kind,
    )


def definitions(part: parts.Definitions, pen: Inscriber) -> Iterator[Markup]:
    """A number with letters, and their definitions."""
    drawn = pen.maths.formula(part.name, "=", part.form)
    yield element(
        "div",
        element("p", defined_words()),
        element("div", drawn, **focusable("stands-in", part.name)),
        *map(pen.letter, part.letters),
        class_="letters",
    )


# ------------------------------------------------------------------ steps


def title(part: parts.Title, pen: Inscriber) -> Iterator[Markup]:
    """The title: a name, a sentence, and facts."""
    yield element("p", part.name, class_="title")
    if part.about:
        yield element("p", prose(part.about))
    yield tables.facts(part.facts)


def stage(part: parts.Stage, pen: Inscriber) -> Iterator[Markup]:
    """A heading along the spine."""
    yield element("h3", part.title)
    yield element("p", part.about, class_="quiet")


def step(part: parts.StepPart, pen: Inscriber) -> Iterator[Markup]:
    """A step: its law, its numbers, and its remarks."""
    yield _law(part)
    for table in (*part.given, *part.tables):
        yield from number_table(table, pen)
    yield from map(remark, part.remarks)


def _law(part: parts.StepPart) -> Markup:
    formula = words.formula_text(part.formula, part.address)
    law = f"{part.address} = {formula}" if formula else part.address
    return element("p", element("code", law), class_="law")


def not_worked(part: parts.NotWorked, pen: Inscriber) -> Iterator[Markup]:
    """Steps without values, and the reason."""
    yield from map(_law, part.steps)
    yield left_out(part.reason)


def loss(part: parts.Loss, pen: Inscriber) -> Iterator[Markup]:
    """The loss in every form, with the letters in it."""
    yield from step(part.step, pen)
    yield element("div", *pen.lines(form_lines(part.cell), part.cell), class_="lines")
    yield from map(pen.letter, part.letters)


def working_line(part: parts.WorkingLine, pen: Inscriber) -> Iterator[Markup]:
    """The working of one number."""
    name = step_name(part.address)
    named = (element("span", name, class_="name"), " ") if name else ()
    where = element("p", *named, address(part.address), class_="where")
    drawn = pen.working(part, folding=True)
    yield element("div", where, *drawn, class_="worked", data_a=part.address)


def section(part: parts.Section, pen: Inscriber) -> Iterator[Markup]:
    """Parts under a heading, folded."""
    about = [element("p", part.about)] if part.about else []
    inside = (piece for one in part.parts for piece in draw(one, pen))
    yield element("details", element("summary", part.title), *about, *inside)


# ------------------------------------------------------------------ formulas


def formula(law: parts.Formula, pen: Inscriber) -> Markup:
    """The law, the law in numbers, and one entry written out."""
    lines = [element("div", pen.maths.line(list(_pieces(law.symbols, pen))), class_="law")]
    for label, line in law.lines:
        which = element("span", label, class_="which") if label else ""
        drawn = pen.maths.line(list(_pieces(line, pen)))
        lines.append(element("div", which, drawn, class_="numbers"))
    worked = () if law.worked is None else working_line(law.worked, pen)
    statement = element("div", *lines, class_="statement")
    return element("div", statement, *worked, **focusable("formula", law.address))


def _pieces(line: parts.Line, pen: Inscriber) -> Iterator[str]:
    """The pieces of a line, which may break before its signs.

    In a line that would be too wide, named numbers become decimals.
    """
    brief, line = settled(line)
    drawn = ""
    for piece in line:
        match piece:
            case parts.Sign(text=text):
                if text in BREAKS and drawn:
                    yield drawn
                    drawn = ""
                drawn += token("mo", {"·": "⋅"}.get(text, text))
            case parts.Word(text=text):
                drawn += token("mtext", text)
            case parts.Matrix(rows=rows):
                drawn += pen.maths.matrix([[cell_tree(c, brief) for c in row] for row in rows])
            case _:
                drawn += pen.maths.draw(piece)
    yield drawn


# ------------------------------------------------------------------ every part

_DRAWN: dict[type, Callable[[Any, Inscriber], Iterable[Markup]]] = {
    parts.NumberTable: number_table,
    parts.WorkingLine: working_line,
    parts.Definitions: definitions,
    parts.Title: title,
    parts.Stage: stage,
    parts.StepPart: step,
    parts.NotWorked: not_worked,
    parts.Predictions: tables.predictions,
    parts.Candidates: tables.candidates,
    parts.Loss: loss,
    parts.HeatStrip: lambda part, pen: [strips.heat_strip(part)],
    parts.AttentionPattern: lambda part, pen: [strips.attention_pattern(part)],
    parts.StreamLine: stream_line,
    parts.RegisterMap: tables.register_map,
    parts.Terms: explained.terms,
    parts.LensTable: explained.lens_table,
    parts.Curve: lambda part, pen: [curve(part)],
    parts.Scatter: lambda part, pen: [scatter(part)],
    parts.Drawing: lambda part, pen: [element("figure", figure(part), class_="drawing")],
    parts.Remark: lambda part, pen: [remark(replace(part, text=told(part.text)))],
    parts.Finding: lambda part, pen: [explained.finding(part)],
    parts.Facts: lambda part, pen: [tables.facts(part.facts, part.title)],
    parts.LeftOut: lambda part, pen: [left_out(part.text, part.command)],
    parts.Grid: lambda part, pen: explained.grid(part),
    parts.AnswerField: lambda part, pen: [exercises.answer_field(part)],
    parts.AnswerSheets: lambda part, pen: exercises.answer_sheets(part),
    VerdictTable: tables.checked_table,
    parts.Section: section,
    parts.Answer: lambda part, pen: [proofs.answer(part)],
    parts.DomainPicture: lambda part, pen: [proofs.domain(part)],
    parts.CaseTable: lambda part, pen: proofs.case_table(part),
    parts.CaseTree: lambda part, pen: proofs.case_tree(part),
}
