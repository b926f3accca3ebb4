"""Parts of a proof as calls of the design: the answer, the domain, the cases."""

from __future__ import annotations

from collections.abc import Sequence

from byhand.document.media.typst.quoting import array, call, content, prose, string, words
from byhand.document.media.typst.strips import left_out
from byhand.document.media.wording import ANSWERS, answer_words, edges, sentence
from byhand.document.numerals import written
from byhand.document.parts import (
    Answer,
    CaseTable,
    CaseTree,
    Decision,
    DomainPicture,
    PlaceCell,
    TextShape,
)
from byhand.language import _


def answer(part: Answer) -> str:
    """The answer, and its figures."""
    return call(
        "proof-answer",
        string(part.kind),
        string(ANSWERS[part.kind]),
        words(part.word),
        prose(answer_words(part)),
        array(array([words(name), words(written(fact))]) for name, fact in part.facts),
    )


def domain(part: DomainPicture) -> str:
    """A row of cells for each shape."""
    shapes = [_shape(shape, part.example) for shape in part.shapes]
    return content(*shapes, *[left_out(part.left_out)] * bool(part.left_out))


def _shape(shape: TextShape, example: str) -> str:
    known = [f"strong({words(sentence(shape.about))})", *map(words, shape.conditions)]
    if example and any(cell.example for cell in shape.cells):
        text = words(_("last line: {what}").format(what=example))
        known.append(f"text(fill: colours.lit, {text})")
    return call("text-shape", array(map(_cell, shape.cells)), array(known))


def _cell(cell: PlaceCell) -> str:
    said = (_or_none(text) for text in (cell.values, cell.example))
    return array([string(cell.kind), words(cell.text), *said])


def case_table(part: CaseTable) -> str:
    """A square for each text."""
    rows = [
        array(
            [
                words(side),
                array(
                    array([string(_kind(square.kind)), words(square.text), _ends(part, at, place)])
                    for place, square in enumerate(row)
                ),
            ]
        )
        for at, (side, row) in enumerate(zip(part.sides, part.rows, strict=True))
    ]
    corner = f"{part.down} \\ {part.across}" if part.down else part.across
    table = call(
        "case-table",
        _or_none(sentence(part.title)),
        words(corner),
        array(map(words, part.heads)),
        array(rows),
    )
    return content(table, *decisions(part.decisions))


def _ends(part: CaseTable, row: int, column: int) -> str:
    return array(string(side.removeprefix("ends-")) for side in edges(part, row, column))


def case_tree(part: CaseTree) -> str:
    """Levels of boxes whose widths are shares of the domain."""
    levels = array(
        array(
            array(
                [
                    f"{box.start:.5f}",
                    f"{box.width:.5f}",
                    string(_kind(box.kind)),
                    _or_none(f"{box.name}: {box.label}" if box.name else ""),
                    _or_none(box.label),
                ]
            )
            for box in level
        )
        for level in part.levels
    )
    tree = call("case-tree", levels, words(part.about))
    rest = [left_out(part.left_out)] * bool(part.left_out)
    return content(tree, *rest, *decisions(part.decisions))


def decisions(listed: Sequence[Decision]) -> list[str]:
    """What the colours mean."""
    items = array(
        array([string(_kind(one.kind)), words(sentence(one.words)), words(one.count)])
        for one in listed
    )
    return [call("decisions", items)] if listed else []


def _kind(kind: str) -> str:
    """The name of a colour of the design; `none` is a word of Typst."""
    return "none-at-all" if kind == "none" else kind


def _or_none(text: str) -> str:
    return words(text) if text else "none"
