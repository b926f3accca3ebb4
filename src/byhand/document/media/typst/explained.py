"""Explanations as calls of the design: sums, the lens, tables to read, drawings.

A drawing is SVG with style variables and a rule for paper (`media.html.plane`).  Typst knows
neither, so here the values for paper replace them.
"""

from __future__ import annotations

import re

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
    SETTLED,
    cell_words,
    lens_columns,
    sentence,
    term_columns,
    told,
)
from byhand.document.parts import Column, Finding, Grid, LensLine, LensTable, TermLine, Terms

SHORT = 14  # rows of a table that stays on one page
LONG = 24  # characters from which a text may be broken
SERIF = '"Libertinus Serif"'
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_CASE = re.compile(r"@media\s*([^{]*)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
_SETTING = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]+);?")
_VARIABLE = re.compile(r"var\((--[\w-]+)(?:,\s*((?:[^()]|\([^()]*\))*))?\)")


def finding(part: Finding) -> str:
    """A finding, and below it the facts about it."""
    lead = prose(told(part.lead)) if part.lead else "none"
    return call(
        "finding", lead, array(prose(told(text)) for text in part.told), unknown=yes(part.open)
    )


# ------------------------------------------------------------------ sums and the lens


def terms(part: Terms, pen: Inscriber) -> str:
    """A row a term: its numbers, and a bar to the side of its sign."""
    table = call(
        "terms-table",
        words(sentence(part.title)),
        array(words(column.head) for column in term_columns(part)[:-1]),
        array(_term(line, part.bar(line), pen) for line in part.lines),
        compared=yes(bool(part.compared)),
    )
    unknown = [call("remark", string("limit"), prose(told(part.unknown)))] if part.unknown else []
    closing = call("closing", string(part.closes), prose(told(part.closing)))
    return content(table, *unknown, closing)


def _term(line: TermLine, bar: tuple[float, float, float], pen: Inscriber) -> str:
    about = words(line.about) if line.about else "none"
    cells = [call("term-name", about, words(line.name), string(line.kind))]
    cells += [pen.number(number) for number in line.numbers]
    if line.difference is not None:
        cells.append(f"strong({pen.number(line.difference)})")
    shares = (f"{share:.4f}" for share in bar)
    cells.append(call("signed-bar", *shares, minus=yes(line.size < 0)))
    return array(cells)


def lens_table(part: LensTable, pen: Inscriber) -> str:
    """A row a step: who leads, how likely, and the logits that are compared."""
    columns = lens_columns(part)
    table = call(
        "plain-table",
        array(words(column.head) for column in columns),
        array(_lens_line(line, part.placed, len(columns), pen) for line in part.lines),
        align=array(f"{_side(column)} + horizon" for column in columns),
    )
    note = f"small({words(f'{SETTLED} {part.note}')})" if part.note else "none"
    return call(
        "titled",
        words(sentence(part.title)),
        content(f"fit({table})", note),
        whole=yes(len(part.lines) <= SHORT),
    )


def _lens_line(line: LensLine, placed: bool, columns: int, pen: Inscriber) -> str:
    if line.missing:
        reason = prose(told(line.missing))
        return array([code(line.step), f"table.cell(colspan: {columns - 1}, {reason})"])
    leader = f"strong({words(line.leader)})"
    cells = [
        code(line.step),
        f"settled({leader})" if line.settled else leader,
        "[]" if line.probability is None else pen.number(line.probability),
        f"bar({line.share:.4f}, width: 16mm)",
        *map(pen.number, line.logits),
    ]
    return array([*cells, words(line.place)] if placed else cells)


# ------------------------------------------------------------------ tables and drawings


def grid(part: Grid) -> str:
    """A table to read; long words may be broken, numbers never."""
    rows = []
    for at, row in enumerate((*part.rows, *part.totals)):
        if len(row) == 1:
            heading = f"strong({words(row[0])})"
            rows.append(array([f"table.cell(colspan: {len(part.columns)}, {heading})"]))
            continue
        cells = [_text(column, text) for column, text in zip(part.columns, row, strict=True)]
        rows.append(
            array(
                f"strong({cell})" if (at, place) in part.strong else cell
                for place, cell in enumerate(cells)
            )
        )
    columns = ["auto", *(_room(part, at) for at in range(1, len(part.columns)))]
    named = {"foot": array(rows[len(part.rows) :])} if part.totals else {}
    table = call(
        "plain-table",
        array(words(column.head) for column in part.columns),
        array(rows[: len(part.rows)]),
        columns=array(columns),
        align=array(map(_side, part.columns)),
        **named,
    )
    body = [table if "1fr" in columns else f"fit({table})"]
    if part.note:
        body.append(f"small({words(part.note)})")
    if part.left_out:
        body.append(left_out(part.left_out))
    if not part.title:
        return content(*body)
    whole = yes(len(part.rows) <= SHORT)
    return call("titled", words(sentence(part.title)), content(*body), whole=whole)


def _room(part: Grid, at: int) -> str:
    """The width of a column; a column of long words takes the remaining width."""
    longest = max((len(row[at]) for row in part.rows if len(row) > 1), default=0)
    return "1fr" if longest > LONG and not part.columns[at].right else "auto"


def _side(column: Column) -> str:
    return "right" if column.right else "left"


def _text(column: Column, text: str) -> str:
    match cell_words(column, text):
        case "address", shown:
            return code(shown)
        case "share", shown:
            return f"bar({shown}, width: 12mm)"
        case "prose", shown:
            return prose(shown)
        case _, shown:
            return words(shown)


def on_paper(svg: str) -> str:
    """The drawing with its style for paper, without variables and rules."""
    return _STYLE.sub(lambda found: f"<style>{_settled(found[1])}</style>", svg)


def _settled(style: str) -> str:
    cases = {case[1].strip(): case[2] for case in _CASE.finditer(style)}
    plain = _CASE.sub("", style)
    general = plain.partition("}")[0]  # the first rule holds the variables
    settings = dict(_SETTING.findall(general)) | dict(_SETTING.findall(cases.get("print", "")))
    hues = re.sub(r"--own:\s*", "color: ", plain)
    own = re.sub(r"var\(--own(?:,[^;]*?\))?\)", "currentColor", hues)

    def value(found: re.Match[str]) -> str:
        name, other = found[1], found[2] or ""
        return settings[name].strip() if name in settings else other

    rules = _SETTING.sub("", own)
    for _round in range(3):  # variables refer to variables
        rules = _VARIABLE.sub(value, rules)
    ink = settings["--p-ink"].strip()
    rules = re.sub(r"font-family:[^;]*;", f"font-family: {SERIF};", rules)
    return rules.replace(".plane {", f".plane {{ color: {ink};", 1)
