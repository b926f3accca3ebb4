"""Explanations as HTML: tables, sums with bars, the lens, findings, drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.html.markup import Markup, element, joined, opening
from byhand.document.media.html.numbers import Inscriber, register_mark
from byhand.document.media.html.prose import address, also_left_out, prose
from byhand.document.media.wording import (
    SETTLED,
    cell_words,
    lens_columns,
    sentence,
    term_columns,
    told,
)
from byhand.document.parts import (
    Column,
    Finding,
    Grid,
    LensLine,
    LensTable,
    Number,
    TermLine,
    Terms,
)

TABLE_ENDS = Markup("</tbody></table></div>")


# ------------------------------------------------------------------ sums


def terms(part: Terms, pen: Inscriber) -> Iterator[Markup]:
    """A row a term: its numbers, and a bar to the side of its sign."""
    yield from table_begins("terms", part.title, term_columns(part))
    for line in part.lines:
        yield _term(line, part.bar(line), pen)
    yield TABLE_ENDS
    if part.unknown:
        yield element("p", element("span", _said(part.unknown)), class_="closes open")
    sign = element("span", "=", class_="sign", aria_hidden="true")
    closing = element("span", _said(part.closing))
    yield element("p", sign, closing, class_=f"closes {part.closes}")


def _term(line: TermLine, bar: tuple[float, float, float], pen: Inscriber) -> Markup:
    axis, start, length = bar
    label = address(line.name) if line.kind == "term" else line.name
    about = element("span", line.about, class_="about-it") if line.about else ""
    cells = [_number(number, pen) for number in line.numbers]
    if line.difference is not None:
        cells.append(_number(line.difference, pen, "difference"))
    drawn = ""
    if line.kind != "sum":
        style = f"--start:{start:.4f};--length:{length:.4f}"
        drawn = element("i", class_="minus" if line.size < 0 else "plus", style=style)
    return element(
        "tr",
        element("th", about, label, scope="row"),
        *cells,
        element("td", drawn, class_="signed", aria_hidden="true", style=f"--axis:{axis:.4f}"),
        class_=line.kind + " largest" * line.largest,
    )


def _number(number: Number, pen: Inscriber, kind: str = "") -> Markup:
    """A number as a cell; one without an address has no link."""
    if number.address:
        return Markup(pen.number(number))
    cell = number.cell
    face = element("span", Markup(pen.face(cell)), class_="face")
    shown = element("span", face, Markup(register_mark(cell.register)), class_="plain")
    return element("td", shown, class_=f"n {cell.register} {kind}")


# ------------------------------------------------------------------ the lens


def lens_table(part: LensTable, pen: Inscriber) -> Iterator[Markup]:
    """A row a step: who leads, how likely, and the logits that are compared."""
    columns = lens_columns(part)
    yield from table_begins("lens", part.title, columns)
    for line in part.lines:
        yield _lens_line(line, part.placed, len(columns), pen)
    yield TABLE_ENDS
    if part.note:
        sign = element("span", SETTLED, aria_hidden="true")
        yield element("p", sign, " ", prose(part.note), class_="small quiet")


def _lens_line(line: LensLine, placed: bool, columns: int, pen: Inscriber) -> Markup:
    step = element("th", address(line.step), scope="row")
    if line.missing:
        return element("tr", step, element("td", _said(line.missing), colspan=columns - 1))
    mark = element("span", SETTLED, class_="settled", aria_hidden="true") if line.settled else ""
    return element(
        "tr",
        step,
        element("td", line.leader, mark, class_="token"),
        element("td") if line.probability is None else _number(line.probability, pen),
        bar(line.share),
        *(_number(number, pen) for number in line.logits),
        element("td", line.place, class_="count") if placed else "",
        class_="from-here" if line.settled else None,
    )


def bar(share: float) -> Markup:
    """A cell with a bar for a share."""
    drawn = element("i", style=f"--share:{share:.4f}")
    return element("td", drawn, class_="bar", aria_hidden="true")


# ------------------------------------------------------------------ words, and tables to be read


def finding(part: Finding) -> Markup:
    """A finding, and below it the facts about it."""
    lead = element("p", _said(part.lead), class_="lead") if part.lead else ""
    items = [element("li", _said(text)) for text in part.told]
    listed = element("ul", *items) if items else ""
    return element("div", lead, listed, class_="finding" + " open" * part.open)


def grid(part: Grid) -> Iterator[Markup]:
    """A table to be read."""
    kind = "texts formulas" if any(c.kind == "formula" for c in part.columns) else "texts"
    yield from table_begins(kind, part.title, part.columns)
    for at, row in enumerate(part.rows):
        title = part.addresses[at] if part.addresses else None
        yield element("tr", *_cells(part, at, row), title=title)
    if part.totals:
        yield Markup("</tbody><tfoot>")
        for at, row in enumerate(part.totals, len(part.rows)):
            yield element("tr", *_cells(part, at, row))
        yield Markup("</tfoot></table></div>")
    else:
        yield TABLE_ENDS
    if part.note:
        yield element("p", prose(part.note), class_="small quiet")
    yield also_left_out(part.left_out)


def _cells(part: Grid, at: int, row: Sequence[str]) -> Iterator[Markup]:
    if len(row) == 1:
        yield element("th", *row, scope="rowgroup", colspan=len(part.columns), class_="stage")
        return
    for place, (column, text) in enumerate(zip(part.columns, row, strict=True)):
        strong = " strong" * ((at, place) in part.strong)
        shown = _text(column, text)
        if not place:
            yield element("th", text if at >= len(part.rows) else shown, scope="row")
        elif column.kind == "share" and text:
            percent = element("span", f"{round(float(text) * 100)} %", class_="sr")
            yield element("td", element("i", style=f"--share:{text}"), percent, class_="bar")
        else:
            kind = {"number": "count", "formula": "maths"}.get(column.kind, "words")
            head = column.head if column.right and text else None
            yield element("td", shown, class_=kind + strong, data_head=head)


def _text(column: Column, text: str) -> Markup | str:
    kind, shown = cell_words(column, text)
    return address(shown) if kind == "address" else prose(shown) if kind == "prose" else shown


def _said(text: str) -> Markup:
    return prose(told(text))


def table_begins(kind: str, title: str, columns: Sequence[Column]) -> Iterator[Markup]:
    """The start of a table: its title and its column heads."""
    name = title or ", ".join(column.head for column in columns if column.head)
    yield opening("div", class_=f"table {kind}", tabindex=0, role="group", aria_label=name)
    heard = None if title else "sr"  # screen readers name an untitled table by its columns
    caption = element("caption", prose(sentence(title or name)), class_=heard)
    heads = joined(
        element("th", each.head, scope="col", class_=None if each.right else "words")
        if each.head
        else element("td")
        for each in columns
    )
    row = element("thead", element("tr", heads)) if any(each.head for each in columns) else ""
    yield opening("table") + caption + row + opening("tbody")
