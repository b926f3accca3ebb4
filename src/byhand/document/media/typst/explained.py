"""The parts of the chapter on what the numbers say as calls of the design, and drawings on paper.

A drawing is SVG whose style has variables and a case for paper (`render.explained.plane`); Typst
knows neither, so the style is settled here: the values for paper are put in.
"""

from __future__ import annotations

import re

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
from byhand.document.media.html.prose import sentence
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
from byhand.document.parts import Cell, Number
from byhand.language import _

SHORT = 14  # rows of a table that no page breaks
LONG = 24  # characters of a text that may be broken
SERIF = '"Libertinus Serif"'
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_CASE = re.compile(r"@media\s*([^{]*)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
_SETTING = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]+);?")
_VARIABLE = re.compile(r"var\((--[\w-]+)(?:,\s*((?:[^()]|\([^()]*\))*))?\)")


def explained_value(part: ExplainedPart, pen: Inscriber) -> str:
    """One of these parts, as a value."""
    match part:
        case Terms():
            return terms(part, pen)
        case LensTable():
            return lens_table(part, pen)
        case Finding():
            lead = prose(sentence(part.lead)) if part.lead else "none"
            told = array(prose(sentence(text)) for text in part.told)
            return call("finding", lead, told, unknown=yes(part.open))
        case TextTable():
            return text_table(part)
        case Picture():
            return call("picture", string(on_paper(part.svg)), words(part.about))


# ------------------------------------------------------------------ sums and the lens


def terms(part: Terms, pen: Inscriber) -> str:
    """A row a term: its numbers, and a bar to the side of its sign."""
    sizes = [line.size for line in part.lines if line.kind != "sum"]
    low, high = max(0.0, -min(sizes, default=0.0)), max(0.0, max(sizes, default=0.0))
    span = low + high or 1.0
    heads = [_("term"), *part.tokens, *([part.compared] if part.compared else [])]
    table = call(
        "terms-table",
        words(sentence(part.title)),
        array(map(words, heads)),
        array(_term(line, low / span, span, pen) for line in part.lines),
        compared=yes(bool(part.compared)),
    )
    remarks = [call("remark", string("limit"), prose(sentence(text))) for text in part.remarks]
    closing = call("closing", string(part.closes), prose(sentence(part.closing)))
    return content(table, *remarks, closing)


def _term(line: TermLine, axis: float, span: float, pen: Inscriber) -> str:
    about = words(line.about) if line.about else "none"
    cells = [call("term-name", about, words(line.name), string(line.kind))]
    cells += [_number(number, pen) for number in line.numbers]
    if line.difference is not None:
        cells.append(f"strong({_cell(line.difference, pen)})")
    length = 0.0 if line.kind == "sum" else abs(line.size) / span
    start = axis - length if line.size < 0 else axis
    numbers = (f"{axis:.4f}", f"{start:.4f}", f"{length:.4f}")
    cells.append(call("signed-bar", *numbers, minus=yes(line.size < 0)))
    return array(cells)


def _number(number: Number | Cell, pen: Inscriber) -> str:
    return _cell(number, pen) if isinstance(number, Cell) else pen.number(number)


def _cell(cell: Cell, pen: Inscriber) -> str:
    """A number that has no address of its own."""
    return pen.number(Number("", cell))


def lens_table(part: LensTable, pen: Inscriber) -> str:
    """A row a step: who leads, how likely, and the logits that are compared."""
    placed = any(line.place for line in part.lines)
    heads = [_("after"), _("leads"), _("probability"), "", *part.tokens]
    heads += [_("place of {token}").format(token=part.tokens[0])] * placed
    align = ["left", "left", "right", "left", *["right"] * (len(heads) - 4)]
    table = call(
        "plain-table",
        array(map(words, heads)),
        array(_lens_line(line, placed, len(heads), pen) for line in part.lines),
        align=array(f"{side} + horizon" for side in align),
    )
    note = f"small({words('◂ ' + part.note)})" if part.note else "none"
    return call(
        "titled",
        words(sentence(part.title)),
        content(f"fit({table})", note),
        whole=yes(len(part.lines) <= SHORT),
    )


def _lens_line(line: LensLine, placed: bool, columns: int, pen: Inscriber) -> str:
    if line.missing:
        told = prose(sentence(line.missing))
        return array([code(line.step), f"table.cell(colspan: {columns - 1}, {told})"])
    leader = f"strong({words(line.leader)})"
    cells = [
        code(line.step),
        f"settled({leader})" if line.settled else leader,
        "[]" if line.probability is None else _cell(line.probability, pen),
        f"bar({line.share:.4f}, width: 16mm)",
        *map(pen.number, line.logits),
    ]
    return array([*cells, words(line.place)] if placed else cells)


# ------------------------------------------------------------------ tables and drawings


def text_table(part: TextTable) -> str:
    """A table to be read; long words may be broken, numbers never."""
    rows = []
    for at, row in enumerate(part.rows):
        cells = [_text(text, first=not column) for column, text in enumerate(row)]
        rows.append(
            array(
                f"strong({cell})" if (at, column) in part.strong else cell
                for column, cell in enumerate(cells)
            )
        )
    wide = [
        max((len(row[column]) for row in part.rows), default=0) for column in range(len(part.heads))
    ]
    long = [not right and size > LONG for right, size in zip(part.right, wide, strict=True)]
    columns = ["1fr" if each and column else "auto" for column, each in enumerate(long)]
    table = call(
        "plain-table",
        array(map(words, part.heads)),
        array(rows),
        columns=array(columns),
        align=array("right" if right else "left" for right in part.right),
    )
    body = [table if "1fr" in columns else f"fit({table})"]
    if part.note and part.strong:
        body.append(f"small({words(part.note)})")
    if part.left_out:
        body.append(left_out(part.left_out))
    whole = yes(len(part.rows) <= SHORT)
    return call("titled", words(sentence(part.title)), content(*body), whole=whole)


def _text(text: str, *, first: bool) -> str:
    address = first and " " not in text and ("." in text.rstrip(".") or "[" in text)
    return code(text) if address else prose(text)


def on_paper(svg: str) -> str:
    """The drawing with the style that it has on paper, without variables and cases."""
    return _STYLE.sub(lambda found: f"<style>{_settled(found[1])}</style>", svg)


def _settled(style: str) -> str:
    cases = {case[1].strip(): case[2] for case in _CASE.finditer(style)}
    plain = _CASE.sub("", style)
    general = plain.partition("}")[0]  # the first rule holds the settings
    settings = dict(_SETTING.findall(general)) | dict(_SETTING.findall(cases.get("print", "")))
    hues = re.sub(r"--own:\s*", "color: ", plain)
    own = re.sub(r"var\(--own(?:,[^;]*?\))?\)", "currentColor", hues)

    def value(found: re.Match[str]) -> str:
        name, other = found[1], found[2] or ""
        return settings[name].strip() if name in settings else other

    rules = _SETTING.sub("", own)
    for _round in range(3):  # settings are made of settings
        rules = _VARIABLE.sub(value, rules)
    ink = settings["--p-ink"].strip()
    rules = re.sub(r"font-family:[^;]*;", f"font-family: {SERIF};", rules)
    return rules.replace(".plane {", f".plane {{ color: {ink};", 1)
