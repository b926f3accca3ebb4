"""A marking as one self-contained HTML page, without network or library.

It has the result, the spine as a strip with a cell for each line, and a table of all lines.  Wrong
or unusual lines have heat maps, worst entries and suspects.  The style and the small script that
reads the heat maps are beside this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import inf, log10

from byhand.document.media.html import heat
from byhand.document.media.html.markup import Markup, element, escape, joined
from byhand.document.media.html.standalone import Frame, fact_list
from byhand.document.parts import Grid
from byhand.document.parts.verdicts import (
    UNUSUAL,
    Signed,
    VerdictLine,
    VerdictReport,
    VerdictRun,
    VerdictSheet,
)
from byhand.language import _

MOST_OPEN = 3  # findings of a text that are open at first
LONGEST_TITLE = 60  # characters of a text in a link


def page(report: VerdictReport) -> str:
    """The whole report."""
    frame = Frame(
        title=_("{model}: the working marked").format(model=report.title),
        styles=("report.css",),
        skip=("lines-0", _("to the table of all lines")),
        scripts=("report.js",),
    )
    sheets = (_sheet(place, sheet) for place, sheet in enumerate(report.sheets))
    return frame.page((_head(report), element("main", *sheets), _foot(report)))


def _head(report: VerdictReport) -> Markup:
    title = element("h1", element("small", "byhand check"), report.title)
    if len(report.sheets) == 1:
        about = fact_list(report.sheets[0].facts.facts)
    else:
        links = (
            element(
                "li",
                element(
                    "a",
                    _sign(sheet.result.sign),
                    f" {sheet.name} ",
                    element("span", sheet.result.text[:LONGEST_TITLE], class_="quiet"),
                    class_=sheet.result.verdict.lower(),
                    href=f"#text-{place}",
                ),
            )
            for place, sheet in enumerate(report.sheets)
        )
        about = element("nav", element("ul", *links, class_="texts"), aria_label=_("texts"))
    return element("header", title, _banner(report.result), about)


def _banner(result: Signed) -> Markup:
    sign = element("span", result.sign, class_="sign", aria_hidden="true")
    told = element("p", _sentence(result.text))
    return element("div", sign, told, class_=f"banner {result.verdict.lower()}")


def _sheet(place: int, sheet: VerdictSheet) -> Markup:
    lines = sheet.table.lines
    notable = [(number, line) for number, line in enumerate(lines) if line.notable]
    notable.sort(key=lambda pair: pair[1].follows)  # wrong lines first
    parts = [element("h2", sheet.name or _("The spine"))]
    if sheet.name:
        parts.append(fact_list(sheet.facts.facts))
    parts += [_tally(sheet.tally), _spine(place, lines)]
    if notable:
        parts.append(element("h2", _("What does not follow, or is not usual")))
        if any(line.shares for _number, line in notable):
            parts.append(heat.legend())
    for count, (number, line) in enumerate(notable):
        parts.append(_finding(f"finding-{place}-{number}", line, opened=count < MOST_OPEN))
    parts += [element("h2", sheet.table.title, id=f"lines-{place}"), _table(place, sheet)]
    if sheet.readings:
        read = (element("li", element("code", name), " ", how) for name, how in sheet.readings)
        parts.append(element("h2", _("How the dump was read")))
        parts.append(element("ul", *read, class_="unmatched"))
    if sheet.unmatched:
        names = (element("li", element("code", name), " ", why) for name, why in sheet.unmatched)
        parts.append(element("h2", _("Names that were left aside")))
        parts.append(element("ul", *names, class_="unmatched"))
    return element("section", *parts, class_="text", id=f"text-{place}")


def _spine(place: int, lines: Iterable[VerdictLine]) -> Markup:
    """A cell for each line, in spine order: its sign, and its share of the bound."""
    stages = []
    for stage, group in groupby(enumerate(lines), key=lambda pair: pair[1].stage):
        cells = []
        for number, line in group:
            kind = "finding" if line.notable else "line"
            told = f"{line.address}: {line.word}" + (f", {line.about}" if line.about else "")
            link = element(
                "a",
                element("i"),
                UNUSUAL if line.unusual else line.sign,
                class_=line.tone.lower(),
                href=f"#{kind}-{place}-{number}",
                title=told,
                aria_label=told,
                style=f"--share:{_height(line.share):.2f}",
            )
            cells.append(element("li", link))
        stages.append(element("div", element("h3", stage), element("ol", *cells), class_="stage"))
    return element("nav", *stages, class_="spine", aria_label=_("the lines in spine order"))


# ------------------------------------------------------------------ a line that is not simply right


def _finding(name: str, line: VerdictLine, opened: bool) -> Markup:
    """The explanation of a line, with its numbers and its map."""
    head = element(
        "summary",
        _sign(line.signs),
        element("h3", line.address, class_="address"),
        element("span", line.word, class_="verdict"),
        element("span", line.about, class_="share"),
    )
    told = [
        element("p", _sentence(text) + ".")
        for kind, text in line.told
        if kind in ("verdict", "usual")
    ]
    if suspects := list(_suspects(line)):
        told.append(element("ul", *suspects, class_="suspects"))
    kinds = ("described", "tied", "ask")
    if described := [_sentence(text) for kind, text in line.told if kind in kinds]:
        told.append(element("ul", *(element("li", text) for text in described), class_="described"))
    evidence = [] if line.entries is None else [_entries(line.entries)]
    if line.shares is not None:
        evidence.append(heat.figure(line.shares))
    body = element(  # the name is inside, so that a link to it opens it
        "div", *told, element("div", *evidence, class_="evidence"), _provenance(line), id=name
    )
    return element("details", head, body, class_=f"finding {line.tone.lower()}", open=opened)


def _suspects(line: VerdictLine) -> Iterator[Markup]:
    """Each suspect with its advice, and how well the line would follow."""
    told = [(kind, _sentence(text)) for kind, text in line.told]
    starts = [at for at, (kind, _text) in enumerate(told) if kind == "suspect"]
    for start in starts:
        more = []
        for kind, text in told[start + 1 :]:
            if kind not in ("change", "sure", "share"):
                break
            more.append(element("small", text))
        yield element("li", element("strong", told[start][1]), *more)


def _provenance(line: VerdictLine) -> Markup:
    """The lines it was judged from, and the place of the claim."""
    if line.uses:
        steps = joined([element("code", step) for step in line.uses], ", ")
        text = escape(_("Judged from {steps}, as claimed.")).format(steps=steps)
    else:
        text = escape(_("Judged from the text and the weights."))
    if line.source:
        text += " " + element("span", line.source)
    return element("p", text, class_="quiet small")


def _entries(grid: Grid) -> Markup:
    """The worst entries with their numbers."""
    kinds = [column.kind for column in grid.columns]
    heads = [
        element("th", column.head, scope="col", class_="number" if column.right else None)
        for column in grid.columns
    ]
    rows = []
    for row in grid.rows:
        cells = (element("td", text, class_=kind) for text, kind in zip(row, kinds, strict=True))
        rows.append(element("tr", *cells))
    table = element(
        "table", element("thead", element("tr", *heads)), element("tbody", *rows), class_="entries"
    )
    return element("div", table, class_="wide numbers")


# ------------------------------------------------------------------ every line


def _table(place: int, sheet: VerdictSheet) -> Markup:
    """The lines in a table; runs are folded."""
    heads = (
        ("mark", element("span", _("verdict"), class_="sr")),
        (None, _("line")),
        ("verdict-column", _("verdict")),
        ("number", _("of allowed")),
        ("number", _("× usual")),
        ("worst-column", _("worst entry")),
    )
    head = element("tr", *(element("th", text, scope="col", class_=kind) for kind, text in heads))
    rows: list[Markup] = []
    number = 0
    for row in sheet.table.rows:
        run = isinstance(row, VerdictRun)
        if isinstance(row, VerdictRun):
            mark = element("td", _sign(row.result.sign), class_="mark")
            told = element("td", f"… {row.result.text}", colspan=5)
            rows.append(element("tr", mark, told, class_=f"run {row.result.verdict.lower()}"))
        for line in row.lines if isinstance(row, VerdictRun) else (row,):
            rows.append(_row(f"{place}-{number}", line, run))
            number += 1
    table = element("table", element("thead", head), element("tbody", *rows))
    wide = element(
        "div", table, class_="wide", tabindex=0, role="region", aria_label=sheet.table.title
    )
    if not any(isinstance(row, VerdictRun) for row in sheet.table.rows):
        return wide
    box = element("input", type="checkbox")
    return element("label", box, " ", _("show the lines that are folded"), class_="choice") + wide


def _row(name: str, line: VerdictLine, foldable: bool) -> Markup:
    address = element("span", line.address, class_="address")
    if line.notable:
        address = element("a", address, href=f"#finding-{name}")
    if reason := dict(line.told).get("reason"):
        address += " " + element("span", reason, class_="quiet")
    share: str = line.used
    if share:
        share = escape(share) + element(
            "span", class_="bar", style=f"--share:{_height(line.share):.2f}"
        )
    cells = (
        ("mark", _sign(line.signs)),
        (None, address),
        ("verdict-column", line.word),
        ("number", share),
        ("number", line.times),
        ("worst-column address", line.worst),
    )
    return element(
        "tr",
        *(element("td", text, class_=kind) for kind, text in cells),
        class_=line.tone.lower() + " foldable" * foldable,
        id=f"line-{name}",
    )


def _foot(report: VerdictReport) -> Markup:
    about = element("p", report.about)
    return element("footer", element("h2", _("How to read it")), about, _tally(report.legend))


# ------------------------------------------------------------------ small things


def _tally(counts: Iterable[Signed]) -> Markup:
    items = (
        element("li", _sign(count.sign), f" {count.text}", class_=count.verdict.lower())
        for count in counts
    )
    return element("ul", *items, class_="tally")


def _sign(sign: str) -> Markup:
    return element("span", sign, class_="sign")


def _height(share: float) -> float:
    """A share as the length of a bar from 0 to 1: four decades, with the bound at the end."""
    if not share > 0:
        return 0.0
    return min(max(1 + log10(share) / 4, 0.03), 1.0) if share < inf else 1.0


def _sentence(text: str) -> str:
    """The sentence with a capital letter; addresses stay as they are."""
    first = text.split(" ", 1)[0]
    return text if "." in first or "[" in first else text[:1].upper() + text[1:]
