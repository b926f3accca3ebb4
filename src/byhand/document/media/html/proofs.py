"""Proofs as HTML: the answer, the domain in cells, the cases as squares or as boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from byhand.document.media.html.markup import Markup, element
from byhand.document.media.html.prose import also_left_out, prose
from byhand.document.media.wording import ANSWERS, answer_words, edges, sentence
from byhand.document.numerals import written
from byhand.document.parts import (
    Answer,
    CaseBox,
    CaseTable,
    CaseTree,
    Decision,
    DomainPicture,
    PlaceCell,
    TextShape,
)
from byhand.language import _

LABELS = (3, 6, 10, 16, 24)  # characters
LABELLED = 0.02  # share of the domain from which on a box has room for a label


def answer(part: Answer) -> Markup:
    """The answer: its sign, its word and its sentence, and its figures."""
    sign = element("span", ANSWERS[part.kind], class_="sign", aria_hidden="true")
    said = element("p", sign, element("strong", part.word), class_="word")
    figures = (
        element("div", element("dt", name), element("dd", written(fact)))
        for name, fact in part.facts
    )
    return element(
        "div",
        said,
        element("p", prose(answer_words(part)), class_="said"),
        element("dl", *figures),
        class_=f"conclusion is-{part.kind}",
    )


# ------------------------------------------------------------------ the domain


def domain(part: DomainPicture) -> Markup:
    """A row of cells for each shape, with what is known of it below."""
    return element(
        "figure",
        *(_shape(shape, part.example) for shape in part.shapes),
        also_left_out(part.left_out),
        class_="domain",
    )


def _shape(shape: TextShape, example: str) -> Markup:
    cells = element("ol", *map(_cell, shape.cells), class_="places")
    said = [element("strong", sentence(shape.about)), *shape.conditions]
    if example and any(cell.example for cell in shape.cells):
        said.append(element("span", _("last line: {what}").format(what=example), class_="example"))
    listed = (element("li", one) for one in said)
    return element("div", cells, element("ul", *listed, class_="known"), class_="shape")


def _cell(cell: PlaceCell) -> Markup:
    values = element("span", cell.values, class_="values") if cell.values else ""
    example = element("span", cell.example, class_="example") if cell.example else ""
    what = element("span", cell.text, class_="what")
    return element("li", what, values, example, class_=cell.kind)


# ------------------------------------------------------------------ squares


def case_table(part: CaseTable) -> Iterator[Markup]:
    """A square for each text; squares of one case have no line between them."""
    names = (element("i", name) for name in (part.down, part.across))
    corner = element("th", element("span", *names, class_="corner"), scope="col")
    if not (part.down and part.across):
        corner = element("th", part.down or part.across, scope="col")
    heads = (element("th", head, scope="col") for head in part.heads)
    name = part.title or _("the cases")
    caption = element("caption", sentence(part.title) if part.title else part.about)
    table = element(
        "table",
        caption if part.title else element("caption", part.about, class_="sr"),
        element("thead", element("tr", corner, *heads)),
        element("tbody", *_rows(part)),
    )
    yield element("div", table, class_="table cases", tabindex=0, role="group", aria_label=name)
    yield decisions(part.decisions)


def _rows(part: CaseTable) -> Iterator[Markup]:
    for at, (side, row) in enumerate(zip(part.sides, part.rows, strict=True)):
        cells = (
            element(
                "td",
                square.text or element("span", _mark(square.kind), aria_hidden="true"),
                class_=" ".join((f"by-{square.kind}", *edges(part, at, place))),
            )
            for place, square in enumerate(row)
        )
        yield element("tr", element("th", side, scope="row"), *cells)


def _mark(kind: str) -> str:
    return {"open": "?", "refuted": "✗", "none": ""}.get(kind, "✓")


# ------------------------------------------------------------------ boxes


def case_tree(part: CaseTree) -> Iterator[Markup]:
    """Levels of boxes whose widths are shares of the domain."""
    count = len(part.levels)
    levels = (
        element("div", *(_box(box, count - 1 - at) for box in level), class_="level")
        for at, level in enumerate(part.levels)
    )
    yield element(
        "figure",
        element("div", *levels, class_="levels", role="img", aria_label=part.about),
        also_left_out(part.left_out),
        class_="case-tree",
    )
    yield decisions(part.decisions)


def _box(box: CaseBox, below: int) -> Markup:
    """A box; a case reaches down to the last level."""
    style = f"--start:{box.start:.5f};--width:{box.width:.5f}"
    if box.kind != "cut" and below:
        style += f";--below:{below}"
    label = ""
    if box.label and box.width >= LABELLED:
        whole = f"{box.name}: {box.label}"
        name = element("b", box.name, ": ", class_=_room(whole)) if box.name else ""
        label = element("span", name, box.label, class_=_room(box.label))
    return element("i", label, class_=f"by-{box.kind}", style=style, title=box.about or None)


def _room(label: str) -> str:
    """How many characters a label has, about: the style shows it where they fit."""
    return next((f"of-{most}" for most in LABELS if len(label) <= most), "of-more")


def decisions(listed: Sequence[Decision]) -> Markup:
    """What the colours mean, and how many cases there are of each."""
    if not listed:
        return Markup()
    items = (
        element(
            "li",
            element("span", class_="swatch", aria_hidden="true"),
            element("span", sentence(one.words)),
            " ",
            element("span", one.count, class_="count"),
            class_=f"by-{one.kind}",
        )
        for one in listed
    )
    return element("ul", *items, class_="decisions")
