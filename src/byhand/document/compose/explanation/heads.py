"""The section on attention: where each head looks, what it reads, and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byhand.document.compose.explanation.numerals import with_sign
from byhand.document.compose.explanation.scope import Scope
from byhand.document.compose.explanation.wording import head_sentences
from byhand.document.parts import (
    MASKED,
    Column,
    Finding,
    Grid,
    LeftOut,
    Number,
    NumberRow,
    NumberTable,
    Part,
    Remark,
)
from byhand.document.words import together, why_missing
from byhand.language import _, amount, later
from byhand.numbers.base import ABSENT
from byhand.worked import weakest

if TYPE_CHECKING:
    from byhand.explaining.circuits import Circuits, Table

FEW_KEYS, MOST_KEYS = 3, 6  # keys listed for a head: in short, and in full
MOST_HEADS, MOST_LISTED = 6, 24  # heads listed: in short, and in full
MOST_TABLES = 4  # heads whose tables are shown
MOST_WRITTEN = 2  # tokens that a head writes towards
MOST_READ = 10  # tokens of a text whose rows of a large table are listed
WIDEST_TABLE = 8  # tokens of a table of QK or OV
WIDEST_FORMS = 4  # columns of a table that has room for forms beside decimals


def parts(scope: Scope) -> Iterator[Part]:
    """Where heads look from this position, and what they read and write in general."""
    found = scope.found
    if not found.heads:
        yield Remark("more", _("this model has no attention"))
        return
    heads, tabled = _chosen(scope)
    hidden = len(found.heads) - len(heads)
    title = _("where each head looks from position {place}, and what it writes having read there")
    yield Grid(
        title.format(place=scope.where(found.position)),
        (Column(_("heads"), "address"), Column(_("looks at")), Column(_("writes"))),
        tuple(_looks(scope, layer, head) for layer, head in heads),
        left_out=amount(
            hidden, later("1 head that adds less"), later("{count} heads that add less")
        )
        if hidden
        else "",
    )
    for layer in dict.fromkeys(layer for layer, _head in tabled):
        circuits = found.circuits(layer)
        yield from _layer(scope, circuits, [head for at, head in tabled if at == layer])
    if scope.full and len(tabled) < len(heads):
        text = _("QK and OV are shown for the {count} heads that add most; --all shows every head")
        yield LeftOut(text.format(count=len(tabled)))


Heads = tuple[tuple[int, int], ...]


def _chosen(scope: Scope) -> tuple[Heads, Heads]:
    """The heads that are listed, and those whose tables are shown."""
    found = scope.found
    if scope.every:
        return found.heads, found.heads
    if scope.full:
        return found.foremost_heads(MOST_LISTED), found.foremost_heads(MOST_TABLES)
    first = found.foremost_heads(MOST_HEADS)
    return first, first


def _looks(scope: Scope, layer: int, head: int) -> tuple[str, str, str]:
    """The keys with the largest weights, and what the head writes when it reads the first."""
    found = scope.found
    name = f"block.{layer}.attn[{head}]"
    weights = found.trace.steps[f"block.{layer}.attn.weights"]
    if weights.missing is not None:
        return name, why_missing(weights.missing), ""
    row = found.shares(layer, head)
    order = [int(at) for at in np.argsort(-np.nan_to_num(row, nan=-1.0), kind="stable")]
    keys = [at for at in order if not np.isnan(row[at])]
    most = len(keys) if scope.every else MOST_KEYS if scope.full else FEW_KEYS
    said = [
        together(f"{scope.place(at)} {scope.number(weights.at((head, found.position, at)))}")
        for at in keys[:most]
    ]
    if not keys:  # floats beyond their range: no weight is a number
        return name, "–", ""
    looks = ", ".join(said) + (" …" if len(keys) > most else "")
    return name, looks, _written(scope, layer, head, found.trace.tokens[keys[0]])


def _written(scope: Scope, layer: int, head: int, token: int) -> str:
    """The tokens that a head writes towards when it reads one; a dash if it prefers none."""
    for each in scope.found.circuits(layer):
        if each.head == head and token in each.ov.rows and each.ov.strongest:
            first = each.ov.strongest[each.ov.rows.index(token)][:MOST_WRITTEN]
            return ", ".join(map(scope.answer, first)) or "–"
    return ""


def _layer(scope: Scope, circuits: Circuits, heads: list[int]) -> Iterator[Part]:
    if circuits.missing is not None:
        yield Remark("more", why_missing(circuits.missing))
        return
    for each in circuits:
        small = scope.found.model.spec.vocab <= WIDEST_TABLE
        if each.head not in heads or not (small or scope.full):
            continue
        if sentences := head_sentences(each, scope.found.model):
            text = _("block {layer}, head {head}: {sentences}")
            said = "; ".join(sentences)
            text = text.format(layer=circuits.layer, head=each.head, sentences=said)
            yield Finding("", (text,))
        if scope.full:
            yield _table(scope, each.qk, "QK", _("looks at"), ("query", "key"))
            yield _table(
                scope, each.ov, "OV", _("writes"), ("key", scope.found.model.spec.answer_axis)
            )
    if scope.full:
        yield from (Remark("more", text) for text in circuits.said)


def _table(
    scope: Scope, table: Table, name: str, word: str, axes: tuple[str, str]
) -> NumberTable | Grid:
    """What a head reads or writes by token; for a large vocabulary the strongest."""
    across = scope.token if axes[-1] == "key" else scope.answer
    if not scope.every and max(len(table.rows), len(table.columns)) > WIDEST_TABLE:
        return _listed(scope, table, f"{name} {table.address}[{table.head}]", word, across)
    rows = []
    for place, row in enumerate(table.rows):
        figures = tuple(_entry(scope, table, row, column) for column in table.columns)
        register = weakest(n.cell.register for n in figures if n.cell.register is not None)
        rows.append(NumberRow(place, scope.token(row), register, figures))
    return NumberTable(
        f"{table.address}[{table.head}]",
        f"{name}: {word}",
        axes,
        (len(table.rows), len(table.columns)),
        tuple(range(len(table.columns))),
        tuple(map(across, table.columns)),
        tuple(rows),
    )


def _entry(scope: Scope, table: Table, row: int, column: int) -> Number:
    entry, address = table.at(row, column), table.address_of(row, column)
    if entry is ABSENT or entry is np.ma.masked:
        return Number(address, MASKED, short="·")
    number = scope.numerals.number(entry, address, form=len(table.columns) <= WIDEST_FORMS)
    return replace(number, short=with_sign(number.short))


def _listed(
    scope: Scope, table: Table, title: str, word: str, across: Callable[[int], str]
) -> Grid:
    """The strongest columns of each row of a large table."""
    own = list(dict.fromkeys(scope.found.trace.tokens))
    rows = [row for row in table.rows if row in own][:MOST_READ]
    cells = []
    for row in rows:
        strongest = table.strongest[table.rows.index(row)][:3] if table.strongest else ()
        said = [together(f"{across(at)} {_entry(scope, table, row, at).short}") for at in strongest]
        cells.append((scope.token(row), ", ".join(said) or _("all alike")))
    hidden = len(table.rows) - len(rows)
    return Grid(
        title,
        (Column(_("token")), Column(word)),
        tuple(cells),
        left_out=amount(hidden, later("1 more row"), later("{count} more rows"))
        if hidden > 0
        else "",
    )
