"""Questions about counts and shapes: tables of which some lines are left blank.

A side of a shape is asked for by the count that says how long its axis is, so that
`byhand check` can mark it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from random import Random

from byhand.language import _
from byhand.publishing.book import Book
from byhand.publishing.parts import ParameterTable, ShapeTable
from byhand.publishing.worksheets.sheet import Asked, Blank, Questions
from byhand.render.words import whole

SIZES = {  # axis → the count that says how long it is
    "d": "count.d_model",
    "head": "count.heads",
    "kv_head": "count.kv_heads",
    "d_head": "count.d_head",
    "d_ff": "count.d_ff",
    "vocab": "count.vocabulary",
}


def counts_of(book: Book, known: Collection[str]) -> list[Asked]:
    """Every component of the model, and the totals, as far as their counts can be claimed."""
    lines: list[Asked] = []
    for part in (part for passage in book.passages for part in passage.show):
        if isinstance(part, ParameterTable):
            lines += [
                Asked(line.address, line.part, line.formula, whole(line.count), line.tensors)
                for line in part.lines
            ]
            lines += [Asked(address, text, "", whole(n)) for address, text, n in part.totals]
            break
    return [line for line in lines if line.address in known]


def shapes_of(book: Book, known: dict[str, int], random: Random) -> list[Asked]:
    """One side of the shape of some step, for each size that all layers agree on."""
    found = []
    steps = [
        line
        for passage in book.passages
        for part in passage.show
        if isinstance(part, ShapeTable)
        for line in part.lines
    ]
    for axis, address in SIZES.items():
        lines = [line for line in steps if axis in line.axes]
        if lines and address in known:
            line = random.choice(lines)
            sides = " × ".join(
                f"{name} ?" if name == axis else f"{name} {size}"
                for name, size in zip(line.axes, line.shape, strict=True)
            )
            found.append(Asked(address, axis, sides, whole(known[address]), (line.address,)))
    return found


def blanks_of(lines: Sequence[Asked], kind: str) -> list[Blank]:
    """Each line as one that may be left blank."""
    return [
        Blank(line.address, kind, (line.address,), (re.sub(r"\D", "", line.value),), row=False)
        for line in lines
    ]


def questions_of(
    counts: Sequence[Asked], shapes: Sequence[Asked], asked: Sequence[Blank]
) -> Iterator[Questions]:
    """The tables in which something is asked for; of shapes, only what is."""
    addresses = {blank.address for blank in asked}
    if any(line.address in addresses for line in counts):
        yield Questions(
            "counts",
            _("Counted to the digit"),
            _("How many parameters has each part of the model?"),
            (_("component"), _("formula"), _("count")),
            tuple(counts),
        )
    lines = tuple(line for line in shapes if line.address in addresses)
    if lines:
        yield Questions(
            "shapes",
            _("Shapes"),
            _("How long is the axis that has a question mark?"),
            (_("axis"), _("shape"), _("length")),
            lines,
        )
