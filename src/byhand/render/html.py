"""Parts → simple HTML, for notebooks: headings, tables and sentences, with a little style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from byhand.expression import write
from byhand.language import _
from byhand.render import words
from byhand.render.layout import GUTTER, MANNERS, MASK, aligned, cell_lines, proven_digits
from byhand.render.parts import (
    Cell,
    Given,
    Letter,
    Loss,
    Mark,
    NotWorked,
    Part,
    Predictions,
    Stage,
    StepPart,
    Table,
    Title,
    WorkingLine,
)
from byhand.render.terminal import MARKS, forms_of, legend, register_sign, verdict
from byhand.tracing import Trace

STYLE = """
.byhand { max-width: 60em; font-variant-numeric: tabular-nums; }
.byhand h4 { margin: 1.6em 0 .2em; border-bottom: 1px solid #8886; }
.byhand p { margin: .2em 0; }
.byhand .quiet { opacity: .7; }
.byhand .head { display: flex; justify-content: space-between; gap: 2em; margin-top: 1em; }
.byhand table { border-collapse: collapse; margin: .2em 0 .2em 1em; }
.byhand th, .byhand td { padding: .1em .7em; text-align: left; vertical-align: top; }
.byhand th { font-weight: normal; opacity: .7; }
.byhand .digits { font-family: monospace; white-space: pre; }
.byhand .mark { margin-left: 1em; font-style: italic; }
""".strip()


def page(parts: Iterable[Part]) -> str:
    """The parts as one piece of HTML that stands by itself."""
    body = "\n".join(line for part in parts for line in _part(part))
    return f'<div class="byhand">\n<style>{STYLE}</style>\n{body}\n</div>'


def trace_page(trace: Trace) -> str:
    """A whole trace as HTML."""
    from byhand.render.document import document

    return page(document(trace))


def _part(part: Part) -> Iterator[str]:
    match part:
        case Title():
            yield from _title(part)
        case Stage():
            yield f"<h4>{escape(part.title)}</h4>"
            yield _sentence(part.about, "quiet")
        case StepPart():
            yield from _step(part)
        case NotWorked():
            yield _sentence(part.reason)
            names = ", ".join(f"<code>{escape(step.address)}</code>" for step in part.steps)
            yield f"<p class='quiet'>{names}</p>"
        case Predictions():
            yield _head(part.step)
            rows = [(p.label, "→", p.token or "?", verdict(p)) for p in part.predictions]
            yield from _plain_table(rows)
        case Loss():
            yield _head(part.step)
            text = _("after position {after} the text goes on with {target}")
            yield _sentence(text.format(after=part.after, target=part.target))
            yield from _equation(part.cell)
            yield from map(_letter, part.letters)
        case WorkingLine():
            yield from _working(part)
        case Mark():
            yield _mark(part)


def _title(title: Title) -> Iterator[str]:
    yield f"<h3>{escape(title.name)}</h3>"
    yield _sentence(words.told(title.about))
    yield from _plain_table(title.facts)
    yield from _plain_table([(sign, text) for sign, _register, text in legend(title)])
    for note in title.notes:
        yield _sentence(words.told(note))


def _step(step: StepPart) -> Iterator[str]:
    yield _head(step)
    for given in step.given:
        yield from _given(given)
    for table in step.tables:
        yield from _table(table)
    yield from map(_mark, step.marks)


def _head(step: StepPart) -> str:
    left = (
        f"<code><b>{escape(step.address)}</b> = {escape(words.formula_text(step.formula))}</code>"
    )
    axes = words.axes_text(step.axes, step.shape)
    right = f"{escape(axes)} &nbsp; {escape(register_sign(step.register))}"
    return f"<div class='head'>{left}<span class='quiet'>{right}</span></div>"


def _given(given: Given) -> Iterator[str]:
    what = f"{given.name} = {given.word}".rstrip()
    yield _sentence(_("with {what}").format(what=what), "quiet")
    if given.table is not None:
        yield from _table(given.table, signs=False)


def _table(table: Table, signs: bool = True) -> Iterator[str]:
    if table.title:
        yield _sentence(table.title, "quiet")
    yield "<table>"
    if any(table.heads):
        heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
        yield f"<tr>{'<th></th>' * (1 + signs)}{heads}</tr>"
    digits = aligned(table) if proven_digits(table) else None
    for place, row in enumerate(table.rows):
        sign = f"<td>{'' if digits else GUTTER.get(row.register, '')}</td>" if signs else ""
        if digits:
            cells = "".join(f"<td class='digits'>{escape(text)}</td>" for text in digits[place])
        else:
            cells = "".join(f"<td>{_cell(cell)}</td>" for cell in row.cells)
        yield f"<tr>{sign}<th>{escape(row.label)}</th>{cells}</tr>"
    yield "</table>"
    if table.left_out:
        yield _sentence(_("left out: {what}").format(what=table.left_out), "quiet")


def _cell(cell: Cell) -> str:
    if cell.masked:
        return MASK
    lines = cell_lines(cell, MANNERS[1])
    return "<br>".join(escape(f"{sign} {text}".strip()) for sign, text in lines)


def _working(part: WorkingLine) -> Iterator[str]:
    sign = escape(register_sign(part.cell.register))
    yield f"<div class='head'><code><b>{escape(part.address)}</b></code><span>{sign}</span></div>"
    if part.symbols is not None:
        yield _sentence("= " + write(part.symbols))
    if part.values is not None:
        yield _sentence(("≈ " if part.decimals else "= ") + write(part.values))
    yield from _equation(part.cell)
    yield from map(_letter, part.letters)
    yield from map(_mark, part.marks)


def _equation(cell: Cell) -> Iterator[str]:
    for sign, text in forms_of(cell):
        yield _sentence(f"{sign} {text}")


def _letter(letter: Letter) -> str:
    text = _("where {name} =").format(name=letter.name)
    return _sentence(f"{text} {write(letter.definition)} ≈ {letter.decimal}", "quiet")


def _mark(mark: Mark) -> str:
    return _sentence(f"{MARKS.get(mark.kind, '')} {mark.text}".strip(), "mark")


def _plain_table(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield "<table>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>"
    yield "</table>"


def _sentence(text: str, kind: str = "") -> str:
    name = f" class='{kind}'" if kind else ""
    return f"<p{name}>{escape(text)}</p>"
