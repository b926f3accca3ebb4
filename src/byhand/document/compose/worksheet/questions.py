"""Questions about counts and shapes: tables with some lines blank.

A side of a shape is asked for as the count of its axis, so that `byhand check` can mark it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from random import Random

from byhand.counting import Inventory
from byhand.document.compose.listing import component_name, distinct_steps, totals
from byhand.document.compose.worksheet.sheet import Asked, Blank, Questions, Size
from byhand.document.words import whole
from byhand.language import _
from byhand.plan import WEIGHT, Plan

SIZES = {  # axis → the count of its length
    "d": "count.d_model",
    "head": "count.heads",
    "kv_head": "count.kv_heads",
    "d_head": "count.d_head",
    "d_ff": "count.d_ff",
    "vocab": "count.vocabulary",
}
HEADS = {"head", "kv_head"}
TOLD = ("d", "d_head")  # axes whose lengths occur in laws: a mean divides by d, scores by √d_head


def counts_of(inventory: Inventory, known: Collection[str]) -> list[Asked]:
    """Every component and total whose count can be claimed."""
    lines = [
        Asked(
            group.line.address,
            component_name(group.line, group.layers),
            group.line.formula,
            whole(group.line.count),
            tuple(WEIGHT + name for name in group.line.names),
        )
        for group in inventory.groups
    ]
    lines += [Asked(address, text, "", whole(n)) for address, text, n in totals(inventory)]
    return [line for line in lines if line.address in known]


def shapes_of(
    plan: Plan, known: dict[str, int], random: Random, *, beside_values: bool
) -> list[Asked]:
    """One side of the shape of some step, for each size that all layers agree on.

    Beside values, only sizes that laws and sentences do not reveal: no width of the stream or of a
    head, by which they divide, and no size of 1.
    """
    found = []
    steps = [step for step, _times in distinct_steps(plan)]
    for axis, address in SIZES.items():
        lines = [line for line in steps if axis in line.axes]
        told = beside_values and (axis in TOLD or known.get(address) == 1)
        if lines and address in known and not told:
            line = random.choice(lines)
            sides = tuple(map(Size, line.axes, line.shape))
            value = whole(known[address])
            found.append(Asked(address, axis, "", value, (line.address,), sides))
    return found


def sizes_asked(shapes: Sequence[Asked], asked: Sequence[Blank]) -> tuple[Size, ...]:
    """The sizes that a sheet asks for."""
    addresses = {blank.address for blank in asked}
    return tuple(
        side
        for line in shapes
        if line.address in addresses
        for side in line.sides
        if side.axis == line.label
    )


def axes_hidden(sizes: Collection[Size]) -> frozenset[str]:
    """The axes whose lengths a sheet hides; usually there are as many key heads as heads."""
    asked = {size.axis for size in sizes}
    return frozenset(asked | HEADS if asked & HEADS else asked)


def blanks_of(lines: Sequence[Asked], kind: str) -> list[Blank]:
    """Each line as a possible blank."""
    return [
        Blank(line.address, kind, (line.address,), (re.sub(r"\D", "", line.value),), row=False)
        for line in lines
    ]


def questions_of(
    counts: Sequence[Asked], shapes: Sequence[Asked], asked: Sequence[Blank]
) -> Iterator[Questions]:
    """The tables with at least one question.

    Tables of shapes have only the lines asked for.  Tables of counts have other lines too, but none
    that gives an answer away: without sharing, the total equals the number of unique parameters.
    """
    addresses = {blank.address for blank in asked}
    if any(line.address in addresses for line in counts):
        secret = {line.value for line in counts if line.address in addresses}
        yield Questions(
            "counts",
            _("Counted to the digit"),
            _("How many parameters has each part of the model?"),
            (_("component"), _("formula"), _("count")),
            tuple(each for each in counts if each.address in addresses or each.value not in secret),
        )
    hidden = axes_hidden(sizes_asked(shapes, asked))
    lines = tuple(_with_sides(line, hidden) for line in shapes if line.address in addresses)
    if lines:
        yield Questions(
            "shapes",
            _("Shapes"),
            _("How long is the axis that has a question mark?"),
            (_("axis"), _("shape"), _("length")),
            lines,
        )


def _with_sides(line: Asked, hidden: Collection[str]) -> Asked:
    """The line with its shape; for sides that other lines ask for, only the axis name."""
    sides = (
        f"{side.axis} ?"
        if side.axis == line.label
        else side.axis
        if side.axis in hidden
        else f"{side.axis} {side.length}"
        for side in line.sides
    )
    return replace(line, detail=" × ".join(sides))
